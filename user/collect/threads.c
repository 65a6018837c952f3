/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#include "collect/threads.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/hash.h"
#include "base/vec.h"
#include "collect/looker.h"
#include "profile/idmap.h"

#define AWAITED_LOOKS 4 /* for the name of a thread that has just begun, at its first samples */
#define RENAME_MIN_NS \
	NS_PER_SECOND /* a thread's name is looked at again after this, then doubled */
#define RENAME_MAX_NS 64000000000ULL
#define NO_ID UINT32_MAX

struct known_thread {
	uint64_t process; /* identity */
	uint32_t tid;
	uint32_t id; /* in the profile, NO_ID: not yet */
	char comm[COMM_BYTES];
	char *name;       /* what Python calls it; owned, NULL: nothing that we know of */
	uint64_t pointer; /* pthread_self(), 0: not known */
	uint64_t look_ns; /* when it is looked for next, 0: not again */
	uint64_t wait_ns; /* until the one after that */
	uint32_t looks;   /* so far; enough of them */
	bool is_awaited;  /* its samples wait for its name, until there were so many, or a flush */
	bool is_seen;     /* it has samples since the last look */
	bool is_main;     /* of its process */
};

struct threads {
	struct session *session;
	struct discovery *discovery;
	struct profile *profile;
	struct processes *processes;
	VEC(struct known_thread) known;
	struct idmap ids;
	uint32_t awaited; /* threads whose samples wait for their names */
};

int threads_new(struct session *session, struct discovery *discovery, struct profile *profile,
		struct processes *processes, struct threads **out)
{
	struct threads *ts = calloc(1, sizeof(*ts));

	if (!ts)
		return -ENOMEM;
	ts->session = session;
	ts->discovery = discovery;
	ts->profile = profile;
	ts->processes = processes;
	*out = ts;
	return 0;
}

void threads_free(struct threads *ts)
{
	if (!ts)
		return;
	for (size_t i = 0; i < ts->known.len; i++)
		free(ts->known.items[i].name);
	vec_release(&ts->known);
	idmap_release(&ts->ids);
	free(ts);
}

static uint64_t thread_hash(uint64_t process, uint32_t tid)
{
	return hash_combine(process, tid);
}

static uint32_t thread_find(const struct threads *ts, uint64_t process, uint32_t tid)
{
	size_t at = IDMAP_START;
	uint32_t i;

	while ((i = idmap_next(&ts->ids, thread_hash(process, tid), &at)) != IDMAP_NONE)
		if (ts->known.items[i].process == process && ts->known.items[i].tid == tid)
			break;
	return i;
}

/* Where its name is to be read. False: nowhere, as far as we know. */
static bool thread_place(struct threads *ts, const struct known_thread *known,
			 const struct known_process *process, struct thread_place *out)
{
	const struct process_event *e = &process->event;
	const struct py_offsets *off = discovery_layout(ts->discovery, e->layout);
	struct proc_row row;

	if (!known->pointer || !off || session_find_process(ts->session, e->pid, &row) < 0 ||
	    row.start_ns != e->start_ns || row.exec_id != e->exec_id || row.layout != e->layout)
		return false;
	*out = (struct thread_place){ .pid = (pid_t)e->pid,
				      .tid = (pid_t)known->tid,
				      .pointer = known->pointer,
				      .runtime = row.runtime,
				      .off = off };
	return row.runtime;
}

/* What `threading` calls every main thread: its process's name says more. */
#define MAIN_THREAD "MainThread"

/* As looker_thread_name(). Another name is another entry in the profile. */
static int look_for_name(struct threads *ts, struct known_thread *known)
{
	struct known_process *process = processes_find(ts->processes, known->process);
	char name[THREAD_NAME_BYTES], *copy;
	struct thread_place place;
	int r = -ENOTSUP;

	if (process && thread_place(ts, known, process, &place))
		r = looker_thread_name(discovery_looker(ts->discovery), &place, &process->active,
				       name);
	if (r < 0 || (known->name && !strcmp(known->name, name)) ||
	    (known->is_main && !known->name && !strcmp(name, MAIN_THREAD)))
		return r;
	copy = strdup(name);
	if (!copy)
		return -ENOMEM;
	free(known->name);
	known->name = copy;
	known->id = NO_ID;
	return 0;
}

static void set_awaited(struct threads *ts, struct known_thread *known, bool is_awaited)
{
	ts->awaited += is_awaited;
	ts->awaited -= known->is_awaited;
	known->is_awaited = is_awaited;
}

/* After a look that gave r: no other would give more. */
static bool is_over(int r)
{
	return r == -ESRCH || r == -ENOTSUP;
}

int threads_settle(struct threads *ts, uint64_t now_ns)
{
	for (size_t i = 0; i < ts->known.len; i++) {
		struct known_thread *known = &ts->known.items[i];
		int r;

		if (!known->is_awaited &&
		    (!known->is_seen || !known->look_ns || known->look_ns > now_ns))
			continue;
		r = look_for_name(ts, known);
		if (r == -ENOMEM)
			return r;
		set_awaited(ts, known, false);
		known->is_seen = false;
		known->look_ns = is_over(r) ? 0 : now_ns + known->wait_ns;
		if (known->wait_ns < RENAME_MAX_NS)
			known->wait_ns *= 2;
	}
	return 0;
}

/* At one of its first samples. */
static int look_for_awaited(struct threads *ts, struct known_thread *known)
{
	int r;

	if (known->looks >= AWAITED_LOOKS)
		return 0; /* at the next flush */
	known->looks++;
	r = look_for_name(ts, known);
	if (r == -ENOMEM)
		return r;
	set_awaited(ts, known, r < 0 && !is_over(r) && !known->is_main);
	known->wait_ns = RENAME_MIN_NS;
	known->look_ns = is_over(r) ? 0 : 1; /* the next flush */
	return 0;
}

static int add_thread(struct threads *ts, const struct thread_event *e, uint32_t *i)
{
	struct known_thread known = { .process = e->process, .tid = e->tid, .id = NO_ID };
	int r = idmap_reserve(&ts->ids);

	if (!r)
		r = vec_push(&ts->known, known);
	if (r < 0)
		return r;
	*i = ts->known.len - 1;
	idmap_insert(&ts->ids, thread_hash(e->process, e->tid), *i);
	return 0;
}

int threads_add(struct threads *ts, const struct thread_event *e)
{
	uint32_t i = thread_find(ts, e->process, e->tid);
	struct known_thread *known;
	int r = 0;

	if (i != IDMAP_NONE && !memcmp(ts->known.items[i].comm, e->comm, sizeof(e->comm)))
		return 0;
	if (i == IDMAP_NONE && (r = add_thread(ts, e, &i)) < 0)
		return r;
	known = &ts->known.items[i];
	memcpy(known->comm, e->comm, sizeof(known->comm));
	known->pointer = e->pointer;
	known->is_main = e->tid == e->pid;
	known->looks = 0;
	known->id = NO_ID;
	return look_for_awaited(ts, known);
}

static int name_id(struct threads *ts, const struct known_thread *known, uint32_t *id)
{
	size_t len = known->name ? strlen(known->name) : strnlen(known->comm, COMM_BYTES);

	return strtab_intern(ts->profile->strings, known->name ? known->name : known->comm, len,
			     id);
}

static int stand_in(struct threads *ts, const struct sample_event *e)
{
	const struct thread_event nameless = {
		.kind = EVENT_THREAD, .pid = e->pid, .process = e->process, .tid = e->tid
	};

	return threads_add(ts, &nameless);
}

int threads_id(struct threads *ts, const struct sample_event *e, uint32_t *id)
{
	uint32_t i = thread_find(ts, e->process, e->tid);
	struct thread thread = { .tid = e->tid };
	struct known_thread *known;
	int r;

	if (i == IDMAP_NONE) {
		if ((r = stand_in(ts, e)) < 0)
			return r;
		i = thread_find(ts, e->process, e->tid);
	}
	known = &ts->known.items[i];
	known->is_seen = true;
	if (known->id == NO_ID && ((r = processes_id(ts->processes, e, &thread.process)) < 0 ||
				   (r = name_id(ts, known, &thread.name)) < 0 ||
				   (r = profile_add_thread(ts->profile, &thread, &known->id)) < 0))
		return r;
	*id = known->id;
	return 0;
}

/* NULL, or the sample's thread, whose name may come yet. */
static struct known_thread *awaited_thread(const struct threads *ts, const struct sample_event *e)
{
	uint32_t i = ts->awaited ? thread_find(ts, e->process, e->tid) : IDMAP_NONE;

	return i != IDMAP_NONE && ts->known.items[i].is_awaited ? &ts->known.items[i] : NULL;
}

int threads_look_for_name(struct threads *ts, const struct sample_event *e)
{
	struct known_thread *awaited = awaited_thread(ts, e);

	return awaited ? look_for_awaited(ts, awaited) : 0;
}

bool threads_is_awaited(const struct threads *ts, const struct sample_event *e)
{
	return awaited_thread(ts, e);
}

int threads_forget_ids(struct threads *ts)
{
	size_t kept = 0;
	int r = 0;

	idmap_release(&ts->ids);
	for (size_t i = 0; i < ts->known.len && !r; i++) {
		struct known_thread *known = &ts->known.items[i];

		known->id = NO_ID;
		if (!processes_find(ts->processes, known->process)) {
			ts->awaited -= known->is_awaited;
			free(known->name);
			known->name = NULL;
			continue;
		}
		r = idmap_reserve(&ts->ids);
		if (r < 0)
			break;
		idmap_insert(&ts->ids, thread_hash(known->process, known->tid), kept);
		ts->known.items[kept++] = *known;
	}
	ts->known.len = kept;
	return r;
}

size_t threads_bytes(const struct threads *ts)
{
	size_t bytes = ts->known.cap * sizeof(ts->known.items[0]) + idmap_bytes(&ts->ids);

	for (size_t i = 0; i < ts->known.len; i++)
		if (ts->known.items[i].name)
			bytes += strlen(ts->known.items[i].name) + 1;
	return bytes;
}
