/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#ifndef TARGET_CONTAINER_CGROUP_H
#define TARGET_CONTAINER_CGROUP_H

/* Containers, as the paths of cgroups name them. */

#include <stdbool.h>
#include <stddef.h>

#include "target/cgroup.h"

#define CONTAINER_ID_MIN 12 /* hex digits that people give: what `docker ps` shows */

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
 * The cgroup of a container, by its id or the start of it, "docker://" or the like in front
 * allowed: the one in the path of which some process has that id. Version 2 is preferred. In a
 * cgroup namespace of our own, those are found that a mount from further up shows (below).
 *
 * -EINVAL: cannot be an id; -ENOENT: no process is in such a container; -ENOTUNIQ: processes of
 * several containers; -EACCES: its cgroup is outside what is mounted here.
 */
int cgroup_open_container(const char *id, struct cgroup *out);

#endif
