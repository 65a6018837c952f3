/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#include "collect/source_versions.h"

#include <errno.h>
#include <limits.h>
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
#include "base/log.h"
#include "base/vec.h"
#include "base/workers.h"
#include "profile/idmap.h"
#include "profile/module.h"
#include "target/proc.h"
#include "target/rights.h"

#define FILES_MAX 32768 /* of all processes; further ones are not read */
#define FILE_BYTES_MAX (4u << 20)
#define BATCH_FILES 64
#define BATCH_BYTES (16u << 20)
#define REST_FACTOR 9     /* times as long as a batch took, nothing is read after it */
#define START_NS 1000000  /* for a batch to begin in */
#define LATE_NS 100000000 /* after which a file is left to its reader, and others are read */
#define SETTLE_NS 1000000000ULL
#define NAMED_MAX 8 /* files that do not answer, in warnings */

/* What is read for one process, or for one user. The rest is left for others. */
enum share_kind { SHARE_PROCESS, SHARE_USER, SHARE_KINDS };

struct share {
	uint64_t owner; /* process or user ID */
	uint64_t bytes;
	uint32_t files, late; /* late: at this moment */
	enum share_kind kind;
};

static const struct share share_max[SHARE_KINDS] = {
	[SHARE_PROCESS] = { .files = 2048, .bytes = 64 << 20, .late = 4 },
	[SHARE_USER] = { .files = 8192, .bytes = 256 << 20, .late = 8 },
};

enum version_state {
	VERSION_WAITS,
	VERSION_READ,
	VERSION_LATE,
	VERSION_LEFT_OUT, /* its process or its user has had its share */
};

/* A file as threads of certain rights see it. */
struct version {
	char *path; /* owned */
	uint64_t process, start_ns;
	uint64_t digest; /* 0: it could not be read with these rights, or has not been so far */
	uint32_t pid, uid, gid;
	uint32_t shares[SHARE_KINDS]; /* indices */
	uint8_t owner;                /* enum code_owner */
	enum version_state state;
};

/* Some of them, on the way to the reader and back. */
struct batch {
	struct work work;
	uint32_t count;
	uint32_t done; /* by the reader; the one after them is being read */
	bool is_left;  /* the reader is to stop after the file that it is at: items[left_at] */
	uint32_t left_at;
	uint64_t took_ns;
	uint32_t of[BATCH_FILES]; /* indices of source_versions' items */
	uint32_t bytes[BATCH_FILES];
	struct version items[BATCH_FILES]; /* copies: the paths are owned */
};

struct source_versions {
	struct profile *profile;
	struct workers *workers;
	VEC(struct version) items; /* those below `read` do not wait */
	VEC(struct share) shares;
	struct idmap ids, share_ids;
	size_t read;
	uint32_t unnoted;      /* files beyond a limit */
	struct batch *running; /* the reader has it; NULL: none */
	uint32_t seen_done;    /* of it, at the time seen_ns */
	uint64_t seen_ns, rest_until_ns;
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
	vec_release(&sv->shares);
	idmap_release(&sv->ids);
	idmap_release(&sv->share_ids);
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

/* The share of a process or a user. 0 or -ENOMEM. */
static int share_find(struct source_versions *sv, enum share_kind kind, uint64_t owner,
		      uint32_t *out)
{
	struct share share = { .owner = owner, .kind = kind };
	uint64_t hash = hash_u64(owner * SHARE_KINDS + kind);
	size_t at = IDMAP_START;
	uint32_t id;

	while ((id = idmap_next(&sv->share_ids, hash, &at)) != IDMAP_NONE) {
		if (sv->shares.items[id].owner != owner || sv->shares.items[id].kind != kind)
			continue;
		*out = id;
		return 0;
	}
	if (idmap_reserve(&sv->share_ids) < 0 || vec_push(&sv->shares, share) < 0)
		return -ENOMEM;
	*out = (uint32_t)sv->shares.len - 1;
	idmap_insert(&sv->share_ids, hash, *out);
	return 0;
}

static struct share *share_of(struct source_versions *sv, const struct version *v,
			      enum share_kind kind)
{
	return &sv->shares.items[v->shares[kind]];
}

static bool has_room(struct source_versions *sv, const struct version *v)
{
	bool has_room = sv->items.len < FILES_MAX;

	for (enum share_kind kind = 0; kind < SHARE_KINDS; kind++)
		has_room &= share_of(sv, v, kind)->files < share_max[kind].files;
	return has_room;
}

static int add_version(struct source_versions *sv, struct version *v, uint64_t hash)
{
	v->path = strdup(v->path);
	if (!v->path || idmap_reserve(&sv->ids) < 0 || vec_push(&sv->items, *v) < 0) {
		free(v->path);
		return -ENOMEM;
	}
	idmap_insert(&sv->ids, hash, (uint32_t)sv->items.len - 1);
	for (enum share_kind kind = 0; kind < SHARE_KINDS; kind++)
		share_of(sv, v, kind)->files++;
	return 0;
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
	size_t at = IDMAP_START, len = strlen(path);
	uint32_t id;

	if (!module_is_source(path, len) || len >= PATH_MAX)
		return 0;
	while ((id = idmap_next(&sv->ids, hash, &at)) != IDMAP_NONE)
		if (is_same(&sv->items.items[id], &v))
			return 0;
	if (share_find(sv, SHARE_PROCESS, v.process, &v.shares[SHARE_PROCESS]) < 0 ||
	    share_find(sv, SHARE_USER, v.uid, &v.shares[SHARE_USER]) < 0)
		return -ENOMEM;
	if (has_room(sv, &v))
		return add_version(sv, &v, hash);
	sv->unnoted++;
	return tell(sv, &v);
}

/* --- reading, apart -------------------------------------------------------------------------- */

static bool is_still_there(const struct version *v)
{
	return proc_is((pid_t)v->pid, proc_start_ticks(v->start_ns));
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
	for (uint32_t i = 0; i < b->count && bytes < BATCH_BYTES; i++) {
		b->bytes[i] = (uint32_t)read_version(&b->items[i]);
		bytes += b->bytes[i];
		b->took_ns = clock_ns(CLOCK_THREAD_CPUTIME_ID) - start_ns;
		__atomic_store_n(&b->done, i + 1, __ATOMIC_RELEASE);
		if (__atomic_load_n(&b->is_left, __ATOMIC_ACQUIRE))
			break;
	}
}

static void batch_free(struct work *w)
{
	struct batch *b = (struct batch *)w;

	for (size_t i = 0; i < b->count; i++)
		free(b->items[i].path);
	free(b);
}

/* Has the process or the user had what is read for one? */
static bool is_used_up(struct source_versions *sv, const struct version *v)
{
	bool is_used_up = false;

	for (enum share_kind kind = 0; kind < SHARE_KINDS; kind++) {
		const struct share *share = share_of(sv, v, kind);

		is_used_up |= share->bytes >= share_max[kind].bytes ||
			      share->late >= share_max[kind].late;
	}
	return is_used_up;
}

static int batch_add(struct batch *b, const struct version *v, uint32_t index)
{
	struct version *copy = &b->items[b->count];

	*copy = *v;
	copy->path = strdup(v->path);
	if (!copy->path)
		return -ENOMEM;
	b->of[b->count++] = index;
	return 0;
}

static int leave_out(struct source_versions *sv, struct version *v)
{
	v->state = VERSION_LEFT_OUT;
	return tell(sv, v);
}

/* The next ones that wait. */
static int batch_fill(struct source_versions *sv, struct batch *b)
{
	int r = 0;

	for (; sv->read < sv->items.len && b->count < BATCH_FILES && !r; sv->read++) {
		struct version *v = &sv->items.items[sv->read];

		if (v->state != VERSION_WAITS)
			continue;
		r = is_used_up(sv, v) ? leave_out(sv, v) : batch_add(b, v, (uint32_t)sv->read);
	}
	return r;
}

/* --- taking what was read --------------------------------------------------------------------- */

static int take_file(struct source_versions *sv, const struct batch *b, uint32_t i)
{
	struct version *v = &sv->items.items[b->of[i]];

	v->digest = b->items[i].digest;
	v->state = VERSION_READ;
	for (enum share_kind kind = 0; kind < SHARE_KINDS; kind++)
		share_of(sv, v, kind)->bytes += b->bytes[i];
	return tell(sv, v);
}

/* The first ones. What comes after them still waits. */
static int take_files(struct source_versions *sv, const struct batch *b, uint32_t count)
{
	int r = 0;

	for (uint32_t i = 0; i < count && !r; i++)
		r = take_file(sv, b, i);
	if (count < b->count)
		sv->read = b->of[count];
	sv->rest_until_ns = monotonic_ns() + REST_FACTOR * b->took_ns;
	sv->running = NULL;
	return r;
}

static void count_late(struct source_versions *sv, const struct version *v, int more)
{
	for (enum share_kind kind = 0; kind < SHARE_KINDS; kind++)
		share_of(sv, v, kind)->late += (uint32_t)more;
}

/* A batch comes back, perhaps one whose reader was late. */
static int take(struct source_versions *sv, struct batch *b)
{
	int r = 0;

	if (!b->is_left) {
		r = take_files(sv, b, b->done);
	} else {
		count_late(sv, &sv->items.items[b->of[b->left_at]], -1);
		if (b->done > b->left_at)
			r = take_file(sv, b, b->left_at);
	}
	batch_free(&b->work);
	return r;
}

/* One file holds the reader up: the reader is left with it, and others are read by another one. */
static int leave(struct source_versions *sv)
{
	struct batch *b = sv->running;
	struct version *late;
	int r;

	__atomic_store_n(&b->is_left, true, __ATOMIC_RELEASE);
	b->left_at = sv->seen_done;
	r = take_files(sv, b, b->left_at);
	late = &sv->items.items[b->of[b->left_at]];
	late->state = VERSION_LATE;
	count_late(sv, late, 1);
	return r;
}

/* Does the reader go on? */
static int watch(struct source_versions *sv)
{
	uint32_t done = __atomic_load_n(&sv->running->done, __ATOMIC_ACQUIRE);
	uint64_t now_ns = monotonic_ns();

	if (done == sv->seen_done)
		return now_ns - sv->seen_ns < LATE_NS || done == sv->running->count ? 0 : leave(sv);
	sv->seen_done = done;
	sv->seen_ns = now_ns;
	return 0;
}

/* --- asking ----------------------------------------------------------------------------------- */

/* A reader that was too busy to begin is asked again at the next step. */
static int ask(struct source_versions *sv, struct batch *b)
{
	int r = workers_run(sv->workers, &b->work, START_NS);

	if (!r)
		return take(sv, b);
	if (r != -EINPROGRESS) {
		sv->read = b->of[0];
		batch_free(&b->work);
		return r == -ENOMEM ? r : 0;
	}
	sv->running = b;
	sv->seen_done = 0;
	sv->seen_ns = monotonic_ns();
	return 0;
}

static int read_batch(struct source_versions *sv)
{
	struct batch *b = calloc(1, sizeof(*b));
	int r;

	if (!b)
		return -ENOMEM;
	b->work = (struct work){ .run = batch_run, .free = batch_free };
	r = batch_fill(sv, b);
	if (!r && b->count)
		return ask(sv, b);
	batch_free(&b->work);
	return r;
}

int source_versions_step(struct source_versions *sv)
{
	struct work *back;
	int r = 0;

	while (!r && (back = workers_next(sv->workers)))
		r = take(sv, (struct batch *)back);
	if (!r && sv->running)
		r = watch(sv);
	if (r < 0 || sv->running || sv->read == sv->items.len || monotonic_ns() < sv->rest_until_ns)
		return r;
	return read_batch(sv);
}

/* Those that were not read count as refused: another process may have had its file read. */
int source_versions_end_part(struct source_versions *sv)
{
	int r = 0;

	for (size_t i = 0; i < sv->items.len && !r; i++)
		if (sv->items.items[i].state == VERSION_WAITS ||
		    sv->items.items[i].state == VERSION_LATE)
			r = tell(sv, &sv->items.items[i]);
	return r;
}

static void say_missing(const struct source_versions *sv)
{
	uint32_t late = 0, unread = sv->unnoted;

	for (size_t i = 0; i < sv->items.len; i++) {
		const struct version *v = &sv->items.items[i];

		unread += v->state == VERSION_LEFT_OUT || v->state == VERSION_WAITS;
		if (v->state == VERSION_LATE && late++ < NAMED_MAX)
			log_warning(SOURCE_LATE_WORDS, v->path);
	}
	if (unread)
		log_warning("sources of %u files are not shown: a process or a user has too many, "
			    "or time was short",
			    unread);
}

int source_versions_settle(struct source_versions *sv)
{
	const struct timespec pause = { .tv_nsec = 1000000 };
	uint64_t until_ns = monotonic_ns() + SETTLE_NS;
	int r = 0;

	while (!r && (sv->running || sv->read < sv->items.len) && monotonic_ns() < until_ns) {
		sv->rest_until_ns = 0;
		r = source_versions_step(sv);
		nanosleep(&pause, NULL);
	}
	say_missing(sv);
	return r;
}

int source_versions_forget_ids(struct source_versions *sv)
{
	int r = 0;

	for (size_t i = 0; i < sv->items.len && !r; i++)
		if (sv->items.items[i].state == VERSION_READ ||
		    sv->items.items[i].state == VERSION_LEFT_OUT)
			r = tell(sv, &sv->items.items[i]);
	return r;
}
