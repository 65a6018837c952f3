/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#ifndef TARGET_CGROUP_H
#define TARGET_CGROUP_H

/* Control groups: the one at a path, and who is in it. Version 1, version 2 and both side by side.
 */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "target/proc.h"

struct cgroup {
	char *path; /* of its folder, owned */
	int fd;     /* of its folder: the same cgroup even if another comes to that path */
	bool is_v2;
};

#define CGROUP_INIT                     \
	{                               \
		.path = NULL, .fd = -1, \
	}

void cgroup_release(struct cgroup *c);

/*
 * path is a folder of a cgroup file system; or a name below a mounted one, as in /proc/PID/cgroup:
 * "system.slice/a.service". Version 2 is looked at first. -ENOENT: no such cgroup, -EACCES.
 */
int cgroup_open(const char *path, struct cgroup *out);

/*
 * PIDs in it and below it, ascending, each once, appended to out. Processes of other PID namespaces
 * than ours are left out. On failure out holds what it held.
 */
int cgroup_list(const struct cgroup *c, struct pids *out);

/*
 * CPU time of all that is or was in it and below it, ns since it was made: version 2's own count
 * (to a microsecond), or that of version 1's cpuacct. -ENOENT: this hierarchy of version 1 does not
 * count it.
 */
int cgroup_cpu_time(const struct cgroup *c, uint64_t *ns);

/* Has it been removed? */
bool cgroup_is_gone(const struct cgroup *c);

/* Folders inside one another that are listed: each holds a descriptor meanwhile. */
#define CGROUP_DEPTH_MAX 128

/*
 * Reads a file in the folder of a cgroup: some 4 MiB at most, NUL-terminated, to be freed. 0, or a
 * negative errno without a message.
 */
int cgroup_read_file(int folder, const char *name, char **out, size_t *len);

#endif
