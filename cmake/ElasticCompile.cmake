# How everything here is compiled: C++20, hidden symbols, position independent. All of it concerns this
# folder and those below it alone: a project that adds elastic as a subdirectory keeps its own settings.
#
# The presets ask for warnings (ELASTIC_WARNINGS) and for unity builds, where the sources of a library or
# program are compiled in one piece, which takes half as long. Warnings are errors where
# CMAKE_COMPILE_WARNING_AS_ERROR says so: the developers' presets set it, the environment variable
# WARNINGS_ARE_ERRORS sets it for any build here, and nothing else does. The cache keeps what was set. Another
# compiler has other warnings.

if(PROJECT_IS_TOP_LEVEL AND NOT "$ENV{WARNINGS_ARE_ERRORS}" STREQUAL "")
  set(CMAKE_COMPILE_WARNING_AS_ERROR $ENV{WARNINGS_ARE_ERRORS} CACHE BOOL "Warnings are errors" FORCE)
endif()
set(CMAKE_CXX_STANDARD 20)
set(CMAKE_CXX_STANDARD_REQUIRED ON)
set(CMAKE_CXX_EXTENSIONS OFF)
set(CMAKE_C_STANDARD 99)
set(CMAKE_C_EXTENSIONS OFF)
set(CMAKE_CXX_VISIBILITY_PRESET hidden)
set(CMAKE_VISIBILITY_INLINES_HIDDEN ON)
set(CMAKE_POSITION_INDEPENDENT_CODE ON)
set(CMAKE_EXPORT_COMPILE_COMMANDS ON)
set(CMAKE_RUNTIME_OUTPUT_DIRECTORY ${PROJECT_BINARY_DIR}/bin)
set(CMAKE_LIBRARY_OUTPUT_DIRECTORY ${PROJECT_BINARY_DIR}/lib)

option(ELASTIC_WARNINGS "Compile with the compiler's warnings" OFF)
set(ELASTIC_SANITIZE "" CACHE STRING "Sanitizers to build with: address,undefined or thread")

find_program(ELASTIC_CCACHE ccache)
if(ELASTIC_CCACHE AND NOT CMAKE_CXX_COMPILER_LAUNCHER AND NOT DEFINED ENV{CCACHE_DISABLE})
  # As it must be told where headers are precompiled.
  set(CMAKE_CXX_COMPILER_LAUNCHER ${CMAKE_COMMAND} -E env CCACHE_SLOPPINESS=pch_defines,time_macros
                                  ${ELASTIC_CCACHE})
endif()

add_library(elastic_compile INTERFACE)
set(elastic_warnings "")
if(ELASTIC_WARNINGS)
  list(APPEND elastic_warnings -Wall -Wextra -Wpedantic -Wshadow -Wconversion -Wsign-conversion
       -Wnon-virtual-dtor)
endif()
if(CMAKE_CXX_COMPILER_ID STREQUAL "GNU")
  # False positives of GCC 12 inside Asio, fmt, std::variant and std::string.
  list(APPEND elastic_warnings -Wno-maybe-uninitialized -Wno-stringop-overflow -Wno-array-bounds
       -Wno-restrict -Wno-tsan -Wno-mismatched-new-delete)
  if(CMAKE_UNITY_BUILD)  # It takes the sources of one library for headers.
    list(APPEND elastic_warnings -Wno-subobject-linkage)
  endif()
endif()
target_compile_options(elastic_compile INTERFACE "$<$<COMPILE_LANGUAGE:CXX>:${elastic_warnings}>")
target_compile_definitions(elastic_compile INTERFACE BOOST_ASIO_NO_DEPRECATED
                                                     BOOST_ERROR_CODE_HEADER_ONLY)
target_include_directories(elastic_compile INTERFACE ${PROJECT_SOURCE_DIR}/include
                                                     ${PROJECT_SOURCE_DIR}/src ${PROJECT_SOURCE_DIR})
# elastic_command_lines(<target> <sources>): sources of <target> with CLI11 in them. That is most of what
# there is to compile of them, and runs once: all in one piece, and with little optimization. Not with none:
# the linker may take copies from there of what others use, too, such as std::string's functions.
function(elastic_command_lines target)
  set(command_lines ${target}_command_lines)
  add_library(${command_lines} OBJECT ${ARGN})
  target_compile_options(${command_lines} PRIVATE $<IF:$<CONFIG:Release>,-O1,-O0>)
  target_link_libraries(${command_lines} PRIVATE CLI11::CLI11 $<TARGET_PROPERTY:${target},LINK_LIBRARIES>)
  target_sources(${target} PRIVATE $<TARGET_OBJECTS:${command_lines}>)
endfunction()

# elastic_little_optimized(<targets>): programs that mostly write JSON and wait. Optimizing what
# nlohmann_json expands to would take a third of the time they take to compile.
function(elastic_little_optimized)
  foreach(target ${ARGN})
    target_compile_options(${target} PRIVATE $<$<CONFIG:Release>:-O1>)
  endforeach()
endfunction()

if(ELASTIC_SANITIZE)
  add_compile_options(-fsanitize=${ELASTIC_SANITIZE} -fno-omit-frame-pointer -fno-sanitize-recover=all)
  if(ELASTIC_SANITIZE MATCHES undefined)
    # The checks of pointers: AddressSanitizer sees most of what they are about, and they double the
    # time that everything with Asio in it takes to compile.
    add_compile_options(-fno-sanitize=null,alignment,object-size,vptr)
  endif()
  add_link_options(-fsanitize=${ELASTIC_SANITIZE})
  find_program(ELASTIC_LLD ld.lld)
  if(ELASTIC_LLD)  # A third of the time for each of all those tests.
    add_link_options(-fuse-ld=lld)
  endif()
  if(CMAKE_CXX_COMPILER_ID STREQUAL "Clang")
    # Clang before 17 cannot have it in functions that are coroutines.
    add_compile_options(-fno-sanitize=function)
  endif()
endif()
