/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#include <errno.h>
#include <stdio.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/file.h"
#include "base/err.h"
#include "cmd/record.h"
#include "target/container_cgroup.h"

int record_targets_check(const struct call *call, const struct record_opts *o)
{
	bool has_command = call->operands.len > 0;
	int given = (o->pids.len > 0) + o->all + !!o->cgroup + !!o->container + has_command;

	if (has_command && call->operands.dashed != call->operands.len)
		return cmd_usage(call,
				 "unexpected argument %s: use -p PID for a running process, or -- "
				 "COMMAND to start one",
				 call->operands.items[0]);
	if (!given)
		return cmd_usage(call,
				 "no target to %s: use -p PID, -a, --cgroup PATH, --container ID "
				 "or -- COMMAND",
				 call->command == &command_record ? "record" : "watch");
	if (given > 1)
		return cmd_usage(call, "-p, -a, --cgroup, --container and -- COMMAND exclude "
				       "each other");
	for (size_t i = 0; i < o->pids.len; i++)
		for (size_t j = 0; j < i; j++)
			if (o->pids.items[i] == o->pids.items[j])
				return cmd_usage(call, "pid %u is given twice", o->pids.items[i]);
	return EXIT_OK;
}

static int open_cgroup(struct record_targets *t)
{
	if (t->o->container)
		return cgroup_open_container(t->o->container, &t->cgroup);
	return t->o->cgroup ? cgroup_open(t->o->cgroup, &t->cgroup) : 0;
}

static int launch(struct record_targets *t)
{
	int e = launch_prepare(&t->launch, t->command->items);

	return e < 0 ? e : vec_push(&t->pids, t->launch.pid);
}

int record_targets_prepare(struct record_targets *t)
{
	int e = open_cgroup(t);

	if (e >= 0 && record_targets_has_command(t))
		e = launch(t);
	for (size_t i = 0; i < t->o->pids.len && e >= 0; i++)
		e = vec_push(&t->pids, (pid_t)t->o->pids.items[i]);
	return e;
}

/* By descriptors, which are immune to a pid being used again. */
int record_targets_watch(struct record_targets *t)
{
	t->pid_fds = malloc((t->pids.len + 1) * sizeof(t->pid_fds[0]));
	if (!t->pid_fds)
		return -ENOMEM;
	for (size_t i = 0; i < t->pids.len; i++)
		t->pid_fds[i] = -1;
	for (size_t i = 0; i < t->pids.len; i++) {
		t->pid_fds[i] = syscall(SYS_pidfd_open, t->pids.items[i], 0);
		if (t->pid_fds[i] < 0 && errno != ESRCH)
			return err_set(-errno, "watch pid %d: %s", t->pids.items[i],
				       strerror(errno));
	}
	return 0;
}

bool record_targets_are_gone(struct record_targets *t)
{
	if (t->o->all)
		return false;
	if (record_targets_has_cgroup(t))
		return cgroup_is_gone(&t->cgroup);
	for (size_t i = 0; i < t->pids.len; i++) {
		struct pollfd p = { .fd = t->pid_fds[i], .events = POLLIN };

		if (p.fd < 0)
			continue;
		if (poll(&p, 1, 0) <= 0)
			return false;
		closep(&t->pid_fds[i]);
		t->pid_fds[i] = -1;
	}
	return true;
}

int record_targets_put(const struct record_targets *t, struct strbuf *out)
{
	int e = 0;

	if (t->o->all)
		return strbuf_puts(out, "all processes");
	if (t->o->container)
		return strbuf_appendf(out, "container %s", t->o->container);
	if (t->o->cgroup)
		return strbuf_appendf(out, "cgroup %s", t->cgroup.path);
	if (record_targets_has_command(t)) {
		for (int i = 0; i < t->command->len; i++)
			e = strbuf_appendf(out, "%s%s", i ? " " : "", t->command->items[i]);
		return e;
	}
	for (size_t i = 0; i < t->pids.len; i++)
		e = strbuf_appendf(out, "%spid %d", i ? ", " : "", t->pids.items[i]);
	return e;
}

bool record_targets_have_run_whole(struct record_targets *t)
{
	return record_targets_has_command(t) && launch_reap(&t->launch, false) >= 0 &&
	       t->launch.has_ended && WIFEXITED(t->launch.status);
}

void record_targets_release(struct record_targets *t)
{
	for (size_t i = 0; t->pid_fds && i < t->pids.len; i++)
		closep(&t->pid_fds[i]);
	free(t->pid_fds);
	vec_release(&t->pids);
	launch_release(&t->launch);
	cgroup_release(&t->cgroup);
}

bool record_targets_have_others(const struct record_targets *t)
{
	struct stat st;
	char path[32];

	if (t->o->all || record_targets_has_cgroup(t))
		return true;
	for (size_t i = 0; i < t->pids.len; i++) {
		snprintf(path, sizeof(path), "/proc/%d", t->pids.items[i]);
		if (stat(path, &st) < 0 || st.st_uid != file_owner())
			return true;
	}
	return false;
}
