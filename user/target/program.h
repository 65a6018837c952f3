/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#ifndef TARGET_PROGRAM_H
#define TARGET_PROGRAM_H

#include <stdint.h>
#include <sys/types.h>

#include "target/runtime.h"

/*
 * How the next process of a program is recognised wherever it is interrupted: by what lies at a
 * fixed distance from where the program's code begins.
 *
 * start_code  of the process, mm_struct.start_code: in the program's first executable mapping
 * rt          what runtime_find() found in it
 *
 * Returns 1: the interpreter is in the program itself, *distance leads to _PyRuntime; 0: *distance
 * leads to a pointer of the program's (its global offset table has such) into the executable
 * mapping that rt names; -ENOENT: there is no such pointer, or none yet; -ESRCH: the process
 * runs another program meanwhile. Other errors as of maps_open(). *distance is untouched on failure
 * and not 0 otherwise.
 */
int program_find_lead(pid_t pid, uint64_t start_code, const struct py_runtime *rt,
		      int64_t *distance);

#endif
