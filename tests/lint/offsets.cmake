# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
# The layouts in user/target against the headers of every CPython of this machine.

add_test(NAME lint/offsets_check
  COMMAND ${Python3_EXECUTABLE} -B ${CMAKE_CURRENT_LIST_DIR}/offsets_check.py ${CMAKE_SOURCE_DIR})
set_tests_properties(lint/offsets_check PROPERTIES LABELS unit TIMEOUT 600
  ENVIRONMENT CC=${CMAKE_C_COMPILER})
