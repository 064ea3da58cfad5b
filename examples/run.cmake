# cmake -D program=… -D folder=… -P run.cmake: runs an example in an empty folder.
file(REMOVE_RECURSE ${folder})
file(MAKE_DIRECTORY ${folder})
execute_process(COMMAND ${program} WORKING_DIRECTORY ${folder} COMMAND_ERROR_IS_FATAL ANY)
