/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#include "collect/source_versions.h"

#include <errno.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/digest.h"
#include "base/err.h"
#include "base/file.h"
#include "base/hash.h"
#include "base/vec.h"
#include "base/workers.h"
#include "profile/idmap.h"
#include "profile/module.h"
#include "target/proc.h"
#include "target/rights.h"

#define FILES_MAX 16384 /* of all processes; further ones are not read */
#define FILE_BYTES_MAX (4u << 20)
#define BATCH_FILES 64
#define BATCH_BYTES (16u << 20)
#define REST_FACTOR 9    /* times as long as a batch took, nothing is read after it */
#define START_NS 1000000 /* for a batch to begin in */
#define SETTLE_NS 1000000000ULL

/* A file as threads of certain rights see it. */
struct version {
	char *path; /* owned */
	uint64_t process, start_ns;
	uint64_t digest; /* 0: it could not be read with these rights, or has not been so far */
	uint32_t pid, uid, gid;
	uint8_t owner; /* enum code_owner */
};

/* Some of them, on the way to the thread and back. */
struct batch {
	struct work work;
	size_t first, count, done; /* of the items of source_versions */
	uint64_t took_ns;
	struct version items[BATCH_FILES]; /* copies: the paths are owned */
};

struct source_versions {
	struct profile *profile;
	struct workers *workers;
	VEC(struct version) items; /* those below `read` were given to the thread */
	struct idmap ids;
	size_t read;
	bool is_reading; /* for ever, where a file system does not answer: later files have no
			    source */
	uint64_t rest_until_ns;
};

int source_versions_new(struct profile *profile, struct source_versions **out)
{
	const struct workers_kind kind = { .files = APART_NO_FILES };
	_cleanup_(source_versions_freep) struct source_versions *sv = calloc(1, sizeof(*sv));
	int r;

	if (!sv)
		return -ENOMEM;
	sv->profile = profile;
	if ((r = workers_new(&kind, &sv->workers)) < 0)
		return r;
	*out = take_ptr(sv);
	return 0;
}

void source_versions_free(struct source_versions *sv)
{
	if (!sv)
		return;
	if (sv->workers)
		workers_free(sv->workers);
	for (size_t i = 0; i < sv->items.len; i++)
		free(sv->items.items[i].path);
	vec_release(&sv->items);
	idmap_release(&sv->ids);
	free(sv);
}

/* --- telling the profile ---------------------------------------------------------------------- */

static int tell(struct source_versions *sv, const struct version *v)
{
	struct source_version row = { .digest = v->digest };
	int r;

	r = strtab_intern(sv->profile->strings, v->path, strlen(v->path), &row.file);
	return r < 0 ? r : profile_add_source(sv->profile, &row);
}

/* --- noting ----------------------------------------------------------------------------------- */

static bool is_same(const struct version *a, const struct version *b)
{
	return a->uid == b->uid && a->gid == b->gid && a->owner == b->owner &&
	       ((a->owner & OWNER_IS_HERE) || a->process == b->process) &&
	       !strcmp(a->path, b->path);
}

int source_versions_note(struct source_versions *sv, const char *path, const struct code_event *e)
{
	struct version v = { .path = (char *)path,
			     .process = e->process,
			     .start_ns = e->start_ns,
			     .pid = e->pid,
			     .uid = e->uid,
			     .gid = e->gid,
			     .owner = e->owner };
	uint64_t hash = hash_string(path, 0);
	size_t at = IDMAP_START;
	uint32_t id;

	if (!module_is_source(path, strlen(path)))
		return 0;
	while ((id = idmap_next(&sv->ids, hash, &at)) != IDMAP_NONE)
		if (is_same(&sv->items.items[id], &v))
			return 0;
	if (sv->items.len >= FILES_MAX)
		return tell(sv, &v);
	v.path = strdup(path);
	if (!v.path || idmap_reserve(&sv->ids) < 0 || vec_push(&sv->items, v) < 0) {
		free(v.path);
		return -ENOMEM;
	}
	idmap_insert(&sv->ids, hash, (uint32_t)sv->items.len - 1);
	return 0;
}

/* --- reading, on the thread ------------------------------------------------------------------- */

/* Asked after /proc/PID was read: all of that was of this process, not of a later one with its PID.
 */
static bool is_still_there(const struct version *v)
{
	const uint64_t tick_ns = NS_PER_SECOND / (uint64_t)sysconf(_SC_CLK_TCK);
	struct proc_stat stat;

	return proc_stat((pid_t)v->pid, &stat) >= 0 && stat.start_ticks == v->start_ns / tick_ns;
}

/* Supplementary groups come from /proc: they count while the process has the ids it had. */
static void find_rights(const struct version *v, struct rights *out)
{
	struct rights now;

	*out = (struct rights){ .uid = v->uid, .gid = v->gid, .may_have_more = true };
	if (rights_read((pid_t)v->pid, &now) >= 0 && now.uid == v->uid && now.gid == v->gid &&
	    is_still_there(v))
		*out = now;
	out->reads_all = v->owner & OWNER_READS_ALL;
	err_clear(); /* it is gone: its group is left */
}

static int open_version(const struct version *v)
{
	struct rights rights;
	char base[32];
	int fd;

	find_rights(v, &rights);
	if (v->owner & OWNER_IS_HERE)
		return rights_open(&rights, "/", v->path);
	snprintf(base, sizeof(base), "/proc/%u/root", v->pid);
	fd = rights_open(&rights, base, v->path);
	if (fd < 0 || is_still_there(v))
		return fd;
	closep(&fd);
	return -ESRCH;
}

/* Returns how many bytes were read. */
static size_t read_version(struct version *v)
{
	_cleanup_(closep) int fd = open_version(v);
	_cleanup_(freep) char *bytes = NULL;
	struct stat st;
	ssize_t n;

	if (fd < 0 || fstat(fd, &st) < 0 || st.st_size > FILE_BYTES_MAX)
		return 0;
	bytes = malloc((size_t)st.st_size + 1);
	n = bytes ? file_pread(fd, bytes, (size_t)st.st_size, 0) : -ENOMEM;
	if (n < 0)
		return 0;
	v->digest = digest_of(bytes, (size_t)n);
	return (size_t)n;
}

static void batch_run(struct work *w, void *context)
{
	struct batch *b = (struct batch *)w;
	uint64_t start_ns = clock_ns(CLOCK_THREAD_CPUTIME_ID);
	size_t bytes = 0;

	(void)context;
	for (; b->done < b->count && bytes < BATCH_BYTES; b->done++)
		bytes += read_version(&b->items[b->done]);
	b->took_ns = clock_ns(CLOCK_THREAD_CPUTIME_ID) - start_ns;
}

static void batch_free(struct work *w)
{
	struct batch *b = (struct batch *)w;

	for (size_t i = 0; i < b->count; i++)
		free(b->items[i].path);
	free(b);
}

static int batch_new(const struct source_versions *sv, struct batch **out)
{
	struct batch *b = calloc(1, sizeof(*b));

	if (!b)
		return -ENOMEM;
	b->work = (struct work){ .run = batch_run, .free = batch_free };
	b->first = sv->read;
	for (size_t i = sv->read; i < sv->items.len && b->count < BATCH_FILES; i++) {
		b->items[b->count] = sv->items.items[i];
		b->items[b->count].path = strdup(sv->items.items[i].path);
		if (!b->items[b->count++].path) {
			batch_free(&b->work);
			return -ENOMEM;
		}
	}
	*out = b;
	return 0;
}

/* --- taking what was read --------------------------------------------------------------------- */

static int take(struct source_versions *sv, struct batch *b)
{
	int r = 0;

	for (size_t i = 0; i < b->done && !r; i++) {
		struct version *v = &sv->items.items[b->first + i];

		v->digest = b->items[i].digest;
		r = tell(sv, v);
	}
	sv->read = b->first + b->done;
	sv->rest_until_ns = monotonic_ns() + REST_FACTOR * b->took_ns;
	sv->is_reading = false;
	batch_free(&b->work);
	return r;
}

/* A thread that was too busy to begin is asked again at the next step. */
static int read_batch(struct source_versions *sv)
{
	struct batch *b;
	int r = batch_new(sv, &b);

	if (r < 0)
		return r;
	r = workers_run(sv->workers, &b->work, START_NS);
	if (!r)
		return take(sv, b);
	sv->is_reading = r == -EINPROGRESS;
	if (!sv->is_reading)
		batch_free(&b->work);
	return r == -ENOMEM ? r : 0;
}

int source_versions_step(struct source_versions *sv)
{
	struct batch *b = sv->is_reading ? (struct batch *)workers_next(sv->workers) : NULL;
	int r = b ? take(sv, b) : 0;

	if (r < 0 || sv->is_reading || sv->read == sv->items.len ||
	    monotonic_ns() < sv->rest_until_ns)
		return r;
	return read_batch(sv);
}

/* Those that were not read count as refused: another process may have had its file read. */
int source_versions_end_part(struct source_versions *sv)
{
	int r = 0;

	for (size_t i = sv->read; i < sv->items.len && !r; i++)
		r = tell(sv, &sv->items.items[i]);
	return r;
}

int source_versions_settle(struct source_versions *sv)
{
	const struct timespec pause = { .tv_nsec = 1000000 };
	uint64_t until_ns = monotonic_ns() + SETTLE_NS;
	int r = 0;

	while (!r && (sv->is_reading || sv->read < sv->items.len) && monotonic_ns() < until_ns) {
		sv->rest_until_ns = 0;
		r = source_versions_step(sv);
		if (sv->is_reading)
			nanosleep(&pause, NULL);
	}
	return r;
}

int source_versions_forget_ids(struct source_versions *sv)
{
	int r = 0;

	for (size_t i = 0; i < sv->read && !r; i++)
		r = tell(sv, &sv->items.items[i]);
	return r;
}
