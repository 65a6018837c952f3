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
 * LOOP: callback(i, ctx) for i from 0 to n - 1, until it returns LOOP_STOP.
 */
#ifdef READ_USER_FROM_HOST
#define VERIFIED_ONCE static inline
#define LOOP(n, callback, ctx)                              \
	do {                                                \
		for (__u32 _i = 0; _i < (n); _i++)          \
			if (callback(_i, ctx) != LOOP_NEXT) \
				break;                      \
	} while (0)
#else
#define VERIFIED_ONCE __weak __noinline
#define LOOP(n, callback, ctx) bpf_loop(n, callback, ctx, 0)
#endif

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
