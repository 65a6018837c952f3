/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#include "base/process_limit.h"

#include <errno.h>
#include <limits.h>
#include <sched.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/err.h"
#include "base/file.h"

#define CGROUPS_BYTES_MAX 65536
#define PROBE_STACK_BYTES 16384
#define ENDED_MAX 2 /* processes that may have ended since one was refused */

static enum process_limit_kind met;

static void note(enum process_limit_kind kind)
{
	__atomic_store_n(&met, kind, __ATOMIC_RELAXED);
}

enum process_limit_kind process_limit_met(void)
{
	return __atomic_load_n(&met, __ATOMIC_RELAXED);
}

static int end_at_once(void *arg)
{
	(void)arg;
	return 0;
}

int process_limit_probe(void)
{
	_Alignas(16) char stack[PROBE_STACK_BYTES];
	pid_t pid = clone(end_at_once, stack + sizeof(stack), CLONE_VM | CLONE_VFORK, NULL);

	if (pid < 0)
		return errno == EAGAIN ? -EUSERS : -ENOMEM;
	while (waitpid(pid, NULL, __WALL) < 0 && errno == EINTR)
		;
	return -ENOMEM; /* the stack of a thread is what there is no room for */
}

/* --- which one -------------------------------------------------------------------------------- */

/* Is the cgroup of this directory full? */
static bool is_full(const char *directory, long *max)
{
	char path[PATH_MAX + 16];
	long count;

	snprintf(path, sizeof(path), "%s/pids.max", directory);
	if (!file_number(path, max))
		return false; /* the root, or "max" */
	snprintf(path, sizeof(path), "%s/pids.current", directory);
	return file_number(path, &count) && count + ENDED_MAX >= *max;
}

/* From the cgroup up to the mount point. True: directory is of the one that is full. */
static bool find_full(const char *mount, const char *cgroup, size_t len, char directory[PATH_MAX],
		      long *max)
{
	size_t top = strlen(mount);
	char *slash;
	int n = snprintf(directory, PATH_MAX, "%s%.*s", mount, (int)len, cgroup);

	if (n < 0 || n >= PATH_MAX)
		return false;
	while (!is_full(directory, max)) {
		slash = strrchr(directory + top, '/');
		if (!slash)
			return false;
		*slash = '\0';
	}
	return true;
}

/* A line of /proc/self/cgroup: "HIERARCHY:CONTROLLERS:PATH", for version 2 "0::PATH". */
static bool find_in_line(const char *line, size_t len, char directory[PATH_MAX], long *max)
{
	static const char *const unified[] = { "/sys/fs/cgroup", "/sys/fs/cgroup/unified" };
	const char *pids = memmem(line, len, ":pids:", 6);
	bool is_found = false;

	if (pids)
		return find_full("/sys/fs/cgroup/pids", pids + 6, len - (size_t)(pids + 6 - line),
				 directory, max);
	for (size_t i = 0; i < sizeof(unified) / sizeof(unified[0]) && !is_found; i++)
		is_found = len > 3 && !memcmp(line, "0::", 3) &&
			   find_full(unified[i], line + 3, len - 3, directory, max);
	return is_found;
}

static bool find_cgroup(char directory[PATH_MAX], long *max)
{
	_cleanup_(freep) char *text = NULL;
	bool is_found = false;
	size_t len;

	if (file_read("/proc/self/cgroup", CGROUPS_BYTES_MAX, &text, &len) < 0) {
		err_clear(); /* a kernel without cgroups */
		return false;
	}
	for (const char *at = text; *at && !is_found;) {
		size_t line = strcspn(at, "\n");

		is_found = find_in_line(at, line, directory, max);
		at += line + (at[line] == '\n');
	}
	return is_found;
}

static int say_which(const char *what)
{
	char directory[PATH_MAX];
	struct rlimit user;
	long max;

	if (find_cgroup(directory, &max)) {
		note(PROCESS_LIMIT_CGROUP);
		return err_set(-ENOMEM, "%s: too many processes: pids.max of %s is %ld", what,
			       directory, max);
	}
	if (getuid() && !getrlimit(RLIMIT_NPROC, &user) && user.rlim_cur != RLIM_INFINITY) {
		note(PROCESS_LIMIT_USER);
		return err_set(-ENOMEM,
			       "%s: too many processes: this user may have %llu (ulimit -u)", what,
			       (unsigned long long)user.rlim_cur);
	}
	note(PROCESS_LIMIT_MACHINE);
	return err_set(-ENOMEM, "%s: too many processes: the machine has as many as it may", what);
}

int process_limit_say(int r, const char *what)
{
	if (r == -EUSERS)
		return say_which(what);
	note(PROCESS_LIMIT_NONE);
	return err_set(-ENOMEM, "%s: too little memory", what);
}
