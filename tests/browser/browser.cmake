# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
# The page: its pure scripts by node --test, and all of it in a browser.
if(TARGET pyebpf_export AND TARGET pyebpf_diff)
  add_executable(pages ${CMAKE_CURRENT_LIST_DIR}/pages.c)
  target_link_libraries(pages PRIVATE pyebpf_export pyebpf_diff)
endif()
