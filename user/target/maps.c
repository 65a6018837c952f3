/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#include "target/maps.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "base/err.h"
#include "target/proc.h"

struct maps {
	int fd;
	bool is_at_end; /* of the file */
	bool is_cut;    /* the rest of the last line is still to come */
	size_t start;   /* of the bytes not yet handed out */
	size_t end;
	char bytes[MAPS_LINE_MAX + 1]; /* one more for mapping_parse() */
};

/* Digits of an unsigned number, then the byte `until`. Moves *p behind it. */
static int number(const char **p, const char *end, unsigned base, char until, uint64_t *out)
{
	const char *s = *p;
	uint64_t value = 0;

	for (; s < end && *s != until; s++) {
		unsigned digit = *s >= '0' && *s <= '9'   ? (unsigned)(*s - '0')
				 : *s >= 'a' && *s <= 'f' ? (unsigned)(*s - 'a' + 10)
							  : base;

		if (digit >= base || __builtin_mul_overflow(value, (uint64_t)base, &value) ||
		    __builtin_add_overflow(value, (uint64_t)digit, &value))
			return -EBADMSG;
	}
	if (s == *p || s == end)
		return -EBADMSG;
	*p = s + 1;
	*out = value;
	return 0;
}

static int permissions(const char **p, const char *end, struct mapping *m)
{
	static const char set[] = "rwx";
	static const uint32_t bits[] = { PROT_READ, PROT_WRITE, PROT_EXEC };
	const char *s = *p;

	if (end - s < 5 || s[4] != ' ')
		return -EBADMSG;
	for (int i = 0; i < 3; i++) {
		if (s[i] != set[i] && s[i] != '-')
			return -EBADMSG;
		m->perms |= s[i] == set[i] ? bits[i] : 0;
	}
	if (s[3] != 'p' && s[3] != 's')
		return -EBADMSG;
	m->is_shared = s[3] == 's';
	*p = s + 5;
	return 0;
}

/* The kernel writes a newline as \012 and leaves all else as it is, backslashes too. */
static size_t unescape(char *path, size_t len)
{
	size_t to = 0;

	for (size_t from = 0; from < len; to++) {
		if (len - from >= 4 && !memcmp(path + from, "\\012", 4)) {
			path[to] = '\n';
			from += 4;
		} else {
			path[to] = path[from++];
		}
	}
	return to;
}

int mapping_parse(char *line, size_t len, struct mapping *m)
{
	static const char deleted[] = " (deleted)";
	const size_t deleted_len = sizeof(deleted) - 1;
	const char *p = line, *end = line + len;
	struct mapping parsed = { 0 };
	uint64_t major_nr, minor_nr;
	char *path;
	size_t path_len;

	if (number(&p, end, 16, '-', &parsed.start) < 0 ||
	    number(&p, end, 16, ' ', &parsed.end) < 0 || permissions(&p, end, &parsed) < 0 ||
	    number(&p, end, 16, ' ', &parsed.offset) < 0 ||
	    number(&p, end, 16, ':', &major_nr) < 0 || number(&p, end, 16, ' ', &minor_nr) < 0)
		return -EBADMSG;
	line[len] = ' '; /* mappings without a path may end in their inode */
	if (number(&p, end + 1, 10, ' ', &parsed.inode) < 0)
		return -EBADMSG;
	if (parsed.start >= parsed.end || major_nr > UINT32_MAX || minor_nr > UINT32_MAX)
		return -EBADMSG;
	parsed.dev_major = major_nr;
	parsed.dev_minor = minor_nr;

	while (p < end && *p == ' ')
		p++;
	path = p < end ? line + (p - line) : line + len;
	path_len = end - path;
	if (path_len > deleted_len && !memcmp(end - deleted_len, deleted, deleted_len)) {
		parsed.is_deleted = true;
		path_len -= deleted_len;
	}
	path_len = unescape(path, path_len);
	path[path_len] = '\0';
	parsed.path = path;
	*m = parsed;
	return 0;
}

int maps_from_fd(int fd, struct maps **out)
{
	struct maps *maps = malloc(sizeof(*maps));

	if (!maps)
		return -ENOMEM;
	maps->fd = fd;
	maps->is_at_end = maps->is_cut = false;
	maps->start = maps->end = 0;
	*out = maps;
	return 0;
}

int maps_open(pid_t pid, struct maps **out)
{
	_cleanup_(closep) int fd = -1;
	char path[32];
	int r;

	snprintf(path, sizeof(path), "/proc/%d/maps", proc_living_thread(pid));
	fd = open(path, O_RDONLY | O_CLOEXEC);
	if (fd < 0)
		return err_set(-errno, "%s: %s", path, strerror(errno));
	r = maps_from_fd(fd, out);
	if (r < 0)
		return r;
	take_fd(fd);
	return 0;
}

/* More bytes behind those that are there. 0 at the end of the file. */
static int fill(struct maps *maps)
{
	ssize_t n;

	if (maps->start) {
		memmove(maps->bytes, maps->bytes + maps->start, maps->end - maps->start);
		maps->end -= maps->start;
		maps->start = 0;
	}
	do
		n = read(maps->fd, maps->bytes + maps->end, MAPS_LINE_MAX - maps->end);
	while (n < 0 && errno == EINTR);
	if (n < 0)
		return err_set(-errno, "reading memory mappings: %s", strerror(errno));
	maps->end += n;
	maps->is_at_end = !n;
	return n > 0;
}

/* Drops bytes up to and including the next newline. */
static int skip_line(struct maps *maps)
{
	for (;;) {
		char *newline = memchr(maps->bytes + maps->start, '\n', maps->end - maps->start);
		int r;

		if (newline) {
			maps->start = newline + 1 - maps->bytes;
			return 0;
		}
		maps->start = maps->end;
		r = fill(maps);
		if (r <= 0)
			return r;
	}
}

int maps_next(struct maps *maps, struct mapping *m)
{
	char *line, *newline;
	size_t len;
	int r;

	if (maps->is_cut) {
		r = skip_line(maps);
		if (r < 0)
			return r;
		maps->is_cut = false;
	}
	while (!(newline = memchr(maps->bytes + maps->start, '\n', maps->end - maps->start)) &&
	       !maps->is_at_end && maps->end - maps->start < MAPS_LINE_MAX) {
		r = fill(maps);
		if (r < 0)
			return r;
	}
	line = maps->bytes + maps->start;
	len = (newline ? newline : maps->bytes + maps->end) - line;
	if (!newline && !len)
		return 0;
	maps->start += len + (newline != NULL);
	maps->is_cut = !newline && !maps->is_at_end;
	if (mapping_parse(line, len, m) < 0)
		return err_set(-EBADMSG, "memory mappings: not the format of /proc/PID/maps");
	m->is_cut = maps->is_cut;
	return 1;
}

void maps_close(struct maps *maps)
{
	if (!maps)
		return;
	close(maps->fd);
	free(maps);
}
