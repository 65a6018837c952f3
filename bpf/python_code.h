/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#ifndef BPF_PYTHON_CODE_H
#define BPF_PYTHON_CODE_H

/* Code objects: which one it is, and what user space has to know of it. */

#include "bpf/cache.h"
#include "bpf/python.h"

/* Bounded by user space too (offsets_check()); repeated here for the verifier. */
static __always_inline int py_read_code(struct door door, struct py_scratch *s,
					const struct py_offsets *off, __u64 addr)
{
	__u32 size = off->code_size;

	if (size > CODE_BYTES)
		return PY_FAULT;
	return read_user(door, s->code, size, addr) ? py_note_fault(s, addr, size, true) : 0;
}

/* No byte more than the object has: the next page may not be there. */
static __always_inline int py_read_head(struct door door, struct py_scratch *s, __u32 size,
					__u64 addr)
{
	if (size > STRING_HEAD_BYTES)
		return PY_FAULT;
	return py_read(door, s, s->text, size, addr);
}

/*
 * Sets what tells code objects apart that are met at one address: the id of the walk's
 * interpreter, as a new interpreter may come to the place of one that has ended, and with it its
 * code objects; and, 3.14+, how many code objects it has freed. Each interpreter counts versions of
 * code objects and freed ones for itself, from the start. An id is never used again; the main
 * interpreter, which is there as long as any is, has 0.
 */
static __always_inline void py_enter_interpreter(struct py_loop *l)
{
	const struct py_offsets *off = l->off;
	struct py_walk *w = &l->s->walk;
	struct door door = l->door;
	__u64 at = off->interp_code_generation, value = 0;

	if (py_has_numbered(w, off))
		read_user(door, &value, sizeof(value), w->interp + off->interp_id);
	w->interpreter = value;
	w->salt_of_interpreter = w->is_moment ? 0 : value;
	w->generation = w->pass;
	if (!w->pass && at && !read_user(door, &value, sizeof(value), w->interp + at))
		w->generation = hash_mix(hash_mix(w->interp, w->interpreter), value) | 1;
}

/*
 * An evaluator of frames other than CPython's own (-X perf, PEP 523) is between all of them: who
 * called whom is not to be seen. Needs s->tstate.
 */
static __always_inline void py_note_evaluator(struct py_loop *l)
{
	__u32 at = l->off->interp_eval_frame;
	__u64 interp = tstate_u64(l->s, l->off->tstate_interp), evaluator;
	struct door door = l->door;

	if (at != OFF_NONE && !read_user(door, &evaluator, sizeof(evaluator), interp + at) &&
	    evaluator)
		l->s->walk.entry = 0;
}

struct py_probe {
	__u8 bytes[PROBE_BYTES];
};

/* Hash of the first len bytes (at most all of them). */
VERIFIED_ONCE __u64 py_probe_hash(const struct py_probe *p, __u64 len, __u64 h)
{
	__u32 i;

	if (!p)
		return 0; /* for the verifier */
	for (i = 0; i < PROBE_BYTES && i + 8 <= len; i += 8)
		h = hash_mix(h, *(const __u64 *)(p->bytes + i));
	if (i < PROBE_BYTES && i < len)
		h = hash_mix(h, *(const __u64 *)(p->bytes + i) & ((1ULL << 8 * (len - i)) - 1));
	return h | 1;
}

/*
 * Reads the head of a str or bytes object and what follows it, at most PROBE_BYTES: in one read,
 * which may touch memory behind the object; where that is not there, the head alone.
 */
static __always_inline bool py_read_probe(struct door door, struct py_scratch *s, __u32 head,
					  __u64 addr, bool *is_whole)
{
	*is_whole = !read_user(door, s->text, TEXT_BYTES, addr);
	return *is_whole || !py_read_head(door, s, head, addr);
}

static __always_inline struct py_probe *py_probe(struct py_scratch *s, __u32 at)
{
	return (struct py_probe *)(s->text + (at & (2 * STRING_HEAD_BYTES - 1)));
}

/* The part that py_read_probe() did not get, or bytes from further behind, to the same place. */
static __always_inline bool py_read_rest(struct door door, struct py_scratch *s, __u32 at,
					 __u64 addr, __u64 len)
{
	len = at_most(len, PROBE_BYTES);
	return !len || !py_read(door, s, py_probe(s, at), len, addr);
}

/* Length, first and last bytes of a bytes object. 0 if it cannot be read. */
static __always_inline __u64 py_bytes_hash(struct door door, struct py_scratch *s,
					   const struct py_offsets *off, __u64 addr, __u64 h)
{
	__u32 at = off->bytes_data;
	bool is_whole;
	__u64 size;

	if (!py_read_probe(door, s, at, addr, &is_whole))
		return 0;
	size = field_u64(s->text, off->bytes_size, STRING_HEAD_BYTES - 1);
	if (!is_whole && !py_read_rest(door, s, at, addr + at, size))
		return 0;
	h = py_probe_hash(py_probe(s, at), size, hash_mix(h, size));
	if (size <= PROBE_BYTES)
		return h;
	if (!py_read_rest(door, s, at, addr + at + size - PROBE_BYTES, PROBE_BYTES))
		return 0;
	return py_probe_hash(py_probe(s, at), PROBE_BYTES, h);
}

/*
 * Length and last bytes of a str, where file names differ; all of them if there are few. Not its
 * hash field: that is filled in when somebody first asks for it. 0 if it cannot be read.
 */
static __always_inline __u64 py_string_hash(struct door door, struct py_scratch *s,
					    const struct py_offsets *off, __u64 addr, __u64 h)
{
	__u64 bytes, skip;
	__u32 state, at;
	bool is_whole;

	if (!py_read_probe(door, s, off->str_state + 8, addr, &is_whole))
		return 0;
	state = field_u32(s->text, off->str_state, STRING_HEAD_BYTES - 1);
	at = state >> (off->str_ascii_bit & 31) & 1 ? off->str_ascii_data : off->str_compact_data;
	bytes = field_u64(s->text, off->str_length, STRING_HEAD_BYTES - 1) *
		(state >> (off->str_kind_shift & 31) & 7);
	skip = bytes > PROBE_BYTES ? bytes - PROBE_BYTES : 0;
	if ((!is_whole || skip) && !py_read_rest(door, s, at, addr + at + skip, bytes - skip))
		return 0;
	return py_probe_hash(py_probe(s, at), bytes - skip, hash_mix(h, bytes));
}

/*
 * The content tells apart two code objects that are equal in all numbers and pointers: up to 3.11
 * one that came to the place of another, and in processes of one family those that each of them has
 * made.
 */
static __always_inline __u64 py_content_hash(struct door door, struct py_scratch *s,
					     const struct py_offsets *off, __u64 h)
{
	__u32 name = off->code_qualname != OFF_NONE ? off->code_qualname : off->code_name;

	h = py_string_hash(door, s, off, code_u64(s, name), h);
	if (h)
		h = py_string_hash(door, s, off, code_u64(s, off->code_filename), h);
	if (h)
		h = py_bytes_hash(door, s, off, code_u64(s, off->code_linetable), h);
	return h;
}

/* Hash of the pointers and numbers that make a code object, read into s->code. */
static __always_inline __u64 py_code_hash(struct py_scratch *s, const struct py_offsets *off,
					  __u64 addr)
{
	__u64 h = hash_mix(s->walk.salt_of_interpreter, addr);

	h = hash_mix(h, code_u64(s, off->code_filename));
	h = hash_mix(h, code_u64(s, off->code_name));
	h = hash_mix(h, code_u64(s, off->code_linetable));
	h = hash_mix(h, code_u32(s, off->code_firstlineno));
	if (off->code_qualname != OFF_NONE)
		h = hash_mix(h, code_u64(s, off->code_qualname));
	if (off->code_version != OFF_NONE)
		h = hash_mix(h, code_u32(s, off->code_version));
	return h;
}

/*
 * Identity of a code object: a hash that changes when the object at an address is another one, and
 * the same in all processes of a family that were forked with it: its names are sent once. Reads
 * s->code unless s->frame.is_code_read is false (3.14+, nothing freed since it was last seen).
 * Returns 0 if it cannot be read.
 */
static __always_inline __u64 py_code_identity(struct door door, struct py_scratch *s,
					      const struct py_offsets *off, __u64 addr)
{
	struct py_walk *w = &s->walk;
	__u64 by_generation = 0, hash, key, id, known;

	s->frame.is_code_read = 0;
	s->frame.is_compared = 1;
	if (w->generation) {
		by_generation = hash_mix(hash_mix(w->process, addr), w->generation);
		id = w->depth ? cache_get(code_cache, CODE_SLOTS, by_generation) : 0;
		if (id)
			return id;
	}
	if (py_read_code(door, s, off, addr))
		return 0;
	s->frame.is_code_read = 1;
	hash = py_code_hash(s, off, addr);
	key = hash_mix(hash, w->process) | 1;
	id = known = cache_get(code_cache, CODE_SLOTS, key);
	if (!known || (off->code_version == OFF_NONE &&
		       (!w->depth || w->is_strict || !((w->salt + w->depth) & 7)))) {
		id = py_content_hash(door, s, off, hash_mix(hash, w->family));
		if (id && id != known) {
			if (known)
				w->is_reused = 1;
			else
				w->is_new = 1;
			cache_put(code_cache, CODE_SLOTS, key, id);
		}
	} else if (off->code_version == OFF_NONE) {
		s->frame.is_compared = 0;
	}
	if (by_generation && id)
		cache_put(code_cache, CODE_SLOTS, by_generation, id);
	return id;
}

static __always_inline struct py_repeated *py_repeated_at(struct py_scratch *s, __u64 code)
{
	return &s->repeated[(code >> 4 ^ code >> 8) & (REPEATED_MAX - 1)];
}

/* The walk enters other code: an identity is of one interpreter. */
static __always_inline void py_forget_repeated(struct py_scratch *s)
{
	__builtin_memset(s->repeated, 0, sizeof(s->repeated));
}

/*
 * The identity of the frame's code object, 0: not remembered. A code object that a frame runs stays
 * where it is, so that one read stands for all frames of a recursion in this walk.
 */
static __always_inline __u64 py_recall_repeated(struct py_scratch *s, __u64 code)
{
	const struct py_repeated *r = py_repeated_at(s, code);

	return s->walk.depth && r->code == code ? r->id : 0;
}

static __always_inline void py_remember_repeated(struct py_scratch *s)
{
	const struct py_frame *f = &s->frame;

	if (f->is_compared)
		*py_repeated_at(s, f->code) = (struct py_repeated){ f->code, f->id };
}

/* Remembers a code object that user space does not know. Recursion repeats the last few. */
static __always_inline void py_note_unsent(struct py_scratch *s, __u64 id, __u64 addr)
{
	struct py_walk *w = &s->walk;
	__u32 n = w->unsent;

	for (__u32 back = 1; back <= 4; back++)
		if (n >= back && s->unsent[(n - back) & (CODES_PER_SAMPLE - 1)].id == id)
			return;
	n = *(volatile __u32 *)&w->unsent; /* one state for the verifier */
	if (n >= CODES_PER_SAMPLE) {
		w->deferred++;
		return;
	}
	s->unsent[n & (CODES_PER_SAMPLE - 1)] = (struct py_unsent){ id, addr };
	w->unsent = n + 1;
}

/* What py_copy_string() returns: the bytes copied, and the bytes that a character takes. */
#define COPIED_BYTES(copied) ((copied) & (2 * STRING_BYTES_MAX - 1))
#define COPIED_KIND(copied) ((copied) >> 16 & 7)
#define COPIED_CUT (1 << 20) /* there are more */

/*
 * Copies a str's characters to s->message + at. Returns what was copied, or PY_FAULT. A str of an
 * unknown shape has kind 0 and no bytes.
 */
static __always_inline int py_copy_characters(struct door door, struct py_scratch *s,
					      const struct py_offsets *off, __u64 addr, __u32 at)
{
	__u32 state, bytes, data, kind;
	__u64 length;
	int cut = 0;

	if (py_read_head(door, s, off->str_state + 8, addr))
		return PY_FAULT;
	length = field_u64(s->text, off->str_length, STRING_HEAD_BYTES - 1);
	state = field_u32(s->text, off->str_state, STRING_HEAD_BYTES - 1);
	if (!(state >> (off->str_compact_bit & 31) & 1))
		return 0;
	kind = state >> (off->str_kind_shift & 31) & 7;
	data = state >> (off->str_ascii_bit & 31) & 1 ? off->str_ascii_data : off->str_compact_data;
	if (kind != 1 && kind != 2 && kind != 4)
		return 0;
	if (length > STRING_BYTES_MAX / kind) {
		length = STRING_BYTES_MAX / kind;
		cut = COPIED_CUT;
	}
	bytes = length * kind;
	if (!bytes)
		return kind << 16;
	bytes = at_most(bytes, STRING_BYTES_MAX);
	at = at_most(at, sizeof(struct code_event) + STRING_BYTES_MAX); /* for the verifier */
	if (py_read(door, s, s->message + at, bytes, addr + data))
		return PY_FAULT;
	return bytes | kind << 16 | cut;
}

/* A copy is a function of its own: there are two to a code object. */
#ifdef READ_REMOTE
VERIFIED_ONCE int py_copy_remote_string(ANOTHER_TASK, struct py_scratch *s,
					const struct py_offsets *off, __u64 addr, __u32 at)
{
	if (!s || !off)
		return PY_FAULT; /* for the verifier */
	return py_copy_characters((struct door){ task }, s, off, addr, at);
}

static __always_inline int py_copy_string(struct door door, struct py_scratch *s,
					  const struct py_offsets *off, __u64 addr, __u32 at)
{
	return py_copy_remote_string(door.task, s, off, addr, at);
}
#else
VERIFIED_ONCE int py_copy_own_string(struct py_scratch *s, const struct py_offsets *off, __u64 addr,
				     __u32 at)
{
	if (!s || !off)
		return PY_FAULT; /* for the verifier */
	return py_copy_characters((struct door){}, s, off, addr, at);
}

static __always_inline int py_copy_string(struct door door, struct py_scratch *s,
					  const struct py_offsets *off, __u64 addr, __u32 at)
{
	return py_copy_own_string(s, off, addr, at);
}
#endif

/*
 * Writes the code_event of the code object at addr to s->message. Returns its length, or PY_FAULT:
 * then nothing is sent and a later sample tries again.
 */
static __always_inline int py_describe(struct door door, struct py_scratch *s,
				       const struct py_offsets *off, const struct py_unsent *u)
{
	struct code_event *e = (struct code_event *)s->message;
	__u32 at = sizeof(*e);
	__u64 total, lines;
	int n;

	if (py_read_code(door, s, off, u->addr))
		return PY_FAULT;
	__builtin_memset(e, 0, sizeof(*e));
	e->kind = EVENT_CODE;
	e->code = u->id;
	e->process = s->walk.process;
	e->first_line = code_u32(s, off->code_firstlineno);

	n = py_copy_string(door, s, off, code_u64(s, off->code_filename), at);
	if (n < 0)
		return n;
	e->filename_bytes = COPIED_BYTES(n);
	e->filename_kind = COPIED_KIND(n);
	e->is_cut |= !!(n & COPIED_CUT);
	at += COPIED_BYTES(n);

	n = py_copy_string(
		door, s, off,
		code_u64(s, off->code_qualname != OFF_NONE ? off->code_qualname : off->code_name),
		at);
	if (n < 0)
		return n;
	e->name_bytes = COPIED_BYTES(n);
	e->name_kind = COPIED_KIND(n);
	e->is_cut |= !!(n & COPIED_CUT) << 1;
	at += COPIED_BYTES(n);

	lines = code_u64(s, off->code_linetable);
	if (py_read_head(door, s, off->bytes_data, lines))
		return PY_FAULT;
	total = field_u64(s->text, off->bytes_size, STRING_HEAD_BYTES - 1);
	if (total > 0x7fffffff)
		total = 0;
	e->lines_addr = lines + off->bytes_data;
	e->lines_total = total;
	total = at_most(total, LINES_CHUNK);
	at = at_most(at, sizeof(*e) + 2 * STRING_BYTES_MAX); /* for the verifier */
	if (total && py_read(door, s, s->message + at, total, e->lines_addr))
		return PY_FAULT;
	e->lines_bytes = total;
	return at + total;
}

/* A further piece of a line table. Returns the length of the lines_event, or PY_FAULT. */
static __always_inline int py_describe_lines(struct door door, struct py_scratch *s, __u64 id,
					     __u64 lines_addr, __u32 total, __u32 chunk)
{
	struct lines_event *e = (struct lines_event *)s->message;
	__u32 offset = chunk * LINES_CHUNK, bytes = total - offset;

	if (offset >= total)
		return PY_FAULT;
	if (bytes > LINES_CHUNK)
		bytes = LINES_CHUNK;
	__builtin_memset(e, 0, sizeof(*e));
	e->kind = EVENT_LINES;
	e->code = id;
	e->offset = offset;
	e->bytes = bytes;
	if (py_read(door, s, s->message + sizeof(*e), bytes, lines_addr + offset))
		return PY_FAULT;
	return sizeof(*e) + bytes;
}

#endif
