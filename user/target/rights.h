/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#ifndef TARGET_RIGHTS_H
#define TARGET_RIGHTS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "base/cleanup.h"

/*
 * Files opened only if somebody else could read them: a target names the files that it wants shown,
 * and pyebpf may read more of the machine than the target. Mode bits decide, of the file and of
 * each directory above it up to the target's root. An access control list of a file counts as a
 * refusal, but for its owner. Files that the kernel makes up (file_is_of_kernel()) are refused.
 */
#define RIGHTS_GROUPS_MAX 64

struct rights {
	uint32_t uid, gid; /* of the file system, in the initial user namespace */
	uint32_t groups[RIGHTS_GROUPS_MAX];
	uint32_t group_count;
	bool may_have_more; /* groups than these: what a group may not do counts for all groups */
	bool reads_all;     /* CAP_DAC_OVERRIDE or CAP_DAC_READ_SEARCH over the whole machine */
};

/* The rights of a process or thread at this moment. 0 or a negative errno with a message. */
int rights_read(pid_t pid, struct rights *out);

/* The same from the text of /proc/PID/status; capabilities are not looked at. -EBADMSG. */
int rights_parse(const char *text, size_t len, struct rights *out);

bool rights_are_equal(const struct rights *a, const struct rights *b);

/* Mode bits as open() judges them. want: 4 to read, 1 to search a directory. */
struct stat;
bool rights_allow(const struct rights *who, const struct stat *st, bool has_acl, unsigned int want);

/*
 * Opens the regular file at path for reading, if `who` could. base_link is a directory that paths
 * are below of, which no symbolic link leaves: "/", or /proc/PID/root or /proc/PID/cwd. Nothing but
 * a regular file of a real file system is ever opened. May wait for a file system that does not
 * answer: call it on a thread that can be left behind.
 *
 * Returns the fd, or a negative errno without a message: -EACCES: `who` could not read it; -EINVAL:
 * not such a file; -ESTALE: the path changed meanwhile.
 */
int rights_open(const struct rights *who, const char *base_link, const char *path);

#endif
