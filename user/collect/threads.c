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

/* A thread's name is looked at again after this, then doubled; once it is known, after a second. */
#define LOOK_MIN_NS 1000000
#define LOOK_MAX_NS (64 * NS_PER_SECOND)
#define NO_LOOK UINT64_MAX
#define NO_ID UINT32_MAX

/* A thread while the kernel has one name for it. */
struct known_thread {
	struct thread_event event;
	uint32_t latest;  /* of the first with its TID: index of the last */
	uint32_t id;      /* in the profile, NO_ID: not yet */
	char *name;       /* what Python calls it; owned, NULL: nothing that we know of */
	uint64_t look_ns; /* when it is asked for next */
	uint64_t wait_ns; /* until the one after that */
	bool is_asked;    /* for its name */
	bool is_seen;     /* it has samples since its name was read, which may be another by now */
	bool is_used;     /* it has samples since the last threads_forget_ids() */
};

struct threads {
	struct session *session;
	struct discovery *discovery;
	struct profile *profile;
	struct processes *processes;
	VEC(struct known_thread) known;
	struct idmap ids; /* by identity; of each TID the first by that, too */
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

static struct known_thread *find_known(const struct threads *ts, uint64_t thread)
{
	size_t at = IDMAP_START;
	uint32_t i;

	while ((i = idmap_next(&ts->ids, thread, &at)) != IDMAP_NONE)
		if (ts->known.items[i].event.thread == thread)
			return &ts->known.items[i];
	return NULL;
}

static uint64_t tid_hash(uint64_t process, uint32_t tid)
{
	return hash_combine(process, tid);
}

static struct known_thread *find_first(const struct threads *ts, uint64_t process, uint32_t tid)
{
	size_t at = IDMAP_START;
	uint32_t i;

	while ((i = idmap_next(&ts->ids, tid_hash(process, tid), &at)) != IDMAP_NONE)
		if (ts->known.items[i].event.process == process &&
		    ts->known.items[i].event.tid == tid)
			return &ts->known.items[i];
	return NULL;
}

/* The thread of a sample, or the latest with its TID. */
static struct known_thread *find_thread(const struct threads *ts, const struct sample_event *e)
{
	struct known_thread *known = find_known(ts, e->thread);
	const struct known_thread *first = known ? NULL : find_first(ts, e->process, e->tid);

	return first ? &ts->known.items[first->latest] : known;
}

/* What `threading` calls every main thread: its process's name says more. */
#define MAIN_THREAD "MainThread"

/* Another name is another entry in the profile; the first one is of the samples before it, too. */
static int set_name(struct threads *ts, struct known_thread *known, const char *name)
{
	bool is_main = known->event.tid == known->event.pid, is_first = !known->name;
	uint32_t id;
	char *copy;
	int r;

	if (is_first ? is_main && !strcmp(name, MAIN_THREAD) : !strcmp(known->name, name))
		return 0;
	if (!(copy = strdup(name)))
		return -ENOMEM;
	free(known->name);
	known->name = copy;
	if (!is_first || known->id == NO_ID) {
		known->id = NO_ID;
		return 0;
	}
	r = strtab_intern(ts->profile->strings, name, strlen(name), &id);
	return r < 0 ? r : profile_name_thread(ts->profile, known->id, id);
}

struct naming {
	struct question question;
	struct threads *threads;
	struct session *session;
	struct process_event process;
	uint64_t thread;           /* identity */
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

static int naming_take(struct question *q)
{
	const struct naming *n = (const struct naming *)q;
	struct threads *ts = n->threads;
	struct known_process *process = processes_find(ts->processes, q->target.process);
	struct known_thread *known = find_known(ts, n->thread);

	if (q->r == -ENOMEM || !process || !known)
		return q->r == -ENOMEM ? q->r : 0;
	known->is_asked = false;
	if (q->r == -ESRCH || q->r == -ENOTSUP)
		known->look_ns = NO_LOOK; /* no other look would give more */
	if (q->r)
		return 0;
	known->is_seen = false;
	if (known->wait_ns < NS_PER_SECOND)
		known->wait_ns = NS_PER_SECOND;
	process->active = n->active;
	return set_name(ts, known, n->name);
}

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
	n->question = (struct question){ .target = { .process = known->event.process,
						     .pid = process->event.pid },
					 .look = naming_look,
					 .take = naming_take,
					 .free = naming_free };
	n->threads = ts;
	n->session = ts->session;
	n->process = process->event;
	n->thread = known->event.thread;
	n->place = (struct thread_place){ .pid = (pid_t)process->event.pid,
					  .tid = (pid_t)known->event.tid,
					  .pointer = known->event.pointer,
					  .start_ns = known->event.start_ns,
					  .off = off };
	memcpy(n->place.comm, known->event.comm, sizeof(n->place.comm));
	n->active = process->active;
	r = discovery_ask(ts->discovery, &n->question);
	if (r < 0)
		return r == -EAGAIN ? 0 : r; /* at the next sample, or flush */
	known->is_asked = true;
	known->look_ns = monotonic_ns() + known->wait_ns;
	if (known->wait_ns < LOOK_MAX_NS)
		known->wait_ns *= 2;
	return 0;
}

/* Unless it is not due by now_ns, its process is not known yet, or nobody knows where the name is.
 */
static int look_for_name(struct threads *ts, struct known_thread *known, uint64_t now_ns)
{
	const struct known_process *process;
	const struct py_offsets *off = NULL;

	if (known->is_asked || !known->event.pointer || known->look_ns > now_ns)
		return 0;
	process = processes_find(ts->processes, known->event.process);
	if (process)
		off = discovery_layout(ts->discovery, process->event.layout);
	if (!off)
		return 0;
	return ask_name(ts, known, process, off);
}

int threads_ask_name(struct threads *ts, const struct sample_event *e)
{
	struct known_thread *known = find_thread(ts, e);

	return known ? look_for_name(ts, known, monotonic_ns()) : 0;
}

int threads_meet_process(struct threads *ts, uint64_t process)
{
	int r = 0;

	for (size_t i = 0; i < ts->known.len && !r; i++)
		if (ts->known.items[i].event.process == process)
			r = look_for_name(ts, &ts->known.items[i], monotonic_ns());
	return r;
}

int threads_settle(struct threads *ts)
{
	uint64_t now_ns = monotonic_ns();
	int r = 0;

	for (size_t i = 0; i < ts->known.len && !r; i++) {
		struct known_thread *known = &ts->known.items[i];
		/* A new thread: its first samples are written with the name that it has by now. */
		bool is_new =
			!known->name && known->wait_ns < NS_PER_SECOND && known->look_ns != NO_LOOK;

		if (known->is_seen)
			r = look_for_name(ts, known, is_new ? known->look_ns : now_ns);
	}
	return r;
}

bool threads_is_asking(const struct threads *ts)
{
	size_t i = 0;

	while (i < ts->known.len && (!ts->known.items[i].is_asked || ts->known.items[i].name))
		i++;
	return i < ts->known.len;
}

/* Makes a thread one that find_known() and find_first() find. */
static int index_thread(struct threads *ts, uint32_t i)
{
	struct known_thread *known = &ts->known.items[i];
	const struct thread_event *e = &known->event;
	struct known_thread *first = find_first(ts, e->process, e->tid);
	int r = idmap_reserve(&ts->ids);

	if (r < 0)
		return r;
	idmap_insert(&ts->ids, e->thread, i);
	if (first) {
		first->latest = i;
		return 0;
	}
	known->latest = i;
	r = idmap_reserve(&ts->ids);
	if (!r)
		idmap_insert(&ts->ids, tid_hash(e->process, e->tid), i);
	return r;
}

int threads_add(struct threads *ts, const struct thread_event *e)
{
	struct known_thread known = {
		.event = *e, .id = NO_ID, .wait_ns = LOOK_MIN_NS, .is_seen = true
	};
	int r;

	if (find_known(ts, e->thread))
		return 0;
	if ((r = vec_push(&ts->known, known)) < 0 || (r = index_thread(ts, ts->known.len - 1)) < 0)
		return r;
	return look_for_name(ts, &ts->known.items[ts->known.len - 1], monotonic_ns());
}

int threads_introduce(struct threads *ts, const struct sample_event *e, const char *comm)
{
	struct thread_event stand_in = { .kind = EVENT_THREAD,
					 .pid = e->pid,
					 .process = e->process,
					 .tid = e->tid,
					 .thread = ~tid_hash(e->process, e->tid) };

	if (find_thread(ts, e))
		return 0;
	memcpy(stand_in.comm, comm, sizeof(stand_in.comm));
	return threads_add(ts, &stand_in);
}

static int name_id(struct threads *ts, const struct known_thread *known, uint32_t *id)
{
	const char *name = known->name ? known->name : known->event.comm;

	return strtab_intern(ts->profile->strings, name,
			     known->name ? strlen(name) : strnlen(name, COMM_BYTES), id);
}

int threads_id(struct threads *ts, const struct sample_event *e, uint32_t *id)
{
	static const char nameless[COMM_BYTES];
	struct thread thread = { .tid = e->tid };
	struct known_thread *known;
	int r = threads_introduce(ts, e, nameless);

	if (r < 0)
		return r;
	known = find_thread(ts, e);
	known->is_seen = known->is_used = true;
	thread.start_ns = known->event.start_ns;
	if (known->id == NO_ID &&
	    ((r = processes_id(ts->processes, e->process, &thread.process)) < 0 ||
	     (r = name_id(ts, known, &thread.name)) < 0 ||
	     (r = profile_add_thread(ts->profile, &thread, &known->id)) < 0))
		return r;
	*id = known->id;
	return 0;
}

/* Samples of it may come, or be there that wait for something. */
static bool is_needed(const struct threads *ts, const struct known_thread *known)
{
	const struct thread_event *e = &known->event;

	return processes_find(ts->processes, e->process) &&
	       (known->is_used || !thread_has_ended((pid_t)e->pid, (pid_t)e->tid));
}

int threads_forget_ids(struct threads *ts)
{
	size_t kept = 0;
	int r = 0;

	idmap_release(&ts->ids);
	for (size_t i = 0; i < ts->known.len && !r; i++) {
		struct known_thread *known = &ts->known.items[i];

		known->id = NO_ID;
		if (!is_needed(ts, known)) {
			free(known->name);
			known->name = NULL;
			continue;
		}
		known->is_used = false;
		ts->known.items[kept] = *known;
		r = index_thread(ts, kept++);
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
