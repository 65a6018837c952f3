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
#define MAIN_LOOK_NS 20000000 /* a main thread's first look: MainThread says nothing */
#define NAMES_MAX 64          /* of a question */
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

/* A thread whose name is to be asked for. */
struct wanted {
	uint64_t process, thread; /* identities */
};

struct threads {
	struct session *session;
	struct discovery *discovery;
	struct profile *profile;
	struct processes *processes;
	VEC(struct known_thread) known;
	struct idmap ids;          /* by identity; of each TID the first by that, too */
	VEC(struct wanted) wanted; /* for the next threads_ask() */
	bool has_new, had_new;     /* threads were added since the last one, and before that */
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
	vec_release(&ts->wanted);
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

static bool is_main(const struct known_thread *known)
{
	return known->event.tid == known->event.pid;
}

/* Another name is another entry in the profile; the first one is of the samples before it, too. */
static int set_name(struct threads *ts, struct known_thread *known, const char *name)
{
	bool is_first = !known->name;
	uint32_t id;
	char *copy;
	int r;

	if (is_first ? is_main(known) && !strcmp(name, MAIN_THREAD) : !strcmp(known->name, name))
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
	struct thread_names *names; /* owned, but for the runtime; NULL: the look brought none */
	size_t count;
	uint64_t ids[]; /* of the threads: identities */
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
	n->names->runtime = row.runtime;
	return looker_thread_names(l, &n->names);
}

static int take_name(struct threads *ts, uint64_t thread, int r, const char *name)
{
	struct known_thread *known = find_known(ts, thread);

	if (!known)
		return 0;
	known->is_asked = false;
	if (r == -ESRCH || r == -ENOTSUP)
		known->look_ns = NO_LOOK; /* no other look would give more */
	if (r)
		return 0;
	known->is_seen = false;
	if (known->wait_ns < NS_PER_SECOND)
		known->wait_ns = NS_PER_SECOND;
	return set_name(ts, known, name);
}

static int naming_take(struct question *q)
{
	const struct naming *n = (const struct naming *)q;
	struct threads *ts = n->threads;
	struct known_process *process = processes_find(ts->processes, q->target.process);
	int r = q->r == -ENOMEM ? q->r : 0;

	if (process && !q->r)
		process->active = n->names->active;
	for (size_t i = 0; i < n->count && !r; i++)
		r = q->r ? take_name(ts, n->ids[i], q->r, NULL)
			 : take_name(ts, n->ids[i], n->names->items[i].r, n->names->items[i].name);
	return r;
}

static void naming_free(struct question *q)
{
	free(((struct naming *)q)->names);
	free(q);
}

static struct thread_name *add_name(struct thread_names *names, const struct thread_event *e)
{
	struct thread_name *name = &names->items[names->count++];

	name->place = (struct thread_place){ .tid = (pid_t)e->tid,
					     .pointer = e->pointer,
					     .start_ns = e->start_ns };
	memcpy(name->place.comm, e->comm, sizeof(name->place.comm));
	return name;
}

static struct naming *naming_new(struct threads *ts, const struct known_process *process,
				 const struct py_offsets *off, size_t count)
{
	struct naming *n = malloc(sizeof(*n) + count * sizeof(n->ids[0]));
	struct thread_names *names = malloc(sizeof(*names) + count * sizeof(names->items[0]));

	if (!n || !names) {
		free(n);
		free(names);
		return NULL;
	}
	*names = (struct thread_names){ .pid = (pid_t)process->event.pid,
					.off = *off,
					.active = process->active };
	*n = (struct naming){ .question = { .target = { .process = process->event.process,
							.pid = process->event.pid },
					    .look = naming_look,
					    .take = naming_take,
					    .free = naming_free },
			      .threads = ts,
			      .session = ts->session,
			      .process = process->event,
			      .names = names };
	return n;
}

static const struct py_offsets *layout_of(const struct threads *ts,
					  const struct known_process *process)
{
	return process ? discovery_layout(ts->discovery, process->event.layout) : NULL;
}

/* Unless it is not due by now_ns, its process is not known yet, or nobody knows where the name is.
 */
static int look_for_name(struct threads *ts, struct known_thread *known, uint64_t now_ns)
{
	const struct wanted wanted = { known->event.process, known->event.thread };

	if (known->is_asked || !known->event.pointer || known->look_ns > now_ns)
		return 0;
	if (!layout_of(ts, processes_find(ts->processes, known->event.process)))
		return 0;
	if (vec_push(&ts->wanted, wanted) < 0)
		return -ENOMEM;
	known->is_asked = true;
	known->look_ns = monotonic_ns() + known->wait_ns;
	if (known->wait_ns < LOOK_MAX_NS)
		known->wait_ns *= 2;
	return 0;
}

static int compare_wanted(const void *a, const void *b)
{
	const struct wanted *x = a, *y = b;

	return x->process < y->process ? -1 : x->process > y->process;
}

static void unask(struct threads *ts, const struct wanted *w, size_t count)
{
	for (size_t i = 0; i < count; i++) {
		struct known_thread *known = find_known(ts, w[i].thread);

		if (known)
			known->is_asked = false;
	}
}

/* Asks one question, for threads of one process. */
static int ask_names(struct threads *ts, const struct wanted *w, size_t count)
{
	const struct known_process *process = processes_find(ts->processes, w->process);
	const struct py_offsets *off = layout_of(ts, process);
	struct naming *n = off ? naming_new(ts, process, off, count) : NULL;
	int r;

	if (off && !n)
		return -ENOMEM;
	for (size_t i = 0; n && i < count; i++) {
		const struct known_thread *known = find_known(ts, w[i].thread);

		if (!known)
			continue;
		n->ids[n->count++] = w[i].thread;
		add_name(n->names, &known->event);
	}
	r = n ? discovery_ask(ts->discovery, &n->question) : -EAGAIN;
	if (r == -EAGAIN)
		unask(ts, w, count); /* at the next sample, or flush */
	return r == -EAGAIN ? 0 : r;
}

int threads_ask(struct threads *ts)
{
	int r = 0;

	if (ts->wanted.len)
		qsort(ts->wanted.items, ts->wanted.len, sizeof(struct wanted), compare_wanted);
	for (size_t at = 0, n; at < ts->wanted.len && !r; at += n) {
		const struct wanted *w = &ts->wanted.items[at];

		n = 1;
		while (at + n < ts->wanted.len && n < NAMES_MAX && w[n].process == w->process)
			n++;
		r = ask_names(ts, w, n);
	}
	ts->wanted.len = 0;
	ts->had_new = ts->has_new;
	ts->has_new = false;
	return r;
}

bool threads_may_come(const struct threads *ts)
{
	return ts->had_new;
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
		bool is_new = !is_main(known) && !known->name && known->wait_ns < NS_PER_SECOND &&
			      known->look_ns != NO_LOOK;

		if (known->is_seen)
			r = look_for_name(ts, known, is_new ? known->look_ns : now_ns);
	}
	return r ?: threads_ask(ts);
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
	ts->has_new = true;
	if (is_main(&known))
		known.look_ns = monotonic_ns() + MAIN_LOOK_NS;
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
