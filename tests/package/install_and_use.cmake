# cmake -D build=… -D configuration=… -D version=… -D generator=… -D compiler=… -D work=…
#   -D OneDNN_INCLUDE_DIR=… -D OneDNN_LIBRARY=… -D python=… -P install_and_use.cmake
function(run)
  execute_process(COMMAND ${ARGN} WORKING_DIRECTORY ${work} RESULT_VARIABLE result OUTPUT_VARIABLE output ERROR_VARIABLE output)
  if(NOT result EQUAL 0)
    list(JOIN ARGN " " command)
    message(FATAL_ERROR "${command}: ${result}\n${output}")
  endif()
  set(output "${output}" PARENT_SCOPE)
endfunction()

file(REMOVE_RECURSE ${work})
file(MAKE_DIRECTORY ${work})

# The program in the README as it stands there, but on a small set that takes a moment to train on.
set(root ${CMAKE_CURRENT_LIST_DIR}/../..)
file(READ ${root}/README.md readme)
if(NOT readme MATCHES "```cpp\n(#include [^`]*)```")
  message(FATAL_ERROR "README.md holds no program")
endif()
string(REPLACE "/usr/share/datasets/fashion-mnist" "set" program "${CMAKE_MATCH_1}")
if(program STREQUAL CMAKE_MATCH_1)
  message(FATAL_ERROR "the program in README.md names another data set")
endif()
file(WRITE ${work}/readme.cpp "${program}")
run(${CMAKE_COMMAND} -E env PURINE_COMMAND= PYTHONPATH=${root}/tests/cli ${python} -B -c
  "import command, pathlib, sys
command.write_idx(pathlib.Path(sys.argv[1]), training=192)" ${work}/set)

run(${CMAKE_COMMAND} --install ${build} --config ${configuration} --prefix ${work}/first)
file(RENAME ${work}/first ${work}/prefix)  # a package that was moved still finds itself
run(${CMAKE_COMMAND} -G ${generator} -S ${CMAKE_CURRENT_LIST_DIR}/consumer -B ${work}/build
  -D CMAKE_BUILD_TYPE=${configuration} -D CMAKE_CXX_COMPILER=${compiler} -D CMAKE_PREFIX_PATH=${work}/prefix
  -D OneDNN_INCLUDE_DIR=${OneDNN_INCLUDE_DIR} -D OneDNN_LIBRARY=${OneDNN_LIBRARY}
  -D expected_version=${version} -D readme_program=${work}/readme.cpp)
run(${CMAKE_COMMAND} --build ${work}/build)
run(${work}/build/consumer)
# w is 0, then 1, then 1.5: each step halves the error, since the loss's second derivative is 5.
if(NOT output STREQUAL "step 0: loss 10.000\nstep 1: loss 2.500\nstep 2: loss 0.625\n")
  message(FATAL_ERROR "the program printed: ${output}")
endif()
run(${work}/build/readme)  # three steps an epoch, of which every fiftieth is printed
if(NOT output MATCHES "^step 0: loss [0-9]+\\.[0-9][0-9][0-9]\n$" OR NOT EXISTS ${work}/lenet.safetensors)
  message(FATAL_ERROR "the program in README.md printed: ${output}")
endif()
