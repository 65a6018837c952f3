/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#ifndef VMLINUX_LINUX_ERRNO_H
#define VMLINUX_LINUX_ERRNO_H

/* For libbpf's headers: that of the system leads to files that are none of BPF's. */
#define ENOENT 2
#define ESRCH 3
#define EINVAL 22

#endif
