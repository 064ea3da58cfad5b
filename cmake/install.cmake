# cmake --install build/release --prefix PREFIX: the library with its headers, the CMake package that find_package(purine)
# finds, and the command.
include(GNUInstallDirs)
include(CMakePackageConfigHelpers)
set(package_folder ${CMAKE_INSTALL_LIBDIR}/cmake/purine)

install(TARGETS purine EXPORT purine-targets ARCHIVE DESTINATION ${CMAKE_INSTALL_LIBDIR})
if(TARGET purine_command)
  install(TARGETS purine_command RUNTIME DESTINATION ${CMAKE_INSTALL_BINDIR})
endif()
install(DIRECTORY ${PROJECT_SOURCE_DIR}/purine DESTINATION ${CMAKE_INSTALL_INCLUDEDIR}
  FILES_MATCHING PATTERN "*.h" PATTERN purine/cli EXCLUDE PATTERN "*_helpers.h" EXCLUDE)
install(FILES ${PROJECT_BINARY_DIR}/generated/purine/purine.h DESTINATION ${CMAKE_INSTALL_INCLUDEDIR}/purine)

install(EXPORT purine-targets NAMESPACE purine:: DESTINATION ${package_folder})
configure_package_config_file(${PROJECT_SOURCE_DIR}/cmake/purine-config.cmake.in
  ${PROJECT_BINARY_DIR}/generated/purine-config.cmake INSTALL_DESTINATION ${package_folder})
write_basic_package_version_file(${PROJECT_BINARY_DIR}/generated/purine-config-version.cmake
  COMPATIBILITY SameMinorVersion)
install(FILES
  ${PROJECT_BINARY_DIR}/generated/purine-config.cmake
  ${PROJECT_BINARY_DIR}/generated/purine-config-version.cmake
  ${PROJECT_SOURCE_DIR}/cmake/dependencies.cmake
  ${PROJECT_SOURCE_DIR}/cmake/FindOneDNN.cmake
  DESTINATION ${package_folder})
