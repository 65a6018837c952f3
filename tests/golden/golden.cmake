# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
# The exact bytes of exporters and reports. Needs the program.
if(TARGET pyebpf)
  add_executable(golden_recording ${CMAKE_CURRENT_LIST_DIR}/golden_recording.c)
  target_link_libraries(golden_recording PRIVATE pyebpf_store)
  add_executable(kinds_recording ${CMAKE_CURRENT_LIST_DIR}/kinds_recording.c)
  target_link_libraries(kinds_recording PRIVATE pyebpf_store)
  add_executable(waits_recording ${CMAKE_CURRENT_LIST_DIR}/waits_recording.c)
  target_link_libraries(waits_recording PRIVATE pyebpf_store)
  add_test(NAME golden COMMAND ${Python3_EXECUTABLE} -B ${CMAKE_CURRENT_LIST_DIR}/golden.py
    $<TARGET_FILE:pyebpf> $<TARGET_FILE:golden_recording>
    $<TARGET_FILE:waits_recording>)
  set_tests_properties(golden PROPERTIES LABELS unit)
endif()
