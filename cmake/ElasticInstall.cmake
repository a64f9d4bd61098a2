# What `cmake --install` puts where, and how others find it: `find_package(elastic)` gives
# elastic::elastic, `pkg-config elastic` gives flags. Included after all targets exist. Each component
# is a Debian package of its own (ElasticPackage).
#
# Our own static libraries and third-party ones are linked privately into libelastic, so a trainer
# needs nothing but the library and its headers.
include(CMakePackageConfigHelpers)
include(GNUInstallDirs)

set(ELASTIC_CMAKE_DIR ${CMAKE_INSTALL_LIBDIR}/cmake/elastic)
set(ELASTIC_PKGCONFIG_DIR ${CMAKE_INSTALL_LIBDIR}/pkgconfig)

target_include_directories(
  elastic INTERFACE $<BUILD_INTERFACE:${PROJECT_SOURCE_DIR}/include>
                    $<BUILD_INTERFACE:${PROJECT_SOURCE_DIR}/bindings/libtorch>
                    $<INSTALL_INTERFACE:${CMAKE_INSTALL_INCLUDEDIR}>)
target_compile_features(elastic INTERFACE cxx_std_20)
# Before 1.0 a minor version may change the ABI.
set_target_properties(elastic PROPERTIES VERSION ${PROJECT_VERSION}
                                         SOVERSION ${PROJECT_VERSION_MAJOR}.${PROJECT_VERSION_MINOR})

# Hidden visibility does not reach what libraries' headers mark as visible (Boost's and fmt's
# exceptions, instantiations of the standard library); the version script does.
set(elastic_map ${PROJECT_BINARY_DIR}/elastic.map)
configure_file(${PROJECT_SOURCE_DIR}/cmake/elastic.map.in ${elastic_map} @ONLY)
target_link_options(elastic PRIVATE LINKER:--version-script=${elastic_map})
set_property(TARGET elastic APPEND PROPERTY LINK_DEPENDS ${elastic_map})

set(elastic_programs elasticrun elastic-rendezvous)
if(TARGET elastic-bench)
  list(APPEND elastic_programs elastic-bench)
endif()
set_target_properties(${elastic_programs} PROPERTIES INSTALL_RPATH "$ORIGIN/${ELASTIC_BIN_TO_LIB}")

if(NOT ELASTIC_INSTALL)
  return()
endif()

install(TARGETS elastic elastic_c EXPORT elasticTargets
        LIBRARY DESTINATION ${CMAKE_INSTALL_LIBDIR} COMPONENT library NAMELINK_COMPONENT development)
foreach(name ${ELASTIC_MODULES})
  install(TARGETS elastic_${name} LIBRARY DESTINATION ${CMAKE_INSTALL_LIBDIR} COMPONENT ${name})
endforeach()
install(TARGETS ${elastic_programs} RUNTIME DESTINATION ${CMAKE_INSTALL_BINDIR} COMPONENT programs)
install(PROGRAMS ${PROJECT_SOURCE_DIR}/tools/timeline_merge DESTINATION ${CMAKE_INSTALL_BINDIR}
        RENAME elastic-timeline-merge COMPONENT programs)
if(TARGET elastic-bench)
  install(DIRECTORY ${PROJECT_SOURCE_DIR}/collectives/model/networks
          DESTINATION ${CMAKE_INSTALL_DATADIR}/elastic COMPONENT programs)
endif()
# The headers for libtorch are nothing but headers: whoever includes them has libtorch.
install(DIRECTORY ${PROJECT_SOURCE_DIR}/include/elastic ${PROJECT_SOURCE_DIR}/bindings/libtorch/elastic
        DESTINATION ${CMAKE_INSTALL_INCLUDEDIR} COMPONENT development
        FILES_MATCHING PATTERN "*.hpp")

install(DIRECTORY ${PROJECT_SOURCE_DIR}/bindings/c/ DESTINATION ${CMAKE_INSTALL_INCLUDEDIR}
        COMPONENT development FILES_MATCHING PATTERN "*.h")

install(EXPORT elasticTargets NAMESPACE elastic:: DESTINATION ${ELASTIC_CMAKE_DIR}
        COMPONENT development)
configure_package_config_file(
  ${PROJECT_SOURCE_DIR}/cmake/elasticConfig.cmake.in ${PROJECT_BINARY_DIR}/elasticConfig.cmake
  INSTALL_DESTINATION ${ELASTIC_CMAKE_DIR} NO_SET_AND_CHECK_MACRO)
write_basic_package_version_file(
  ${PROJECT_BINARY_DIR}/elasticConfigVersion.cmake COMPATIBILITY SameMinorVersion)
install(FILES ${PROJECT_BINARY_DIR}/elasticConfig.cmake
              ${PROJECT_BINARY_DIR}/elasticConfigVersion.cmake
        DESTINATION ${ELASTIC_CMAKE_DIR} COMPONENT development)

# Relative to the .pc file's own place, so that an installed tree can be moved.
file(RELATIVE_PATH elastic_pc_to_prefix ${CMAKE_INSTALL_FULL_LIBDIR}/pkgconfig
     ${CMAKE_INSTALL_PREFIX})
string(REGEX REPLACE "/$" "" elastic_pc_to_prefix ${elastic_pc_to_prefix})
configure_file(${PROJECT_SOURCE_DIR}/cmake/elastic.pc.in ${PROJECT_BINARY_DIR}/elastic.pc @ONLY)
configure_file(${PROJECT_SOURCE_DIR}/cmake/elastic-c.pc.in ${PROJECT_BINARY_DIR}/elastic-c.pc @ONLY)
install(FILES ${PROJECT_BINARY_DIR}/elastic.pc ${PROJECT_BINARY_DIR}/elastic-c.pc
        DESTINATION ${ELASTIC_PKGCONFIG_DIR} COMPONENT development)
