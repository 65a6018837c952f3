/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#ifndef TARGET_OWNER_H
#define TARGET_OWNER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "target/cgroup_namespace.h"

/*
 * Who answers for what a process makes us do. Budgets are kept by owner, so an owner is something
 * that who runs there cannot make many of, and that root or the kernel has named:
 *
 * - the outermost container of its cgroups. Names below a slice of a user (user.slice) do not
 *   count: systemd lets that user name cgroups there.
 * - else, in a user namespace inside of ours: who made the outermost one. A user has many user ids
 *   in it (/etc/subuid). Where root made it, the namespace itself.
 * - else the real user id, which a set-user-ID program does not change.
 * - root's processes outside of all these: the two outermost folders of the cgroup, as
 *   system.slice/nginx.service. Root is trusted; one of its services is kept from others.
 */
struct owner {
	uint64_t id;  /* not 0; another one in each run of pyebpf */
	bool is_root; /* the last case */
};

/* 0; -ESRCH, where the process is gone, or another errno, without a message. */
int owner_find(pid_t pid, const struct cgroup_namespace *ours, struct owner *out);

/*
 * The part that does not ask the system. cgroups: the text of /proc/PID/cgroup; user: the real user
 * id; maker: who made its user namespace, if that is inside of ours; maker_namespace: its inode,
 * 0: it is ours. 0 or -ENOMEM.
 */
struct owner_facts {
	const char *cgroups;
	size_t cgroups_len;
	uid_t user, maker;
	uint64_t maker_namespace;
};
int owner_of(const struct owner_facts *f, const struct cgroup_namespace *ours, struct owner *out);

#endif
