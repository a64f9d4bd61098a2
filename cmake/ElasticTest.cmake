# elastic_test(NAME <name> SOURCES <files> LINK <targets> LABEL unit|contract|integration|fault|gpu
#              [TIMEOUT <seconds>])
# One GoogleTest program; each of its tests is a test of its own with its own process and timeout. The
# target gpu_tests builds all programs labelled gpu.
include(GoogleTest)

# What compiles the same way in all of them: assertions are most of what there is to compile, and what
# the sanitizers are for is the library. Without optimization and without what costs most, and with
# GoogleTest's headers compiled once, a build takes half the time.
set(elastic_test_options -O0 -g0 -fPIC)
if(ELASTIC_SANITIZE MATCHES undefined)
  list(APPEND elastic_test_options -fno-sanitize=undefined)
endif()

function(elastic_test_headers)
  set(source ${CMAKE_CURRENT_BINARY_DIR}/test_headers.cpp)
  file(CONFIGURE OUTPUT ${source} CONTENT "// Compiled with the headers of all tests.\n")
  add_library(elastic_test_headers OBJECT ${source})
  target_compile_options(elastic_test_headers PRIVATE ${elastic_test_options})
  target_link_libraries(elastic_test_headers PRIVATE elastic_compile GTest::gmock)
  target_precompile_headers(elastic_test_headers PRIVATE <chrono> <filesystem> <functional> <random>
                            <string> <thread> <vector> <gmock/gmock.h> <gtest/gtest.h>)
endfunction()

function(elastic_test)
  cmake_parse_arguments(arg "" "NAME;LABEL;TIMEOUT" "SOURCES;LINK" ${ARGN})
  if(NOT arg_TIMEOUT)
    set(arg_TIMEOUT 60)
  endif()
  if(ELASTIC_SANITIZE)
    math(EXPR arg_TIMEOUT "${arg_TIMEOUT} * 4")
  endif()
  # These look at how long things take: not next to others on a machine of two cores.
  set(processors 1)
  if(arg_LABEL STREQUAL fault)
    set(processors 2)
  endif()
  if(arg_LABEL STREQUAL gpu)
    set_property(GLOBAL APPEND PROPERTY ELASTIC_GPU_TESTS ${arg_NAME})
  endif()
  add_executable(${arg_NAME} ${arg_SOURCES})
  target_compile_options(${arg_NAME} PRIVATE ${elastic_test_options})
  if(arg_LABEL STREQUAL contract)  # These make and compare a lot of data themselves.
    target_compile_options(${arg_NAME} PRIVATE -O1)
  else()
    target_precompile_headers(${arg_NAME} REUSE_FROM elastic_test_headers)
  endif()
  target_link_libraries(${arg_NAME} PRIVATE elastic_compile ${arg_LINK} GTest::gmock GTest::gtest_main)
  # A process for each test; where starting one is slow, one for all that need no process of their own.
  if(ELASTIC_SANITIZE AND arg_LABEL MATCHES "unit|contract")
    add_test(NAME ${arg_NAME} COMMAND ${arg_NAME} --gtest_brief=1)
    set_tests_properties(${arg_NAME} PROPERTIES LABELS "${arg_LABEL}" TIMEOUT 1800)
    return()
  endif()
  gtest_discover_tests(${arg_NAME} NO_PRETTY_VALUES DISCOVERY_TIMEOUT 60
                       PROPERTIES LABELS "${arg_LABEL}" TIMEOUT ${arg_TIMEOUT}
                                  PROCESSORS ${processors})
endfunction()
