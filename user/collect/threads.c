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
	uint64_t look_ns; /* when it is asked for next, 0: not again */
	uint64_t wait_ns; /* until the one after that */
	uint32_t looks;   /* so often was it asked for at a sample */
	bool is_awaited;  /* its samples wait for its name, until there were so many, or a flush */
	bool is_asked;    /* for its name */
	bool is_final;    /* no sample waits for another time */
	bool is_due;      /* to be asked for again: a sample came meanwhile */
	bool is_seen;     /* it has samples since it was asked for */
	bool is_early;    /* its process is not known yet */
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

/* What came of asking for its name. */
static void note_answer(struct threads *ts, struct known_thread *known, int r)
{
	bool may_come = r < 0 && !is_over(r) && !known->is_main && !known->is_final;

	set_awaited(ts, known, known->is_awaited && may_come);
	if (is_over(r))
		known->look_ns = 0;
}

/* What `threading` calls every main thread: its process's name says more. */
#define MAIN_THREAD "MainThread"

/* Another name is another entry in the profile. */
static int set_name(struct known_thread *known, const char *name)
{
	char *copy;

	if ((known->name && !strcmp(known->name, name)) ||
	    (known->is_main && !known->name && !strcmp(name, MAIN_THREAD)))
		return 0;
	copy = strdup(name);
	if (!copy)
		return -ENOMEM;
	free(known->name);
	known->name = copy;
	known->id = NO_ID;
	return 0;
}

struct naming {
	struct question question;
	struct threads *threads;
	struct session *session;
	struct process_event process;
	struct thread_place place; /* but for the runtime */
	uint64_t active;           /* see struct threading_process */
	char name[THREAD_NAME_BYTES];
};

/* -ENOENT: not yet, as the process has no row yet that says where its runtime is. */
static int naming_look(struct question *q, struct looker *l)
{
	struct naming *n = (struct naming *)q;
	const struct process_event *e = &n->process;
	struct proc_row row;

	if (session_find_process(n->session, e->pid, &row) < 0 || row.start_ns != e->start_ns ||
	    row.exec_id != e->exec_id || row.layout != e->layout || !row.runtime)
		return -ENOENT;
	n->place.runtime = row.runtime;
	return looker_thread_name(l, &n->place, &n->active, n->name);
}

static int naming_take(struct question *q);

static void naming_free(struct question *q)
{
	free(q);
}

static int ask_name(struct threads *ts, struct known_thread *known,
		    const struct known_process *process, const struct py_offsets *off)
{
	struct naming *n = calloc(1, sizeof(*n));
	int r;

	if (!n)
		return -ENOMEM;
	n->question = (struct question){ .target = { .process = known->process,
						     .pid = process->event.pid },
					 .look = naming_look,
					 .take = naming_take,
					 .free = naming_free };
	n->threads = ts;
	n->session = ts->session;
	n->process = process->event;
	n->place = (struct thread_place){ .pid = (pid_t)process->event.pid,
					  .tid = (pid_t)known->tid,
					  .pointer = known->pointer,
					  .off = off };
	n->active = process->active;
	r = discovery_ask(ts->discovery, &n->question);
	known->is_asked = !r;
	return r == -EAGAIN ? 0 : r; /* at another sample, or at the next flush */
}

/* Or sees to it that it is done once the answer has come that is under way. */
static int look_for_name(struct threads *ts, struct known_thread *known)
{
	const struct known_process *process = processes_find(ts->processes, known->process);
	const struct py_offsets *off = NULL;

	known->is_due = known->is_asked;
	known->is_early = !process;
	if (known->is_asked)
		return 0;
	if (process)
		off = discovery_layout(ts->discovery, process->event.layout);
	if (off && known->pointer)
		return ask_name(ts, known, process, off);
	note_answer(ts, known, -ENOTSUP); /* nobody knows where it is */
	return 0;
}

/* At one of its first samples. */
static int look_at_sample(struct threads *ts, struct known_thread *known)
{
	if (known->looks >= AWAITED_LOOKS)
		return 0; /* at the next flush */
	known->looks += !known->is_asked;
	known->is_final = false;
	set_awaited(ts, known, true);
	known->wait_ns = RENAME_MIN_NS;
	known->look_ns = 1; /* the next flush */
	return look_for_name(ts, known);
}

int threads_meet_process(struct threads *ts, uint64_t process)
{
	int r = 0;

	for (size_t i = 0; i < ts->known.len && !r; i++) {
		struct known_thread *known = &ts->known.items[i];

		if (known->is_early && known->process == process)
			r = look_at_sample(ts, known);
	}
	return r;
}

static int naming_take(struct question *q)
{
	const struct naming *n = (const struct naming *)q;
	struct threads *ts = n->threads;
	struct known_process *process = processes_find(ts->processes, q->target.process);
	uint32_t i = thread_find(ts, q->target.process, (uint32_t)n->place.tid);
	struct known_thread *known;
	int r = q->r == -ENOMEM ? q->r : 0;

	if (r < 0 || !process || i == IDMAP_NONE)
		return r;
	known = &ts->known.items[i];
	known->is_asked = false;
	if (!q->r) {
		r = set_name(known, n->name);
		process->active = n->active;
	}
	note_answer(ts, known, q->r);
	return !r && known->is_awaited && known->is_due ? look_at_sample(ts, known) : r;
}

int threads_settle(struct threads *ts, uint64_t now_ns)
{
	int r = 0;

	for (size_t i = 0; i < ts->known.len && !r; i++) {
		struct known_thread *known = &ts->known.items[i];

		if (!known->is_awaited &&
		    (!known->is_seen || !known->look_ns || known->look_ns > now_ns))
			continue;
		known->is_final = true;
		known->is_seen = false;
		known->look_ns = now_ns + known->wait_ns;
		if (known->wait_ns < RENAME_MAX_NS)
			known->wait_ns *= 2;
		r = look_for_name(ts, known);
	}
	return r;
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
	return look_at_sample(ts, known);
}

static int name_id(struct threads *ts, const struct known_thread *known, uint32_t *id)
{
	size_t len = known->name ? strlen(known->name) : strnlen(known->comm, COMM_BYTES);

	return strtab_intern(ts->profile->strings, known->name ? known->name : known->comm, len,
			     id);
}

int threads_introduce(struct threads *ts, const struct sample_event *e, const char *comm)
{
	struct thread_event stand_in = {
		.kind = EVENT_THREAD, .pid = e->pid, .process = e->process, .tid = e->tid
	};

	if (thread_find(ts, e->process, e->tid) != IDMAP_NONE)
		return 0;
	memcpy(stand_in.comm, comm, sizeof(stand_in.comm));
	return threads_add(ts, &stand_in);
}

int threads_id(struct threads *ts, const struct sample_event *e, uint32_t *id)
{
	static const char nameless[COMM_BYTES];
	struct thread thread = { .tid = e->tid };
	struct known_thread *known;
	int r = threads_introduce(ts, e, nameless);

	if (r < 0)
		return r;
	known = &ts->known.items[thread_find(ts, e->process, e->tid)];
	known->is_seen = true;
	if (known->id == NO_ID &&
	    ((r = processes_id(ts->processes, e->process, &thread.process)) < 0 ||
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

int threads_ask_name(struct threads *ts, const struct sample_event *e)
{
	struct known_thread *awaited = awaited_thread(ts, e);

	return awaited ? look_at_sample(ts, awaited) : 0;
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
