# Debian packages of an installed elastic: `cpack` in a build folder. The library, what a trainer is
# compiled with, the programs, and each backend that needs another library are packages of their own.
# What they depend on is found by dpkg-shlibdeps, in the libraries' own words.
set(CPACK_GENERATOR DEB)
set(CPACK_PACKAGE_NAME elastic)
set(CPACK_PACKAGE_VENDOR "the elastic project")
set(CPACK_PACKAGE_CONTACT "the elastic project <maintainers@elastic.invalid>")
set(CPACK_PACKAGING_INSTALL_PREFIX /usr)
set(CPACK_DEB_COMPONENT_INSTALL ON)
set(CPACK_DEBIAN_FILE_NAME DEB-DEFAULT)
set(CPACK_DEBIAN_PACKAGE_SECTION libs)
set(CPACK_DEBIAN_PACKAGE_SHLIBDEPS ON)
set(CPACK_DEBIAN_PACKAGE_SHLIBDEPS_PRIVATE_DIRS ${CMAKE_LIBRARY_OUTPUT_DIRECTORY})
set(CPACK_STRIP_FILES ON)
set(CPACK_COMPONENTS_ALL library development programs ${ELASTIC_MODULES})

# elastic_package(<component> <package> <description> <further fields and their values>)
macro(elastic_package component package description)
  string(TOUPPER ${component} elastic_component)
  set(CPACK_DEBIAN_${elastic_component}_PACKAGE_NAME ${package})
  set(CPACK_DEBIAN_${elastic_component}_DESCRIPTION ${description})
  set(elastic_fields ${ARGN})
  while(elastic_fields)
    list(POP_FRONT elastic_fields elastic_field elastic_value)
    set(CPACK_DEBIAN_${elastic_component}_PACKAGE_${elastic_field} ${elastic_value})
  endwhile()
endmacro()

set(elastic_library libelastic${PROJECT_VERSION_MAJOR}.${PROJECT_VERSION_MINOR})
set(elastic_same_library "${elastic_library} (= ${PROJECT_VERSION})")
elastic_package(library ${elastic_library} "Allreduce for trainers on machines that come and go")
elastic_package(development libelastic-dev "Headers of elastic, for CMake and pkg-config"
                DEPENDS ${elastic_same_library} SECTION libdevel)
elastic_package(programs elastic "elasticrun and the rendezvous server"
                DEPENDS "${elastic_same_library}, python3" SECTION net)
foreach(name ${ELASTIC_MODULES})
  elastic_package(${name} ${elastic_library}-${name} "elastic's backend ${name}"
                  DEPENDS ${elastic_same_library})
endforeach()
include(CPack)
