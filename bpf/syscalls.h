/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#ifndef BPF_SYSCALLS_H
#define BPF_SYSCALLS_H

/*
 * What a thread waits for in a system call: by its number, as the kernel's unistd.h of the
 * architecture has it. READ and WRITE that name no socket are of any file: its descriptor is the
 * first argument, as it is of LOCK_FILE. WAIT_NONE (0): no row, WAIT_OTHER. Pure: user space, which
 * finds call and arguments in /proc/PID/task/TID/syscall, goes by the same.
 */

#include "bpf/events.h"
#include "bpf/verifier.h"

#define SYSCALLS 512

#if defined(__TARGET_ARCH_x86) || defined(__x86_64__)
enum syscall {
	SYSCALL_POLL = 7,
	SYSCALL_SELECT = 23,
	SYSCALL_SCHED_YIELD = 24,
	SYSCALL_FCNTL = 72,
	SYSCALL_FUTEX = 202,
	SYSCALL_PSELECT6 = 270,
	SYSCALL_PPOLL = 271,
};

/* clang-format off */
static const __u8 syscall_waits[SYSCALLS] = {
	[202] = WAIT_LOCK /* futex */, [449] = WAIT_LOCK /* futex_waitv */,
	[455] = WAIT_LOCK /* futex_wait */, [65] = WAIT_LOCK /* semop */,
	[220] = WAIT_LOCK /* semtimedop */,
	[72] = WAIT_LOCK_FILE /* fcntl */, [73] = WAIT_LOCK_FILE /* flock */,
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
	SYSCALL_FCNTL = 25,
	SYSCALL_PPOLL = 73,
	SYSCALL_FUTEX = 98,
	SYSCALL_SCHED_YIELD = 124,
};

/* clang-format off */
static const __u8 syscall_waits[SYSCALLS] = {
	[98] = WAIT_LOCK /* futex */, [449] = WAIT_LOCK /* futex_waitv */,
	[455] = WAIT_LOCK /* futex_wait */, [193] = WAIT_LOCK /* semop */,
	[192] = WAIT_LOCK /* semtimedop */,
	[25] = WAIT_LOCK_FILE /* fcntl */, [32] = WAIT_LOCK_FILE /* flock */,
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

/* futex(2): what of its operation is no flag, and those that wait for a word to change. */
#define FUTEX_COMMAND 0x7f
#define FUTEX_COMMANDS_THAT_WAIT                                                  \
	(1U << 0 /* WAIT */ | 1U << 6 /* LOCK_PI */ | 1U << 9 /* WAIT_BITSET */ | \
	 1U << 11 /* REQUEUE_PI */ | 1U << 13 /* LOCK_PI2 */)

/* Is it futex(2), waiting? arg1: its second argument. */
static __always_inline bool syscall_waits_for_futex(__s64 nr, __u64 arg1)
{
	__u32 command = arg1 & FUTEX_COMMAND;

	return nr == SYSCALL_FUTEX && command < 32 && FUTEX_COMMANDS_THAT_WAIT & 1U << command;
}

/* fcntl(2): the commands that wait for a lock, of a process and of an open file. */
#define FCNTL_SETLKW 7
#define FCNTL_OFD_SETLKW 38

/* arg1: its second argument. */
static __always_inline bool fcntl_waits_for_lock(__u64 arg1)
{
	return (__u32)arg1 == FCNTL_SETLKW || (__u32)arg1 == FCNTL_OFD_SETLKW;
}

/* Sleeping is also waiting for any of no files: that is how time.sleep() does it up to 3.10. */
static __always_inline bool syscall_polls_nothing(__s64 nr, __u64 arg0, __u64 arg1)
{
	if (nr == SYSCALL_SELECT || nr == SYSCALL_PSELECT6)
		return !arg0;
	return (nr == SYSCALL_POLL || nr == SYSCALL_PPOLL) && !arg1;
}

/* enum wait_reason of a thread that waits in a call, by that and its first two arguments. */
static __always_inline __u8 wait_of_syscall(__s64 nr, __u64 arg0, __u64 arg1)
{
	__u8 reason;

	if ((__u64)nr >= SYSCALLS)
		return WAIT_OTHER;
	reason = syscall_waits[at_most(nr, SYSCALLS - 1)];
	if (reason == WAIT_POLL && syscall_polls_nothing(nr, arg0, arg1))
		return WAIT_SLEEP;
	if (nr == SYSCALL_FUTEX && !syscall_waits_for_futex(nr, arg1))
		return WAIT_OTHER;
	if (nr == SYSCALL_FCNTL && !fcntl_waits_for_lock(arg1))
		return WAIT_OTHER;
	return reason ? reason : WAIT_OTHER;
}

/* include/uapi/linux/stat.h */
#define MODE_TYPE 0xf000
#define MODE_FIFO 0x1000
#define MODE_SOCKET 0xc000

/* Of READ and WRITE of a file, by what kind of file it is (its mode & MODE_TYPE). */
static __always_inline __u8 wait_of_file_type(__u8 reason, __u32 type)
{
	if (type == MODE_SOCKET)
		return reason == WAIT_READ_FILE ? WAIT_READ_SOCKET : WAIT_WRITE_SOCKET;
	if (type == MODE_FIFO)
		return reason == WAIT_READ_FILE ? WAIT_READ_PIPE : WAIT_WRITE_PIPE;
	return reason;
}

#endif
