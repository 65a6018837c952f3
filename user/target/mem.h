/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#ifndef TARGET_MEM_H
#define TARGET_MEM_H

#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#define MEM_READ_MAX (64u << 20) /* bytes of one mem_read() */

/*
 * Copies len bytes at addr of a process: all of them or an error, and then buf is undefined. The
 * process is not stopped, so what is read may be torn.
 *
 * Returns 0, -EPERM (needs CAP_SYS_PTRACE, or to be its user), -ESRCH (no such process), -EFAULT
 * (not mapped, at least in part), -E2BIG past MEM_READ_MAX.
 */
int mem_read(pid_t pid, uint64_t addr, void *buf, size_t len);

#endif
