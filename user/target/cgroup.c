/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#include "target/cgroup.h"

#include <ctype.h>
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/magic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/vfs.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/err.h"
#include "base/file.h"
#include "base/strbuf.h"
#include "base/vec.h"

#define ID_DIGITS 64  /* a SHA-256: docker, podman, containerd, CRI-O */
#define ECS_DIGITS 32 /* then "-" and a number */
#define DEPTH_MAX 128 /* folders inside one another; each holds a descriptor while it is listed */
#define TEXT_MAX 4194304                 /* bytes of mountinfo, of one cgroup's PIDs */
#define PATH_LINE_MAX (12 * 4096 + 4096) /* /proc/PID/cgroup: a line for each of 12 hierarchies */

DEFINE_CLEANUP(DIR *, closedir)

void cgroup_release(struct cgroup *c)
{
	free(c->path);
	closep(&c->fd);
	*c = (struct cgroup)CGROUP_INIT;
}

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

/* --- Folders ---------------------------------------------------------------------------------- */

/* -ENOTTY: a folder, but of another file system. Without a message. */
static int open_folder(const char *path, struct cgroup *out)
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

/* A mounted hierarchy: fields of /proc/self/mountinfo, which they point into. */
struct mount {
	char *root;  /* the cgroup that is mounted, in its hierarchy */
	char *point; /* where */
	bool is_v2;
	const char *options; /* of the super block: version 1 has its controllers here */
};

/* \040 and the like: proc_pid_mountinfo(5). In place. */
static void unescape(char *s)
{
	char *to = s;

	while (*s) {
		if (s[0] == '\\' && count_of(s + 1, 3, "01234567") == 3) {
			*to++ = (char)((s[1] - '0') << 6 | (s[2] - '0') << 3 | (s[3] - '0'));
			s += 4;
		} else {
			*to++ = *s++;
		}
	}
	*to = '\0';
}

/* One line, which is changed. False: not a cgroup file system. */
static bool mount_parse(char *line, struct mount *m)
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

/* Does a list with commas have all words of another? */
static bool has_words(const char *list, const char *words, size_t len)
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

/*
 * Opens a cgroup by its path in its hierarchy. controllers: those of a version 1 hierarchy, "" for
 * version 2, NULL for whichever has it. -ENOENT without a message: not below what is mounted.
 */
static int open_mounted(const char *controllers, size_t controllers_len, bool is_v2,
			const char *path, size_t len, struct cgroup *out)
{
	_cleanup_(freep) char *text = NULL;
	char *rest = NULL;
	size_t text_len;
	int r = file_read("/proc/self/mountinfo", TEXT_MAX, &text, &text_len);

	if (r < 0)
		return r;
	r = -ENOENT;
	for (char *l = strtok_r(text, "\n", &rest); l && r == -ENOENT;
	     l = strtok_r(NULL, "\n", &rest)) {
		_cleanup_(strbuf_releasep) struct strbuf folder = STRBUF_INIT;
		struct mount m;
		size_t root_len;

		if (!mount_parse(l, &m) || m.is_v2 != is_v2 ||
		    (controllers && !has_words(m.options, controllers, controllers_len)))
			continue;
		root_len = !strcmp(m.root, "/") ? 0 : strlen(m.root);
		if (len < root_len || memcmp(path, m.root, root_len) != 0 ||
		    (len > root_len && path[root_len] != '/'))
			continue;
		strbuf_puts(&folder, m.point);
		if (strbuf_append(&folder, path + root_len, len - root_len) < 0)
			return -ENOMEM;
		r = open_folder(strbuf_str(&folder), out);
	}
	return r;
}

int cgroup_open(const char *path, struct cgroup *out)
{
	_cleanup_(freep) char *below = NULL;
	int r = open_folder(path, out);

	if (!r || r == -ENOMEM)
		return r;
	if (r == -EACCES)
		return err_set(r, "%s: %s", path, strerror(-r));
	/* A service's folder may lie in the working folder under the same name: not meant. */
	if (asprintf(&below, "%s%s", path[0] == '/' ? "" : "/", path) < 0) {
		below = NULL;
		return -ENOMEM;
	}
	r = open_mounted(NULL, 0, true, below, strlen(below), out);
	if (r == -ENOENT)
		r = open_mounted(NULL, 0, false, below, strlen(below), out);
	if (r == -ENOENT)
		return err_set(r, "%s: no such cgroup, neither as a folder nor below a mounted one",
			       path);
	return r < 0 ? err_set(r, "cgroup %s: %s", path, strerror(-r)) : 0;
}

/* --- Processes -------------------------------------------------------------------------------- */

/* Opens NAME below a cgroup's folder and reads it. Without a message. */
static int read_below(int folder, const char *name, char **out, size_t *len)
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
	int r = read_below(folder, "cgroup.procs", &text, &len);

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
	if (r < 0 || depth == DEPTH_MAX)
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
	int r = read_below(c->fd, file, &text, &len);

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

/* --- Containers ------------------------------------------------------------------------------- */

/* A line of /proc/PID/cgroup: "NUMBER:CONTROLLERS:PATH"; version 2 has number 0 and no controllers.
 */
struct line {
	const char *controllers, *path;
	size_t controllers_len, path_len;
};

static bool line_parse(const char *text, size_t len, struct line *l)
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

/* NULL: not known. */
static const struct cgroup_root *find_root(const struct cgroup_namespace *n, const struct line *l)
{
	for (size_t i = 0; i < n->len; i++)
		if (strlen(n->items[i].controllers) == l->controllers_len &&
		    !memcmp(n->items[i].controllers, l->controllers, l->controllers_len))
			return &n->items[i];
	return NULL;
}

static bool begins_above(const char *path, size_t len)
{
	return len >= 3 && !memcmp(path, "/..", 3);
}

/* What is known so far of the container that is looked for. */
struct search {
	const char *id; /* the start of it */
	char full[ECS_DIGITS * 4];
	struct cgroup_namespace ours;
	struct cgroup *out;
	int error; /* why its cgroup could not be opened */
};

/* The cgroup of a path as search_process() has it. Errors as of open_mounted(). */
static int open_found(const struct search *s, const struct line *l, size_t len, struct cgroup *out)
{
	_cleanup_(strbuf_releasep) struct strbuf folder = STRBUF_INIT;
	const struct cgroup_root *root = find_root(&s->ours, l);

	if (!root && begins_above(l->path, l->path_len))
		return -ENOENT;
	if (!root)
		return open_mounted(l->controllers, l->controllers_len, !l->controllers_len,
				    l->path, len, out);
	strbuf_puts(&folder, root->point);
	if (strbuf_append(&folder, l->path, len) < 0)
		return -ENOMEM;
	return open_folder(strbuf_str(&folder), out);
}

/* Takes up the cgroup of one line if it is the container's, and better than what there is. */
static int consider(struct search *s, const struct line *l)
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
			return err_set(-ENOTUNIQ, "container %s: several begin so: %s, %.*s", s->id,
				       s->full, (int)c.id_len, id);
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
	r = file_read(path, PATH_LINE_MAX, &text, &len);
	if (r < 0) {
		err_clear(); /* ended meanwhile */
		return r == -ENOMEM ? r : 0;
	}
	for (char *l = strtok_r(text, "\n", &rest); l && r >= 0; l = strtok_r(NULL, "\n", &rest)) {
		_cleanup_(strbuf_releasep) struct strbuf outside = STRBUF_INIT;
		struct line line;

		if (!line_parse(l, strlen(l), &line))
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

/* --- Namespaces ------------------------------------------------------------------------------- */

#define INITIAL_NAMESPACE 0xeffffffbU /* PROC_CGROUP_INIT_INO (linux/proc_ns.h) */
#define FOLDERS_MAX 65536             /* looked at; a host has some thousand */

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
	struct line l;

	if (!line_parse(line, len, &l))
		return 0;
	root = find_root(n, &l);
	return root ? path_join(root->path, l.path, l.path_len, out)
		    : strbuf_append(out, l.path, l.path_len);
}

/* How well a line says where a process belongs. */
static int rank_of(const struct line *l)
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
	struct line l;

	for (size_t at = 0; at < len; at += size + 1) {
		size = (size_t)((char *)(memchr(text + at, '\n', len - at) ?: text + len) - text) -
		       at;
		if (!line_parse(text + at, size, &l) || rank_of(&l) <= best_rank)
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

	if (read_below(folder, "cgroup.procs", &text, &len) < 0)
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
	if (depth == DEPTH_MAX || ++*looked_at > FOLDERS_MAX)
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
static bool own_line(const char *text, const struct mount *m, struct line *out)
{
	for (size_t n; *text; text += n + (text[n] == '\n')) {
		n = strcspn(text, "\n");
		if (line_parse(text, n, out) && m->is_v2 == !out->controllers_len &&
		    (m->is_v2 || has_words(m->options, out->controllers, out->controllers_len)))
			return true;
	}
	return false;
}

static int add_root(struct cgroup_namespace *n, const struct line *own, struct strbuf *path,
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
static int root_by_mount(const struct mount *m, const char *own_cgroups, struct cgroup_namespace *n)
{
	_cleanup_(strbuf_releasep) struct strbuf path = STRBUF_INIT;
	_cleanup_(cgroup_release) struct cgroup top = CGROUP_INIT;
	size_t looked_at = 0, below;
	struct line own;
	int r;

	if (!begins_above(m->root, strlen(m->root)) || !own_line(own_cgroups, m, &own) ||
	    find_root(n, &own) || begins_above(own.path, own.path_len) ||
	    open_folder(m->point, &top) < 0)
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
	if ((r = file_read("/proc/self/cgroup", PATH_LINE_MAX, &own, &len)) < 0 ||
	    (r = file_read("/proc/self/mountinfo", TEXT_MAX, &mounts, &len)) < 0)
		return r;
	for (char *l = strtok_r(mounts, "\n", &rest); l && !r; l = strtok_r(NULL, "\n", &rest)) {
		struct mount m;

		if (mount_parse(l, &m))
			r = root_by_mount(&m, own, out);
	}
	if (r < 0)
		cgroup_namespace_release(out);
	return r;
}
