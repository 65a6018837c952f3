/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#include "unwinder.h"

#include <string.h>

#include "memory.h"

struct cache_slot code_cache[CODE_SLOTS];
struct cache_slot thread_cache[THREAD_SLOTS];
struct trust trusts[TRUST_SLOTS];
__u64 sent[SENT_SLOTS];
__u64 epoch;

static struct py_scratch scratch;
static __u32 salt;

#define ROOM(member)                                              \
	{                                                         \
#member, &scratch.member, sizeof(scratch.member), \
	}

static const struct memory_room rooms[] = {
	ROOM(tstate), ROOM(code), ROOM(text), ROOM(frames), ROOM(message),
};

void unwinder_reset(void)
{
	memset(code_cache, 0, sizeof(code_cache));
	memset(thread_cache, 0, sizeof(thread_cache));
	memset(trusts, 0, sizeof(trusts));
	memset(sent, 0, sizeof(sent));
	/* Nothing may rely on what an earlier sample left. */
	memset(&scratch, 0xa5, sizeof(scratch));
	salt = 0;
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
		.has_fault = scratch.walk.has_fault,
		.frames = scratch.records,
	};
}

struct unwind_result unwind(const struct py_offsets *off, const struct py_thread *thread,
			    bool may_fault)
{
	struct py_loop l = { .s = &scratch, .off = off, .thread = thread };
	struct unwind_result result = { 0 };
	bool has_walked = false;

	scratch.walk.process = thread->process;
	scratch.walk.salt = salt;
	scratch.walk.flags = 0;
	scratch.walk.has_fault = 0;
	result.error = py_find_tstate(&l, may_fault, &has_walked);
	if (!result.error)
		result.error = py_first_frame(&scratch, off, may_fault);
	if (result.error) {
		result.has_walked = has_walked;
		return result;
	}
	scratch.walk.generation = py_generation(&scratch, off, may_fault);
	py_walk_frames(&l, may_fault);
	result = result_of_walk();
	result.has_walked = has_walked;
	return result;
}

struct unwind_result unwind_from(const struct py_offsets *off, __u64 frame, __u64 process)
{
	struct py_loop l = { .s = &scratch, .off = off };

	scratch.walk.process = process;
	scratch.walk.salt = salt;
	scratch.walk.flags = 0;
	scratch.walk.generation = 0;
	scratch.walk.entry_previous = 0;
	scratch.walk.frame = frame;
	py_walk_frames(&l, false);
	return result_of_walk();
}

__u16 unwinder_opcode(const struct py_offsets *off, bool may_fault)
{
	return py_opcode(&scratch, off, may_fault);
}

__u64 unwinder_identity(const struct py_offsets *off, __u64 addr, __u64 process)
{
	struct py_walk kept = scratch.walk;
	__u64 id;

	scratch.walk = (struct py_walk){ .process = process, .is_strict = 1 };
	id = py_code_identity(&scratch, off, addr, false);
	scratch.walk = kept;
	return id;
}

int unwinder_describe(const struct py_offsets *off, __u64 id, __u64 addr, bool may_fault)
{
	struct py_unsent u = { .id = id, .addr = addr };

	return py_describe(&scratch, off, &u, may_fault);
}

int unwinder_describe_lines(__u64 id, __u64 lines_addr, __u32 total, __u32 chunk, bool may_fault)
{
	return py_describe_lines(&scratch, id, lines_addr, total, chunk, may_fault);
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
