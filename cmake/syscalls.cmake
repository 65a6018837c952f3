# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
# The target's asm/unistd.h -> generated/syscall_names.h: system calls by number.
#
# Included by CMakeLists.txt, which makes the rule; run by it with -P, which does the work.
if(NOT CMAKE_SCRIPT_MODE_FILE)
  set(syscall_header ${CMAKE_BINARY_DIR}/generated/syscall_names.h)
  add_custom_command(OUTPUT ${syscall_header}
    COMMAND ${CMAKE_COMMAND} -DCC=${CMAKE_C_COMPILER} -DSYSROOT=${CMAKE_SYSROOT} -DHEADER=${syscall_header}
      -P ${CMAKE_CURRENT_LIST_FILE}
    DEPENDS ${CMAKE_CURRENT_LIST_FILE} VERBATIM)
  add_custom_target(pyebpf_syscalls DEPENDS ${syscall_header})
  return()
endif()

if(SYSROOT)
  list(APPEND CC --sysroot=${SYSROOT})
endif()
execute_process(COMMAND ${CC} -E -dM -include asm/unistd.h -x c /dev/null
  OUTPUT_VARIABLE macros RESULT_VARIABLE status)
# __NR3264_: of those that differ between 32 and 64 bits, in asm-generic/unistd.h.
string(REGEX MATCHALL "#define __NR(3264)?_[a-z0-9_]+ [0-9]+\n" calls "${macros}")
list(FILTER calls EXCLUDE REGEX "_(syscalls|arch_specific_syscall) ") # not a call
if(status OR NOT calls)
  message(FATAL_ERROR "${CC}: asm/unistd.h names no system calls")
endif()
list(SORT calls)
set(rows "")
foreach(call ${calls})
  string(REGEX REPLACE "#define __NR(3264)?_([a-z0-9_]+) ([0-9]+)\n" "\t[\\3] = \"\\2\",\n" row "${call}")
  string(APPEND rows "${row}")
endforeach()
file(WRITE ${HEADER} "static const char *const syscall_names[] = {\n${rows}};\n")
