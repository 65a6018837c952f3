/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#ifndef TARGET_PROC_H
#define TARGET_PROC_H

/*
 * What /proc says about processes, and files of a target opened as the target sees them. Processes
 * end and PIDs are reused between any two calls: compare start_ticks where that matters.
 */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/sysmacros.h>
#include <sys/types.h>

#include "base/vec.h"
#include "target/maps.h"

#define PROC_COMM_BYTES 64      /* kernel threads' names are up to 63 bytes, others' up to 15 */
#define PROC_CMDLINE_MAX 131072 /* MAX_ARG_STRLEN (linux/binfmts.h): one argument */
#define PROC_PIDS_MAX 4194304   /* PID_MAX_LIMIT (linux/threads.h) */

struct pids {
	pid_t *items; /* a VEC: pids.items[i], pids.len, vec_release(&pids) */
	size_t len;
	size_t cap;
};

static inline void pids_releasep(struct pids *p)
{
	vec_release(p);
}

/* Ascending, from the one at `first` on. */
void pids_sort(struct pids *p, size_t first);

/* In a list that is ascending. */
bool pids_has(const struct pids *ascending, pid_t pid);

static inline void pids_swap(struct pids *a, struct pids *b)
{
	struct pids held = *a;

	*a = *b;
	*b = held;
}

/* Tells one version of a file from another. */
struct file_id {
	uint64_t dev; /* st_dev, which on overlayfs and btrfs is not the one in maps */
	uint64_t inode;
	uint64_t size;
	int64_t mtime_ns;
};

/* The kernel's own number (MKDEV, linux/kdev_t.h) for a dev_t. */
static inline uint64_t kernel_dev(dev_t dev)
{
	return (uint64_t)major(dev) << 20 | minor(dev);
}

struct stat;
struct file_id file_id_of(const struct stat *st);

struct proc_stat {
	pid_t pid;
	pid_t ppid;
	uint32_t flags; /* PF_* of linux/sched.h */
	uint32_t threads;
	uint64_t start_ticks; /* since boot, sysconf(_SC_CLK_TCK) of them a second */
	char state;           /* R, S, D, Z, ... of proc_pid_stat(5) */
	bool is_kernel_thread;
	bool is_forked; /* it has not called exec since it was forked */
	bool is_zombie; /* has ended, with all its threads: no memory, no files */
	char comm[PROC_COMM_BYTES];
};

/* The text of /proc/PID/stat. comm may hold ") " and newlines. -EBADMSG, without a message. */
int proc_stat_parse(const char *text, size_t len, struct proc_stat *out);

/* -ESRCH: no such process. pid may also be a TID. */
int proc_stat(pid_t pid, struct proc_stat *out);

/*
 * The start_ticks of who began then, by the kernel's CLOCK_BOOTTIME: /proc tells it by the clock of
 * the reader's time namespace.
 */
uint64_t proc_start_ticks(uint64_t start_ns);

/*
 * Is pid still the process that began then? Asked after /proc/PID was read: all of that was of this
 * process, not of a later one with its PID.
 */
bool proc_is(pid_t pid, uint64_t start_ticks);

/*
 * PIDs, ascending, appended to out. On failure out holds what it held. -ESRCH: no such process.
 * proc_children() has those whose parent it is, proc_descendants() theirs too; both look at every
 * process of the system.
 */
int proc_list(struct pids *out);
int proc_threads(pid_t pid, struct pids *out);
int proc_children(pid_t pid, struct pids *out);
int proc_descendants(pid_t pid, struct pids *out);

/*
 * Where the first thread of a process has ended and others live on, /proc/PID shows no memory and
 * no files: the TID of one of these, which /proc and process_vm_readv() take as well. Else, and
 * where nothing is known, pid.
 */
pid_t proc_living_thread(pid_t pid);

/*
 * Start of the command line, NUL between arguments, at most PROC_CMDLINE_MAX bytes. *out is
 * NUL-terminated, freed with free(). Kernel threads and zombies have an empty one.
 */
int proc_cmdline(pid_t pid, char **out, size_t *len);

/* Where /proc/PID/exe points, in the target's mount namespace. Freed with free(). */
int proc_exe(pid_t pid, char **out);

/* The PID it has in its own, innermost PID namespace; the text is that of /proc/PID/status. */
int proc_nspid_parse(const char *text, size_t len, pid_t *out);
int proc_nspid(pid_t pid, pid_t *out);

/*
 * The most memory that this process had at once, in bytes; 0: unknown. Of getrusage() it is not to
 * be had: exec() leaves in ru_maxrss what whoever started us had.
 */
uint64_t proc_own_memory(void);

/*
 * The file of a mapping. First by /proc/PID/map_files (also right for deleted files; needs
 * CAP_CHECKPOINT_RESTORE or CAP_SYS_ADMIN), else by its path below the target's root, no link
 * leading out of it; then the inode must be the mapping's, and the device where the two are
 * comparable (overlayfs and btrfs show another one in maps than in stat).
 *
 * proc_mapped_id() opens nothing; proc_mapped_open() returns an fd for file_pread(). id may be NULL
 * in the second. Only regular files: -EINVAL. -ENOENT: no file behind the mapping, or its path is
 * gone; -ESTALE: another file is there now; -EACCES.
 */
int proc_mapped_id(pid_t pid, const struct mapping *m, struct file_id *id);
int proc_mapped_open(pid_t pid, const struct mapping *m, struct file_id *id);

#endif
