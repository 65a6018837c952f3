/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#include "target/cgroup_namespace.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/file.h"
#include "target/cgroup_mount.h"

#define INITIAL_NAMESPACE 0xeffffffbU /* PROC_CGROUP_INIT_INO (linux/proc_ns.h) */
#define FOLDERS_MAX 65536             /* looked at; a host has some thousand */

DEFINE_CLEANUP(DIR *, closedir)

bool cgroup_line_parse(const char *text, size_t len, struct cgroup_line *l)
{
	const char *end = text + len, *first = memchr(text, ':', len), *second;

	second = first ? memchr(first + 1, ':', end - first - 1) : NULL;
	if (!second)
		return false;
	l->controllers = first + 1;
	l->controllers_len = second - l->controllers;
	l->path = second + 1;
	l->path_len = end - l->path;
	return true;
}

/* Takes off the last name; the first `floor` bytes are no part of the path. */
static void path_pop(struct strbuf *path, size_t floor)
{
	const char *slash = memrchr(path->bytes + floor, '/', path->len - floor);

	strbuf_truncate(path, slash ? (size_t)(slash - path->bytes) : floor);
}

static int path_join(const char *root, const char *path, size_t len, struct strbuf *out)
{
	size_t floor = out->len;
	int r = strbuf_puts(out, root);

	for (size_t at = 0, end; at < len && !r; at = end + 1) {
		const char *name = path + at;
		const char *slash = memchr(name, '/', len - at);

		end = slash ? (size_t)(slash - path) : len;
		if (end - at == 2 && !memcmp(name, "..", 2)) {
			path_pop(out, floor);
		} else if (end > at) {
			strbuf_putc(out, '/');
			r = strbuf_append(out, name, end - at);
		}
	}
	return !r && out->len == floor ? strbuf_putc(out, '/') : r;
}

const struct cgroup_root *cgroup_namespace_root(const struct cgroup_namespace *n,
						const struct cgroup_line *l)
{
	for (size_t i = 0; i < n->len; i++)
		if (strlen(n->items[i].controllers) == l->controllers_len &&
		    !memcmp(n->items[i].controllers, l->controllers, l->controllers_len))
			return &n->items[i];
	return NULL;
}

bool cgroup_path_begins_above(const char *path, size_t len)
{
	return len >= 3 && !memcmp(path, "/..", 3);
}

void cgroup_namespace_release(struct cgroup_namespace *n)
{
	for (size_t i = 0; i < n->len; i++) {
		free(n->items[i].controllers);
		free(n->items[i].path);
		free(n->items[i].point);
	}
	vec_release(n);
}

int cgroup_namespace_path(const struct cgroup_namespace *n, const char *line, size_t len,
			  struct strbuf *out)
{
	const struct cgroup_root *root;
	struct cgroup_line l;

	if (!cgroup_line_parse(line, len, &l))
		return 0;
	root = cgroup_namespace_root(n, &l);
	return root ? path_join(root->path, l.path, l.path_len, out)
		    : strbuf_append(out, l.path, l.path_len);
}

/* How well a line says where a process belongs. */
static int rank_of(const struct cgroup_line *l)
{
	static const char systemd[] = "name=systemd";

	if (l->path_len <= 1)
		return 0; /* "/" */
	if (!l->controllers_len)
		return 3; /* version 2 */
	return l->controllers_len == strlen(systemd) &&
			       !memcmp(l->controllers, systemd, l->controllers_len)
		       ? 2
		       : 1;
}

int cgroup_path_of_text(const struct cgroup_namespace *n, const char *text, size_t len,
			struct strbuf *out)
{
	const char *best = NULL;
	size_t best_len = 0, size;
	int best_rank = -1;
	struct cgroup_line l;

	for (size_t at = 0; at < len; at += size + 1) {
		size = (size_t)((char *)(memchr(text + at, '\n', len - at) ?: text + len) - text) -
		       at;
		if (!cgroup_line_parse(text + at, size, &l) || rank_of(&l) <= best_rank)
			continue;
		best = text + at;
		best_len = size;
		best_rank = rank_of(&l);
	}
	return best ? cgroup_namespace_path(n, best, best_len, out) : 0;
}

static bool holds_process(int folder, pid_t pid)
{
	_cleanup_(freep) char *text = NULL;
	size_t len;

	if (cgroup_read_file(folder, "cgroup.procs", &text, &len) < 0)
		return false; /* removed meanwhile, or threaded: its processes are listed above it
			       */
	for (char *p = text; p && *p;) {
		if (strtol(p, &p, 10) == pid)
			return true;
		p += strcspn(p, "0123456789");
	}
	return false;
}

/* Appends to path where below the folder the process is. 1; 0: nowhere; a negative errno. */
static int find_process(int folder, pid_t pid, unsigned depth, size_t *looked_at,
			struct strbuf *path)
{
	_cleanup_(closedirp) DIR *dir = NULL;
	_cleanup_(closep) int fd = -1;
	const size_t len = path->len;
	struct dirent *entry;
	int r = 0;

	if (holds_process(folder, pid))
		return 1;
	if (depth == CGROUP_DEPTH_MAX || ++*looked_at > FOLDERS_MAX)
		return 0;
	fd = openat(folder, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	dir = fd >= 0 ? fdopendir(fd) : NULL;
	if (!dir)
		return 0; /* removed meanwhile */
	take_fd(fd);
	while (!r && (entry = readdir(dir))) {
		_cleanup_(closep) int below = -1;

		if (entry->d_type != DT_DIR || entry->d_name[0] == '.')
			continue;
		below = openat(dirfd(dir), entry->d_name, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
		if (below < 0)
			continue;
		if (strbuf_appendf(path, "/%s", entry->d_name) < 0)
			return -ENOMEM;
		r = find_process(below, pid, depth + 1, looked_at, path);
		if (!r)
			strbuf_truncate(path, len);
	}
	return r;
}

/* Our own line for the hierarchy of a mount, in the text of /proc/self/cgroup. */
static bool own_line(const char *text, const struct cgroup_mount *m, struct cgroup_line *out)
{
	for (size_t n; *text; text += n + (text[n] == '\n')) {
		n = strcspn(text, "\n");
		if (cgroup_line_parse(text, n, out) && m->is_v2 == !out->controllers_len &&
		    (m->is_v2 ||
		     cgroup_has_controllers(m->options, out->controllers, out->controllers_len)))
			return true;
	}
	return false;
}

static int add_root(struct cgroup_namespace *n, const struct cgroup_line *own, struct strbuf *path,
		    const char *point)
{
	struct cgroup_root root = { strndup(own->controllers, own->controllers_len),
				    strbuf_take(path), strdup(point) };

	if (root.controllers && root.path && root.point && !vec_push(n, root))
		return 0;
	free(root.controllers);
	free(root.path);
	free(root.point);
	return -ENOMEM;
}

/* The root is where we are less what we read of that. 0 also where this mount does not show it. */
static int root_by_mount(const struct cgroup_mount *m, const char *own_cgroups,
			 struct cgroup_namespace *n)
{
	_cleanup_(strbuf_releasep) struct strbuf path = STRBUF_INIT;
	_cleanup_(cgroup_release) struct cgroup top = CGROUP_INIT;
	size_t looked_at = 0, below;
	struct cgroup_line own;
	int r;

	if (!cgroup_path_begins_above(m->root, strlen(m->root)) ||
	    !own_line(own_cgroups, m, &own) || cgroup_namespace_root(n, &own) ||
	    cgroup_path_begins_above(own.path, own.path_len) ||
	    cgroup_open_folder(m->point, &top) < 0)
		return 0;
	r = find_process(top.fd, getpid(), 0, &looked_at, &path);
	if (r <= 0)
		return r;
	below = own.path_len > 1 ? own.path_len : 0; /* "/": we are at the root */
	if (path.len <= below || memcmp(path.bytes + path.len - below, own.path, below) != 0)
		return 0;
	strbuf_truncate(&path, path.len - below);
	return add_root(n, &own, &path, m->point);
}

int cgroup_namespace_find(struct cgroup_namespace *out)
{
	_cleanup_(freep) char *mounts = NULL, *own = NULL;
	char *rest = NULL;
	struct stat st;
	size_t len;
	int r;

	*out = (struct cgroup_namespace){ NULL, 0, 0 };
	if (stat("/proc/self/ns/cgroup", &st) < 0 || st.st_ino == INITIAL_NAMESPACE)
		return 0;
	if ((r = file_read("/proc/self/cgroup", CGROUP_LINES_MAX, &own, &len)) < 0 ||
	    (r = file_read("/proc/self/mountinfo", CGROUP_MOUNTS_MAX, &mounts, &len)) < 0)
		return r;
	for (char *l = strtok_r(mounts, "\n", &rest); l && !r; l = strtok_r(NULL, "\n", &rest)) {
		struct cgroup_mount m;

		if (cgroup_mount_parse(l, &m))
			r = root_by_mount(&m, own, out);
	}
	if (r < 0)
		cgroup_namespace_release(out);
	return r;
}
