/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#include "unwinder.h"

#include <string.h>

#include "memory.h"

struct cache_slot code_cache[CODE_SLOTS];
struct cache_slot thread_cache[THREAD_SLOTS];
struct kept_search searches[SEARCH_SLOTS];
struct cache_slot context_cache[CONTEXT_SLOTS];
struct trust trusts[TRUST_SLOTS];
__u64 sent[SENT_SLOTS];
__u64 epoch;

#define ROUTE "route"
#define USER "user"
#define OTEL "current_context"
#define LONGEST "a.name.that.is.as.long.as.names.of.variables.may.be.to.be.found."
_Static_assert(sizeof(LONGEST) == LABEL_NAME_BYTES + 1, "the longest name");

const char *const unwinder_variables[UNWINDER_LABELS] = { ROUTE, USER, LONGEST };

/* As 8 bytes each, little-endian. */
#define WORD(text, at)                                                               \
	((__u64)(__u8)(text)[at] | (__u64)(__u8)(text)[(at) + 1] << 8 |              \
	 (__u64)(__u8)(text)[(at) + 2] << 16 | (__u64)(__u8)(text)[(at) + 3] << 24 | \
	 (__u64)(__u8)(text)[(at) + 4] << 32 | (__u64)(__u8)(text)[(at) + 5] << 40 | \
	 (__u64)(__u8)(text)[(at) + 6] << 48 | (__u64)(__u8)(text)[(at) + 7] << 56)

const volatile struct label_config label_configs[CONTEXT_LABELS_MAX] = {
	{ .name = { WORD(ROUTE "\0\0", 0) }, .name_bytes = sizeof(ROUTE) - 1 },
	{ .name = { WORD(USER "\0\0\0", 0) }, .name_bytes = sizeof(USER) - 1 },
	{ .name = { WORD(LONGEST, 0), WORD(LONGEST, 8), WORD(LONGEST, 16), WORD(LONGEST, 24),
		    WORD(LONGEST, 32), WORD(LONGEST, 40), WORD(LONGEST, 48), WORD(LONGEST, 56) },
	  .name_bytes = LABEL_NAME_BYTES },
	{ .name = { WORD(OTEL, 0), WORD(OTEL, 8) },
	  .name_bytes = sizeof(OTEL) - 1,
	  .part = LABEL_TRACE_ID },
	{ .name = { WORD(OTEL, 0), WORD(OTEL, 8) },
	  .name_bytes = sizeof(OTEL) - 1,
	  .part = LABEL_SPAN_ID },
};

static struct py_scratch scratch;
static struct py_met known;
static __u32 salt;
static __u64 clock_step_ns, now_ns;

#define ROOM(member)                                              \
	{                                                         \
#member, &scratch.member, sizeof(scratch.member), \
	}

static const struct memory_room rooms[] = {
	ROOM(tstate),  ROOM(code),    ROOM(text),   ROOM(frames),
	ROOM(message), ROOM(context), ROOM(labels), ROOM(frame.line),
};

void unwinder_reset(void)
{
	memset(code_cache, 0, sizeof(code_cache));
	memset(thread_cache, 0, sizeof(thread_cache));
	memset(searches, 0, sizeof(searches));
	memset(context_cache, 0, sizeof(context_cache));
	memset(trusts, 0, sizeof(trusts));
	memset(sent, 0, sizeof(sent));
	/* Nothing may rely on what an earlier sample left. */
	memset(&scratch, 0xa5, sizeof(scratch));
	scratch.async.row.process = 0;
	scratch.context.slot.process = 0; /* as bpf/sampler.h sets it */
	salt = 0;
	clock_step_ns = 0;
	known = (struct py_met){ 0 };
	memory_guard(rooms, sizeof(rooms) / sizeof(rooms[0]), &scratch, sizeof(scratch));
}

struct py_scratch *unwinder_scratch(void)
{
	return &scratch;
}

static struct unwind_result result_of_walk(void)
{
	return (struct unwind_result){
		.status = scratch.walk.status,
		.depth = scratch.walk.depth,
		.flags = scratch.walk.flags,
		.has_fault = scratch.walk.faults > 0,
		.frames = scratch.records,
	};
}

void unwinder_set_asyncio(const struct asyncio_row *row)
{
	scratch.async.row = *row;
}

void unwinder_set_met(const struct py_met *met)
{
	known = *met;
}

void met_read(struct door door, struct py_met *met)
{
	(void)door;
	*met = known;
	met->is_met = 1;
}

void unwinder_set_time(__u64 ktime_ns)
{
	scratch.sample.ktime_ns = ktime_ns;
}

__u64 clock_ns(void)
{
	now_ns += clock_step_ns;
	return now_ns;
}

static const struct door door; /* to the memory in use */

void unwinder_set_clock(__u64 step_ns)
{
	clock_step_ns = step_ns;
}

static void begin_walk(void)
{
	scratch.walk.flags = 0;
	scratch.walk.gc_frame = 0;
	scratch.walk.is_moment = 0;
	scratch.walk.pass = 0;
	scratch.walk.faults = 0;
	scratch.walk.steps = 0;
	scratch.walk.deadline_ns = clock_ns() + TIME_MAX_NS;
}

/* As label_sample() in bpf/sampler.h. */
static void read_labels(struct py_loop *l)
{
	py_read_thread_context(l);
	py_read_labels(l);
	if (scratch.context.spanned) {
		py_find_span(l);
		py_read_ids(l);
	}
	if (scratch.async.row.process)
		py_read_task_name(l);
	scratch.labels.labels = labels_identity(&scratch);
}

struct unwind_result unwind(const struct py_offsets *off, const struct py_thread *thread)
{
	struct py_loop l = { .s = &scratch, .off = off, .thread = thread };
	struct unwind_result result = { 0 };

	scratch.walk.process = thread->process;
	scratch.walk.family = thread->family;
	scratch.walk.salt = salt;
	begin_walk();
	result.error = py_find_tstate(&l);
	if (!result.error) {
		py_note_exception(&l);
		py_note_collection(&l);
		result.error = py_first_frame(door, &scratch, off);
	}
	result.has_walked = scratch.search.has_walked;
	if (result.error)
		return result;
	py_enter_interpreter(&l);
	scratch.async.task = 0;
	scratch.async.count = 0;
	if (scratch.async.row.process)
		py_find_tasks(&l);
	py_walk_frames(&l);
	read_labels(&l);
	result = result_of_walk();
	result.has_walked = scratch.search.has_walked;
	return result;
}

struct unwind_result unwind_paged(const struct py_offsets *off, const struct py_thread *thread)
{
	struct unwind_result r;
	bool has_more = true;

	for (unsigned pass = 0; pass < UNWIND_PASSES && has_more; pass++) {
		r = unwind(off, thread);
		has_more = false;
		for (__u32 i = 0; i < scratch.walk.faults; i++)
			has_more |= memory_read_in(scratch.faults[i].addr, scratch.faults[i].bytes);
	}
	return r;
}

struct unwind_result unwind_from(const struct py_offsets *off, __u64 frame, __u64 process)
{
	struct py_loop l = { .s = &scratch, .off = off };

	scratch.walk.process = process;
	scratch.walk.family = 0;
	scratch.walk.salt = salt;
	begin_walk();
	scratch.walk.salt_of_interpreter = 0;
	scratch.walk.has_several = 0;
	scratch.search.is_cut = 0;
	scratch.walk.generation = 0;
	scratch.async.count = 0;
	scratch.walk.entry_previous = 0;
	scratch.walk.frame = frame;
	py_walk_frames(&l);
	return result_of_walk();
}

__u16 unwinder_opcode(const struct py_offsets *off)
{
	return py_opcode(door, &scratch, off);
}

__u64 unwinder_identity(const struct py_offsets *off, __u64 addr, __u64 process, __u64 family)
{
	struct py_walk kept = scratch.walk;
	__u64 id;

	scratch.walk = (struct py_walk){ .process = process, .family = family, .is_strict = 1 };
	id = py_code_identity(door, &scratch, off, addr);
	scratch.walk = kept;
	return id;
}

int unwinder_describe(const struct py_offsets *off, __u64 id, __u64 addr)
{
	struct py_unsent u = { .id = id, .addr = addr };

	return py_describe(door, &scratch, off, &u);
}

int unwinder_describe_lines(__u64 id, __u64 lines_addr, __u32 total, __u32 chunk)
{
	return py_describe_lines(door, &scratch, id, lines_addr, total, chunk);
}

void unwinder_mark_sent(__u64 id)
{
	mark_sent(id);
}

__u32 unwinder_trust(__u64 process)
{
	return trust_of(process)->clean;
}

void unwinder_set_trust(__u64 process, __u32 clean)
{
	trust_of(process)->clean = clean;
}

void unwinder_set_salt(__u32 value)
{
	salt = value;
}
