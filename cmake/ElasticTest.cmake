# elastic_test(NAME <name> SOURCES <files> LINK <targets> LABEL unit|contract|integration|fault
#              [TIMEOUT <seconds>])
# One GoogleTest program; each of its tests is a test of its own with its own process and timeout.
include(GoogleTest)

function(elastic_test)
  cmake_parse_arguments(arg "" "NAME;LABEL;TIMEOUT" "SOURCES;LINK" ${ARGN})
  if(NOT arg_TIMEOUT)
    set(arg_TIMEOUT 60)
  endif()
  if(ELASTIC_SANITIZE)
    math(EXPR arg_TIMEOUT "${arg_TIMEOUT} * 4")
  endif()
  # Several processes each: not next to others on a machine of two cores.
  set(processors 1)
  if(arg_LABEL MATCHES "integration|fault")
    set(processors 2)
  endif()
  add_executable(${arg_NAME} ${arg_SOURCES})
  # Assertions are most of what there is to compile here, and what the sanitizers are for is the
  # library: without optimization, and without what costs most, the build takes half the time.
  if(arg_LABEL STREQUAL contract)  # These make and compare a lot of data themselves.
    target_compile_options(${arg_NAME} PRIVATE -O1 -g0)
  else()
    target_compile_options(${arg_NAME} PRIVATE -O0 -g0)
  endif()
  if(ELASTIC_SANITIZE MATCHES undefined)
    target_compile_options(${arg_NAME} PRIVATE -fno-sanitize=undefined)
  endif()
  target_link_libraries(${arg_NAME} PRIVATE elastic_compile ${arg_LINK} GTest::gmock GTest::gtest_main)
  # A process for each test; where starting one is slow, one for all that need no process of their own.
  if(ELASTIC_SANITIZE AND arg_LABEL MATCHES "unit|contract")
    add_test(NAME ${arg_NAME} COMMAND ${arg_NAME})
    set_tests_properties(${arg_NAME} PROPERTIES LABELS "${arg_LABEL}" TIMEOUT 900)
    return()
  endif()
  gtest_discover_tests(${arg_NAME} DISCOVERY_TIMEOUT 60
                       PROPERTIES LABELS "${arg_LABEL}" TIMEOUT ${arg_TIMEOUT}
                                  PROCESSORS ${processors})
endfunction()
