/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#ifndef TARGET_CGROUP_H
#define TARGET_CGROUP_H

/*
 * Control groups: the one at a path, the one of a container, and who is in it. Version 1, version 2
 * and both side by side.
 */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "base/strbuf.h"
#include "target/proc.h"

#define CONTAINER_ID_MIN 12 /* hex digits that people give: what `docker ps` shows */

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
 * The cgroup of a container, by its id or the start of it, "docker://" or the like in front
 * allowed: the one in the path of which some process has that id. Version 2 is preferred. In a
 * cgroup namespace of our own, those are found that a mount from further up shows (below).
 *
 * -EINVAL: cannot be an id; -ENOENT: no process is in such a container; -ENOTUNIQ: processes of
 * several containers; -EACCES: its cgroup is outside what is mounted here.
 */
int cgroup_open_container(const char *id, struct cgroup *out);

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

/* A container in a cgroup path: its id is path[id .. id + id_len), its cgroup path[0 .. end). */
struct cgroup_container {
	size_t id, id_len, end;
};

/*
 * The next container in a cgroup path, outermost first, as engines name them: 64 hex digits, or 32
 * and a number (ECS), with a prefix like "docker-" and ".scope" around it. Their monitors
 * ("libpod-conmon-ID.scope") are none. *at is 0 at first. False: no more.
 */
bool cgroup_path_next(const char *path, size_t len, size_t *at, struct cgroup_container *out);

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

#endif
