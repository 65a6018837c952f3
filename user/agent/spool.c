/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#include "agent/spool.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <pthread.h>
#include <stdio.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>
#include <zlib.h>

#include "base/err.h"
#include "base/file.h"
#include "base/log.h"
#include "base/vec.h"

#define NAME_BYTES 128
#define NAMES_MAX 1000000 /* looked at in a folder that somebody else filled */
#define PARTIAL ".partial"
#define ENGINE_BYTES 16

struct entry {
	struct spool_entry e;
	uint64_t bytes;
	uint32_t crc;
	char engine[ENGINE_BYTES];
	bool is_taken;
};

struct spool {
	pthread_mutex_t lock;
	struct spool_opts o;
	char *directory; /* what o points to */
	int fd;          /* of it */
	int lock_fd;
	VEC(struct entry) entries; /* by number */
	size_t first;              /* of them: those before it are gone */
	uint64_t next_number;
	struct spool_stats stats;
};

static void name_of(const struct entry *x, char name[NAME_BYTES])
{
	snprintf(name, NAME_BYTES, "%016" PRIu64 "-%" PRIu64 "-%" PRIu64 "-%08" PRIx32 ".%s",
		 x->e.number, x->e.time_ns, x->e.samples, x->crc, x->engine);
}

/* False: not a name that name_of() gives. */
static bool parse_name(const char *name, struct entry *out)
{
	struct entry x = { 0 };
	char again[NAME_BYTES];

	if (sscanf(name, "%" SCNu64 "-%" SCNu64 "-%" SCNu64 "-%" SCNx32 ".%15[a-z]", &x.e.number,
		   &x.e.time_ns, &x.e.samples, &x.crc, x.engine) != 5)
		return false;
	name_of(&x, again);
	*out = x;
	return !strcmp(again, name);
}

/* What a crash has left half written: a name that write_entry() gives, PARTIAL cut off. */
static bool is_partial(const char *name)
{
	size_t len = strlen(name), suffix = strlen(PARTIAL);
	char whole[NAME_BYTES];
	struct entry x;

	if (len < suffix || len - suffix >= sizeof(whole) || strcmp(name + len - suffix, PARTIAL))
		return false;
	snprintf(whole, sizeof(whole), "%.*s", (int)(len - suffix), name);
	return parse_name(whole, &x);
}

static int compare_entries(const void *a, const void *b)
{
	const struct entry *x = a, *y = b;

	return x->e.number < y->e.number ? -1 : x->e.number > y->e.number;
}

/* Another user's file in a folder that others may write to is neither sent nor removed. */
static bool is_own(const struct stat *st)
{
	return S_ISREG(st->st_mode) && file_is_own(st);
}

static bool find_own(const struct spool *s, const char *name, struct stat *st)
{
	return !fstatat(s->fd, name, st, AT_SYMLINK_NOFOLLOW) && is_own(st);
}

static void unlink_own(const struct spool *s, const char *name)
{
	struct stat st;

	if (find_own(s, name, &st))
		unlinkat(s->fd, name, 0);
}

/* Takes a file that was there before us. Returns 1 if it has an entry's name and is another user's.
 */
static int take_up(struct spool *s, const char *name)
{
	struct entry x;
	struct stat st;

	if (is_partial(name)) {
		unlink_own(s, name);
		return 0;
	}
	if (!parse_name(name, &x))
		return 0;
	if (!find_own(s, name, &st))
		return 1;
	x.bytes = (uint64_t)st.st_size;
	s->stats.bytes += x.bytes;
	if (x.e.number >= s->next_number && x.e.number < UINT64_MAX)
		s->next_number = x.e.number + 1;
	return vec_push(&s->entries, x);
}

static void warn_of_others(const struct spool *s, size_t seen, size_t others)
{
	if (others)
		log_warning(
			"%s: %zu of its files are no profiles of this agent: they stay, and are "
			"not sent",
			s->o.directory, others);
	if (seen == NAMES_MAX)
		log_warning("%s: only %d of its files are looked at: what waits in others is sent "
			    "after a restart",
			    s->o.directory, NAMES_MAX);
}

static int scan(struct spool *s)
{
	int fd = openat(s->fd, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC), r = 0;
	DIR *dir = fd < 0 ? NULL : fdopendir(fd);
	const struct dirent *d;
	size_t seen = 0, others = 0;

	if (!dir) {
		closep(&fd);
		return err_set(-errno, "%s: %s", s->o.directory, strerror(errno));
	}
	for (; r >= 0 && seen < NAMES_MAX && (d = readdir(dir)); seen++)
		if ((r = take_up(s, d->d_name)) > 0)
			others++;
	closedir(dir);
	if (s->entries.len)
		qsort(s->entries.items, s->entries.len, sizeof(struct entry), compare_entries);
	warn_of_others(s, seen, others);
	return r < 0 ? r : 0;
}

/* Users who may write there can remove what waits. */
static int check_directory(const struct spool *s)
{
	struct stat st;

	if (fstat(s->fd, &st) < 0)
		return err_set(-errno, "%s: %s", s->o.directory, strerror(errno));
	if (!file_is_own(&st) || st.st_mode & (S_IWGRP | S_IWOTH))
		log_warning("%s: other users may write to this folder, and remove profiles that "
			    "wait: chmod 700",
			    s->o.directory);
	return 0;
}

static int open_directory(struct spool *s)
{
	int r = file_make_directory(s->o.directory, 0700);

	if (r < 0)
		return r;
	s->fd = open(s->o.directory, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	if (s->fd < 0)
		return err_set(-errno, "%s: %s", s->o.directory, strerror(errno));
	if ((r = check_directory(s)) < 0)
		return r;
	s->lock_fd = openat(s->fd, "lock", O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0600);
	if (s->lock_fd < 0)
		return err_set(-errno, "%s/lock: %s", s->o.directory, strerror(errno));
	if (flock(s->lock_fd, LOCK_EX | LOCK_NB) < 0)
		return err_set(-EBUSY, "%s: another agent uses this spool", s->o.directory);
	return 0;
}

int spool_open(const struct spool_opts *opts, struct spool **out)
{
	_cleanup_(spool_freep) struct spool *s = calloc(1, sizeof(*s));
	int r;

	if (!s)
		return -ENOMEM;
	pthread_mutex_init(&s->lock, NULL);
	s->o = *opts;
	s->fd = s->lock_fd = -1;
	s->next_number = 1;
	s->o.directory = s->directory = strdup(opts->directory);
	if (!s->directory)
		return -ENOMEM;
	if ((r = open_directory(s)) < 0 || (r = scan(s)) < 0)
		return r;
	*out = take_ptr(s);
	return 0;
}

void spool_configure(struct spool *s, const struct spool_opts *opts)
{
	pthread_mutex_lock(&s->lock);
	s->o.engine = opts->engine;
	s->o.bytes_max = opts->bytes_max;
	s->o.age_max_ns = opts->age_max_ns;
	pthread_mutex_unlock(&s->lock);
}

void spool_free(struct spool *s)
{
	if (!s)
		return;
	pthread_mutex_destroy(&s->lock);
	closep(&s->fd);
	closep(&s->lock_fd);
	free(s->directory);
	vec_release(&s->entries);
	free(s);
}

/* Those before it move: an entry that goes is near the first one, in a long queue too. */
static void remove_at(struct spool *s, size_t i)
{
	char name[NAME_BYTES];

	name_of(&s->entries.items[i], name);
	unlink_own(s, name);
	s->stats.bytes -= s->entries.items[i].bytes;
	memmove(&s->entries.items[s->first + 1], &s->entries.items[s->first],
		(i - s->first) * sizeof(struct entry));
	s->first++;
}

static void lose(struct spool *s, size_t i, enum spool_loss why)
{
	s->stats.lost_entries[why]++;
	s->stats.lost_samples[why] += s->entries.items[i].e.samples;
	remove_at(s, i);
}

static bool is_foreign(const struct spool *s, const struct entry *x)
{
	return strcmp(x->engine, s->o.engine) != 0;
}

/* The first one that nobody has taken, of any engine, or s->entries.len. */
static size_t oldest(const struct spool *s)
{
	size_t i = s->first;

	while (i < s->entries.len && s->entries.items[i].is_taken)
		i++;
	return i;
}

/* The first one that may be sent, or s->entries.len. */
static size_t next(const struct spool *s)
{
	size_t i = s->first;

	while (i < s->entries.len &&
	       (s->entries.items[i].is_taken || is_foreign(s, &s->entries.items[i])))
		i++;
	return i;
}

/* False: there is none that could go. */
static bool lose_oldest(struct spool *s)
{
	size_t i = oldest(s);

	if (i < s->entries.len)
		lose(s, i, SPOOL_FULL);
	return i < s->entries.len;
}

/* Room for one more; what is gone at the front is used again. */
static int make_place(struct spool *s)
{
	if (s->first >= s->entries.len / 2) {
		s->entries.len -= s->first;
		if (s->entries.len)
			memmove(s->entries.items, &s->entries.items[s->first],
				s->entries.len * sizeof(struct entry));
		s->first = 0;
	}
	return vec_reserve(&s->entries, 1);
}

static int write_entry(struct spool *s, const struct entry *x, const void *body)
{
	_cleanup_(closep) int fd = -1;
	char name[NAME_BYTES], partial[NAME_BYTES + sizeof(PARTIAL)];
	int r;

	name_of(x, name);
	snprintf(partial, sizeof(partial), "%s" PARTIAL, name);
	unlink_own(s, partial); /* a crash may have left it */
	fd = openat(s->fd, partial, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW, 0600);
	if (fd < 0)
		return -errno;
	r = file_write(fd, body, x->bytes);
	if (!r && renameat(s->fd, partial, s->fd, name) < 0)
		r = -errno;
	if (r < 0)
		unlinkat(s->fd, partial, 0);
	return r;
}

static int add(struct spool *s, struct entry *x, const void *body)
{
	int r;

	if (x->bytes > s->o.bytes_max)
		return err_set(-EFBIG, "a profile of %" PRIu64 " bytes is larger than the spool",
			       x->bytes);
	while (s->stats.bytes + x->bytes > s->o.bytes_max)
		if (!lose_oldest(s))
			return err_set(-EFBIG, "the spool is full of profiles that are being sent");
	if ((r = make_place(s)) < 0)
		return r;
	x->e.number = s->next_number++;
	do
		r = write_entry(s, x, body);
	while ((r == -ENOSPC || r == -EDQUOT) && lose_oldest(s));
	if (r < 0)
		return err_set(r, "%s: %s", s->o.directory, strerror(-r));
	s->stats.bytes += x->bytes;
	s->entries.items[s->entries.len++] = *x;
	return 0;
}

int spool_add(struct spool *s, uint64_t time_ns, uint64_t samples, const void *body, size_t len)
{
	struct entry x = { .e = { .time_ns = time_ns, .samples = samples },
			   .bytes = len,
			   .crc = (uint32_t)crc32_z(0, body, len) };
	int r;

	pthread_mutex_lock(&s->lock);
	snprintf(x.engine, sizeof(x.engine), "%s", s->o.engine);
	r = add(s, &x, body);
	if (r < 0) {
		s->stats.lost_entries[SPOOL_FAILED]++;
		s->stats.lost_samples[SPOOL_FAILED] += samples;
	}
	pthread_mutex_unlock(&s->lock);
	return r;
}

/* -EBADMSG: not what was written. */
static int read_entry(struct spool *s, const struct entry *x, void **body)
{
	_cleanup_(freep) void *bytes = NULL;
	_cleanup_(closep) int fd = -1;
	char name[NAME_BYTES];
	struct stat st;

	if (x->bytes > s->o.bytes_max)
		return -EBADMSG;
	bytes = malloc(x->bytes + 1);
	if (!bytes)
		return -ENOMEM;
	name_of(x, name);
	fd = openat(s->fd, name, O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK);
	if (fd < 0 || fstat(fd, &st) < 0 || !is_own(&st) ||
	    file_pread(fd, bytes, x->bytes, 0) != (ssize_t)x->bytes ||
	    crc32_z(0, bytes, x->bytes) != x->crc)
		return -EBADMSG;
	*body = take_ptr(bytes);
	return 0;
}

static bool is_too_old(const struct spool *s, const struct entry *x, uint64_t now_ns)
{
	return now_ns > x->e.time_ns && now_ns - x->e.time_ns > s->o.age_max_ns;
}

/* Those of other engines too, which nobody takes. */
static void lose_what_is_too_old(struct spool *s, uint64_t now_ns)
{
	size_t i;

	while ((i = oldest(s)) < s->entries.len && is_too_old(s, &s->entries.items[i], now_ns))
		lose(s, i, SPOOL_EXPIRED);
}

/* 1: *out and its body; 0: it is gone; or -ENOMEM. */
static int take_at(struct spool *s, size_t i, uint64_t now_ns, struct spool_entry *out, void **body,
		   size_t *len)
{
	struct entry *x = &s->entries.items[i];
	int r;

	if (is_too_old(s, x, now_ns)) {
		lose(s, i, SPOOL_EXPIRED);
		return 0;
	}
	r = read_entry(s, x, body);
	if (r == -EBADMSG) {
		lose(s, i, SPOOL_DAMAGED);
		return 0;
	}
	if (r < 0)
		return r;
	x->is_taken = true;
	*out = x->e;
	*len = x->bytes;
	return 1;
}

int spool_take(struct spool *s, uint64_t now_ns, struct spool_entry *out, void **body, size_t *len)
{
	size_t i;
	int r = 0;

	pthread_mutex_lock(&s->lock);
	lose_what_is_too_old(s, now_ns);
	while (!r && (i = next(s)) < s->entries.len)
		r = take_at(s, i, now_ns, out, body, len);
	pthread_mutex_unlock(&s->lock);
	return r;
}

/* s->entries.len: there is none. */
static size_t find(const struct spool *s, uint64_t number)
{
	size_t i = s->first;

	while (i < s->entries.len && s->entries.items[i].e.number != number)
		i++;
	return i;
}

void spool_return(struct spool *s, const struct spool_entry *e)
{
	size_t i;

	pthread_mutex_lock(&s->lock);
	i = find(s, e->number);
	if (i < s->entries.len) {
		s->entries.items[i].e = *e;
		s->entries.items[i].is_taken = false;
	}
	pthread_mutex_unlock(&s->lock);
}

void spool_remove(struct spool *s, uint64_t number)
{
	size_t i;

	pthread_mutex_lock(&s->lock);
	i = find(s, number);
	if (i < s->entries.len)
		remove_at(s, i);
	pthread_mutex_unlock(&s->lock);
}

void spool_stats(struct spool *s, struct spool_stats *out)
{
	pthread_mutex_lock(&s->lock);
	*out = s->stats;
	out->entries = s->entries.len - s->first;
	for (size_t i = s->first; i < s->entries.len; i++) {
		out->samples += s->entries.items[i].e.samples;
		out->foreign += is_foreign(s, &s->entries.items[i]);
	}
	out->oldest_ns = out->entries ? s->entries.items[s->first].e.time_ns : 0;
	pthread_mutex_unlock(&s->lock);
}
