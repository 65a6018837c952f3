/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#include "target/cgroup.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/err.h"
#include "base/strbuf.h"
#include "base/vec.h"
#include "target/cgroup_mount.h"

#define TEXT_MAX 4194304 /* bytes of one cgroup's PIDs */

DEFINE_CLEANUP(DIR *, closedir)

void cgroup_release(struct cgroup *c)
{
	free(c->path);
	closep(&c->fd);
	*c = (struct cgroup)CGROUP_INIT;
}

int cgroup_open(const char *path, struct cgroup *out)
{
	_cleanup_(freep) char *below = NULL;
	int r = cgroup_open_folder(path, out);

	if (!r || r == -ENOMEM)
		return r;
	if (r == -EACCES)
		return err_set(r, "%s: %s", path, strerror(-r));
	/* A service's folder may lie in the working folder under the same name: not meant. */
	if (asprintf(&below, "%s%s", path[0] == '/' ? "" : "/", path) < 0) {
		below = NULL;
		return -ENOMEM;
	}
	r = cgroup_open_mounted(NULL, 0, true, below, strlen(below), out);
	if (r == -ENOENT)
		r = cgroup_open_mounted(NULL, 0, false, below, strlen(below), out);
	if (r == -ENOENT)
		return err_set(r, "%s: no such cgroup, neither as a folder nor below a mounted one",
			       path);
	return r < 0 ? err_set(r, "cgroup %s: %s", path, strerror(-r)) : 0;
}

/* --- Processes -------------------------------------------------------------------------------- */

int cgroup_read_file(int folder, const char *name, char **out, size_t *len)
{
	_cleanup_(closep) int fd = openat(folder, name, O_RDONLY | O_CLOEXEC);
	_cleanup_(strbuf_releasep) struct strbuf text = STRBUF_INIT;
	char block[4096];
	ssize_t n;

	if (fd < 0)
		return -errno;
	/* read(), not pread(): version 1 makes the list anew for each call at an offset. */
	while ((n = read(fd, block, sizeof(block))) > 0 && text.len < TEXT_MAX)
		if (strbuf_append(&text, block, n) < 0)
			return -ENOMEM;
	if (n < 0)
		return -errno;
	*len = text.len;
	*out = strbuf_take(&text);
	return 0;
}

static int list_folder(int folder, struct pids *out)
{
	_cleanup_(freep) char *text = NULL;
	size_t len;
	int r = cgroup_read_file(folder, "cgroup.procs", &text, &len);

	if (r == -EOPNOTSUPP)
		return 0; /* a threaded cgroup: its processes are listed above it */
	for (char *p = text; !r && p && *p;) {
		long pid = strtol(p, &p, 10);

		if (pid > 0 && pid <= PROC_PIDS_MAX) /* 0: of another PID namespace */
			r = vec_push(out, (pid_t)pid);
		p += strcspn(p, "0123456789");
	}
	return r;
}

/* What is removed while it is listed has no processes any more. */
static int list_below(int folder, unsigned depth, struct pids *out)
{
	_cleanup_(closedirp) DIR *dir = NULL;
	_cleanup_(closep) int fd = -1;
	struct dirent *entry;
	int r = list_folder(folder, out);

	if (r == -ENOENT || r == -ENODEV)
		return 0;
	if (r < 0 || depth == CGROUP_DEPTH_MAX)
		return r;
	fd = openat(folder, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	dir = fd >= 0 ? fdopendir(fd) : NULL;
	if (!dir)
		return fd < 0 && errno == ENOENT ? 0 : -errno;
	take_fd(fd);
	while (r >= 0 && (entry = readdir(dir))) {
		_cleanup_(closep) int below = -1;

		if (entry->d_type != DT_DIR || entry->d_name[0] == '.')
			continue;
		below = openat(dirfd(dir), entry->d_name, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
		if (below >= 0)
			r = list_below(below, depth + 1, out);
	}
	return r;
}

int cgroup_list(const struct cgroup *c, struct pids *out)
{
	_cleanup_(pids_releasep) struct pids found = VEC_INIT;
	size_t kept = 0;
	int r = list_below(c->fd, 0, &found);

	if (r < 0)
		return err_set(r, "list the processes of %s: %s", c->path, strerror(-r));
	pids_sort(&found, 0);
	for (size_t i = 0; i < found.len; i++)
		if (!i || found.items[i] != found.items[i - 1])
			found.items[kept++] = found.items[i];
	return vec_append(out, found.items, kept);
}

/* A number in a file of the cgroup, behind the word `key` at the start of a line. */
static int read_value(const struct cgroup *c, const char *file, const char *key, uint64_t *value)
{
	_cleanup_(freep) char *text = NULL;
	size_t key_len = strlen(key), len;
	int r = cgroup_read_file(c->fd, file, &text, &len);

	if (r < 0)
		return r;
	for (const char *line = text; line; line = strchr(line, '\n')) {
		line += *line == '\n';
		if (strncmp(line, key, key_len) != 0)
			continue;
		*value = strtoull(line + key_len, NULL, 10);
		return 0;
	}
	return -ENOENT;
}

int cgroup_cpu_time(const struct cgroup *c, uint64_t *ns)
{
	uint64_t microseconds;
	int r = read_value(c, "cpu.stat", "usage_usec ", &microseconds);

	if (!r)
		*ns = microseconds * 1000;
	else
		r = read_value(c, "cpuacct.usage", "", ns);
	return r;
}

bool cgroup_is_gone(const struct cgroup *c)
{
	return faccessat(c->fd, "cgroup.procs", F_OK, 0) < 0 && errno != EACCES;
}
