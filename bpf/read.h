/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#ifndef BPF_READ_H
#define BPF_READ_H

/*
 * The doors to what is outside of the walk: target memory, and the time. A page that is not present
 * is -EFAULT, and trying again at once is useless: nothing here waits for a page. dst is zeroed on
 * failure.
 *
 * The host tests define READ_USER_FROM_TEST and bring their own.
 */
#ifdef READ_USER_FROM_TEST
int read_user(void *dst, __u32 size, __u64 addr);
__u64 clock_ns(void);
#else
static __always_inline int read_user(void *dst, __u32 size, __u64 addr)
{
	return bpf_probe_read_user(dst, size, (const void *)addr);
}

/* CLOCK_MONOTONIC */
static __always_inline __u64 clock_ns(void)
{
	return bpf_ktime_get_ns();
}
#endif

#endif
