/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#include "collect/stacks.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/err.h"
#include "base/hash.h"
#include "base/vec.h"
#include "collect/looker.h"
#include "collect/sample.h"
#include "collect/session.h"
#include "symbolize/code.h"

#define STACK_SLOTS 16384           /* power of two */
#define FRAME_SLOTS 32768           /* power of two */
#define REST_BYTES_MAX (16u << 20)  /* of line tables that are asked for at once */
#define REST_SEEN_BYTES LINES_CHUNK /* of a table, compared with what the kernel saw */
#define REST_AGAIN_NS 50000000ULL   /* after which a look that was refused is asked for again */
#define NO_FRAME UINT32_MAX

/* Lossy caches, valid until stacks_forget_ids(). */
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

/* A code object the rest of whose line table is asked for, or cannot be just now. */
struct asked {
	uint64_t code;
	uint64_t again_ns; /* CLOCK_MONOTONIC: it can be from then on; 0: it is asked for */
};

struct stacks {
	struct session *session;
	struct discovery *discovery;
	struct profile *profile;
	struct code_table *codes;
	uint64_t seed;
	bool has_native;
	uint32_t generation; /* of the caches */
	VEC(struct asked) asked;
	size_t rest_bytes; /* of the tables whose answers are under way */
	struct stack_slot stacks[STACK_SLOTS];
	struct frame_slot frames[FRAME_SLOTS];
};

static void on_forgotten(void *arg, uint64_t identity)
{
	session_resend_code(arg, identity);
}

int stacks_new(struct session *session, struct discovery *discovery, struct profile *profile,
	       uint64_t seed, struct stacks **out)
{
	_cleanup_(stacks_freep) struct stacks *st = calloc(1, sizeof(*st));
	int r;

	if (!st)
		return -ENOMEM;
	st->session = session;
	st->discovery = discovery;
	st->profile = profile;
	st->seed = seed;
	st->generation = 1;
	r = code_table_new(CODE_TABLE_BYTES_DEFAULT, &st->codes);
	if (r < 0)
		return r;
	code_table_tell(st->codes, on_forgotten, session);
	*out = take_ptr(st);
	return 0;
}

void stacks_free(struct stacks *st)
{
	if (!st)
		return;
	code_table_free(st->codes);
	vec_release(&st->asked);
	free(st);
}

/* A line table of which the kernel has not sent all, from the target. */
struct lines_rest {
	struct question question;
	struct stacks *stacks;
	uint64_t code; /* identity */
	uint64_t addr; /* of the whole table */
	uint32_t bytes;
	uint8_t *table; /* owned: what is there */
	uint32_t seen_bytes;
	uint8_t seen[REST_SEEN_BYTES]; /* by the kernel: its start */
};

/*
 * Taken only if what the target has there begins with what the kernel saw, before the table is read
 * and after: memory that is freed meanwhile is used again from its start on.
 */
static int lines_rest_look(struct question *q, struct looker *l)
{
	struct lines_rest *rest = (struct lines_rest *)q;
	int r;

	rest->table = malloc(rest->bytes);
	if (!rest->table)
		return -ENOMEM;
	r = looker_read(l, (pid_t)q->target.pid, rest->addr, rest->table, rest->bytes,
			rest->seen_bytes);
	err_clear(); /* gone, or reused as below: the lines stay approximate */
	if (r < 0)
		return r;
	return memcmp(rest->table, rest->seen, rest->seen_bytes) ? -ESTALE : 0;
}

static size_t find_asked(const struct stacks *st, uint64_t code)
{
	size_t i = 0;

	while (i < st->asked.len && st->asked.items[i].code != code)
		i++;
	return i;
}

/* Those that may be asked for again. */
static void drop_due(struct stacks *st, uint64_t now_ns)
{
	size_t kept = 0;

	for (size_t i = 0; i < st->asked.len; i++)
		if (!st->asked.items[i].again_ns || st->asked.items[i].again_ns > now_ns)
			st->asked.items[kept++] = st->asked.items[i];
	st->asked.len = kept;
}

static int lines_rest_take(struct question *q)
{
	const struct lines_rest *rest = (const struct lines_rest *)q;
	struct stacks *st = rest->stacks;
	size_t i = find_asked(st, rest->code);
	int r = q->r;

	st->rest_bytes -= rest->bytes;
	if (look_is_late(r)) {
		st->asked.items[i].again_ns = monotonic_ns() + REST_AGAIN_NS;
		return 0;
	}
	st->asked.items[i] = st->asked.items[--st->asked.len];
	if (r >= 0) {
		r = code_table_add_lines(st->codes, rest->code, 0, rest->table, rest->bytes);
		return r == -ENOMEM ? r : 0;
	}
	code_table_lose_lines(st->codes, rest->code);
	if (r == -ESRCH) /* another process of its family may still have them */
		session_resend_code(st->session, rest->code);
	return r == -ENOMEM ? r : 0;
}

static void lines_rest_free(struct question *q)
{
	free(((struct lines_rest *)q)->table);
	free(q);
}

/* Puts the question for a table that is in asked[i]. 0, or -ENOMEM. */
static int ask_lines(struct stacks *st, size_t i, const struct code_lines *lines)
{
	struct asked *asked = &st->asked.items[i];
	uint32_t seen = lines->seen_bytes < REST_SEEN_BYTES ? lines->seen_bytes : REST_SEEN_BYTES;
	struct lines_rest *rest;
	int r;

	asked->again_ns = monotonic_ns() + REST_AGAIN_NS;
	if (st->rest_bytes && st->rest_bytes + lines->bytes > REST_BYTES_MAX)
		return 0; /* later */
	rest = malloc(sizeof(*rest));
	if (!rest)
		return -ENOMEM;
	*rest = (struct lines_rest){ .question = { .target = { .process = lines->process,
							       .pid = lines->pid },
						   .look = lines_rest_look,
						   .take = lines_rest_take,
						   .free = lines_rest_free },
				     .stacks = st,
				     .code = asked->code,
				     .addr = lines->addr,
				     .bytes = lines->bytes,
				     .seen_bytes = seen };
	if (seen)
		memcpy(rest->seen, lines->seen, seen);
	r = discovery_ask(st->discovery, &rest->question);
	if (r < 0)
		return r == -EAGAIN ? 0 : r; /* later */
	asked->again_ns = 0;
	st->rest_bytes += lines->bytes;
	return 0;
}

/*
 * A sample needs a line of a table that has come in part. The kernel sends the pieces of a table of
 * up to 64 KiB with samples to come, if there are any and they have room: the target is asked, too.
 * 1: the sample is to wait; 0: in vain; -ENOMEM.
 */
static int await_lines(struct stacks *st, const struct code *c)
{
	struct code_lines lines;
	size_t i;
	int r;

	if (c->flags & CODE_LINES_LOST || !code_lines_rest(c, &lines))
		return 0;
	drop_due(st, monotonic_ns());
	i = find_asked(st, c->identity);
	if (i < st->asked.len)
		return 1;
	r = vec_push(&st->asked, ((struct asked){ .code = c->identity }));
	if (!r)
		r = ask_lines(st, i, &lines);
	return r < 0 ? r : 1;
}

int stacks_add_code(struct stacks *st, const struct code_event *e, size_t size)
{
	const uint8_t *file = (const uint8_t *)(e + 1), *name = file + e->filename_bytes;
	const uint8_t *lines = name + e->name_bytes;
	const struct py_offsets *off = discovery_layout(st->discovery, e->layout);
	struct code_desc d = {
		.identity = e->code,
		.process = e->process,
		.pid = e->pid,
		.lines_addr = e->lines_addr,
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

	if (!off || sizeof(*e) + e->filename_bytes + e->name_bytes + e->lines_bytes > size)
		return -EBADMSG;
	d.format = off->lines;
	r = code_table_add(st->codes, &d);
	if (!r && e->lines_bytes)
		r = code_table_add_lines(st->codes, e->code, 0, lines, e->lines_bytes);
	return r == -ENOMEM ? r : 0;
}

const char *stacks_file(struct stacks *st, uint64_t code)
{
	const struct code *c = code_find(st->codes, code);

	return c && !(c->flags & (CODE_FILE_MISSING | CODE_FILE_CUT)) &&
			       strlen(c->file) == c->file_len
		       ? c->file
		       : NULL;
}

int stacks_add_lines(struct stacks *st, const struct lines_event *e, size_t size)
{
	int r;

	if (sizeof(*e) + (uint64_t)e->bytes > size)
		return -EBADMSG;
	r = code_table_add_lines(st->codes, e->code, e->offset, (const uint8_t *)(e + 1), e->bytes);
	return r == -ENOMEM ? r : 0;
}

/* One that has nothing but a name. */
static int add_frame(struct stacks *st, struct frame f, const char *name, uint32_t *id)
{
	int r = strtab_intern(st->profile->strings, name, strlen(name), &f.name);

	return r < 0 ? r : frametab_intern(st->profile->frames, &f, id);
}

static int unknown_frame(struct stacks *st, uint32_t *id)
{
	const struct frame f = { .kind = FRAME_PYTHON, .flags = FRAME_NAME_UNKNOWN };

	return add_frame(st, f, CODE_UNKNOWN, id);
}

static int marker_frame(struct stacks *st, const char *name, uint32_t *id)
{
	const struct frame f = { .kind = FRAME_MARKER };

	return add_frame(st, f, name, id);
}

static int interpreter_frame(struct stacks *st, uint64_t interpreter, uint32_t *id)
{
	char name[CODE_INTERPRETER_BYTES];

	snprintf(name, sizeof(name), CODE_INTERPRETER, interpreter);
	return marker_frame(st, name, id);
}

static int line_of(const struct code *c, const struct frame_record *record, enum line_state *state)
{
	*state = LINE_EXACT;
	if (record->flags & FRAME_COMPILED)
		return (int)record->instr;
	if (record->flags & FRAME_NOT_STARTED)
		return c->first_line;
	return code_line(c, record->instr, state);
}

/*
 * Frame of one record, *id NO_FRAME if it is not to be shown. Unless unknown frames are allowed
 * -EAGAIN if its code object is not known yet, and out->awaits_lines if its line is not. A line
 * that may still come is not kept in the cache.
 */
static int frame_id(struct stacks *st, const struct frame_record *record, bool allow_unknown,
		    struct sample_stack *out, uint32_t *id)
{
	uint64_t hash = hash_combine(record->code, (uint64_t)record->flags << 32 | record->instr);
	struct frame_slot *slot = &st->frames[hash & (FRAME_SLOTS - 1)];
	const struct code *c;
	struct frame f = { .kind = FRAME_PYTHON };
	enum line_state line = LINE_EXACT; /* of a frame that is not shown */
	bool is_approximate;
	int r;

	if (slot->generation == st->generation && slot->code == record->code &&
	    slot->instr == record->instr && slot->flags == record->flags) {
		out->is_approximate |= slot->is_approximate;
		*id = slot->frame;
		return 0;
	}
	if (record->flags & FRAME_INTERPRETER)
		return interpreter_frame(st, record->code, id);
	c = record->flags & FRAME_UNREADABLE ? NULL : code_find(st->codes, record->code);
	if (!c) {
		if (!(record->flags & FRAME_UNREADABLE) && !allow_unknown)
			return -EAGAIN;
		out->is_unnamed = true;
		return unknown_frame(st, id);
	}
	if (code_is_shim(c->name, c->file)) {
		*id = NO_FRAME;
	} else {
		f.first_line = c->first_line;
		f.line = line_of(c, record, &line);
		if (line == LINE_TO_COME && !allow_unknown && (r = await_lines(st, c))) {
			out->awaits_lines = true;
			return r < 0 ? r : 0;
		}
		if (line != LINE_EXACT || record->flags & FRAME_IN_JIT)
			f.flags |= FRAME_LINE_APPROXIMATE;
		if (c->flags & CODE_NAME_MISSING)
			f.flags |= FRAME_NAME_UNKNOWN;
		if ((r = strtab_intern(st->profile->strings, c->name, c->name_len, &f.name)) < 0 ||
		    (r = strtab_intern(st->profile->strings, c->file, c->file_len, &f.file)) < 0 ||
		    (r = frametab_intern(st->profile->frames, &f, id)) < 0)
			return r;
	}
	is_approximate = f.flags & FRAME_LINE_APPROXIMATE;
	out->is_approximate |= is_approximate;
	if (line == LINE_TO_COME)
		return 0;
	*slot = (struct frame_slot){ .code = record->code,
				     .instr = record->instr,
				     .flags = record->flags,
				     .frame = *id,
				     .generation = st->generation,
				     .is_approximate = is_approximate };
	return 0;
}

void stacks_show_native(struct stacks *st)
{
	st->has_native = true;
}

int stacks_push_marker(struct stacks *st, const char *name, uint32_t *stack)
{
	uint32_t frame;
	int r = marker_frame(st, name, &frame);

	return r < 0 ? r : stacktab_intern(st->profile->stacks, *stack, frame, stack);
}

/*
 * On top of what there is of the stack, with what is below it, where C called it, and above it,
 * where the collector runs.
 */
static int push_frame(struct stacks *st, const struct frame_record *record, bool allow_unknown,
		      struct sample_stack *out)
{
	uint32_t frame;
	int r = frame_id(st, record, allow_unknown, out, &frame);

	if (r < 0 || out->awaits_lines || frame == NO_FRAME)
		return r;
	if (st->has_native && record->flags & FRAME_ENTRY && out->id)
		r = stacks_push_marker(st, PROFILE_NATIVE, &out->id);
	if (!r)
		r = stacktab_intern(st->profile->stacks, out->id, frame, &out->id);
	if (!r && record->flags & FRAME_COLLECTS)
		r = stacks_push_marker(st, PROFILE_GC, &out->id);
	return r;
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
	case UNWIND_NOT_SAMPLED:
		return PROFILE_NOT_SAMPLED;
	default:
		return "<incomplete>";
	}
}

/* The stack without its leaf: nothing but a marker where not even that could be read. */
static int push_callers(struct stacks *st, const struct stack_part *part, bool allow_unknown,
			struct sample_stack *out)
{
	const struct frame_record *frames = part->frames;
	const char *marker = root_marker(part->status);
	uint32_t callers = part->depth ? part->depth - 1 : 0;
	uint64_t hash = hash_words(
		frames + 1, callers * sizeof(*frames) / sizeof(uint64_t),
		hash_combine(st->seed ^ part->below, part->status ^ (uint64_t)part->depth << 32));
	struct stack_slot *slot = &st->stacks[hash & (STACK_SLOTS - 1)];
	uint32_t frame;
	int r;

	if (slot->generation == st->generation && slot->hash == hash) {
		out->id = slot->stack;
		return 0;
	}
	out->id = part->below;
	if (marker && ((r = marker_frame(st, marker, &frame)) < 0 ||
		       (r = stacktab_intern(st->profile->stacks, out->id, frame, &out->id)) < 0))
		return r;
	for (uint32_t i = callers; i > 0; i--)
		if ((r = push_frame(st, &frames[i], allow_unknown, out)) < 0)
			return r;
	if (!out->is_unnamed && !out->is_approximate && !out->awaits_lines)
		*slot = (struct stack_slot){ hash, out->id, st->generation };
	return 0;
}

int stacks_intern(struct stacks *st, const struct stack_part *part, bool allow_unknown,
		  struct sample_stack *out)
{
	struct sample_stack stack = { 0 };
	uint32_t callers;
	int r;

	if ((r = push_callers(st, part, allow_unknown, &stack)) < 0)
		return r;
	callers = stack.id;
	if (part->depth && (r = push_frame(st, part->frames, allow_unknown, &stack)) < 0)
		return r;
	if (stack.awaits_lines)
		return -EAGAIN;
	stack.has_leaf = stack.id != callers;
	*out = stack;
	return 0;
}

const char *stacks_name(struct stacks *st, const struct frame_record *record)
{
	const struct code *c =
		record->flags & FRAME_UNREADABLE ? NULL : code_find(st->codes, record->code);

	return c ? c->name : NULL;
}

bool stacks_is_asking(const struct stacks *st)
{
	return st->rest_bytes;
}

bool stacks_awaits_lines(struct stacks *st)
{
	drop_due(st, monotonic_ns());
	return st->asked.len;
}

void stacks_forget_ids(struct stacks *st)
{
	st->generation++;
}

void stacks_retain(struct stacks *st, bool (*is_wanted)(void *arg, uint64_t process), void *arg)
{
	code_table_retain(st->codes, is_wanted, arg);
}

size_t stacks_bytes(const struct stacks *st)
{
	return code_table_stats(st->codes)->bytes;
}
