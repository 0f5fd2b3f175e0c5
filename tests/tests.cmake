# Each tests/unit/test_*.c is one cmocka program linked with every layer; tests/integration likewise.
# tests/support/*.c is shared by them (clock, stores in temporary directories, the fault-injecting driver).
file(GLOB support_sources CONFIGURE_DEPENDS ${CMAKE_SOURCE_DIR}/tests/support/*.c)
add_library(test_support STATIC ${support_sources})
target_compile_definitions(test_support PUBLIC TEST_SOURCE_DIR="${CMAKE_SOURCE_DIR}")
target_link_libraries(test_support PUBLIC client api reconcilers controller base cmocka crypto gnutls)
# The quick client of the sbx stand-in, which test programs and end-to-end scripts take for `sbx`: plain, whatever the build.
add_executable(sbx_client ${CMAKE_SOURCE_DIR}/tests/fakes/sbx_client.c)
target_compile_definitions(sbx_client PRIVATE SBX_STANDIN="${CMAKE_SOURCE_DIR}/tests/fakes/sbx")
target_compile_options(sbx_client PRIVATE -fno-sanitize=all)
target_link_options(sbx_client PRIVATE -fno-sanitize=all -static)
set_target_properties(sbx_client PROPERTIES RUNTIME_OUTPUT_DIRECTORY ${CMAKE_BINARY_DIR}/tests/standin OUTPUT_NAME sbx)
add_dependencies(test_support sbx_client)
foreach(kind unit integration)
  file(GLOB test_sources CONFIGURE_DEPENDS ${CMAKE_SOURCE_DIR}/tests/${kind}/test_*.c)
  foreach(source ${test_sources})
    get_filename_component(name ${source} NAME_WE)
    add_executable(${kind}_${name} ${source})
    target_link_libraries(${kind}_${name} PRIVATE test_support guest egress cli)
    set_target_properties(${kind}_${name} PROPERTIES RUNTIME_OUTPUT_DIRECTORY ${CMAKE_BINARY_DIR}/tests)
  endforeach()
endforeach()

# Each tests/fuzz/fuzz_NAME.c is a fuzz target. Ordinary builds replay its committed corpus (unit_fuzz_NAME); with FUZZ it is
# built with libFuzzer as fuzz/NAME. A target may stand in for functions of the program: its own come first.
file(GLOB fuzz_sources CONFIGURE_DEPENDS ${CMAKE_SOURCE_DIR}/tests/fuzz/fuzz_*.c)
add_custom_target(fuzz)
foreach(source ${fuzz_sources})
  get_filename_component(target ${source} NAME_WE)
  string(REPLACE "fuzz_" "" name ${target})
  if(FUZZ)
    add_executable(${target} EXCLUDE_FROM_ALL ${source} ${CMAKE_SOURCE_DIR}/tests/fuzz/expect.c)
    target_link_options(${target} PRIVATE -fsanitize=fuzzer)
    set_target_properties(${target} PROPERTIES RUNTIME_OUTPUT_DIRECTORY ${CMAKE_BINARY_DIR}/fuzz OUTPUT_NAME ${name})
    add_dependencies(fuzz ${target})
    target_link_libraries(${target} PRIVATE api guest copy)
  else()
    set(target unit_${target})
    add_executable(${target} ${source} ${CMAKE_SOURCE_DIR}/tests/fuzz/expect.c ${CMAKE_SOURCE_DIR}/tests/fuzz/replay.c)
    set_target_properties(${target} PROPERTIES RUNTIME_OUTPUT_DIRECTORY ${CMAKE_BINARY_DIR}/tests)
    target_link_libraries(${target} PRIVATE test_support api guest copy)
  endif()
  target_compile_definitions(${target} PRIVATE FUZZ_NAME="${name}")
  target_link_options(${target} PRIVATE -Wl,-z,muldefs)
endforeach()

# Figures, not tests: `cmake --build DIR --target bench` builds tests/bench/bench_*.c into DIR/bench/.
add_custom_target(bench)
file(GLOB bench_sources CONFIGURE_DEPENDS ${CMAKE_SOURCE_DIR}/tests/bench/bench_*.c)
foreach(source ${bench_sources})
  get_filename_component(name ${source} NAME_WE)
  add_executable(${name} EXCLUDE_FROM_ALL ${source})
  target_link_libraries(${name} PRIVATE test_support guest egress)
  set_target_properties(${name} PROPERTIES RUNTIME_OUTPUT_DIRECTORY ${CMAKE_BINARY_DIR}/bench)
  add_dependencies(bench ${name})
endforeach()

# The daemon with the fixed-name tools of the MCP conformance suite as well, for tests/conformance/mcp: the product's own objects, but
# for the few files that know of those tools. What is released is never linked with them.
embed(${CMAKE_BINARY_DIR}/conformance/embedded.c ${embedded_files})
file(GLOB conformance_sources CONFIGURE_DEPENDS ${CMAKE_SOURCE_DIR}/api/tools/conformance/*.c)
add_executable(conformance EXCLUDE_FROM_ALL ${CMAKE_SOURCE_DIR}/cli/main.c ${CMAKE_SOURCE_DIR}/api/tools/catalogue.c ${CMAKE_SOURCE_DIR}/api/tools/table.c
               ${CMAKE_SOURCE_DIR}/api/mcp/methods.c ${conformance_sources} ${CMAKE_BINARY_DIR}/conformance/embedded.c)
target_compile_definitions(conformance PRIVATE CHAT2SHELL_CONFORMANCE_TOOLS=1)
target_link_libraries(conformance PRIVATE cli)
set_target_properties(conformance PROPERTIES RUNTIME_OUTPUT_DIRECTORY ${CMAKE_BINARY_DIR}/conformance OUTPUT_NAME chat2shell)

# The program that tries every hard rule inside a sandbox: static and plain, whatever the build.
add_executable(sandbox_probe ${CMAKE_SOURCE_DIR}/tests/probe/probe.c)
target_compile_options(sandbox_probe PRIVATE -fno-sanitize=all)
target_link_options(sandbox_probe PRIVATE -fno-sanitize=all -static)
set_target_properties(sandbox_probe PROPERTIES RUNTIME_OUTPUT_DIRECTORY ${CMAKE_BINARY_DIR}/tests)
