/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#ifndef TARGET_CGROUP_NAMESPACE_H
#define TARGET_CGROUP_NAMESPACE_H

#include <stdbool.h>
#include <stddef.h>

#include "base/strbuf.h"

#define CGROUP_LINES_MAX (12 * 4096 + 4096) /* /proc/PID/cgroup: one for each of 12 hierarchies */

/* A line of /proc/PID/cgroup: "NUMBER:CONTROLLERS:PATH"; version 2 has number 0 and no controllers.
 */
struct cgroup_line {
	const char *controllers, *path;
	size_t controllers_len, path_len;
};

bool cgroup_line_parse(const char *text, size_t len, struct cgroup_line *l);

/*
 * In a cgroup namespace of its own, as container engines give on version 2, a process reads in
 * /proc/PID/cgroup paths from that namespace's root: "/", "/../other-pod/container". What that root
 * is called outside shows where a cgroup file system is mounted from further up, such as the host's
 * /sys/fs/cgroup: there our own process is looked for.
 */
struct cgroup_namespace {
	struct cgroup_root {
		char *controllers; /* of its hierarchy: "" is version 2; owned */
		char *path;        /* as far up as the mount shows it; owned */
		char *point;       /* of that mount; owned */
	} * items; /* a VEC: the hierarchies in which it is known, and not the host's */
	size_t len;
	size_t cap;
};

/* 0, or a negative errno with a message; then it is empty. */
int cgroup_namespace_find(struct cgroup_namespace *out);
void cgroup_namespace_release(struct cgroup_namespace *n);

/*
 * Appends the path of a line of /proc/PID/cgroup as it is outside our namespace, as far as that is
 * known: below the root "/a/b", "/c" is "/a/b/c" and "/../c" is "/a/c". Above "/" is "/". What is
 * no such line gives nothing. 0 or -ENOMEM.
 */
int cgroup_namespace_path(const struct cgroup_namespace *n, const char *line, size_t len,
			  struct strbuf *out);

/*
 * Appends the path that people know a process's cgroup by, of the text of /proc/PID/cgroup, as
 * above: on version 2 or, where it is at the root there, in systemd's hierarchy of version 1, else
 * in any. 0 or -ENOMEM.
 */
int cgroup_path_of_text(const struct cgroup_namespace *n, const char *text, size_t len,
			struct strbuf *out);

/* NULL: that of the line's hierarchy is not known. */
const struct cgroup_root *cgroup_namespace_root(const struct cgroup_namespace *n,
						const struct cgroup_line *l);

/* Of another namespace's root, as seen from ours: "/../a". */
bool cgroup_path_begins_above(const char *path, size_t len);

#endif
