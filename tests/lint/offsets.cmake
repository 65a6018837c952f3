# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
# The layouts in user/target against the headers of every CPython of this machine.

add_test(NAME lint/offsets_check
  COMMAND ${Python3_EXECUTABLE} -B ${CMAKE_CURRENT_LIST_DIR}/offsets_check.py ${CMAKE_SOURCE_DIR})
set(offsets_environment CC=${CMAKE_C_COMPILER})
if(CMAKE_CROSSCOMPILING)
  string(JOIN " " offsets_run ${CMAKE_CROSSCOMPILING_EMULATOR})
  set(offsets_environment PYEBPF_MACHINE=arm64 "CC=${CMAKE_C_COMPILER} --sysroot=${CMAKE_SYSROOT}"
    "RUN=${offsets_run}" PYEBPF_HEADERS=${CMAKE_SYSROOT}/usr/include/python3.11)
endif()
set_tests_properties(lint/offsets_check PROPERTIES LABELS unit TIMEOUT 600
  ENVIRONMENT "${offsets_environment}")
