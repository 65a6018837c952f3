# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
add_executable(compat_dump ${CMAKE_CURRENT_LIST_DIR}/compat_dump.c)
target_link_libraries(compat_dump PRIVATE pyebpf_import pyebpf_diff)
