/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#ifndef TARGET_MAPS_H
#define TARGET_MAPS_H

/*
 * /proc/PID/maps, one mapping at a time, in memory that does not grow with their number. The
 * process goes on meanwhile: a mapping may be missing, never torn. Format: proc_pid_maps(5).
 */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "base/cleanup.h"

#define MAPS_LINE_MAX 32768 /* a PATH_MAX of newlines, each escaped, takes 16 KiB */

struct mapping {
	uint64_t start, end; /* addresses, end is the first one behind */
	uint64_t offset;     /* of start in the file, bytes */
	uint64_t inode;      /* 0: no file */
	uint32_t dev_major, dev_minor;
	uint32_t perms; /* PROT_READ | PROT_WRITE | PROT_EXEC */
	bool is_shared;
	bool is_deleted;  /* the path ended in " (deleted)", which is cut off */
	bool is_cut;      /* the path did not fit: its beginning */
	const char *path; /* as in the target's mount namespace, or "[heap]", "[vdso]", ""...; never
			     NULL. Bytes of no known encoding, newlines included */
};

/*
 * Reads one line, without its newline. The line is changed (its path is unescaped in place) and
 * must outlive m. len bytes are used, line[len] must be writable. Returns 0 or -EBADMSG, without a
 * message.
 */
int mapping_parse(char *line, size_t len, struct mapping *m);

struct maps;

/*
 * Of any thread of the process that lives (proc_living_thread()). -ENOENT: no such process,
 * -EACCES: not ours to see. *out is untouched on failure.
 */
int maps_open(pid_t pid, struct maps **out);

/* The same over an open file, which maps_close() then closes; on failure it stays the caller's. */
int maps_from_fd(int fd, struct maps **out);

/*
 * Returns 1 and the next mapping, 0 after the last one (a process that is gone or a zombie has
 * none). m->path is valid until the next call. Errors: what read() reports (-ESRCH: the process
 * died), -EBADMSG for lines that are not of this format.
 */
int maps_next(struct maps *maps, struct mapping *m);

void maps_close(struct maps *maps);
DEFINE_CLEANUP(struct maps *, maps_close)

#endif
