# Each tests/unit/test_*.c is one cmocka program linked with every layer; tests/integration likewise.
# tests/support/*.c is shared by them (clock, stores in temporary directories, the fault-injecting driver).
file(GLOB support_sources CONFIGURE_DEPENDS ${CMAKE_SOURCE_DIR}/tests/support/*.c)
add_library(test_support STATIC ${support_sources})
target_compile_definitions(test_support PUBLIC TEST_SOURCE_DIR="${CMAKE_SOURCE_DIR}")
target_link_libraries(test_support PUBLIC client api reconcilers controller base cmocka crypto)
foreach(kind unit integration)
  file(GLOB test_sources CONFIGURE_DEPENDS ${CMAKE_SOURCE_DIR}/tests/${kind}/test_*.c)
  foreach(source ${test_sources})
    get_filename_component(name ${source} NAME_WE)
    add_executable(${kind}_${name} ${source})
    target_link_libraries(${kind}_${name} PRIVATE test_support guest egress cli)
    set_target_properties(${kind}_${name} PROPERTIES RUNTIME_OUTPUT_DIRECTORY ${CMAKE_BINARY_DIR}/tests)
  endforeach()
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

# The program that tries every hard rule inside a sandbox: static and plain, whatever the build.
add_executable(sandbox_probe ${CMAKE_SOURCE_DIR}/tests/probe/probe.c)
target_compile_options(sandbox_probe PRIVATE -fno-sanitize=all)
target_link_options(sandbox_probe PRIVATE -fno-sanitize=all -static)
set_target_properties(sandbox_probe PROPERTIES RUNTIME_OUTPUT_DIRECTORY ${CMAKE_BINARY_DIR}/tests)
