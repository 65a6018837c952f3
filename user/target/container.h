/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#ifndef TARGET_CONTAINER_H
#define TARGET_CONTAINER_H

#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>

#include "target/cgroup_namespace.h"
#include "target/pod.h"

#define CONTAINER_ID_BYTES 65 /* with the final NUL */

/* Where a process runs. NUL-terminated; "": nowhere such, or unknown. */
struct container {
	char id[CONTAINER_ID_BYTES]; /* of the innermost one */
	struct pod_name pod;
};

/*
 * Container and pod are those of the process's cgroups, which `ours` completes where our own
 * namespace hides a part; where they say nothing, those of the files that engines mount into a
 * container. The pod's names are those of the kubelet's folders of logs, /var/log/pods, our own or,
 * where processes are seen as the host sees them, the host's. Nothing of it is the target's own
 * word, and no network is asked.
 *
 * False: in neither, as far as can be seen: the process may have ended.
 */
bool container_find(pid_t pid, const struct cgroup_namespace *ours, struct container *out);

/* The parts that do not ask the system. The second fills in what is still empty. */
void container_of_cgroups(const char *text, size_t len, const struct cgroup_namespace *ours,
			  struct container *out); /* /proc/PID/cgroup */
void container_of_mounts(const char *text, size_t len, struct container *out); /* .../mountinfo */

#endif
