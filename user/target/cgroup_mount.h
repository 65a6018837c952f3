/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#ifndef TARGET_CGROUP_MOUNT_H
#define TARGET_CGROUP_MOUNT_H

/* Where hierarchies of cgroups are mounted. */

#include <stdbool.h>
#include <stddef.h>

#include "target/cgroup.h"

#define CGROUP_MOUNTS_MAX 4194304 /* bytes of /proc/self/mountinfo */

/* A mounted hierarchy: fields of /proc/self/mountinfo, which they point into. */
struct cgroup_mount {
	char *root;  /* the cgroup that is mounted, in its hierarchy */
	char *point; /* where */
	bool is_v2;
	const char *options; /* of the super block: version 1 has its controllers here */
};

/* One line of mountinfo, which is changed. False: not a cgroup file system. */
bool cgroup_mount_parse(char *line, struct cgroup_mount *m);

/* Does a list with commas have all words of another? */
bool cgroup_has_controllers(const char *list, const char *words, size_t len);

/* -ENOTTY: a folder, but of another file system. Without a message. */
int cgroup_open_folder(const char *path, struct cgroup *out);

/*
 * Opens a cgroup by its path in its hierarchy. controllers: those of a version 1 hierarchy, "" for
 * version 2, NULL for whichever has it. -ENOENT without a message: not below what is mounted.
 */
int cgroup_open_mounted(const char *controllers, size_t controllers_len, bool is_v2,
			const char *path, size_t len, struct cgroup *out);

#endif
