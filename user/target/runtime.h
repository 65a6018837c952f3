/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#ifndef TARGET_RUNTIME_H
#define TARGET_RUNTIME_H

/*
 * Which CPython runs in a process, and where its state lives. Found by symbols in the files that
 * the process maps executable, never by a file's name. What a file says is kept: the next process
 * of the same file costs a look at its mappings and one read of its memory.
 */

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "bpf/events.h"
#include "target/interpreter_file.h"

#define RUNTIME_PATH_BYTES 256

struct py_runtime {
	char path[RUNTIME_PATH_BYTES];    /* of the file, as the process sees it; cut if longer */
	char build[ELF_BUILD_TEXT_BYTES]; /* build ID of the file, "": it has none */
	uint32_t version;                 /* PY_VERSION_HEX: VERSION_*() of target/offsets.h */
	uint64_t runtime_addr;            /* of _PyRuntime in this process; 3.6: see py_offsets */
	/* The file's executable mapping in this process. */
	uint64_t text_start;
	uint64_t text_pgoff; /* of text_start in the file, bytes */
	uint64_t text_inode; /* as in /proc/PID/maps */
	uint64_t text_dev;   /* the kernel's own number: major << 20 | minor */
	/* In every process: _PyRuntime = text_start - text_pgoff + this. */
	int64_t text_to_runtime;
	bool is_initialised; /* it had an interpreter when it was looked at; else not yet */
	uint64_t seen_ns;    /* CLOCK_MONOTONIC: just before that */
	/* Another interpreter that is initialised in this process and is not read; version 0: none.
	 */
	uint32_t other_version;
	char other_path[RUNTIME_PATH_BYTES];
	struct py_offsets offsets; /* minor, micro, is_free_threaded... and the layout */
};

/*
 * Could a process that the user named have an interpreter? 0 and *stat; with a message -ESRCH:
 * there is none, -ENOENT: a kernel thread, or it has ended; others as of proc_stat().
 */
struct proc_stat;
int runtime_check_process(pid_t pid, struct proc_stat *stat);

/*
 * Finds the interpreter of a process. Of several the first one that is initialised is taken, else
 * the first. If another one is initialised too, and in a file named libpython*, out->other_version
 * is set. Returns 0, or with a message for people:
 *
 * -ENOENT   no Python runtime in this process; the message names its executable
 * -ENOTSUP  a Python we cannot read, by name: CPython 2.7, 3.5, PyPy...
 * -EBADMSG  an unknown build, or two sources that disagree about the version
 * -EAGAIN   the interpreter has not said its version yet (3.10 and before, while it starts), or
 *           (arm64) its C library is not there yet
 * -EPERM    not ours to read: needs root, or CAP_SYS_PTRACE, in closed folders CAP_DAC_READ_SEARCH
 * -ETIME    the allowance of CPU time is spent (base/allowance.h): the next look goes on from here
 * -ESRCH    no such process, or it has ended
 */
int runtime_find(struct runtime_cache *cache, pid_t pid, struct py_runtime *out);

/* "CPython 3.11.7 of PATH is read, threads of CPython 3.13.0 of PATH are outside it" */
#define RUNTIME_TWO_BYTES (2 * RUNTIME_PATH_BYTES + 128)
void runtime_format_two(const struct py_runtime *rt, char out[RUNTIME_TWO_BYTES]);

/*
 * What a file says of the interpreter in it, as no process runs it yet: nothing of a process is in
 * *out, text_pgoff is where the code begins in the file, and is_initialised is false. -ENOENT:
 * none, or a file that does not say all; -EACCES and others of open(), -ENOMEM. Mostly without a
 * message.
 */
int runtime_read_file(struct runtime_cache *cache, const char *path, struct py_runtime *out);

#endif
