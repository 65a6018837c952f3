/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#include "collect/pipeline.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>

#include "base/clock.h"
#include "base/err.h"
#include "base/hash.h"
#include "base/log.h"
#include "base/vec.h"
#include "bpf/events.h"
#include "collect/looker.h"
#include "profile/idmap.h"
#include "profile/opcodes.h"
#include "symbolize/code.h"
#include "target/container.h"

#define STACK_SLOTS 16384 /* power of two */
#define FRAME_SLOTS 32768 /* power of two */
#define WAIT_NS 2000000000ULL
#define AWAITED_LOOKS 4 /* for the name of a thread that has just begun, at its first samples */
#define RENAME_MIN_NS \
	NS_PER_SECOND /* a thread's name is looked at again after this, then doubled */
#define RENAME_MAX_NS 64000000000ULL
#define WAITING_BYTES_MAX (4u << 20)
#define LINES_SENT_MAX (LINES_CHUNKS_MAX * LINES_CHUNK)
#define LINES_READ_MAX (1u << 20)
#define NO_ID UINT32_MAX

struct known_process {
	struct process_event event; /* without its arguments */
	char *command_line;         /* owned, "" if unknown */
	struct container *place;    /* owned, NULL: in no container or pod */
	uint64_t active;            /* see struct threading_process */
	uint32_t id;                /* in the profile, NO_ID: not yet */
	bool is_awaited;            /* some sample of it waits */
	bool awaits_args;           /* its samples wait for its command line, until a flush */
	bool was_gone;              /* at the last pipeline_forget_ids() */
};

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

/* Lossy caches, valid until pipeline_forget_ids(). */
struct stack_slot {
	uint64_t hash; /* of all frames but the leaf; seeded, so equal means equal */
	uint32_t stack;
	uint32_t generation;
};

struct frame_slot {
	uint64_t code;
	uint32_t instr;
	uint32_t flags;
	uint32_t frame;
	uint32_t generation;
	bool is_approximate;
};

struct pipeline {
	struct session *session;
	struct discovery *discovery;
	struct profile *profile;
	struct code_table *codes;
	struct cgroup_namespace ours;
	uint64_t start_ns;
	uint64_t seed;
	uint64_t resent_ns;
	uint32_t awaited;    /* threads and processes whose samples wait for a name of theirs */
	uint32_t generation; /* of the caches */
	VEC(struct known_process) processes;
	VEC(struct known_thread) threads;
	struct idmap process_ids;
	struct idmap thread_ids;
	VEC(uint64_t) waiting; /* sample records, 8-byte aligned, one behind the other */
	struct pipeline_stats stats;
	struct stack_slot stacks[STACK_SLOTS];
	struct frame_slot frames[FRAME_SLOTS];
};

int pipeline_new(struct session *session, struct discovery *discovery, struct profile *profile,
		 uint64_t start_ns, struct pipeline **out)
{
	_cleanup_(pipeline_freep) struct pipeline *p = calloc(1, sizeof(*p));
	int r;

	if (!p)
		return -ENOMEM;
	p->session = session;
	p->discovery = discovery;
	p->profile = profile;
	p->start_ns = start_ns;
	p->generation = 1;
	if (getrandom(&p->seed, sizeof(p->seed), GRND_NONBLOCK) < 0)
		p->seed = start_ns;
	r = code_table_new(CODE_TABLE_BYTES_DEFAULT, &p->codes);
	if (r < 0)
		return r;
	if ((r = cgroup_namespace_find(&p->ours)) < 0) /* containers that it tells go without */
		log_warning("our cgroup namespace: %s", err_message(r));
	*out = take_ptr(p);
	return 0;
}

static void known_process_release(struct known_process *known)
{
	free(known->command_line);
	free(known->place);
}

void pipeline_free(struct pipeline *p)
{
	if (!p)
		return;
	for (size_t i = 0; i < p->processes.len; i++)
		known_process_release(&p->processes.items[i]);
	for (size_t i = 0; i < p->threads.len; i++)
		free(p->threads.items[i].name);
	cgroup_namespace_release(&p->ours);
	vec_release(&p->processes);
	vec_release(&p->threads);
	vec_release(&p->waiting);
	idmap_release(&p->process_ids);
	idmap_release(&p->thread_ids);
	code_table_free(p->codes);
	free(p);
}

static uint32_t process_find(const struct pipeline *p, uint64_t identity)
{
	size_t at = IDMAP_START;
	uint32_t i;

	while ((i = idmap_next(&p->process_ids, identity, &at)) != IDMAP_NONE)
		if (p->processes.items[i].event.process == identity)
			break;
	return i;
}

static uint64_t thread_hash(uint64_t process, uint32_t tid)
{
	return hash_combine(process, tid);
}

static uint32_t thread_find(const struct pipeline *p, uint64_t process, uint32_t tid)
{
	size_t at = IDMAP_START;
	uint32_t i;

	while ((i = idmap_next(&p->thread_ids, thread_hash(process, tid), &at)) != IDMAP_NONE)
		if (p->threads.items[i].process == process && p->threads.items[i].tid == tid)
			break;
	return i;
}

/* Arguments, NUL behind each -> one line. */
static char *join_args(const char *args, size_t len)
{
	char *line = malloc(len + 1);

	if (!line)
		return NULL;
	while (len && !args[len - 1])
		len--;
	for (size_t i = 0; i < len; i++)
		line[i] = args[i] ? args[i] : ' ';
	line[len] = '\0';
	return line;
}

/* Asked at once: soon the process may have ended. *out is NULL where it is in none. */
static int find_place(const struct pipeline *p, pid_t pid, struct container **out)
{
	struct container found;

	*out = NULL;
	if (!container_find(pid, &p->ours, &found))
		return 0;
	*out = malloc(sizeof(found));
	if (!*out)
		return -ENOMEM;
	**out = found;
	return 0;
}

static void set_awaits_args(struct pipeline *p, struct known_process *known, bool awaits_args)
{
	p->awaited += awaits_args;
	p->awaited -= known->awaits_args;
	known->awaits_args = awaits_args;
}

/*
 * Where the kernel could not read the arguments: in the midst of exec, or of a page that is not
 * present. They are its own if it still runs what it ran then.
 */
static int read_args(struct pipeline *p, struct known_process *known)
{
	const struct process_event *e = &known->event;
	struct task_record task;
	char args[ARGS_BYTES], *line;
	int len = looker_arguments(discovery_looker(p->discovery), (pid_t)e->pid, args);

	if (len == -ENOMEM)
		return len;
	if (len <= 0 || session_find_task(p->session, e->pid, &task) < 0 ||
	    task.process != e->process) {
		err_clear(); /* gone, or it has none: it goes without */
		return 0;
	}
	line = join_args(args, (size_t)len);
	if (!line)
		return -ENOMEM;
	free(known->command_line);
	known->command_line = line;
	return 0;
}

/* At a flush, once more. */
static int look_for_args(struct pipeline *p)
{
	int r = 0;

	for (size_t i = 0; i < p->processes.len && !r; i++) {
		struct known_process *known = &p->processes.items[i];

		if (!known->awaits_args)
			continue;
		r = read_args(p, known);
		set_awaits_args(p, known, false);
	}
	return r;
}

/* Known already: with its arguments this time? */
static int on_process_again(struct pipeline *p, struct known_process *known,
			    const struct process_event *e)
{
	char *line;

	if (*known->command_line || !e->args_bytes)
		return 0;
	line = join_args((const char *)(e + 1), e->args_bytes);
	if (!line)
		return -ENOMEM;
	free(known->command_line);
	known->command_line = line;
	set_awaits_args(p, known, false);
	return 0;
}

static int on_process(struct pipeline *p, const struct process_event *e, size_t size)
{
	struct known_process known = { .event = *e, .id = NO_ID };
	uint32_t i;
	int r;

	if (sizeof(*e) + e->args_bytes > size) {
		p->stats.malformed++;
		return 0;
	}
	i = process_find(p, e->process);
	if (i != IDMAP_NONE)
		return on_process_again(p, &p->processes.items[i], e);
	known.command_line = join_args((const char *)(e + 1), e->args_bytes);
	if (!known.command_line)
		return -ENOMEM;
	r = find_place(p, (pid_t)e->pid, &known.place);
	if (!r && !e->args_bytes && e->start_ns) /* not one that only stands in */
		r = read_args(p, &known);
	if (!r)
		r = idmap_reserve(&p->process_ids);
	if (!r)
		r = vec_push(&p->processes, known);
	if (r < 0) {
		known_process_release(&known);
		return r;
	}
	idmap_insert(&p->process_ids, e->process, p->processes.len - 1);
	set_awaits_args(p, &p->processes.items[p->processes.len - 1],
			e->start_ns && !*known.command_line);
	p->stats.processes++;
	p->stats.contained += known.place != NULL;
	return 0;
}

/* Where its name is to be read. False: nowhere, as far as we know. */
static bool thread_place(const struct pipeline *p, const struct known_thread *known,
			 const struct known_process *process, struct thread_place *out)
{
	const struct process_event *e = &process->event;
	const struct py_offsets *off = discovery_layout(p->discovery, e->layout);
	struct proc_row row;

	if (!known->pointer || !off || session_find_process(p->session, e->pid, &row) < 0 ||
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
static int look_for_name(struct pipeline *p, struct known_thread *known)
{
	uint32_t i = process_find(p, known->process);
	char name[THREAD_NAME_BYTES], *copy;
	struct thread_place place;
	int r = -ENOTSUP;

	if (i != IDMAP_NONE && thread_place(p, known, &p->processes.items[i], &place))
		r = looker_thread_name(discovery_looker(p->discovery), &place,
				       &p->processes.items[i].active, name);
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

static void set_awaited(struct pipeline *p, struct known_thread *known, bool is_awaited)
{
	p->awaited += is_awaited;
	p->awaited -= known->is_awaited;
	known->is_awaited = is_awaited;
}

/* After a look that gave r: no other would give more. */
static bool is_over(int r)
{
	return r == -ESRCH || r == -ENOTSUP;
}

/* Names that were not there at first, and those that have changed since. */
static int look_for_names(struct pipeline *p, uint64_t now_ns)
{
	for (size_t i = 0; i < p->threads.len; i++) {
		struct known_thread *known = &p->threads.items[i];
		int r;

		if (!known->is_awaited &&
		    (!known->is_seen || !known->look_ns || known->look_ns > now_ns))
			continue;
		r = look_for_name(p, known);
		if (r == -ENOMEM)
			return r;
		set_awaited(p, known, false);
		known->is_seen = false;
		known->look_ns = is_over(r) ? 0 : now_ns + known->wait_ns;
		if (known->wait_ns < RENAME_MAX_NS)
			known->wait_ns *= 2;
	}
	return 0;
}

/* At one of its first samples: a thread is not where names are before it has run a little. */
static int look_for_awaited(struct pipeline *p, struct known_thread *known)
{
	int r;

	if (known->looks >= AWAITED_LOOKS)
		return 0; /* at the next flush */
	known->looks++;
	r = look_for_name(p, known);
	if (r == -ENOMEM)
		return r;
	set_awaited(p, known, r < 0 && !is_over(r) && !known->is_main);
	known->wait_ns = RENAME_MIN_NS;
	known->look_ns = is_over(r) ? 0 : 1; /* the next flush */
	return 0;
}

static int add_thread(struct pipeline *p, const struct thread_event *e, uint32_t *i)
{
	struct known_thread known = { .process = e->process, .tid = e->tid, .id = NO_ID };
	int r = idmap_reserve(&p->thread_ids);

	if (!r)
		r = vec_push(&p->threads, known);
	if (r < 0)
		return r;
	*i = p->threads.len - 1;
	idmap_insert(&p->thread_ids, thread_hash(e->process, e->tid), *i);
	return 0;
}

/* At its first sample, or under another name than before. */
static int on_thread(struct pipeline *p, const struct thread_event *e)
{
	uint32_t i = thread_find(p, e->process, e->tid);
	struct known_thread *known;
	int r = 0;

	if (i != IDMAP_NONE && !memcmp(p->threads.items[i].comm, e->comm, sizeof(e->comm)))
		return 0;
	if (i == IDMAP_NONE && (r = add_thread(p, e, &i)) < 0)
		return r;
	known = &p->threads.items[i];
	memcpy(known->comm, e->comm, sizeof(known->comm));
	known->pointer = e->pointer;
	known->is_main = e->tid == e->pid;
	known->looks = 0;
	known->id = NO_ID;
	return look_for_awaited(p, known);
}

/*
 * The part of a line table that the kernel does not send, while the target lives. Taken only if
 * what the target has there now begins with what the kernel saw.
 */
static int read_lines_rest(struct pipeline *p, const struct code_event *e, const uint8_t *seen)
{
	_cleanup_(freep) uint8_t *table = NULL;

	if (e->lines_total > LINES_READ_MAX)
		return 0;
	table = malloc(e->lines_total);
	if (!table)
		return -ENOMEM;
	if (looker_read(discovery_looker(p->discovery), (pid_t)e->pid, e->lines_addr, table,
			e->lines_total) < 0 ||
	    memcmp(table, seen, e->lines_bytes)) {
		err_clear(); /* gone or reused: the lines stay approximate */
		return 0;
	}
	return code_table_add_lines(p->codes, e->code, LINES_SENT_MAX, table + LINES_SENT_MAX,
				    e->lines_total - LINES_SENT_MAX);
}

static int on_code(struct pipeline *p, const struct code_event *e, size_t size)
{
	const uint8_t *file = (const uint8_t *)(e + 1), *name = file + e->filename_bytes;
	const uint8_t *lines = name + e->name_bytes;
	const struct py_offsets *off = discovery_layout(p->discovery, e->layout);
	struct code_desc d = {
		.identity = e->code,
		.process = e->process,
		.first_line = e->first_line,
		.lines_total = e->lines_total,
		.name = { .bytes = name,
			  .len = e->name_bytes,
			  .kind = e->name_kind,
			  .is_cut = e->is_cut & 2 },
		.file = { .bytes = file,
			  .len = e->filename_bytes,
			  .kind = e->filename_kind,
			  .is_cut = e->is_cut & 1 },
	};
	int r;

	if (!off || sizeof(*e) + e->filename_bytes + e->name_bytes + e->lines_bytes > size) {
		p->stats.malformed++;
		return 0;
	}
	d.format = off->lines;
	r = code_table_add(p->codes, &d);
	if (!r && e->lines_bytes)
		r = code_table_add_lines(p->codes, e->code, 0, lines, e->lines_bytes);
	if (!r && e->lines_total > LINES_SENT_MAX)
		r = read_lines_rest(p, e, lines);
	return r == -ENOMEM ? r : 0; /* what a hostile table lacks shows as approximate lines */
}

static int on_lines(struct pipeline *p, const struct lines_event *e, size_t size)
{
	int r;

	if (sizeof(*e) + (uint64_t)e->bytes > size) {
		p->stats.malformed++;
		return 0;
	}
	r = code_table_add_lines(p->codes, e->code, e->offset, (const uint8_t *)(e + 1), e->bytes);
	return r == -ENOMEM ? r : 0;
}

/* "" where text is NULL. */
static int intern(struct pipeline *p, const char *text, uint32_t *id)
{
	return strtab_intern(p->profile->strings, text ? text : "", text ? strlen(text) : 0, id);
}

static int intern_place(struct pipeline *p, const struct container *place, struct process *out)
{
	int r;

	if (!place)
		return 0;
	if ((r = intern(p, place->id, &out->container)) < 0 ||
	    (r = intern(p, place->pod.uid, &out->pod_uid)) < 0 ||
	    (r = intern(p, place->pod.name, &out->pod_name)) < 0)
		return r;
	return intern(p, place->pod.space, &out->pod_namespace);
}

/* The process in the profile's own terms. */
static int process_id(struct pipeline *p, uint32_t i, uint32_t *id)
{
	struct known_process *known = &p->processes.items[i];
	const struct process_event *e = &known->event;
	struct process process = {
		.pid = e->pid, .ns_pid = e->ns_pid, .ppid = e->ppid, .start_ns = e->start_ns
	};
	char comm[COMM_BYTES + 1] = { 0 };
	struct interpreter_text text;
	int r;

	if (known->id != NO_ID) {
		*id = known->id;
		return 0;
	}
	memcpy(comm, e->comm, COMM_BYTES);
	discovery_describe(p->discovery, e->layout, &text);
	if ((r = intern(p, comm, &process.name)) < 0 ||
	    (r = intern(p, known->command_line, &process.command_line)) < 0 ||
	    (r = intern(p, text.version, &process.python_version)) < 0 ||
	    (r = intern(p, text.implementation, &process.implementation)) < 0 ||
	    (r = intern(p, text.path, &process.executable)) < 0 ||
	    (r = intern_place(p, known->place, &process)) < 0 ||
	    (r = profile_add_process(p->profile, &process, &known->id)) < 0)
		return r;
	*id = known->id;
	return 0;
}

/* A thread that was never introduced (its record was lost) goes without a name until it is. */
static int thread_id(struct pipeline *p, const struct sample_event *e, uint32_t *id)
{
	uint32_t i = thread_find(p, e->process, e->tid), process = process_find(p, e->process);
	struct known_thread *known;
	struct thread thread = { .tid = e->tid };
	char comm[COMM_BYTES + 1] = { 0 };
	int r;

	if (process == IDMAP_NONE) {
		struct process_event stand_in = { .kind = EVENT_PROCESS,
						  .pid = e->pid,
						  .process = e->process,
						  .layout = LAYOUT_NONE };

		if ((r = on_process(p, &stand_in, sizeof(stand_in))) < 0)
			return r;
		process = process_find(p, e->process);
	}
	if (i == IDMAP_NONE) {
		struct thread_event stand_in = {
			.kind = EVENT_THREAD, .pid = e->pid, .process = e->process, .tid = e->tid
		};

		if ((r = on_thread(p, &stand_in)) < 0)
			return r;
		i = thread_find(p, e->process, e->tid);
	}
	known = &p->threads.items[i];
	known->is_seen = true;
	if (known->id == NO_ID) {
		memcpy(comm, known->comm, COMM_BYTES);
		if ((r = process_id(p, process, &thread.process)) < 0 ||
		    (r = intern(p, known->name ? known->name : comm, &thread.name)) < 0 ||
		    (r = profile_add_thread(p->profile, &thread, &known->id)) < 0)
			return r;
	}
	*id = known->id;
	return 0;
}

static int marker_frame(struct pipeline *p, const char *name, uint32_t *id)
{
	struct frame f = { .kind = FRAME_MARKER };
	int r = intern(p, name, &f.name);

	return r < 0 ? r : frametab_intern(p->profile->frames, &f, id);
}

static int unknown_frame(struct pipeline *p, uint32_t *id)
{
	struct frame f = { .kind = FRAME_PYTHON, .flags = FRAME_NAME_UNKNOWN };
	int r = intern(p, CODE_UNKNOWN, &f.name);

	return r < 0 ? r : frametab_intern(p->profile->frames, &f, id);
}

/*
 * The interpreter's own entry to a Python __init__ (3.13+ _Py_InitCleanup): a code object without a
 * file, which has its name in that place (Python/specialize.c).
 */
static bool is_shim(const struct code *c)
{
	return !strcmp(c->name, "__init__") && !strcmp(c->file, "__init__");
}

/* What a stack is made of on the way: flags of its frames. */
struct stack_notes {
	bool is_approximate;
	bool is_unnamed;
};

/*
 * Frame of one record, *id NO_ID if it is not to be shown. -EAGAIN if its code object is not known
 * yet, unless unknown frames are allowed.
 */
static int frame_id(struct pipeline *p, const struct frame_record *record, bool allow_unknown,
		    struct stack_notes *notes, uint32_t *id)
{
	uint64_t hash = hash_combine(record->code, record->instr);
	struct frame_slot *slot = &p->frames[hash & (FRAME_SLOTS - 1)];
	const struct code *c;
	struct frame f = { .kind = FRAME_PYTHON };
	bool is_approximate = false;
	int r;

	if (slot->generation == p->generation && slot->code == record->code &&
	    slot->instr == record->instr && slot->flags == record->flags) {
		notes->is_approximate |= slot->is_approximate;
		*id = slot->frame;
		return 0;
	}
	c = record->flags & FRAME_UNREADABLE ? NULL : code_find(p->codes, record->code);
	if (!c) {
		if (!(record->flags & FRAME_UNREADABLE) && !allow_unknown)
			return -EAGAIN;
		notes->is_unnamed = true;
		return unknown_frame(p, id);
	}
	if (is_shim(c)) {
		*id = NO_ID;
	} else {
		f.first_line = c->first_line;
		f.line = record->flags & FRAME_NOT_STARTED
				 ? c->first_line
				 : code_line(c, record->instr, &is_approximate);
		if (record->flags & FRAME_IN_JIT)
			is_approximate = true;
		if (is_approximate)
			f.flags |= FRAME_LINE_APPROXIMATE;
		if (c->flags & CODE_NAME_MISSING)
			f.flags |= FRAME_NAME_UNKNOWN;
		if ((r = strtab_intern(p->profile->strings, c->name, c->name_len, &f.name)) < 0 ||
		    (r = strtab_intern(p->profile->strings, c->file, c->file_len, &f.file)) < 0 ||
		    (r = frametab_intern(p->profile->frames, &f, id)) < 0)
			return r;
	}
	notes->is_approximate |= is_approximate;
	*slot = (struct frame_slot){ .code = record->code,
				     .instr = record->instr,
				     .flags = record->flags,
				     .frame = *id,
				     .generation = p->generation,
				     .is_approximate = is_approximate };
	return 0;
}

static int push_frame(struct pipeline *p, const struct frame_record *record, bool allow_unknown,
		      struct stack_notes *notes, uint32_t *stack)
{
	uint32_t frame;
	int r = frame_id(p, record, allow_unknown, notes, &frame);

	if (r < 0 || frame == NO_ID)
		return r;
	return stacktab_intern(p->profile->stacks, *stack, frame, stack);
}

/* What stands in for the part of the stack that was not read. */
static const char *root_marker(uint8_t status)
{
	switch (status) {
	case UNWIND_COMPLETE:
		return NULL;
	case UNWIND_TRUNCATED:
	case UNWIND_LATE:
		return "<truncated>";
	case UNWIND_OUTSIDE:
	case UNWIND_UNIDENTIFIED:
		return PROFILE_OUTSIDE_PYTHON;
	default:
		return "<incomplete>";
	}
}

/* The stack without its leaf: nothing but a marker where not even that could be read. */
static int caller_stack(struct pipeline *p, const struct sample_event *e,
			const struct frame_record *frames, bool allow_unknown,
			struct stack_notes *notes, uint32_t *stack)
{
	const char *marker = root_marker(e->status);
	uint32_t callers = e->depth ? e->depth - 1 : 0;
	uint64_t hash = hash_words(frames + 1, callers * sizeof(*frames) / sizeof(uint64_t),
				   p->seed ^ e->status ^ (uint64_t)e->depth << 32);
	struct stack_slot *slot = &p->stacks[hash & (STACK_SLOTS - 1)];
	uint32_t frame;
	int r;

	if (slot->generation == p->generation && slot->hash == hash) {
		*stack = slot->stack;
		return 0;
	}
	*stack = 0;
	if (marker && ((r = marker_frame(p, marker, &frame)) < 0 ||
		       (r = stacktab_intern(p->profile->stacks, 0, frame, stack)) < 0))
		return r;
	for (uint32_t i = callers; i > 0; i--)
		if ((r = push_frame(p, &frames[i], allow_unknown, notes, stack)) < 0)
			return r;
	if (!notes->is_unnamed && !notes->is_approximate)
		*slot = (struct stack_slot){ hash, *stack, p->generation };
	return 0;
}

/* Name of the leaf's instruction, "" where it is not known. */
static int opcode_id(struct pipeline *p, const struct sample_event *e, uint32_t *id)
{
	uint32_t process = process_find(p, e->process);
	const struct py_offsets *off = NULL;

	if (process != IDMAP_NONE)
		off = discovery_layout(p->discovery, p->processes.items[process].event.layout);
	return intern(p, off ? opcode_name(off->minor, e->opcode) : NULL, id);
}

static uint16_t sample_bits(const struct sample_event *e, const struct stack_notes *notes)
{
	/* clang-format off */
	static const uint16_t by_status[] = {
		[UNWIND_COMPLETE] = 0,
		[UNWIND_TRUNCATED] = SAMPLE_BIT_TRUNCATED,
		[UNWIND_FAULT] = SAMPLE_BIT_FAULT,
		[UNWIND_CUT] = SAMPLE_BIT_CUT,
		[UNWIND_INVALID] = SAMPLE_BIT_CUT,
		[UNWIND_LATE] = SAMPLE_BIT_TRUNCATED,
		[UNWIND_OUTSIDE] = 0,
		[UNWIND_UNIDENTIFIED] = 0,
	};
	static const struct { uint16_t from, to; } by_flag[] = {
		{ SAMPLE_HOLDS_GIL, SAMPLE_BIT_HOLDS_GIL },
		{ SAMPLE_WEIGHTED, SAMPLE_BIT_WEIGHTED },
		{ SAMPLE_AMBIGUOUS, SAMPLE_BIT_AMBIGUOUS },
		{ SAMPLE_TASK_WORK, SAMPLE_BIT_TASK_WORK },
		{ SAMPLE_KERNEL, SAMPLE_BIT_KERNEL },
		{ SAMPLE_CODE_FAULT, SAMPLE_BIT_FAULT },
	};
	/* clang-format on */
	uint16_t bits = by_status[e->status];

	for (size_t i = 0; i < sizeof(by_flag) / sizeof(by_flag[0]); i++)
		if (e->flags & by_flag[i].from)
			bits |= by_flag[i].to;
	return notes->is_approximate ? bits | SAMPLE_BIT_APPROX_LINES : bits;
}

/*
 * A tick of a process that was not identified then. If it has a Python since, which had not begun
 * when that was first looked at, after the tick, it was outside Python code; if it has none, of no
 * interest; else nobody knows, and it stays lost. 1: outside; 0: not to be added; -EAGAIN: not
 * known yet.
 */
static int judge_unidentified(struct pipeline *p, const struct sample_event *e, bool is_last_chance)
{
	bool has_python = process_find(p, e->process) != IDMAP_NONE;

	if (!has_python && !is_last_chance)
		return -EAGAIN;
	if (!discovery_saw_nothing(p->discovery, e->process, e->ktime_ns))
		return 0;
	if (has_python)
		p->stats.found_outside += e->weight;
	else
		p->stats.found_other += e->weight;
	return has_python;
}

/* NULL, or the sample's thread, whose name may come yet. */
static struct known_thread *awaited_thread(struct pipeline *p, const struct sample_event *e)
{
	uint32_t i = p->awaited ? thread_find(p, e->process, e->tid) : IDMAP_NONE;

	return i != IDMAP_NONE && p->threads.items[i].is_awaited ? &p->threads.items[i] : NULL;
}

static bool awaits_args(const struct pipeline *p, const struct sample_event *e)
{
	uint32_t i = p->awaited ? process_find(p, e->process) : IDMAP_NONE;

	return i != IDMAP_NONE && p->processes.items[i].awaits_args;
}

/* 0, -EAGAIN: some code object, or the thread's or process's name, is not known yet, -ENOMEM. */
static int add_sample(struct pipeline *p, const struct sample_event *e, bool allow_unknown)
{
	const struct frame_record *frames = (const struct frame_record *)(e + 1);
	struct stack_notes notes = { 0 };
	struct sample s = { .value = e->weight, .cpu = e->cpu };
	uint32_t callers;
	int r;

	if (!allow_unknown && (awaited_thread(p, e) || awaits_args(p, e)))
		return -EAGAIN;
	if (e->status == UNWIND_UNIDENTIFIED && (r = judge_unidentified(p, e, allow_unknown)) <= 0)
		return r;
	if ((r = caller_stack(p, e, frames, allow_unknown, &notes, &callers)) < 0)
		return r;
	s.stack = callers;
	if ((e->depth && (r = push_frame(p, &frames[0], allow_unknown, &notes, &s.stack)) < 0) ||
	    (r = thread_id(p, e, &s.thread)) < 0 ||
	    (e->opcode != OPCODE_NONE && s.stack != callers &&
	     (r = opcode_id(p, e, &s.opcode)) < 0))
		return r;
	s.time_ns = e->ktime_ns > p->start_ns ? e->ktime_ns - p->start_ns : 0;
	s.flags = sample_bits(e, &notes);
	r = profile_add_sample(p->profile, &s);
	if (r < 0)
		return r;
	p->stats.samples++;
	p->stats.weight += e->weight;
	p->stats.unnamed += notes.is_unnamed;
	return 0;
}

static size_t sample_size(const struct sample_event *e)
{
	return sizeof(*e) + e->depth * sizeof(struct frame_record);
}

static int on_sample(struct pipeline *p, const struct sample_event *e, size_t size)
{
	struct known_thread *awaited;
	int r;

	if (e->depth > FRAMES_MAX || (!e->depth && e->status == UNWIND_COMPLETE) ||
	    e->status > UNWIND_UNIDENTIFIED || !e->weight || sample_size(e) > size) {
		p->stats.malformed++;
		return 0;
	}
	awaited = awaited_thread(p, e);
	if (awaited && (r = look_for_awaited(p, awaited)) < 0)
		return r;
	r = add_sample(p, e, false);
	if (r != -EAGAIN)
		return r;
	if (p->waiting.len * sizeof(uint64_t) > WAITING_BYTES_MAX)
		return add_sample(p, e, true);
	p->stats.waiting++;
	return vec_append(&p->waiting, (const uint64_t *)e, sample_size(e) / sizeof(uint64_t));
}

/* The sampler will see it with its identity the next time. */
static void on_page(struct pipeline *p, const struct page_event *e)
{
	const struct py_offsets *off = discovery_layout(p->discovery, e->layout);

	if (off && e->count <= FAULTS_MAX)
		looker_touch(discovery_looker(p->discovery), (pid_t)e->pid, off, e->ranges,
			     e->count);
}

int pipeline_record(void *arg, const void *record, size_t size)
{
	/* Smallest record of each kind. */
	static const size_t heads[] = {
		[EVENT_SAMPLE] = sizeof(struct sample_event),
		[EVENT_CODE] = sizeof(struct code_event),
		[EVENT_LINES] = sizeof(struct lines_event),
		[EVENT_PROCESS] = sizeof(struct process_event),
		[EVENT_THREAD] = sizeof(struct thread_event),
		[EVENT_WHO] = sizeof(struct who_event),
		[EVENT_PAGE] = sizeof(struct page_event),
	};
	struct pipeline *p = arg;
	uint8_t kind = size ? *(const uint8_t *)record : 0;

	if (!kind || kind >= sizeof(heads) / sizeof(heads[0]) || size < heads[kind]) {
		p->stats.malformed++;
		return 0;
	}
	switch (kind) {
	case EVENT_SAMPLE:
		return on_sample(p, record, size);
	case EVENT_CODE:
		return on_code(p, record, size);
	case EVENT_LINES:
		return on_lines(p, record, size);
	case EVENT_PROCESS:
		return on_process(p, record, size);
	case EVENT_THREAD:
		return on_thread(p, record);
	case EVENT_WHO:
		return discovery_answer(p->discovery, record);
	default:
		on_page(p, record);
		return 0;
	}
}

/* Code objects that the table had to drop are asked for again, at most once a second. */
static void ask_again(struct pipeline *p, uint64_t now_ns)
{
	if (!code_table_stats(p->codes)->evicted || now_ns - p->resent_ns < WAIT_NS / 2)
		return;
	p->resent_ns = now_ns;
	session_resend(p->session);
}

int pipeline_settle(struct pipeline *p, uint64_t now_ns, bool is_last)
{
	size_t kept = 0, at = 0, words;
	int r;

	if ((r = look_for_names(p, now_ns)) < 0 || (r = look_for_args(p)) < 0)
		return r;
	while (at < p->waiting.len) {
		const struct sample_event *e = (const void *)&p->waiting.items[at];
		bool is_old = is_last || e->ktime_ns + WAIT_NS < now_ns;

		r = add_sample(p, e, is_old);
		words = sample_size(e) / sizeof(uint64_t);
		if (r == -EAGAIN) {
			memmove(&p->waiting.items[kept], e, words * sizeof(uint64_t));
			kept += words;
		} else if (r < 0) {
			return r;
		} else {
			p->stats.waiting--;
		}
		at += words;
	}
	p->waiting.len = kept;
	if (kept)
		ask_again(p, now_ns);
	return 0;
}

static void mark_awaited(struct pipeline *p)
{
	const struct sample_event *e;

	for (size_t i = 0; i < p->processes.len; i++)
		p->processes.items[i].is_awaited = false;
	for (size_t at = 0; at < p->waiting.len; at += sample_size(e) / sizeof(uint64_t)) {
		uint32_t i;

		e = (const void *)&p->waiting.items[at];
		i = process_find(p, e->process);
		if (i != IDMAP_NONE)
			p->processes.items[i].is_awaited = true;
	}
}

/*
 * Drops the processes that were gone the last time already: samples of one that has ended since may
 * still be in the ring.
 */
static int forget_processes(struct pipeline *p)
{
	size_t kept = 0;
	int r = 0;

	idmap_release(&p->process_ids);
	for (size_t i = 0; i < p->processes.len; i++) {
		struct known_process *known = &p->processes.items[i];

		bool is_alive = discovery_has(p->discovery, known->event.process);
		bool is_kept = is_alive || known->is_awaited || !known->was_gone;

		known->id = NO_ID;
		known->was_gone = !is_alive;
		if (is_kept && !r && !(r = idmap_reserve(&p->process_ids))) {
			idmap_insert(&p->process_ids, known->event.process, kept);
			p->processes.items[kept++] = *known;
		} else {
			set_awaits_args(p, known, false);
			known_process_release(known);
		}
	}
	p->processes.len = kept;
	return r;
}

static int forget_threads(struct pipeline *p)
{
	size_t kept = 0;
	int r = 0;

	idmap_release(&p->thread_ids);
	for (size_t i = 0; i < p->threads.len && !r; i++) {
		struct known_thread *known = &p->threads.items[i];

		known->id = NO_ID;
		if (process_find(p, known->process) == IDMAP_NONE) {
			p->awaited -= known->is_awaited;
			free(known->name);
			known->name = NULL;
			continue;
		}
		r = idmap_reserve(&p->thread_ids);
		if (r < 0)
			break;
		idmap_insert(&p->thread_ids, thread_hash(known->process, known->tid), kept);
		p->threads.items[kept++] = *known;
	}
	p->threads.len = kept;
	return r;
}

static bool is_known(void *arg, uint64_t process)
{
	return process_find(arg, process) != IDMAP_NONE;
}

int pipeline_forget_ids(struct pipeline *p)
{
	int r;

	p->generation++;
	mark_awaited(p);
	if ((r = discovery_sweep(p->discovery)) < 0 || (r = forget_processes(p)) < 0 ||
	    (r = forget_threads(p)) < 0)
		return r;
	code_table_retain(p->codes, is_known, p);
	return 0;
}

void pipeline_set_start(struct pipeline *p, uint64_t start_ns)
{
	p->start_ns = start_ns;
}

const struct pipeline_stats *pipeline_stats(const struct pipeline *p)
{
	return &p->stats;
}

void pipeline_usage(const struct pipeline *p, struct usage out[PIPELINE_USAGES])
{
	uint64_t processes = p->processes.cap * sizeof(p->processes.items[0]) +
			     p->threads.cap * sizeof(p->threads.items[0]) +
			     idmap_bytes(&p->process_ids) + idmap_bytes(&p->thread_ids);

	for (size_t i = 0; i < p->processes.len; i++)
		processes += strlen(p->processes.items[i].command_line) + 1;
	for (size_t i = 0; i < p->threads.len; i++)
		if (p->threads.items[i].name)
			processes += strlen(p->threads.items[i].name) + 1;
	out[0] = (struct usage){ "code_objects", code_table_stats(p->codes)->bytes,
				 CODE_TABLE_BYTES_DEFAULT };
	out[1] = (struct usage){ "processes", processes, 0 };
	out[2] = (struct usage){ "waiting_samples", p->waiting.len * sizeof(uint64_t),
				 WAITING_BYTES_MAX };
}
