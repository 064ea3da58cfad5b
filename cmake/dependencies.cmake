# What a program linked with the library needs as well, by the distribution's packages (scripts/setup installs them).
# The build includes this file, and so does the installed package; each says what purine_require does.
purine_require(Threads)
purine_require(fmt)
purine_require(spdlog)
purine_require(OneDNN)
purine_require(hwy)
purine_require(tomlplusplus)
purine_require(ZLIB)
purine_require(JPEG)
purine_require(PNG)
purine_require(OpenMP COMPONENTS CXX)
if(PURINE_WITH_MPI)
  if(NOT CMAKE_C_COMPILER_LOADED)
    enable_language(C)  # CMake finds MPI for the languages of a project only
  endif()
  purine_require(MPI COMPONENTS C)
endif()
