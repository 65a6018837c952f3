/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#include "target/container_cgroup.h"

#include <ctype.h>
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/err.h"
#include "base/file.h"
#include "base/strbuf.h"
#include "target/cgroup_mount.h"
#include "target/cgroup_namespace.h"
#include "target/proc.h"

#define ID_DIGITS 64  /* a SHA-256: docker, podman, containerd, CRI-O */
#define ECS_DIGITS 32 /* then "-" and a number */

/* --- Paths ------------------------------------------------------------------------------------ */

static size_t count_of(const char *s, size_t len, const char *set)
{
	size_t n = 0;

	while (n < len && s[n] && strchr(set, s[n]))
		n++;
	return n;
}

/* Length of the id in one name, which then begins at *start; 0: none. */
static size_t name_id(const char *name, size_t len, size_t *start)
{
	static const char scope[] = ".scope", monitor[] = "conmon";
	static const char hex[] = "0123456789abcdef", decimal[] = "0123456789";
	const size_t scope_len = sizeof(scope) - 1;

	if (len > scope_len && !memcmp(name + len - scope_len, scope, scope_len))
		len -= scope_len;
	*start = 0;
	if (len > ECS_DIGITS + 1 && name[ECS_DIGITS] == '-' &&
	    count_of(name, ECS_DIGITS, hex) == ECS_DIGITS &&
	    count_of(name + ECS_DIGITS + 1, len - ECS_DIGITS - 1, decimal) == len - ECS_DIGITS - 1)
		return len;
	if (len < ID_DIGITS || count_of(name + len - ID_DIGITS, ID_DIGITS, hex) != ID_DIGITS)
		return 0;
	*start = len - ID_DIGITS;
	if (*start && name[*start - 1] != '-' && name[*start - 1] != ':')
		return 0;
	return memmem(name, *start, monitor, sizeof(monitor) - 1) ? 0 : ID_DIGITS;
}

bool cgroup_path_next(const char *path, size_t len, size_t *at, struct cgroup_container *out)
{
	while (*at < len) {
		size_t name = *at, end = name, start, id_len;

		while (end < len && path[end] != '/')
			end++;
		*at = end + (end < len);
		id_len = name_id(path + name, end - name, &start);
		if (!id_len)
			continue;
		*out = (struct cgroup_container){ name + start, id_len, end };
		return true;
	}
	return false;
}

/* --- Processes -------------------------------------------------------------------------------- */

/* What is known so far of the container that is looked for. */
struct search {
	const char *id; /* the start of it */
	char full[ECS_DIGITS * 4];
	struct cgroup_namespace ours;
	struct cgroup *out;
	int error; /* why its cgroup could not be opened */
};

/* The cgroup of a path as search_process() has it. Errors as of cgroup_open_mounted(). */
static int open_found(const struct search *s, const struct cgroup_line *l, size_t len,
		      struct cgroup *out)
{
	_cleanup_(strbuf_releasep) struct strbuf folder = STRBUF_INIT;
	const struct cgroup_root *root = cgroup_namespace_root(&s->ours, l);

	if (!root && cgroup_path_begins_above(l->path, l->path_len))
		return -ENOENT;
	if (!root)
		return cgroup_open_mounted(l->controllers, l->controllers_len, !l->controllers_len,
					   l->path, len, out);
	strbuf_puts(&folder, root->point);
	if (strbuf_append(&folder, l->path, len) < 0)
		return -ENOMEM;
	return cgroup_open_folder(strbuf_str(&folder), out);
}

/* Takes up the cgroup of one line if it is the container's, and better than what there is. */
static int consider(struct search *s, const struct cgroup_line *l)
{
	struct cgroup_container c;
	struct cgroup found = CGROUP_INIT;
	bool is_v2 = !l->controllers_len;
	size_t at = 0;
	int r;

	while (cgroup_path_next(l->path, l->path_len, &at, &c)) {
		const char *id = l->path + c.id;

		if (c.id_len < strlen(s->id) || memcmp(id, s->id, strlen(s->id)) != 0 ||
		    c.id_len >= sizeof(s->full))
			continue;
		if (s->full[0] && (strlen(s->full) != c.id_len || memcmp(s->full, id, c.id_len)))
			return err_set(-ENOTUNIQ, "container %s: ambiguous id: matches %s and %.*s",
				       s->id, s->full, (int)c.id_len, id);
		memcpy(s->full, id, c.id_len);
		if (s->out->is_v2 || (s->out->fd >= 0 && !is_v2))
			continue;
		r = open_found(s, l, c.end, &found);
		if (r == -ENOMEM)
			return r;
		if (r < 0) {
			s->error = r;
			continue;
		}
		cgroup_release(s->out);
		*s->out = found;
	}
	return 0;
}

static int search_process(struct search *s, pid_t pid)
{
	_cleanup_(freep) char *text = NULL;
	char path[32], *rest = NULL;
	size_t len;
	int r;

	snprintf(path, sizeof(path), "/proc/%d/cgroup", pid);
	r = file_read(path, CGROUP_LINES_MAX, &text, &len);
	if (r < 0) {
		err_clear(); /* ended meanwhile */
		return r == -ENOMEM ? r : 0;
	}
	for (char *l = strtok_r(text, "\n", &rest); l && r >= 0; l = strtok_r(NULL, "\n", &rest)) {
		_cleanup_(strbuf_releasep) struct strbuf outside = STRBUF_INIT;
		struct cgroup_line line;

		if (!cgroup_line_parse(l, strlen(l), &line))
			continue;
		r = cgroup_namespace_path(&s->ours, l, strlen(l), &outside);
		line.path = strbuf_str(&outside);
		line.path_len = outside.len;
		if (!r)
			r = consider(s, &line);
	}
	return r;
}

/* The id without "docker://", in small letters. */
static int id_normalise(const char *id, char out[ECS_DIGITS * 4])
{
	const char *scheme = strstr(id, "://"), *bare = scheme ? scheme + 3 : id;
	size_t len = strlen(bare);

	if (len < CONTAINER_ID_MIN || len >= ECS_DIGITS * 4 ||
	    count_of(bare, len, "0123456789abcdefABCDEF-") != len)
		return err_set(-EINVAL,
			       "container %s: not an id: give %d hex digits or more, as "
			       "`docker ps`, `podman ps` or `crictl ps` show them",
			       id, CONTAINER_ID_MIN);
	for (size_t i = 0; i <= len; i++)
		out[i] = (char)tolower((unsigned char)bare[i]);
	return 0;
}

int cgroup_open_container(const char *id, struct cgroup *out)
{
	_cleanup_(pids_releasep) struct pids all = VEC_INIT;
	struct cgroup found = CGROUP_INIT;
	char wanted[ECS_DIGITS * 4];
	struct search s = { .id = wanted, .out = &found };
	int r = id_normalise(id, wanted);

	if (r < 0 || (r = proc_list(&all)) < 0 || (r = cgroup_namespace_find(&s.ours)) < 0)
		return r;
	for (size_t i = 0; i < all.len && r >= 0; i++)
		r = search_process(&s, all.items[i]);
	cgroup_namespace_release(&s.ours);
	if (r >= 0 && !s.full[0])
		r = err_set(-ENOENT, "container %s: no process here is in a container with this id",
			    id);
	else if (r >= 0 && found.fd < 0)
		r = err_set(-EACCES,
			    "container %s: its cgroup is not below those mounted here (%s): run in "
			    "the host's cgroup namespace, mount the host's /sys/fs/cgroup here, or "
			    "use -p",
			    id, strerror(-s.error));
	if (r < 0) {
		cgroup_release(&found);
		return r;
	}
	*out = found;
	return 0;
}
