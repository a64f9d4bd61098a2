# Kernels for CUDA devices: built where a toolkit is found, as ELASTIC_CUDA says. Sets
# ELASTIC_CUDA_REQUIRED, whether what CUDA is needed for must be there, and ELASTIC_CUDA_FOUND; there
# is CUDA::cudart_static then.
#
# elastic_cuda_library(<name> <sources>): a static library of CUDA sources.
# elastic_cuda_image(<target> <macro> <cuda source> <source>): compiles a CUDA source to an image that the
#   driver loads. <macro> is the path of the image, as a string, in <source> of the target.
set(ELASTIC_CUDA AUTO CACHE STRING
    "Kernels for CUDA devices: AUTO (where a toolkit is found), ON (it must be found) or OFF")
set_property(CACHE ELASTIC_CUDA PROPERTY STRINGS AUTO ON OFF)
set(ELASTIC_CUDA_ARCHITECTURES "${CMAKE_CUDA_ARCHITECTURES}" CACHE STRING
    "What device code is for, as CMAKE_CUDA_ARCHITECTURES has it; empty: what the toolkit can")
set(ELASTIC_CUDA_FOUND OFF)
set(ELASTIC_CUDA_REQUIRED OFF)
if(ELASTIC_CUDA AND NOT ELASTIC_CUDA STREQUAL "AUTO")
  set(ELASTIC_CUDA_REQUIRED ON)
endif()
set(elastic_cuda_least 12.0)  # The first with C++20.

# What people train on, of what the toolkit knows, and code for the driver to compile for what comes
# later. CUDA 13 has nothing for V100 any more. Each takes some 6 s, so who does not ask for CUDA gets
# the fewest that run everywhere, or have the driver compile something, where that is as fast.
function(elastic_choose_architectures)
  if(ELASTIC_CUDA_ARCHITECTURES)
    return()
  endif()
  if(CMAKE_CUDA_COMPILER_VERSION VERSION_LESS 13)
    set(chosen 70-real)
  endif()
  if(CMAKE_CUDA_COMPILER_VERSION VERSION_LESS 12.8 OR NOT ELASTIC_CUDA_REQUIRED)
    list(APPEND chosen 80-real 90)
  else()
    list(APPEND chosen 80-real 90-real 100-real 120)
  endif()
  set(ELASTIC_CUDA_ARCHITECTURES ${chosen} PARENT_SCOPE)
endfunction()

# elastic_no_cuda(<why>): ends this file.
macro(elastic_no_cuda why)
  if(NOT ELASTIC_CUDA_REQUIRED)
    message(STATUS "CUDA kernels: not built, ${why}")
    return()
  endif()
  message(FATAL_ERROR "ELASTIC_CUDA is ${ELASTIC_CUDA}, but ${why}. nvcc is looked for in PATH; "
                      "-DCMAKE_CUDA_COMPILER=/usr/local/cuda/bin/nvcc names another. "
                      "-DELASTIC_CUDA=AUTO builds without CUDA where there is none.")
endmacro()

if(NOT ELASTIC_CUDA)
  message(STATUS "CUDA kernels: not built, ELASTIC_CUDA is OFF")
  return()
endif()
if(ELASTIC_SANITIZE)
  elastic_no_cuda("sanitizers see nothing of a device")
endif()

# The compiler that compiles the rest, unless another one was named.
if(NOT CMAKE_CUDA_HOST_COMPILER AND NOT DEFINED ENV{CUDAHOSTCXX})
  set(CMAKE_CUDA_HOST_COMPILER ${CMAKE_CXX_COMPILER} CACHE FILEPATH "nvcc's C++ compiler")
endif()
include(CheckLanguage)
check_language(CUDA)
if(NOT CMAKE_CUDA_COMPILER)
  elastic_no_cuda("there is no nvcc, or none that works with ${CMAKE_CUDA_HOST_COMPILER}")
endif()
enable_language(CUDA)
if(CMAKE_CUDA_COMPILER_VERSION VERSION_LESS ${elastic_cuda_least})
  elastic_no_cuda("${CMAKE_CUDA_COMPILER} is of CUDA ${CMAKE_CUDA_COMPILER_VERSION}, and there is \
C++20 from ${elastic_cuda_least} on")
endif()
if(NOT CMAKE_CUDA20_STANDARD_COMPILE_OPTION)  # CMake 3.25 does not know it.
  set(CMAKE_CUDA20_STANDARD_COMPILE_OPTION -std=c++20)
endif()
find_package(CUDAToolkit QUIET)
if(NOT TARGET CUDA::cudart_static)
  elastic_no_cuda("there is no CUDA runtime with ${CMAKE_CUDA_COMPILER}")
endif()
if(ELASTIC_CCACHE AND NOT CMAKE_CUDA_COMPILER_LAUNCHER)
  set(CMAKE_CUDA_COMPILER_LAUNCHER ${CMAKE_CXX_COMPILER_LAUNCHER})
endif()
elastic_choose_architectures()
set(ELASTIC_CUDA_FOUND ON)
list(JOIN ELASTIC_CUDA_ARCHITECTURES " " elastic_architectures)
message(STATUS "CUDA kernels: with CUDA ${CMAKE_CUDA_COMPILER_VERSION}, for ${elastic_architectures}")

function(elastic_cuda_library name)
  add_library(${name} STATIC ${ARGN})
  # What reads compile commands knows no nvcc.
  set_target_properties(
    ${name}
    PROPERTIES CUDA_STANDARD 20 CUDA_STANDARD_REQUIRED ON CUDA_EXTENSIONS OFF
               CUDA_VISIBILITY_PRESET hidden CUDA_ARCHITECTURES "${ELASTIC_CUDA_ARCHITECTURES}"
               UNITY_BUILD OFF EXPORT_COMPILE_COMMANDS OFF)
  # Pedantic warnings are about what nvcc makes of the sources. CUDA 12.8 and 12.9 warn of each compilation for
  # V100 (7.0) that CUDA 13 drops it, which -Werror=all-warnings would make an error.
  target_compile_options(${name} PRIVATE --expt-relaxed-constexpr -Wno-deprecated-gpu-targets
                                         -Xcompiler=-Wall,-Wextra,-Wshadow)
  if(CMAKE_COMPILE_WARNING_AS_ERROR)  # CMake itself says so to nvcc, but not to the host compiler.
    target_compile_options(${name} PRIVATE -Xcompiler=-Werror)
  endif()
  target_link_libraries(${name} PUBLIC elastic_compile CUDA::cudart_static)
endfunction()

# An architecture as in CMAKE_CUDA_ARCHITECTURES, in nvcc's words.
function(elastic_nvcc_architecture architecture options)
  string(REGEX MATCH "^[0-9]+[af]?" number "${architecture}")
  if(NOT number)
    set(${options} -arch=${architecture} PARENT_SCOPE)
  elseif(architecture MATCHES "-real$")
    set(${options} -gencode=arch=compute_${number},code=sm_${number} PARENT_SCOPE)
  elseif(architecture MATCHES "-virtual$")
    set(${options} -gencode=arch=compute_${number},code=compute_${number} PARENT_SCOPE)
  else()
    set(${options} "-gencode=arch=compute_${number},code=[sm_${number},compute_${number}]" PARENT_SCOPE)
  endif()
endfunction()

# Without contraction of products and sums: the results have the bits of the host's.
function(elastic_cuda_image target macro cuda_source source)
  set(image ${CMAKE_CURRENT_BINARY_DIR}/${target}.fatbin)
  set(input ${CMAKE_CURRENT_SOURCE_DIR}/${cuda_source})
  set(compiler ${CMAKE_CXX_COMPILER})
  if(CMAKE_CUDA_HOST_COMPILER)
    set(compiler ${CMAKE_CUDA_HOST_COMPILER})
  endif()
  set(options -std=c++20 --expt-relaxed-constexpr -fmad=false -Wno-deprecated-gpu-targets
              -ccbin=${compiler} -Xcompiler=-Wall,-Wextra,-Wshadow)
  if(CMAKE_COMPILE_WARNING_AS_ERROR)
    list(APPEND options -Werror=all-warnings)
  endif()
  foreach(architecture IN LISTS ELASTIC_CUDA_ARCHITECTURES)
    elastic_nvcc_architecture(${architecture} code)
    list(APPEND options ${code})
  endforeach()
  add_custom_command(
    OUTPUT ${image}
    COMMAND ${CMAKE_CUDA_COMPILER} -fatbin ${options} -I${PROJECT_SOURCE_DIR} -I${PROJECT_SOURCE_DIR}/include
            -MD -MF ${image}.d -o ${image} ${input}
    DEPENDS ${input} DEPFILE ${image}.d
    COMMENT "Compiling ${cuda_source} for CUDA devices" VERBATIM)
  set_source_files_properties(${source} PROPERTIES OBJECT_DEPENDS ${image}
                                                   COMPILE_DEFINITIONS "${macro}=\"${image}\"")
endfunction()
