# Libraries of the distribution; scripts/setup installs them.
find_package(Threads REQUIRED)
find_package(fmt REQUIRED)
find_package(spdlog REQUIRED)
find_package(nlohmann_json REQUIRED)
# oneDNN's own package file asks for OpenCL's headers where it was built with a GPU part; the CPU part needs none.
find_path(PURINE_DNNL_INCLUDE dnnl.hpp REQUIRED)
find_library(PURINE_DNNL_LIBRARY dnnl REQUIRED)
if(NOT TARGET purine::dnnl)
  add_library(purine::dnnl UNKNOWN IMPORTED)
  set_target_properties(purine::dnnl PROPERTIES IMPORTED_LOCATION ${PURINE_DNNL_LIBRARY}
    INTERFACE_SYSTEM_INCLUDE_DIRECTORIES ${PURINE_DNNL_INCLUDE})
endif()
find_package(ZLIB REQUIRED)
find_package(JPEG REQUIRED)
find_package(PNG REQUIRED)
find_package(OpenMP REQUIRED COMPONENTS CXX)
