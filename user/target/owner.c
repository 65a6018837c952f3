/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#include "target/owner.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/nsfs.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/err.h"
#include "base/file.h"
#include "base/hash.h"
#include "base/strbuf.h"
#include "target/container_cgroup.h"

#define CGROUP_BYTES_MAX 65536
#define STATUS_BYTES_MAX 65536
#define NAMESPACE_DEPTH_MAX 33 /* user_namespaces(7): 32 below the first one */
#define FOLDERS_OF_ROOT 2

/* Kinds of owners, so that equal numbers of two kinds are two owners. */
enum { OF_CONTAINER = 1, OF_NAMESPACE, OF_USER, OF_CGROUP };

static struct owner owner_by(uint64_t hash)
{
	return (struct owner){ .id = hash | 1 };
}

/* --- cgroups ---------------------------------------------------------------------------------- */

/* systemd's: "user.slice", or "user-1000.slice" below it. */
static bool is_user_slice(const char *name, size_t len)
{
	static const char suffix[] = ".slice";
	const size_t suffix_len = sizeof(suffix) - 1;

	return len >= 4 + suffix_len && !memcmp(name, "user", 4) &&
	       (name[4] == '.' || name[4] == '-') &&
	       !memcmp(name + len - suffix_len, suffix, suffix_len);
}

static bool has_user_slice(const char *path, size_t len)
{
	bool has = false;

	for (size_t at = 0, end; at < len && !has; at = end + 1) {
		end = at;
		while (end < len && path[end] != '/')
			end++;
		has = is_user_slice(path + at, end - at);
	}
	return has;
}

static bool find_container(const char *path, size_t len, struct owner *out)
{
	struct cgroup_container c;
	size_t at = 0;

	if (!cgroup_path_next(path, len, &at, &c) || has_user_slice(path, c.id))
		return false;
	*out = owner_by(hash_bytes(path + c.id, c.id_len, OF_CONTAINER));
	return true;
}

/* 1: there is one; 0, -ENOMEM. */
static int of_container(const char *text, size_t len, const struct cgroup_namespace *ours,
			struct owner *out)
{
	const char *end = text + len;

	while (text < end) {
		_cleanup_(strbuf_releasep) struct strbuf path = STRBUF_INIT;
		size_t line = (size_t)((char *)(memchr(text, '\n', end - text) ?: end) - text);

		if (cgroup_namespace_path(ours, text, line, &path) == -ENOMEM)
			return -ENOMEM;
		if (find_container(strbuf_str(&path), path.len, out))
			return 1;
		text += line + 1;
	}
	return 0;
}

static int of_root(const char *text, size_t len, const struct cgroup_namespace *ours,
		   struct owner *out)
{
	_cleanup_(strbuf_releasep) struct strbuf path = STRBUF_INIT;
	size_t folders = 0, n = 0;

	if (cgroup_path_of_text(ours, text, len, &path) < 0)
		return -ENOMEM;
	for (; n < path.len; n++)
		if (n && strbuf_str(&path)[n] == '/' && ++folders == FOLDERS_OF_ROOT)
			break;
	*out = owner_by(hash_bytes(strbuf_str(&path), n, OF_CGROUP));
	out->is_root = true;
	return 0;
}

int owner_of(const struct owner_facts *f, const struct cgroup_namespace *ours, struct owner *out)
{
	int r = of_container(f->cgroups, f->cgroups_len, ours, out);

	if (r)
		return r < 0 ? r : 0;
	if (f->maker_namespace && !f->maker)
		*out = owner_by(hash_combine(OF_NAMESPACE, f->maker_namespace));
	else if (f->maker_namespace)
		*out = owner_by(hash_combine(OF_USER, f->maker));
	else if (f->user)
		*out = owner_by(hash_combine(OF_USER, f->user));
	else
		r = of_root(f->cgroups, f->cgroups_len, ours, out);
	return r;
}

/* --- the system ------------------------------------------------------------------------------- */

static bool inode_of(int fd, ino_t *inode)
{
	struct stat st;

	*inode = fstat(fd, &st) < 0 ? 0 : st.st_ino;
	return *inode != 0;
}

/* Goes from a user namespace to its parents, until that is ours. Where none is, nothing is known.
 */
static void find_maker(int fd, ino_t ours, struct owner_facts *f)
{
	_cleanup_(closep) int at = fd;
	ino_t inode, above;

	for (int i = 0; i < NAMESPACE_DEPTH_MAX && inode_of(at, &inode); i++) {
		_cleanup_(closep) int parent = ioctl(at, NS_GET_PARENT);

		if (parent < 0 || !inode_of(parent, &above))
			return;
		if (above == ours && !ioctl(at, NS_GET_OWNER_UID, &f->maker)) {
			f->maker_namespace = inode;
			return;
		}
		close(at);
		at = take_fd(parent);
	}
}

static void find_namespace(pid_t pid, struct owner_facts *f)
{
	struct stat own, its;
	char path[48];
	int fd;

	snprintf(path, sizeof(path), "/proc/%d/ns/user", pid);
	if (stat("/proc/self/ns/user", &own) < 0 || stat(path, &its) < 0 ||
	    own.st_ino == its.st_ino)
		return;
	fd = open(path, O_RDONLY | O_CLOEXEC);
	if (fd >= 0)
		find_maker(fd, own.st_ino, f);
}

static int read_proc(pid_t pid, const char *name, size_t max, char **text, size_t *len)
{
	char path[48];
	int r;

	snprintf(path, sizeof(path), "/proc/%d/%s", pid, name);
	r = file_read_proc(path, max, text, len);
	err_clear();
	return r == -ENOENT ? -ESRCH : r;
}

static int find_user(pid_t pid, uid_t *user)
{
	_cleanup_(freep) char *text = NULL;
	const char *line;
	size_t len;
	int r = read_proc(pid, "status", STATUS_BYTES_MAX, &text, &len);

	if (r < 0)
		return r;
	line = strstr(text, "\nUid:");
	return line && sscanf(line, "\nUid: %u", user) == 1 ? 0 : -EBADMSG;
}

int owner_find(pid_t pid, const struct cgroup_namespace *ours, struct owner *out)
{
	_cleanup_(freep) char *cgroups = NULL;
	struct owner_facts f = { 0 };
	int r = find_user(pid, &f.user);

	if (!r)
		r = read_proc(pid, "cgroup", CGROUP_BYTES_MAX, &cgroups, &f.cgroups_len);
	if (r < 0)
		return r;
	f.cgroups = cgroups;
	find_namespace(pid, &f);
	return owner_of(&f, ours, out);
}
