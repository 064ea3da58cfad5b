# The library is every source under purine/ but the command's; which files exist is all there is to say.
function(purine_set_options target)
  target_compile_options(${target} PRIVATE -Wall -Wextra -Wpedantic -Wshadow -Wconversion -Wno-sign-conversion)
  if(CMAKE_CXX_COMPILER_ID STREQUAL GNU AND CMAKE_CXX_COMPILER_VERSION VERSION_LESS 13)
    target_compile_options(${target} PRIVATE -Wno-restrict)  # GCC 12 sees overlaps in std::string that are none (its bug 105651)
  endif()
  if(PURINE_UNITE_SOURCES AND CMAKE_CXX_COMPILER_ID STREQUAL GNU)
    target_compile_options(${target} PRIVATE -Wno-subobject-linkage)  # sources that are included look like headers
  endif()
  if(PURINE_WARNINGS_AS_ERRORS)
    target_compile_options(${target} PRIVATE -Werror)
  endif()
endfunction()

# purine_unite(RESULT SOURCES…): with PURINE_UNITE_SOURCES, sources that include up to 16 of these each, those of one
# folder together; else these. Most of the time of a small source goes into the headers that all of a folder include.
# Paths are relative, so that a compiler cache serves several checkouts.
function(purine_unite result)
  set(united ${ARGN})
  if(PURINE_UNITE_SOURCES)
    set(united "")
    set(groups "")
    foreach(source IN LISTS ARGN)
      file(RELATIVE_PATH path ${PROJECT_SOURCE_DIR} ${source})
      get_filename_component(folder ${path} DIRECTORY)
      string(REPLACE "/" "_" folder ${folder})
      math(EXPR group "0${count_${folder}} / 16")
      math(EXPR count_${folder} "0${count_${folder}} + 1")
      string(APPEND includes_${folder}_${group} "#include \"${path}\"\n")
      list(APPEND groups ${folder}_${group})
    endforeach()
    list(REMOVE_DUPLICATES groups)
    foreach(group IN LISTS groups)
      file(CONFIGURE OUTPUT ${PROJECT_BINARY_DIR}/united/${group}.cpp
        CONTENT "// Made by CMake from the files that exist.\n${includes_${group}}")
      list(APPEND united ${PROJECT_BINARY_DIR}/united/${group}.cpp)
    endforeach()
  endif()
  set(${result} ${united} PARENT_SCOPE)
endfunction()

if(PURINE_SANITIZE)
  add_compile_options(-fsanitize=${PURINE_SANITIZE} -fno-sanitize-recover=all -fno-omit-frame-pointer)
  add_link_options(-fsanitize=${PURINE_SANITIZE})
endif()

# generate_registration(OUTPUT folder-namespace argument-type header GLOB…): a source file with one function
# that calls register_<stem>(argument) of every file that matches, so that no list is kept by hand.
function(generate_registration output function_name namespace argument header pattern)
  file(GLOB sources CONFIGURE_DEPENDS RELATIVE ${PROJECT_SOURCE_DIR} ${PROJECT_SOURCE_DIR}/${pattern})
  set(declarations "")
  set(calls "")
  foreach(source IN LISTS sources)
    get_filename_component(stem ${source} NAME_WE)
    file(STRINGS ${PROJECT_SOURCE_DIR}/${source} found REGEX "^void register_${stem}\\(")
    if(found)
      string(APPEND declarations "void register_${stem}(${argument}& registry);\n")
      string(APPEND calls "  register_${stem}(registry);\n")
    endif()
  endforeach()
  file(CONFIGURE OUTPUT ${output} CONTENT
"// Made by CMake from the files that exist.
#include \"${header}\"

namespace ${namespace} {
${declarations}
void ${function_name}([[maybe_unused]] ${argument}& registry) {
${calls}}
}  // namespace ${namespace}
")
endfunction()

generate_registration(${PROJECT_BINARY_DIR}/generated/register_operators.cpp register_operators
                      purine::ops Registry purine/ops/registry.h "purine/ops/*.cpp")
generate_registration(${PROJECT_BINARY_DIR}/generated/register_cpu_kernels.cpp register_cpu_kernels
                      purine::cpu KernelRegistry purine/program/kernel.h "purine/backend/cpu/*.cpp")

# The page of `purine report`, with its style and scripts in it, as a text in the library.
set(report_folder ${PROJECT_SOURCE_DIR}/purine/trace/report)
file(GLOB report_files CONFIGURE_DEPENDS ${report_folder}/*)
set_property(DIRECTORY APPEND PROPERTY CMAKE_CONFIGURE_DEPENDS ${report_files})
file(READ ${report_folder}/report.html report_page)
file(READ ${report_folder}/style.css report_style)
set(report_scripts "")
foreach(file IN LISTS report_files)
  if(file MATCHES "\\.js$")
    file(READ ${file} script)
    string(APPEND report_scripts "${script}")
  endif()
endforeach()
string(REPLACE "/*STYLE*/" "${report_style}" report_page "${report_page}")
string(REPLACE "/*SCRIPTS*/" "${report_scripts}" report_page "${report_page}")
file(CONFIGURE OUTPUT ${PROJECT_BINARY_DIR}/generated/report_page.cpp @ONLY CONTENT
"// Made by CMake from purine/trace/report/.
#include \"purine/trace/report_page.h\"

namespace purine::trace {

std::string_view report_page() {
  return R\"purine(${report_page})purine\";
}

}  // namespace purine::trace
")

# purine/purine.h, the whole interface: the headers of the folders that a user's program works with. Those that only the
# library's own sources share are named *_helpers.h.
set(public_headers "")
foreach(folder core graph ops gradient nn models optim parallel net data io trace sim session train)
  file(GLOB headers CONFIGURE_DEPENDS RELATIVE ${PROJECT_SOURCE_DIR} ${PROJECT_SOURCE_DIR}/purine/${folder}/*.h)
  list(FILTER headers EXCLUDE REGEX "_helpers\\.h$")
  list(APPEND public_headers ${headers})
endforeach()
list(TRANSFORM public_headers REPLACE "(.+)" "#include \"\\1\"\n")
list(JOIN public_headers "" public_headers)
file(CONFIGURE OUTPUT ${PROJECT_BINARY_DIR}/generated/purine/purine.h CONTENT
"// The whole interface of Purine. Made by CMake from the headers that exist.
#pragma once

${public_headers}")

file(GLOB_RECURSE PURINE_SOURCES CONFIGURE_DEPENDS ${PROJECT_SOURCE_DIR}/purine/*.cpp)
list(FILTER PURINE_SOURCES EXCLUDE REGEX "/purine/cli/main\\.cpp$")
list(FILTER PURINE_SOURCES EXCLUDE REGEX "/purine/net/(no_)?mpi/")
# MPI, or what takes its place; the latter is compiled in any case, so that it stays right.
foreach(alternative mpi no_mpi)
  file(GLOB sources CONFIGURE_DEPENDS ${PROJECT_SOURCE_DIR}/purine/net/${alternative}/*.cpp)
  if(PURINE_WITH_MPI OR alternative STREQUAL no_mpi)
    add_library(purine_${alternative} OBJECT ${sources})
    target_include_directories(purine_${alternative} PRIVATE ${PROJECT_SOURCE_DIR})
    purine_set_options(purine_${alternative})
  endif()
endforeach()
set(purine_messenger no_mpi)
if(PURINE_WITH_MPI)
  target_link_libraries(purine_mpi PRIVATE MPI::MPI_C)
  set(purine_messenger mpi)
endif()
# A source that includes itself once for each instruction set stays alone, and so does the version, with its definitions.
set(apart ${PROJECT_SOURCE_DIR}/purine/core/version.cpp)
file(GLOB kernels CONFIGURE_DEPENDS ${PROJECT_SOURCE_DIR}/purine/backend/cpu/*.cpp)
foreach(source IN LISTS kernels)
  file(STRINGS ${source} several_targets REGEX "^#define HWY_TARGET_INCLUDE" LIMIT_COUNT 1)
  if(several_targets)
    list(APPEND apart ${source})
  endif()
endforeach()
list(REMOVE_ITEM PURINE_SOURCES ${apart})
purine_unite(united ${PURINE_SOURCES})
# Only kernels and the loops over pixels are worth the longest optimising, and what runs once or waits for the disk little.
set(kernel_sources ${apart} ${united})
list(FILTER kernel_sources INCLUDE REGEX "/purine(_|/)(backend|data)(_|/)")
set_source_files_properties(${kernel_sources} PROPERTIES COMPILE_OPTIONS $<$<CONFIG:Release>:-O3>)
set(outer_sources ${united})
list(FILTER outer_sources INCLUDE REGEX "/purine(_|/)(train|trace|cli)(_|/)")
set_source_files_properties(${outer_sources} PROPERTIES COMPILE_OPTIONS $<$<CONFIG:Release>:-O1>)
add_library(purine STATIC ${apart} ${united} $<TARGET_OBJECTS:purine_${purine_messenger}>
  ${PROJECT_BINARY_DIR}/generated/report_page.cpp
  ${PROJECT_BINARY_DIR}/generated/register_operators.cpp
  ${PROJECT_BINARY_DIR}/generated/register_cpu_kernels.cpp)
add_library(purine::purine ALIAS purine)

# What checkpoints and `purine --version` say of the sources: the version and, in a Git checkout of their own, the commit.
set(build_id ${PROJECT_VERSION})
find_package(Git QUIET)
if(GIT_FOUND AND EXISTS ${PROJECT_SOURCE_DIR}/.git)
  execute_process(COMMAND ${GIT_EXECUTABLE} rev-parse --short=12 HEAD WORKING_DIRECTORY ${PROJECT_SOURCE_DIR}
    OUTPUT_VARIABLE commit OUTPUT_STRIP_TRAILING_WHITESPACE ERROR_QUIET RESULT_VARIABLE git_result)
  if(git_result EQUAL 0)
    string(APPEND build_id "+${commit}")
  endif()
endif()
set_source_files_properties(${PROJECT_SOURCE_DIR}/purine/core/version.cpp PROPERTIES
  COMPILE_DEFINITIONS "PURINE_VERSION=\"${PROJECT_VERSION}\";PURINE_BUILD_ID=\"${build_id}\"")
# Compiled for several instruction sets (loops.h): the compiler must not fuse multiplications and additions where one
# has that, or results would depend on the machine; nobody asks for errno, without which roots come in vectors.
file(GLOB loops CONFIGURE_DEPENDS ${PROJECT_SOURCE_DIR}/purine/backend/cpu/loops_*.cpp)
set_property(SOURCE ${loops} APPEND PROPERTY COMPILE_OPTIONS -ffp-contract=off -fno-math-errno)
target_include_directories(purine PUBLIC
  $<BUILD_INTERFACE:${PROJECT_SOURCE_DIR}> $<BUILD_INTERFACE:${PROJECT_BINARY_DIR}/generated> $<INSTALL_INTERFACE:include>)
target_compile_features(purine PUBLIC cxx_std_20)
target_link_libraries(purine
  PUBLIC Threads::Threads fmt::fmt
  PRIVATE spdlog::spdlog OneDNN::OneDNN hwy::hwy tomlplusplus::tomlplusplus ZLIB::ZLIB JPEG::JPEG PNG::PNG
    OpenMP::OpenMP_CXX $<BUILD_INTERFACE:nlohmann_json::nlohmann_json> $<BUILD_INTERFACE:CLI11::CLI11>)
if(PURINE_WITH_MPI)
  target_link_libraries(purine INTERFACE $<LINK_ONLY:MPI::MPI_C>)  # no other source includes mpi.h
endif()
purine_set_options(purine)

if(EXISTS ${PROJECT_SOURCE_DIR}/purine/cli/main.cpp)
  add_executable(purine_command ${PROJECT_SOURCE_DIR}/purine/cli/main.cpp)
  set_target_properties(purine_command PROPERTIES OUTPUT_NAME purine RUNTIME_OUTPUT_DIRECTORY ${PROJECT_BINARY_DIR})
  target_link_libraries(purine_command PRIVATE purine)
  purine_set_options(purine_command)
endif()
