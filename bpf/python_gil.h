/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#ifndef BPF_PYTHON_GIL_H
#define BPF_PYTHON_GIL_H

/*
 * Where a GIL is. A thread waits for it on the words behind last_holder in struct
 * _gil_runtime_state (Python/ceval_gil.h): locked, switch_number, then cond, mutex, switch_cond and
 * switch_mutex, up to the end of the struct. Pure.
 */

#include "bpf/events.h"
#include "bpf/read.h"

#define GIL_WORDS_FROM 24 /* behind last_holder */
#if defined(__TARGET_ARCH_x86) || defined(__x86_64__)
#define GIL_WORDS_TO 200
#else
#define GIL_WORDS_TO 216 /* pthread_mutex_t takes 48 bytes, not 40 */
#endif
#define GIL_NONE 1 /* in the place of its address: of a Python whose GIL is not known */

/* The address of last_holder of an interpreter's GIL; 0: it has none yet, or it is not known. Up to
 * 3.11 a runtime has one, later those that are asked to have their own. */
static __always_inline __u64 gil_of_interpreter(struct door door, const struct py_offsets *off,
						__u64 runtime, __u64 interp)
{
	__u64 gil;

	if (off->gil_last_holder == OFF_NONE)
		return 0;
	if (off->runtime_gil != OFF_NONE)
		return runtime + off->runtime_gil + off->gil_last_holder;
	if (!interp || read_user(door, &gil, sizeof(gil), interp + off->interp_gil) || !gil)
		return 0;
	return gil + off->gil_last_holder;
}

/* Does who waits for this futex wait for that GIL? */
static __always_inline bool gil_has_word(__u64 gil, __u64 addr)
{
	return gil > GIL_NONE && addr - gil - GIL_WORDS_FROM < GIL_WORDS_TO - GIL_WORDS_FROM;
}

#endif
