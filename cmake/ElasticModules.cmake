# Collective backends that need a library of others: each a shared object of its own, which libelastic
# loads when a job asks for it. Built where the library is found; ELASTIC_MODULES names those.
#
# elastic_module(<name> SOURCES <files> LINK <targets>): libelastic_<name>.so.
include(GNUInstallDirs)

# From programs to libraries, where both are installed.
file(RELATIVE_PATH ELASTIC_BIN_TO_LIB ${CMAKE_INSTALL_FULL_BINDIR} ${CMAKE_INSTALL_FULL_LIBDIR})

set(ELASTIC_MODULES "")

find_package(Gloo QUIET)
if(Gloo_FOUND)
  list(APPEND ELASTIC_MODULES gloo)
  message(STATUS "Backend gloo: with Gloo ${GLOO_VERSION}")
else()
  message(STATUS "Backend gloo: not built, Gloo (libgloo-dev) was not found")
endif()

set(MPI_CXX_SKIP_MPICXX ON)
find_package(MPI QUIET COMPONENTS CXX)
if(MPI_CXX_FOUND AND ELASTIC_SANITIZE)
  message(STATUS "Backend mpi: not built, sanitizers stop at what MPI itself does")
elseif(MPI_CXX_FOUND)
  list(APPEND ELASTIC_MODULES mpi)
  message(STATUS "Backend mpi: with MPI ${MPI_CXX_VERSION}")
else()
  message(STATUS "Backend mpi: not built, MPI (libopenmpi-dev or libmpich-dev) was not found")
endif()

# NCCL is loaded at run time: what is needed here is its header, and CUDA's for that. NCCL_ROOT says
# where else to look; the preset cuda (ELASTIC_CUDA) insists on both.
find_package(CUDAToolkit QUIET)
find_path(NCCL_INCLUDE_DIR nccl.h
          HINTS ${NCCL_ROOT} ENV NCCL_ROOT ENV NCCL_HOME ${CUDAToolkit_INCLUDE_DIRS}
          PATH_SUFFIXES include)
mark_as_advanced(NCCL_INCLUDE_DIR)
set(nccl_version "")
if(NCCL_INCLUDE_DIR)
  foreach(part MAJOR MINOR PATCH)
    file(STRINGS ${NCCL_INCLUDE_DIR}/nccl.h line REGEX "^#define NCCL_${part} +[0-9]+")
    string(REGEX REPLACE "[^0-9]" "" number "${line}")
    list(APPEND nccl_version ${number})
  endforeach()
  list(JOIN nccl_version . nccl_version)
endif()
if(NOT ELASTIC_CUDA)
  set(nccl_missing "ELASTIC_CUDA is OFF")
elseif(NOT CUDAToolkit_FOUND)
  set(nccl_missing "the CUDA toolkit (12 or 13) was not found")
elseif(CUDAToolkit_VERSION VERSION_LESS 12)
  set(nccl_missing "CUDA 12 or later is needed, and this is ${CUDAToolkit_VERSION}")
elseif(NOT NCCL_INCLUDE_DIR)
  set(nccl_missing "NCCL (libnccl-dev, or NCCL_ROOT) was not found")
elseif(nccl_version VERSION_LESS 2.18)
  set(nccl_missing "NCCL 2.18 or later is needed, and ${NCCL_INCLUDE_DIR} has ${nccl_version}")
else()
  set(nccl_missing "")
endif()
if(nccl_missing STREQUAL "")
  list(APPEND ELASTIC_MODULES nccl)
  message(STATUS "Backend nccl: with NCCL ${nccl_version} and CUDA ${CUDAToolkit_VERSION}")
elseif(ELASTIC_CUDA_REQUIRED)
  message(FATAL_ERROR "Backend nccl: ELASTIC_CUDA is ${ELASTIC_CUDA}, but ${nccl_missing}. Install it, "
                      "or -DELASTIC_CUDA=AUTO builds without it")
else()
  message(STATUS "Backend nccl: not built, ${nccl_missing}")
endif()

# A module serves this very build of the library: they share classes, not only functions.
set(ELASTIC_MODULE_ABI "elastic ${PROJECT_VERSION} modules 7 ${CMAKE_CXX_COMPILER_ID} \
${CMAKE_CXX_COMPILER_VERSION} ${CMAKE_BUILD_TYPE} ${ELASTIC_SANITIZE}")

function(elastic_module name)
  cmake_parse_arguments(arg "" "" "SOURCES;LINK" ${ARGN})
  add_library(elastic_${name} MODULE ${arg_SOURCES})
  target_compile_definitions(elastic_${name} PRIVATE ELASTIC_MODULE_ABI="${ELASTIC_MODULE_ABI}")
  target_link_libraries(elastic_${name} PRIVATE ${arg_LINK})
  target_link_options(elastic_${name} PRIVATE
                      LINKER:--version-script=${PROJECT_SOURCE_DIR}/cmake/module.map)
  set_property(TARGET elastic_${name} APPEND PROPERTY
               LINK_DEPENDS ${PROJECT_SOURCE_DIR}/cmake/module.map)
endfunction()
