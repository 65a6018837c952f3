/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#ifndef BPF_READ_H
#define BPF_READ_H

#include "bpf/events.h"

/*
 * The doors to what is outside of the walk: target memory, and the time.
 *
 * A walk holds a work space, so that read_user() waits for nothing: a page that is not present is
 * -EFAULT, and trying again at once is useless. dst is zeroed on failure. Whoever may wait has
 * read_in_user() fetch what was missing and walks again.
 *
 * The host tests define READ_USER_FROM_TEST and bring their own.
 */

/* From where the thread is looked at. */
enum access {
	ACCESS_IRQ,  /* an interrupt of it: nothing may be waited for */
	ACCESS_TASK, /* its own context, before it goes on: between two walks pages may be */
};

#ifdef READ_USER_FROM_TEST
int read_user(void *dst, __u32 size, __u64 addr);
__u64 clock_ns(void);
#else
static __always_inline int read_user(void *dst, __u32 size, __u64 addr)
{
	return bpf_probe_read_user(dst, size, (const void *)addr);
}

/* The pages of the first and the last byte of a range that spans no more than two. */
static __always_inline bool read_in_user(const struct page_range *r)
{
	__u8 byte;

	return !bpf_copy_from_user(&byte, 1, (void *)r->addr) &&
	       (!r->bytes || !bpf_copy_from_user(&byte, 1, (void *)(r->addr + r->bytes - 1)));
}

/* CLOCK_MONOTONIC */
static __always_inline __u64 clock_ns(void)
{
	return bpf_ktime_get_ns();
}
#endif

#endif
