# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
# docs/guide.md -> generated/guide.h: what `pyebpf guide` prints.
#
# Included by CMakeLists.txt, which makes the rule; run by it with -P, which does the work.
if(NOT CMAKE_SCRIPT_MODE_FILE)
  set(guide_header ${CMAKE_BINARY_DIR}/generated/guide.h)
  add_custom_command(OUTPUT ${guide_header}
    COMMAND ${CMAKE_COMMAND} -DGUIDE=${CMAKE_SOURCE_DIR}/docs/guide.md -DHEADER=${guide_header}
      -P ${CMAKE_CURRENT_LIST_FILE}
    DEPENDS ${CMAKE_SOURCE_DIR}/docs/guide.md ${CMAKE_CURRENT_LIST_FILE} VERBATIM)
  add_custom_target(pyebpf_guide DEPENDS ${guide_header})
  return()
endif()

file(READ ${GUIDE} text)
string(REPLACE "\\" "\\\\" text "${text}")
string(REPLACE "\"" "\\\"" text "${text}")
string(REPLACE "\n" "\\n\"\n\t\"" text "${text}")
file(WRITE ${HEADER} "/* made from docs/guide.md by cmake/guide.cmake */\n"
  "static const char guide_text[] =\n\t\"${text}\";\n")
