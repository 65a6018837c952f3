# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
# The line tables against every CPython of this machine. Python loads the library, so it is built
# without the sanitizers that pyebpf_flags may ask for.

add_library(linetable_oracle SHARED
  ${CMAKE_CURRENT_LIST_DIR}/linetable_oracle.c ${CMAKE_SOURCE_DIR}/user/symbolize/linetable.c)
target_compile_options(linetable_oracle PRIVATE -Wall -Wextra -O2)
target_compile_definitions(linetable_oracle PRIVATE _GNU_SOURCE)
target_include_directories(linetable_oracle PRIVATE ${CMAKE_SOURCE_DIR} ${CMAKE_SOURCE_DIR}/user)

add_test(NAME lint/linetable_oracle
  COMMAND ${Python3_EXECUTABLE} -B ${CMAKE_CURRENT_LIST_DIR}/linetable_oracle.py
    $<TARGET_FILE:linetable_oracle>)
set_tests_properties(lint/linetable_oracle PROPERTIES LABELS unit TIMEOUT 600)
