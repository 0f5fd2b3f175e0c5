# Each tests/unit/test_*.c is one cmocka program linked with every layer; tests/integration likewise.
# tests/support/*.c is shared by them (clock, stores in temporary directories, the fault-injecting driver).
file(GLOB support_sources CONFIGURE_DEPENDS ${CMAKE_SOURCE_DIR}/tests/support/*.c)
add_library(test_support STATIC ${support_sources})
target_link_libraries(test_support PUBLIC client api reconcilers controller base cmocka)
foreach(kind unit integration)
  file(GLOB test_sources CONFIGURE_DEPENDS ${CMAKE_SOURCE_DIR}/tests/${kind}/test_*.c)
  foreach(source ${test_sources})
    get_filename_component(name ${source} NAME_WE)
    add_executable(${kind}_${name} ${source})
    target_link_libraries(${kind}_${name} PRIVATE test_support guest egress)
    set_target_properties(${kind}_${name} PROPERTIES RUNTIME_OUTPUT_DIRECTORY ${CMAKE_BINARY_DIR}/tests)
  endforeach()
endforeach()
