/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#ifndef BPF_PYTHON_OPCODE_H
#define BPF_PYTHON_OPCODE_H

/* The instruction that the leaf frame is at. */

#include "bpf/python.h"

static __always_inline __u16 py_read_opcode(struct door door, struct py_scratch *s, __u64 addr)
{
	__u8 opcode;

	return py_read(door, s, &opcode, sizeof(opcode), addr) ? OPCODE_NONE : opcode;
}

#define EXTENDED_ARG 144 /* 3.6 to 3.10, opcode.h */

/* Up to 3.10. f_lasti stays at the first EXTENDED_ARG of an instruction that has up to three. */
static __always_inline __u16 py_opcode_of_object(struct door door, struct py_scratch *s,
						 const struct py_offsets *off)
{
	__u64 addr = s->walk.leaf_bytecode + off->bytes_data + s->records[0].instr;
	__u16 opcode = OPCODE_NONE;

	for (__u32 i = 0; i < 4; i++) {
		opcode = py_read_opcode(door, s, addr + 2 * i);
		if (opcode != EXTENDED_ARG)
			break;
	}
	return opcode;
}

/*
 * 3.11 and 3.12: inline cache entries of the instructions that go on with another Python frame
 * (DISPATCH_INLINED in ceval.c and bytecodes.c; numbers: opcode.h).
 */
#define CACHE 0
#define CALL_CACHES_MAX 9
static const __u8 call_caches[2][256] = {
	{
		[17] = 4,  /* BINARY_SUBSCR_ADAPTIVE */
		[19] = 4,  /* BINARY_SUBSCR_GETITEM */
		[22] = 4,  /* CALL_ADAPTIVE */
		[23] = 4,  /* CALL_PY_EXACT_ARGS */
		[24] = 4,  /* CALL_PY_WITH_DEFAULTS */
		[171] = 4, /* CALL */
	},
	{
		[20] = 1,  /* BINARY_SUBSCR_GETITEM */
		[23] = 3,  /* CALL_PY_EXACT_ARGS */
		[24] = 3,  /* CALL_PY_WITH_DEFAULTS */
		[28] = 3,  /* CALL_BOUND_METHOD_EXACT_ARGS */
		[65] = 1,  /* FOR_ITER_GEN */
		[72] = 9,  /* LOAD_ATTR_GETATTRIBUTE_OVERRIDDEN */
		[77] = 9,  /* LOAD_ATTR_PROPERTY */
		[123] = 1, /* SEND */
		[168] = 1, /* SEND_GEN */
		[171] = 3, /* CALL */
		[241] = 3, /* INSTRUMENTED_CALL */
	},
};

/*
 * 3.11 and 3.12. prev_instr is at the last cache entry of an instruction that calls, from before
 * the new frame is linked until the caller's next instruction begins. stacktop, which follows it,
 * is not negative until the frame that was called is cleared away, then -1 as wherever a frame
 * runs.
 */
static __always_inline __u16 py_opcode_of_cframe(struct door door, struct py_scratch *s,
						 const struct py_offsets *off)
{
	static const __u8 counts[] = { 1, 3, 4, CALL_CACHES_MAX };
	const struct py_walk *w = &s->walk;
	__u16 opcode = py_read_opcode(door, s, w->leaf_instr);
	__u8 before[2 * CALL_CACHES_MAX], caller;

	if ((w->leaf_stacktop < 0 && opcode != CACHE) ||
	    read_user(door, before, sizeof(before), w->leaf_instr - sizeof(before)))
		return opcode;
	for (__u32 i = 0; i < sizeof(counts); i++) {
		caller = before[sizeof(before) - 2 * counts[i]];
		if (call_caches[off->minor == 12][caller] == counts[i])
			return caller;
	}
	return opcode;
}

/*
 * The instruction that the leaf frame is at: from 3.11 on what the interpreter has made of it, from
 * the thread's own copy where it has one. OPCODE_NONE if it has none yet, runs machine code, or
 * cannot be read.
 */
static __always_inline __u16 py_opcode(struct door door, struct py_scratch *s,
				       const struct py_offsets *off)
{
	if (!s->walk.depth || s->records[0].flags & ~(FRAME_ENTRY | FRAME_COLLECTS))
		return OPCODE_NONE;
	if (off->frame_kind == FRAME_OBJECT)
		return py_opcode_of_object(door, s, off);
	if (off->frame_kind == FRAME_CFRAME)
		return py_opcode_of_cframe(door, s, off);
	return py_read_opcode(door, s, s->walk.leaf_instr);
}

#endif
