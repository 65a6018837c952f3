# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
foreach(lint layers banned format)
  add_test(NAME lint/${lint}
    COMMAND ${Python3_EXECUTABLE} -B ${CMAKE_CURRENT_LIST_DIR}/${lint}.py ${CMAKE_SOURCE_DIR})
endforeach()
add_test(NAME lint/selftest
  COMMAND ${Python3_EXECUTABLE} -B ${CMAKE_CURRENT_LIST_DIR}/selftest.py)
set_tests_properties(lint/layers lint/banned lint/format lint/selftest PROPERTIES
  LABELS unit SKIP_RETURN_CODE 77)

# Each .cmake file next to this one registers its own check.
file(GLOB lint_checks CONFIGURE_DEPENDS ${CMAKE_CURRENT_LIST_DIR}/*.cmake)
list(REMOVE_ITEM lint_checks ${CMAKE_CURRENT_LIST_FILE})
foreach(check ${lint_checks})
  include(${check})
endforeach()
