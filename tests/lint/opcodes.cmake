# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
# The names of instructions against the modules of every CPython of this machine.

add_test(NAME lint/opcodes
  COMMAND ${Python3_EXECUTABLE} -B ${CMAKE_SOURCE_DIR}/tests/tools/opcode_names.py --check
    ${CMAKE_SOURCE_DIR}/user/profile/opcode_names.h)
set_tests_properties(lint/opcodes PROPERTIES LABELS unit TIMEOUT 600)
