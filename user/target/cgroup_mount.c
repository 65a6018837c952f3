/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#include "target/cgroup_mount.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/magic.h>
#include <stdlib.h>
#include <string.h>
#include <sys/vfs.h>

#include "base/cleanup.h"
#include "base/file.h"
#include "base/strbuf.h"

int cgroup_open_folder(const char *path, struct cgroup *out)
{
	_cleanup_(closep) int fd = -1;
	struct statfs fs;

	fd = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	if (fd < 0 || fstatfs(fd, &fs) < 0)
		return -errno;
	if (fs.f_type != CGROUP2_SUPER_MAGIC && fs.f_type != CGROUP_SUPER_MAGIC)
		return -ENOTTY;
	out->path = strdup(path);
	if (!out->path)
		return -ENOMEM;
	out->is_v2 = fs.f_type == CGROUP2_SUPER_MAGIC;
	out->fd = take_fd(fd);
	return 0;
}

/* \040 and the like: proc_pid_mountinfo(5). In place. */
static void unescape(char *s)
{
	char *to = s;

	while (*s) {
		if (s[0] == '\\' && strspn(s + 1, "01234567") >= 3) {
			*to++ = (char)((s[1] - '0') << 6 | (s[2] - '0') << 3 | (s[3] - '0'));
			s += 4;
		} else {
			*to++ = *s++;
		}
	}
	*to = '\0';
}

bool cgroup_mount_parse(char *line, struct cgroup_mount *m)
{
	enum { ROOT = 3, POINT = 4, FIELDS_MAX = 64 };
	char *fields[FIELDS_MAX], *rest = NULL;
	size_t n = 0, dash;

	for (char *f = strtok_r(line, " ", &rest); f && n < FIELDS_MAX;
	     f = strtok_r(NULL, " ", &rest))
		fields[n++] = f;
	/* Optional fields end in a dash. Behind it: type, source, options. */
	for (dash = POINT + 1; dash < n && strcmp(fields[dash], "-") != 0; dash++)
		;
	if (dash + 3 >= n || strncmp(fields[dash + 1], "cgroup", 6) != 0)
		return false;
	m->is_v2 = !strcmp(fields[dash + 1], "cgroup2");
	m->root = fields[ROOT];
	m->point = fields[POINT];
	m->options = fields[dash + 3];
	unescape(m->root);
	unescape(m->point);
	return true;
}

bool cgroup_has_controllers(const char *list, const char *words, size_t len)
{
	const char *end = words + len;

	while (words < end) {
		size_t n = strcspn(words, ",");
		const char *at = list;
		bool is_there = false;

		if (words + n > end)
			n = end - words;
		while (!is_there && *at) {
			size_t m = strcspn(at, ",");

			is_there = m == n && !memcmp(at, words, n);
			at += m + (at[m] == ',');
		}
		if (!is_there)
			return false;
		words += n + 1;
	}
	return true;
}

int cgroup_open_mounted(const char *controllers, size_t controllers_len, bool is_v2,
			const char *path, size_t len, struct cgroup *out)
{
	_cleanup_(freep) char *text = NULL;
	char *rest = NULL;
	size_t text_len;
	int r = file_read("/proc/self/mountinfo", CGROUP_MOUNTS_MAX, &text, &text_len);

	if (r < 0)
		return r;
	r = -ENOENT;
	for (char *l = strtok_r(text, "\n", &rest); l && r == -ENOENT;
	     l = strtok_r(NULL, "\n", &rest)) {
		_cleanup_(strbuf_releasep) struct strbuf folder = STRBUF_INIT;
		struct cgroup_mount m;
		size_t root_len;

		if (!cgroup_mount_parse(l, &m) || m.is_v2 != is_v2 ||
		    (controllers &&
		     !cgroup_has_controllers(m.options, controllers, controllers_len)))
			continue;
		root_len = !strcmp(m.root, "/") ? 0 : strlen(m.root);
		if (len < root_len || memcmp(path, m.root, root_len) != 0 ||
		    (len > root_len && path[root_len] != '/'))
			continue;
		strbuf_puts(&folder, m.point);
		if (strbuf_append(&folder, path + root_len, len - root_len) < 0)
			return -ENOMEM;
		r = cgroup_open_folder(strbuf_str(&folder), out);
	}
	return r;
}
