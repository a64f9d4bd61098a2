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

# Programs of tests are built and run in shares, if asked for: "I/N" has every N-th from the I-th on.
set(ELASTIC_TEST_SHARE "" CACHE STRING "build and run one test program of several, as I/N; empty: all")

# elastic_test_is_in_share(<variable>): whether the next test program is to be built with the others.
function(elastic_test_is_in_share result)
  set(${result} TRUE PARENT_SCOPE)
  if(NOT ELASTIC_TEST_SHARE MATCHES "^([0-9]+)/([0-9]+)$")
    return()
  endif()
  set(first ${CMAKE_MATCH_1})
  set(of ${CMAKE_MATCH_2})
  get_property(number GLOBAL PROPERTY ELASTIC_TEST_PROGRAMS)
  math(EXPR following "0${number} + 1")
  set_property(GLOBAL PROPERTY ELASTIC_TEST_PROGRAMS ${following})
  math(EXPR place "(${following} - ${first}) % ${of}")
  if(NOT place EQUAL 0)
    set(${result} FALSE PARENT_SCOPE)
  endif()
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
  elastic_test_is_in_share(is_in_share)
  if(NOT is_in_share)
    set_target_properties(${arg_NAME} PROPERTIES EXCLUDE_FROM_ALL TRUE)
    return()
  endif()
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

# elastic_test_of_program(NAME <name> PROGRAM <test program> FILTER <tests> LABEL <label> ENVIRONMENT <NAME=value>):
# tests of a program that has tests of its own, once more in another environment. Not where that program is not in the
# share.
function(elastic_test_of_program)
  cmake_parse_arguments(arg "" "NAME;PROGRAM;FILTER;LABEL;ENVIRONMENT" "" ${ARGN})
  get_target_property(is_left_out ${arg_PROGRAM} EXCLUDE_FROM_ALL)
  if(is_left_out)
    return()
  endif()
  add_test(NAME ${arg_NAME} COMMAND ${arg_PROGRAM} --gtest_filter=${arg_FILTER})
  set_tests_properties(${arg_NAME} PROPERTIES LABELS "${arg_LABEL}" TIMEOUT 60 ENVIRONMENT "${arg_ENVIRONMENT}")
endfunction()
