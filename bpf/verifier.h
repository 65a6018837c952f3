/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#ifndef BPF_VERIFIER_H
#define BPF_VERIFIER_H

/* What is written as it is for the kernel's verifier. The host runs it as plain C. */

enum loop_result { LOOP_NEXT, LOOP_STOP };

/*
 * VERIFIED_ONCE: a global function, which the verifier takes once, by its prototype, and not once
 * for each state of each caller; what it returns or leaves in memory is unknown to the caller. So
 * pointers may be NULL and numbers anything in it, and it returns a number. It does not wait for a
 * page: in a program for interrupts no global function may, whoever calls it. Of those that several
 * objects have under one name, one is left: it must be the same in all.
 *
 * ANOTHER_TASK: its first parameter, where the walk is of another task. Linux 6.9 and later verify
 * such a function once, too. In others user/collect/objects.c makes it static.
 *
 * LOOP: callback(i, ctx) for i from 0 to n - 1, until it returns LOOP_STOP. Of each callback there
 * is a LOOP_STEP().
 *
 * OLD_KERNEL: Linux 5.10 to 5.16 take no callbacks, and in global functions numbers alone. So a
 * step is a global function of its number, which finds all else by itself, and another one takes
 * STEPS_CHUNK of them (a program may have no more than 8,192 jumps in a row): old.bpf.c. What takes
 * pointers is inlined there.
 */
#ifdef READ_USER_FROM_HOST
#define VERIFIED_ONCE static inline
#define VERIFIED_ONCE_NUMBERS VERIFIED_ONCE
#define LOOP_STEP(callback)
#define LOOP(n, callback, ctx)                              \
	do {                                                \
		for (__u32 _i = 0; _i < (n); _i++)          \
			if (callback(_i, ctx) != LOOP_NEXT) \
				break;                      \
	} while (0)
#elif defined(OLD_KERNEL)
#define STEPS_CHUNK 64
#define VERIFIED_ONCE static __always_inline
#define VERIFIED_ONCE_NUMBERS __weak __noinline
#define LOOP_STEP(callback)           \
	int callback##_once(__u32 i); \
	int callback##_chunk(__u32 from);
#define LOOP(n, callback, ctx)                                          \
	do {                                                            \
		if ((n) <= STEPS_CHUNK) {                               \
			for (__u32 _i = 0; _i < (n); _i++)              \
				if (callback##_once(_i) != LOOP_NEXT)   \
					break;                          \
		} else {                                                \
			for (__u32 _i = 0; _i < (n); _i += STEPS_CHUNK) \
				if (callback##_chunk(_i) != LOOP_NEXT)  \
					break;                          \
		}                                                       \
	} while (0)
#else
#define VERIFIED_ONCE __weak __noinline
#define VERIFIED_ONCE_NUMBERS VERIFIED_ONCE
#define LOOP_STEP(callback)
#define LOOP(n, callback, ctx) bpf_loop(n, callback, ctx, 0)
#endif

#define ANOTHER_TASK struct task_struct *task __attribute__((btf_decl_tag(TRUSTED_TAG)))

/*
 * x, which is no more than max. The compiler checks one copy of a value and uses another one, and
 * not every kernel sees that they are the same; what it cannot see into it can neither take apart
 * nor leave out.
 */
static __always_inline __u64 at_most(__u64 x, __u64 max)
{
	__asm__("" : "+r"(x));
	if (x > max)
		x = max;
	__asm__("" : "+r"(x));
	return x;
}

#endif
