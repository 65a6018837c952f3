/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#ifndef BPF_SYSCALLS_H
#define BPF_SYSCALLS_H

/*
 * What a thread waits for in a system call: by its number, as the kernel's unistd.h of the
 * architecture has it. READ and WRITE that name no socket are of any file: its descriptor is the
 * first argument. WAIT_NONE (0): no row, WAIT_OTHER.
 */

#include "bpf/events.h"

#define SYSCALLS 512

#if defined(__TARGET_ARCH_x86)
enum syscall {
	SYSCALL_POLL = 7,
	SYSCALL_SELECT = 23,
	SYSCALL_SCHED_YIELD = 24,
	SYSCALL_FUTEX = 202,
	SYSCALL_PSELECT6 = 270,
	SYSCALL_PPOLL = 271,
};

/* clang-format off */
static const __u8 syscall_waits[SYSCALLS] = {
	[202] = WAIT_LOCK /* futex */, [449] = WAIT_LOCK /* futex_waitv */,
	[455] = WAIT_LOCK /* futex_wait */, [65] = WAIT_LOCK /* semop */,
	[220] = WAIT_LOCK /* semtimedop */,
	[35] = WAIT_SLEEP /* nanosleep */, [230] = WAIT_SLEEP /* clock_nanosleep */,
	[7] = WAIT_POLL /* poll */, [271] = WAIT_POLL /* ppoll */, [23] = WAIT_POLL /* select */,
	[270] = WAIT_POLL /* pselect6 */, [232] = WAIT_POLL /* epoll_wait */,
	[281] = WAIT_POLL /* epoll_pwait */, [441] = WAIT_POLL /* epoll_pwait2 */,
	[426] = WAIT_POLL /* io_uring_enter */, [208] = WAIT_POLL /* io_getevents */,
	[0] = WAIT_READ_FILE /* read */, [17] = WAIT_READ_FILE /* pread64 */,
	[19] = WAIT_READ_FILE /* readv */, [295] = WAIT_READ_FILE /* preadv */,
	[327] = WAIT_READ_FILE /* preadv2 */,
	[42] = WAIT_READ_SOCKET /* connect */, [43] = WAIT_READ_SOCKET /* accept */,
	[288] = WAIT_READ_SOCKET /* accept4 */, [45] = WAIT_READ_SOCKET /* recvfrom */,
	[47] = WAIT_READ_SOCKET /* recvmsg */, [299] = WAIT_READ_SOCKET /* recvmmsg */,
	[1] = WAIT_WRITE_FILE /* write */, [18] = WAIT_WRITE_FILE /* pwrite64 */,
	[20] = WAIT_WRITE_FILE /* writev */, [296] = WAIT_WRITE_FILE /* pwritev */,
	[328] = WAIT_WRITE_FILE /* pwritev2 */, [40] = WAIT_WRITE_FILE /* sendfile */,
	[44] = WAIT_WRITE_SOCKET /* sendto */, [46] = WAIT_WRITE_SOCKET /* sendmsg */,
	[307] = WAIT_WRITE_SOCKET /* sendmmsg */,
	[61] = WAIT_PROCESS /* wait4 */, [247] = WAIT_PROCESS /* waitid */,
	[58] = WAIT_PROCESS /* vfork */,
	[26] = WAIT_DISK /* msync */, [74] = WAIT_DISK /* fsync */, [75] = WAIT_DISK /* fdatasync */,
	[162] = WAIT_DISK /* sync */, [277] = WAIT_DISK /* sync_file_range */,
	[306] = WAIT_DISK /* syncfs */,
};
/* clang-format on */
#else
/* include/uapi/asm-generic/unistd.h: no poll and no select. */
enum syscall {
	SYSCALL_POLL = -2,
	SYSCALL_SELECT = -2,
	SYSCALL_PSELECT6 = 72,
	SYSCALL_PPOLL = 73,
	SYSCALL_FUTEX = 98,
	SYSCALL_SCHED_YIELD = 124,
};

/* clang-format off */
static const __u8 syscall_waits[SYSCALLS] = {
	[98] = WAIT_LOCK /* futex */, [449] = WAIT_LOCK /* futex_waitv */,
	[455] = WAIT_LOCK /* futex_wait */, [193] = WAIT_LOCK /* semop */,
	[192] = WAIT_LOCK /* semtimedop */,
	[101] = WAIT_SLEEP /* nanosleep */, [115] = WAIT_SLEEP /* clock_nanosleep */,
	[73] = WAIT_POLL /* ppoll */, [72] = WAIT_POLL /* pselect6 */,
	[22] = WAIT_POLL /* epoll_pwait */, [441] = WAIT_POLL /* epoll_pwait2 */,
	[426] = WAIT_POLL /* io_uring_enter */, [4] = WAIT_POLL /* io_getevents */,
	[63] = WAIT_READ_FILE /* read */, [67] = WAIT_READ_FILE /* pread64 */,
	[65] = WAIT_READ_FILE /* readv */, [69] = WAIT_READ_FILE /* preadv */,
	[286] = WAIT_READ_FILE /* preadv2 */,
	[203] = WAIT_READ_SOCKET /* connect */, [202] = WAIT_READ_SOCKET /* accept */,
	[242] = WAIT_READ_SOCKET /* accept4 */, [207] = WAIT_READ_SOCKET /* recvfrom */,
	[212] = WAIT_READ_SOCKET /* recvmsg */, [243] = WAIT_READ_SOCKET /* recvmmsg */,
	[64] = WAIT_WRITE_FILE /* write */, [68] = WAIT_WRITE_FILE /* pwrite64 */,
	[66] = WAIT_WRITE_FILE /* writev */, [70] = WAIT_WRITE_FILE /* pwritev */,
	[287] = WAIT_WRITE_FILE /* pwritev2 */, [71] = WAIT_WRITE_FILE /* sendfile */,
	[206] = WAIT_WRITE_SOCKET /* sendto */, [211] = WAIT_WRITE_SOCKET /* sendmsg */,
	[269] = WAIT_WRITE_SOCKET /* sendmmsg */,
	[260] = WAIT_PROCESS /* wait4 */, [95] = WAIT_PROCESS /* waitid */,
	[227] = WAIT_DISK /* msync */, [82] = WAIT_DISK /* fsync */, [83] = WAIT_DISK /* fdatasync */,
	[81] = WAIT_DISK /* sync */, [84] = WAIT_DISK /* sync_file_range */,
	[267] = WAIT_DISK /* syncfs */,
};
/* clang-format on */
#endif

#endif
