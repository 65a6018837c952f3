# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
add_executable(gen_recording ${CMAKE_CURRENT_LIST_DIR}/gen_recording.c)
target_link_libraries(gen_recording PRIVATE pyebpf_store m)
add_executable(gen_runs ${CMAKE_CURRENT_LIST_DIR}/gen_runs.c)
target_link_libraries(gen_runs PRIVATE pyebpf_store m)
add_executable(gen_waits ${CMAKE_CURRENT_LIST_DIR}/gen_waits.c)
target_link_libraries(gen_waits PRIVATE pyebpf_store m)
add_executable(read_threads ${CMAKE_CURRENT_LIST_DIR}/read_threads.c)
target_link_libraries(read_threads PRIVATE pyebpf_inspect pyebpf_collect)
