/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#ifndef BPF_PYTHON_H
#define BPF_PYTHON_H

/*
 * The CPython unwinder: from a thread's TLS base to its frames and the description of its code
 * objects. Pure: needs events.h, cache.h and read_user() only, so the host tests run the same code
 * over recorded memory. All it reads is hostile: torn, cyclic, out of range.
 *
 * One read costs about the same for 8 bytes and for 800, so everything is read in blocks and taken
 * apart locally. Buffers carry 8 bytes of slack: field_*() mask the offset, which is what bounds it
 * for the verifier, and may then touch the word behind the last byte.
 */

#define FRAME_BYTES 256      /* covers the head of every version's frame (3.6 debug: 140) */
#define BLOCK_BYTES 4096     /* part of the data stack read in one go */
#define CODE_BYTES 256       /* covers PyCodeObject without its bytecode (3.15t: 240) */
#define TSTATE_BYTES 512     /* covers what is read of PyThreadState (3.15: 312) */
#define STRING_HEAD_BYTES 64 /* covers what is read of the heads of str and bytes (at most 56) */
#define TEXT_BYTES (2 * STRING_HEAD_BYTES + PROBE_BYTES) /* data begins at 88 at the latest */
#define PROBE_BYTES 96 /* of a name or line table that go into an identity up to 3.11 */
#define WALK_STEPS (2 * FRAMES_MAX + 2) /* frames, a C boundary below each, and the end */
#define LIST_STEPS 16384                /* thread states looked at in one search */
#define TIME_MAX_NS 2000000             /* for one sample: interrupts are off meanwhile */
#define TIME_STEPS 64     /* the clock is looked at every so many frames or thread states */
#define OWNED_BY_THREAD 0 /* enum _frameowner, 3.11 to 3.15 */
#define OWNED_BY_GENERATOR 1

/* Results of the steps below zero. */
enum py_error { PY_FAULT = -14, PY_NONE = -2, PY_LATE = -62 };

struct py_thread {
	__u64 pointer; /* pthread_self */
	__u64 runtime; /* address of _PyRuntime */
	__u64 process; /* identity */
	__u32 tid;
	__u32 reserved;
};

/* A code object that user space does not know yet. */
struct py_unsent {
	__u64 id;
	__u64 addr;
};

struct py_walk {
	__u64 frame;          /* the next one, 0 at the end */
	__u64 above;          /* the one that led there, if both may be on a data stack; else 0 */
	__u64 entry_previous; /* 3.11, 3.12: where the newest entry frame must lead, 0: not checked
			       */
	__u64 block_addr;     /* where block came from */
	__u32 block_len;
	__u32 depth; /* frames recorded */
	__u64 process;
	__u64 generation; /* 3.14+: hash of the interpreter and its code generation; 0: not known */
	__u64 leaf_instr; /* of the first frame recorded, as that has it */
	__u64 leaf_bytecode; /* up to 3.10: its co_code, a bytes object */
	__s32 leaf_stacktop; /* 3.11, 3.12 */
	__u32 salt;          /* picks the frames whose identity is checked in full */
	__u32 unsent;
	__u32 deferred;
	__u32 bytes_left;  /* of CODE_BYTES_PER_SAMPLE */
	__u64 deadline_ns; /* CLOCK_MONOTONIC */
	__u32 steps;       /* since the start, of frames and thread states */
	__u32 faults;      /* of py_scratch.faults that are filled in: what could not be read */
	__u16 flags;       /* enum sample_flag */
	__u8 status;       /* enum unwind_status */
	__u8 is_entry;     /* the last frame seen may be outermost */
	__u8 is_strict;    /* identities are checked in full */
	__u8 is_reused;    /* a code address turned out to be reused */
	__u8 is_new;       /* a code object was not met before (up to 3.11) */
	__u8 is_jit;       /* the leaf runs machine code */
};

/* The frame that the walk is at, taken apart. */
struct py_frame {
	__u64 code;      /* address of its code object */
	__u64 id;        /* identity of that, 0: not readable */
	__u64 raw_instr; /* as the frame has it */
	__u64 bytecode;  /* where it begins */
	__u32 tlbc;      /* which thread's copy of the bytecode runs */
	__s32 stacktop;  /* 3.11, 3.12: behind prev_instr */
	__u8 owner;
	__u8 is_code_read; /* s->code is this code object */
	__u8 reserved[6];
};

/* Search of the thread lists. */
struct py_search {
	__u64 interp;
	__u64 tstate;
	__u64 found;
	__u32 matches;
	__u32 is_bound; /* found has bound_gilstate */
	__u32 is_late;  /* it took too long */
	__u32 reserved;
};

/* The code object that is being described. */
struct py_describing {
	__u64 id;
	__u64 lines_addr;
	__u32 lines_total;
	__u32 layout;
	__u32 is_whole; /* all pieces of it were sent */
	__u32 reserved;
};

/* Work space: too large for the stack, so it lives in a map. Not cleared between samples. */
struct py_scratch {
	struct py_thread thread;
	struct py_walk walk;
	struct py_frame frame;
	struct py_search search;
	struct py_describing describing;
	struct py_unsent unsent[CODES_PER_SAMPLE];
	struct page_range faults[FAULTS_MAX];
	__u8 tstate[TSTATE_BYTES + 8];
	__u8 code[CODE_BYTES + 8];
	__u8 text[2 * STRING_HEAD_BYTES + PROBE_BYTES + 8];
	__u8 frames[FRAME_BYTES + BLOCK_BYTES + FRAME_BYTES + 8]; /* one frame, then the block */
	struct sample_event sample;
	struct frame_record records[FRAMES_MAX];
	__u8 message[sizeof(struct code_event) + 2 * STRING_BYTES_MAX + LINES_CHUNK + 8];
};

static __always_inline __u64 field_u64(const __u8 *p, __u16 offset, __u32 mask)
{
	return *(const __u64 *)(p + (offset & mask));
}

static __always_inline __u32 field_u32(const __u8 *p, __u16 offset, __u32 mask)
{
	return *(const __u32 *)(p + (offset & mask));
}

#define tstate_u64(s, off) field_u64((s)->tstate, off, TSTATE_BYTES - 1)
#define code_u64(s, off) field_u64((s)->code, off, CODE_BYTES - 1)
#define code_u32(s, off) field_u32((s)->code, off, CODE_BYTES - 1)

/* Notes memory that should be there and cannot be read. is_code: a code object. Returns PY_FAULT.
 */
VERIFIED_ONCE int py_note_fault(struct py_scratch *s, __u64 addr, __u32 bytes, bool is_code)
{
	__u32 n;

	if (!s)
		return PY_FAULT; /* for the verifier */
	n = s->walk.faults;
	if (n < FAULTS_MAX) {
		s->faults[n] = (struct page_range){ addr, bytes, is_code };
		s->walk.faults = n + 1;
	}
	return PY_FAULT;
}

/* Reads what should be there: 0 or PY_FAULT, noted. read_user() is for what need not be. */
static __always_inline int py_read(struct py_scratch *s, void *dst, __u32 size, __u64 addr)
{
	return read_user(dst, size, addr) ? py_note_fault(s, addr, size, false) : 0;
}

/* Reads a pointer. 0 if it cannot be read: that ends a search. */
static __always_inline __u64 read_pointer(struct py_scratch *s, __u64 addr)
{
	__u64 value = 0;

	return py_read(s, &value, sizeof(value), addr) ? 0 : value;
}

/* Has this sample taken too long? Looks at the clock now and then only. */
static __always_inline bool py_is_late(struct py_walk *w)
{
	return !(++w->steps & (TIME_STEPS - 1)) && clock_ns() > w->deadline_ns;
}

/* The address may be an old one: it is for the caller to say whether that is a fault. Bounded by
 * user space too (offsets_check()); repeated here for the verifier. */
static __always_inline int py_read_tstate(struct py_scratch *s, const struct py_offsets *off,
					  __u64 addr)
{
	__u32 size = off->tstate_size;

	if (size > TSTATE_BYTES)
		return PY_FAULT;
	return read_user(s->tstate, size, addr);
}

/*
 * Is addr a live PyThreadState of this thread? Reads it into s->tstate. A freed one keeps its bytes
 * and glibc gives its pthread_self to another thread, so it must still hang on its list.
 */
static __always_inline bool py_tstate_matches(struct py_scratch *s, const struct py_offsets *off,
					      const struct py_thread *t, __u64 addr)
{
	__u64 prev, interp, link, head;

	if (py_read_tstate(s, off, addr))
		return false;
	if (tstate_u64(s, off->tstate_thread_id) != t->pointer)
		return false;
	prev = tstate_u64(s, off->tstate_prev);
	interp = tstate_u64(s, off->tstate_interp);
	link = prev ? prev + off->tstate_next : interp + off->interp_threads_head;
	return !read_user(&head, sizeof(head), link) && head == addr;
}

static __always_inline bool py_tstate_is_bound(struct py_scratch *s, const struct py_offsets *off)
{
	return tstate_u64(s, off->tstate_status) & off->status_bound_gilstate;
}

struct py_loop {
	struct py_scratch *s;
	const struct py_offsets *off;
	const struct py_thread *thread;
};

/* One step over all thread states of all interpreters. */
static int py_search_step(__u32 i, struct py_loop *l)
{
	struct py_scratch *s = l->s;
	const struct py_offsets *off = l->off;
	struct py_search *q = &s->search;

	if (py_is_late(&s->walk)) {
		q->is_late = 1;
		return LOOP_STOP;
	}
	if (!q->tstate) {
		q->interp = read_pointer(s, q->interp + off->interp_next);
		if (!q->interp)
			return LOOP_STOP;
		q->tstate = read_pointer(s, q->interp + off->interp_threads_head);
		return LOOP_NEXT;
	}
	if (py_read_tstate(s, off, q->tstate)) {
		py_note_fault(s, q->tstate, off->tstate_size, false);
		return LOOP_STOP;
	}
	if (tstate_u64(s, off->tstate_thread_id) == l->thread->pointer) {
		q->matches++;
		q->is_bound = py_tstate_is_bound(s, off);
		if (!q->found || q->is_bound)
			q->found = q->tstate;
		if (q->is_bound)
			return LOOP_STOP;
	}
	q->tstate = tstate_u64(s, off->tstate_next);
	return LOOP_NEXT;
}

/* All thread states of this thread. Sets found and matches; s->tstate is left undefined. */
static __always_inline void py_search_all(struct py_loop *l)
{
	struct py_scratch *s = l->s;
	struct py_search *q = &s->search;

	q->found = 0;
	q->matches = 0;
	q->is_late = 0;
	q->interp = read_pointer(s, l->thread->runtime + l->off->runtime_interpreters_head);
	q->tstate = q->interp ? read_pointer(s, q->interp + l->off->interp_threads_head) : 0;
	if (q->interp)
		LOOP(LIST_STEPS, py_search_step, l);
}

/* More than one interpreter? Then one thread may have several thread states. */
static __always_inline bool py_has_subinterpreters(struct py_loop *l)
{
	struct py_scratch *s = l->s;
	__u64 head = read_pointer(s, l->thread->runtime + l->off->runtime_interpreters_head);

	return head && read_pointer(s, head + l->off->interp_next);
}

/*
 * Finds the thread state of the interrupted thread and reads it into s->tstate. Returns 0,
 * PY_NONE (no Python thread), PY_FAULT (something is there, but cannot be read), PY_LATE (too many
 * to look at all).
 *
 * A thread can have several (subinterpreters). From 3.12 bound_gilstate names the one it used last,
 * also while it has released the GIL. Before, runtime.tstate_current names it while it holds the
 * GIL; else the last one seen attached is taken, which is a guess where there are others.
 */
static __always_inline int py_find_tstate(struct py_loop *l, bool *has_walked)
{
	struct py_scratch *s = l->s;
	const struct py_offsets *off = l->off;
	const struct py_thread *t = l->thread;
	__u64 key = hash_mix(hash_mix(t->process, t->tid), t->pointer);
	__u64 addr;

	if (off->runtime_tstate_current != OFF_NONE) {
		addr = read_pointer(s, t->runtime + off->runtime_tstate_current);
		if (addr && !py_read_tstate(s, off, addr) &&
		    tstate_u64(s, off->tstate_thread_id) == t->pointer) {
			s->walk.flags |= SAMPLE_HOLDS_GIL;
			cache_put(thread_cache, THREAD_SLOTS, key, addr);
			return 0;
		}
	}

	addr = cache_get(thread_cache, THREAD_SLOTS, key);
	if (addr && py_tstate_matches(s, off, t, addr) &&
	    (!off->status_bound_gilstate || py_tstate_is_bound(s, off))) {
		if (!off->status_bound_gilstate && py_has_subinterpreters(l))
			s->walk.flags |= SAMPLE_AMBIGUOUS;
	} else {
		*has_walked = true;
		py_search_all(l);
		addr = s->search.found;
		if (!addr)
			return s->search.is_late ? PY_LATE : s->walk.faults ? PY_FAULT : PY_NONE;
		if (s->search.matches > 1 && !s->search.is_bound)
			s->walk.flags |= SAMPLE_AMBIGUOUS;
		if (py_read_tstate(s, off, addr))
			return py_note_fault(s, addr, off->tstate_size, false);
		cache_put(thread_cache, THREAD_SLOTS, key, addr);
	}
	if (off->status_active && tstate_u64(s, off->tstate_status) & off->status_active)
		s->walk.flags |= SAMPLE_HOLDS_GIL;
	return 0;
}

/*
 * Does the thread run machine code of CPython's JIT? That moves instr_ptr only where something may
 * raise or call. The outer frames wait in a call, so that their lines are right.
 */
static __always_inline bool py_runs_machine_code(struct py_scratch *s, const struct py_offsets *off)
{
	return off->is_jit ||
	       (off->tstate_executor != OFF_NONE && tstate_u64(s, off->tstate_executor));
}

/*
 * Sets w->frame from s->tstate: 0 if no Python code runs. A 3.11 or 3.12 entry into the interpreter
 * publishes its _PyCFrame on the C stack before it fills it in: until then current_frame is what an
 * earlier call left there. The frame it leads to betrays it: see py_step().
 */
static __always_inline int py_first_frame(struct py_scratch *s, const struct py_offsets *off)
{
	struct py_walk *w = &s->walk;
	struct {
		__u64 current, previous;
	} cframe;

	w->is_jit = py_runs_machine_code(s, off);
	w->frame = tstate_u64(s, off->tstate_frame);
	w->entry_previous = 0;
	if (off->frame_kind != FRAME_CFRAME || !w->frame)
		return 0;
	/* _PyCFrame: [use_tracing,] current_frame, previous (3.11.0 and 3.12.0 cpython/pystate.h)
	 */
	if (py_read(s, &cframe, sizeof(cframe), w->frame + off->cframe_current))
		return PY_FAULT;
	w->frame = cframe.current;
	if (cframe.previous)
		w->entry_previous = read_pointer(s, cframe.previous + off->cframe_current);
	return 0;
}

/* Bounded by user space too (offsets_check()); repeated here for the verifier. */
static __always_inline int py_read_code(struct py_scratch *s, const struct py_offsets *off,
					__u64 addr)
{
	__u32 size = off->code_size;

	if (size > CODE_BYTES)
		return PY_FAULT;
	return read_user(s->code, size, addr) ? py_note_fault(s, addr, size, true) : 0;
}

/* No byte more than the object has: the next page may not be there. */
static __always_inline int py_read_head(struct py_scratch *s, __u32 size, __u64 addr)
{
	if (size > STRING_HEAD_BYTES)
		return PY_FAULT;
	return py_read(s, s->text, size, addr);
}

/*
 * 3.14+: changes when a code object of the thread's interpreter is freed. Each interpreter counts
 * for itself, from 0, and a new one may come to the place of one that has ended: its id is never
 * used again. The main one stays where it is, within _PyRuntime. Needs s->tstate; 0 where there is
 * no such count.
 */
static __always_inline __u64 py_generation(struct py_loop *l)
{
	const struct py_offsets *off = l->off;
	__u64 interp = tstate_u64(l->s, off->tstate_interp), generation, id = 0;

	if (!off->interp_code_generation ||
	    read_user(&generation, sizeof(generation), interp + off->interp_code_generation))
		return 0;
	if (interp - l->thread->runtime >= off->runtime_size &&
	    read_user(&id, sizeof(id), interp + off->interp_id))
		return 0;
	return hash_mix(hash_mix(hash_mix(0, interp), id), generation) | 1;
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
static __always_inline bool py_read_probe(struct py_scratch *s, __u32 head, __u64 addr,
					  bool *is_whole)
{
	*is_whole = !read_user(s->text, TEXT_BYTES, addr);
	return *is_whole || !py_read_head(s, head, addr);
}

static __always_inline struct py_probe *py_probe(struct py_scratch *s, __u32 at)
{
	return (struct py_probe *)(s->text + (at & (2 * STRING_HEAD_BYTES - 1)));
}

/* The part that py_read_probe() did not get, or bytes from further behind, to the same place. */
static __always_inline bool py_read_rest(struct py_scratch *s, __u32 at, __u64 addr, __u64 len)
{
	if (len > PROBE_BYTES)
		len = PROBE_BYTES;
	return !len || !py_read(s, py_probe(s, at), len, addr);
}

/* Length and first bytes of a bytes object. 0 if it cannot be read. */
static __always_inline __u64 py_bytes_hash(struct py_scratch *s, const struct py_offsets *off,
					   __u64 addr, __u64 h)
{
	__u32 at = off->bytes_data;
	bool is_whole;
	__u64 size;

	if (!py_read_probe(s, at, addr, &is_whole))
		return 0;
	size = field_u64(s->text, off->bytes_size, STRING_HEAD_BYTES - 1);
	if (!is_whole && !py_read_rest(s, at, addr + at, size))
		return 0;
	return py_probe_hash(py_probe(s, at), size, hash_mix(h, size));
}

/*
 * Length and last bytes of a str, where file names differ; all of them if there are few. Not its
 * hash field: that is filled in when somebody first asks for it. 0 if it cannot be read.
 */
static __always_inline __u64 py_string_hash(struct py_scratch *s, const struct py_offsets *off,
					    __u64 addr, __u64 h)
{
	__u64 bytes, skip;
	__u32 state, at;
	bool is_whole;

	if (!py_read_probe(s, off->str_state + 8, addr, &is_whole))
		return 0;
	state = field_u32(s->text, off->str_state, STRING_HEAD_BYTES - 1);
	at = state >> (off->str_ascii_bit & 31) & 1 ? off->str_ascii_data : off->str_compact_data;
	bytes = field_u64(s->text, off->str_length, STRING_HEAD_BYTES - 1) *
		(state >> (off->str_kind_shift & 31) & 7);
	skip = bytes > PROBE_BYTES ? bytes - PROBE_BYTES : 0;
	if ((!is_whole || skip) && !py_read_rest(s, at, addr + at + skip, bytes - skip))
		return 0;
	return py_probe_hash(py_probe(s, at), bytes - skip, hash_mix(h, bytes));
}

/* Up to 3.11: what tells apart two code objects that are equal in all numbers and pointers. */
static __always_inline __u64 py_content_hash(struct py_scratch *s, const struct py_offsets *off,
					     __u64 h)
{
	h = py_string_hash(s, off, code_u64(s, off->code_name), h);
	if (h)
		h = py_string_hash(s, off, code_u64(s, off->code_filename), h);
	if (h)
		h = py_bytes_hash(s, off, code_u64(s, off->code_linetable), h);
	return h;
}

/* Hash of the pointers and numbers that make a code object, read into s->code. */
static __always_inline __u64 py_code_hash(struct py_scratch *s, const struct py_offsets *off,
					  __u64 addr)
{
	__u64 h = hash_mix(s->walk.process, addr);

	h = hash_mix(h, code_u64(s, off->code_filename));
	h = hash_mix(h, code_u64(s, off->code_name));
	h = hash_mix(h, code_u64(s, off->code_linetable));
	h = hash_mix(h, code_u32(s, off->code_firstlineno));
	if (off->code_qualname != OFF_NONE)
		h = hash_mix(h, code_u64(s, off->code_qualname));
	if (off->code_version != OFF_NONE)
		h = hash_mix(h, code_u32(s, off->code_version));
	return h | 1;
}

/*
 * Identity of a code object: a hash that changes when the object at an address is another one.
 * Reads s->code unless s->frame.is_code_read is false (3.14+, nothing freed since it was last
 * seen). Returns 0 if it cannot be read.
 */
static __always_inline __u64 py_code_identity(struct py_scratch *s, const struct py_offsets *off,
					      __u64 addr)
{
	struct py_walk *w = &s->walk;
	__u64 key = 0, id, known;

	s->frame.is_code_read = 0;
	if (w->generation) {
		key = hash_mix(hash_mix(w->process, addr), w->generation);
		id = w->depth ? cache_get(code_cache, CODE_SLOTS, key) : 0;
		if (id)
			return id;
	}
	if (py_read_code(s, off, addr))
		return 0;
	s->frame.is_code_read = 1;
	id = py_code_hash(s, off, addr);
	if (key)
		cache_put(code_cache, CODE_SLOTS, key, id);
	if (off->code_version != OFF_NONE)
		return id;

	key = id;
	known = cache_get(code_cache, CODE_SLOTS, key);
	if (known && w->depth && !w->is_strict && (w->salt + w->depth) & 7)
		return known;
	id = py_content_hash(s, off, key);
	if (id && id != known) {
		if (known)
			w->is_reused = 1;
		else
			w->is_new = 1;
		cache_put(code_cache, CODE_SLOTS, key, id);
	}
	return id;
}

/* Remembers a code object that user space does not know. Recursion repeats the last few. */
static __always_inline void py_note_unsent(struct py_scratch *s, __u64 id, __u64 addr)
{
	struct py_walk *w = &s->walk;
	__u32 n = w->unsent;

	for (__u32 back = 1; back <= 4; back++)
		if (n >= back && s->unsent[(n - back) & (CODES_PER_SAMPLE - 1)].id == id)
			return;
	if (n >= CODES_PER_SAMPLE) {
		w->deferred++;
		return;
	}
	s->unsent[n & (CODES_PER_SAMPLE - 1)] = (struct py_unsent){ id, addr };
	w->unsent = n + 1;
}

/*
 * Where the bytecode that a frame runs begins. Free-threaded builds from 3.14 on give each thread a
 * copy: co_tlbc -> _PyCodeArray { size, entries[] } (Include/cpython/code.h); entry 0 is the
 * original.
 */
static __always_inline __u64 py_bytecode(struct py_scratch *s, const struct py_offsets *off,
					 __u64 code, __u32 tlbc)
{
	__u64 array, entry;

	if (!tlbc || off->code_tlbc == OFF_NONE)
		return code + off->code_adaptive;
	array = read_pointer(s, code + off->code_tlbc);
	entry = array ? read_pointer(s, array + 8 + (__u64)tlbc * 8) : 0;
	return entry ? entry : code + off->code_adaptive;
}

/* Offset of the frame's instruction, in bytes. False: the frame has not started. */
static __always_inline bool py_instr(const struct py_offsets *off, __u64 raw, __u64 bytecode,
				     __u32 *instr)
{
	__s64 offset;

	if (off->frame_kind == FRAME_OBJECT)
		offset = (__s64)(__s32)raw * off->lasti_unit;
	else
		offset = raw - bytecode;
	*instr = offset < 0 ? 0 : (__u32)offset;
	return offset >= 0;
}

/* Reads the block below the frame above that holds the walk's next one: one read, many frames. */
static __always_inline void py_read_block(struct py_scratch *s)
{
	struct py_walk *w = &s->walk;
	__u64 start = w->frame & ~(__u64)(BLOCK_BYTES - 1), len;

	if (w->above - start > BLOCK_BYTES)
		start = w->above - BLOCK_BYTES;
	w->block_len = 0;
	len = at_most(w->above - start, BLOCK_BYTES);
	if (len && !read_user(s->frames + FRAME_BYTES, len, start)) {
		w->block_addr = start;
		w->block_len = len;
	}
}

/*
 * Reads the walk's next frame. Returns where in s->frames it is: in the block, or read alone, at
 * the front. PY_FAULT if it cannot be read.
 */
static __always_inline int py_read_frame(struct py_scratch *s, const struct py_offsets *off)
{
	struct py_walk *w = &s->walk;
	__u32 size = off->frame_size;
	__u64 pos;

	if (w->frame < w->above && w->above - w->frame < BLOCK_BYTES &&
	    w->frame - w->block_addr >= w->block_len)
		py_read_block(s);
	pos = w->frame - w->block_addr;
	if (pos < BLOCK_BYTES && pos + size <= w->block_len)
		return FRAME_BYTES + pos;
	if (size > FRAME_BYTES)
		return PY_FAULT; /* user space checked; for the verifier */
	return py_read(s, s->frames, size, w->frame);
}

/* A frame that is taken apart is recorded, passed over, or the last one. */
enum frame_use { FRAME_RECORDED, FRAME_PASSED, FRAME_LAST };

/*
 * A 3.11 or 3.12 entry frame that does not lead where the newest one must: a stale cframe. The call
 * that it belongs to is not there yet, so that the walk begins again at the frame expected.
 */
static __always_inline void py_walk_again(struct py_walk *w, __u64 expected)
{
	w->frame = expected;
	w->above = 0;
	w->depth = 0;
	w->unsent = 0;
	w->deferred = 0;
	w->faults = 0;
	w->is_reused = 0;
	w->flags &= ~SAMPLE_CODE_FAULT;
}

/* Takes the frame at s->frames + pos apart. Returns enum frame_use. */
VERIFIED_ONCE int py_take_frame(struct py_scratch *s, const struct py_offsets *off, __u32 pos)
{
	__u64 previous, expected;
	struct py_walk *w;
	struct py_frame *f;
	const __u8 *frame;
	bool is_entry;

	if (!s || !off || pos > FRAME_BYTES + BLOCK_BYTES)
		return FRAME_LAST; /* for the verifier */
	w = &s->walk;
	f = &s->frame;
	frame = s->frames + pos;
	f->code = field_u64(frame, off->frame_code, FRAME_BYTES - 1) & ~(__u64)off->tagged_mask;
	f->raw_instr = field_u64(frame, off->frame_instr, FRAME_BYTES - 1);
	f->tlbc = off->frame_tlbc_index != OFF_NONE
			  ? field_u32(frame, off->frame_tlbc_index, FRAME_BYTES - 1)
			  : 0;
	f->stacktop = field_u32(frame, off->frame_instr + 8, FRAME_BYTES - 1);
	f->owner = 0;
	previous = field_u64(frame, off->frame_previous, FRAME_BYTES - 1);
	if (off->frame_kind == FRAME_OBJECT) {
		w->is_entry = 1;
	} else {
		f->owner = frame[off->frame_owner & (FRAME_BYTES - 1)];
		if (!off->owner_boundary)
			is_entry = frame[off->frame_is_entry & (FRAME_BYTES - 1)];
		else
			is_entry = f->owner >= off->owner_boundary;
		/*
		 * greenlet takes the C boundaries out of a chain while it switches. A function's
		 * frame is linked before it begins, so that where it leads nowhere all ends.
		 */
		w->is_entry = is_entry ||
			      (off->owner_boundary && w->depth && f->owner == OWNED_BY_THREAD);
		expected = w->entry_previous;
		if (is_entry && expected) {
			w->entry_previous = 0;
			if (previous != expected) {
				py_walk_again(w, expected);
				return FRAME_PASSED;
			}
		}
	}
	if (previous == w->frame) {
		w->status = UNWIND_INVALID;
		return FRAME_LAST;
	}
	w->above = off->frame_kind == FRAME_OBJECT ? 0 : w->frame;
	w->frame = previous;
	if (off->owner_boundary && f->owner >= off->owner_boundary)
		return FRAME_PASSED;
	if (w->depth >= FRAMES_MAX) {
		w->status = UNWIND_TRUNCATED;
		return FRAME_LAST;
	}
	return FRAME_RECORDED;
}

/* Records the frame that was taken apart, but for one that is still being set up. Returns 0. */
VERIFIED_ONCE int py_record_frame(struct py_scratch *s, const struct py_offsets *off)
{
	struct frame_record *r;
	struct py_walk *w;
	struct py_frame *f;
	bool is_started;
	__u32 depth, instr;

	if (!s || !off)
		return 0; /* for the verifier */
	w = &s->walk;
	f = &s->frame;
	depth = w->depth;
	if (depth >= FRAMES_MAX)
		return 0; /* for the verifier */
	r = &s->records[depth];
	is_started = py_instr(off, f->raw_instr, f->bytecode, &instr);
	if (!f->id) {
		w->flags |= SAMPLE_CODE_FAULT;
		*r = (struct frame_record){ f->code, instr, FRAME_UNREADABLE };
		w->depth = depth + 1;
		return 0;
	}
	/* A frame that is still being set up is not there yet, as in CPython's own traceback. */
	if (f->is_code_read && !depth && off->code_firsttraceable != OFF_NONE &&
	    f->owner != OWNED_BY_GENERATOR &&
	    (!is_started || instr < 2 * code_u32(s, off->code_firsttraceable)))
		return 0;
	if (off->owner_boundary && !depth && f->owner == OWNED_BY_THREAD &&
	    off->code_firsttraceable != OFF_NONE &&
	    instr > 2 * code_u32(s, off->code_firsttraceable))
		w->is_entry = 1; /* has begun */
	if (!is_sent(f->id))
		py_note_unsent(s, f->id, f->code);
	*r = (struct frame_record){
		.code = f->id,
		.instr = instr,
		.flags = (is_started ? 0 : FRAME_NOT_STARTED) |
			 (!depth && w->is_jit ? FRAME_IN_JIT : 0),
	};
	w->depth = depth + 1;
	if (!depth) {
		w->leaf_instr = f->raw_instr;
		w->leaf_bytecode = code_u64(s, off->code_adaptive);
		w->leaf_stacktop = f->stacktop;
	}
	return 0;
}

/* One frame. */
static int py_step(__u32 i, struct py_loop *l)
{
	struct py_scratch *s = l->s;
	const struct py_offsets *off = l->off;
	struct py_walk *w = &s->walk;
	struct py_frame *f = &s->frame;
	int pos, use;

	if (!w->frame) {
		w->status = w->is_entry ? UNWIND_COMPLETE : UNWIND_CUT;
		return LOOP_STOP;
	}
	if (py_is_late(w)) {
		w->status = UNWIND_LATE;
		return LOOP_STOP;
	}
	pos = py_read_frame(s, off);
	if (pos < 0) {
		w->status = UNWIND_FAULT;
		return LOOP_STOP;
	}
	use = py_take_frame(s, off, pos);
	if (use != FRAME_RECORDED)
		return use == FRAME_PASSED ? LOOP_NEXT : LOOP_STOP;
	f->id = py_code_identity(s, off, f->code);
	f->bytecode = py_bytecode(s, off, f->code, f->tlbc);
	py_record_frame(s, off);
	return LOOP_NEXT;
}

/* Walks from w->frame to the thread's outermost frame. */
static __always_inline void py_walk_frames(struct py_loop *l)
{
	struct py_walk *w = &l->s->walk;
	struct trust *trust = trust_of(w->process);

	w->above = 0;
	w->block_addr = 0;
	w->block_len = 0;
	w->depth = 0;
	w->unsent = 0;
	w->deferred = 0;
	w->bytes_left = CODE_BYTES_PER_SAMPLE;
	w->is_entry = 0;
	w->is_reused = 0;
	w->is_new = 0;
	w->faults = 0;
	w->is_strict = trust->clean == TRUST_NEVER || trust->clean < TRUST_SAMPLES;
	w->status = UNWIND_INVALID; /* what a walk that never ends is */
	LOOP(WALK_STEPS, py_step, l);
	if (w->is_reused)
		trust->clean = TRUST_NEVER;
	else if (trust->clean != TRUST_NEVER)
		trust->clean = w->is_new ? 0 : trust->clean + w->is_strict;
}

static __always_inline __u16 py_read_opcode(struct py_scratch *s, __u64 addr)
{
	__u8 opcode;

	return py_read(s, &opcode, sizeof(opcode), addr) ? OPCODE_NONE : opcode;
}

#define EXTENDED_ARG 144 /* 3.6 to 3.10, opcode.h */

/* Up to 3.10. f_lasti stays at the first EXTENDED_ARG of an instruction that has up to three. */
static __always_inline __u16 py_opcode_of_object(struct py_scratch *s, const struct py_offsets *off)
{
	__u64 addr = s->walk.leaf_bytecode + off->bytes_data + s->records[0].instr;
	__u16 opcode = OPCODE_NONE;

	for (__u32 i = 0; i < 4; i++) {
		opcode = py_read_opcode(s, addr + 2 * i);
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
static __always_inline __u16 py_opcode_of_cframe(struct py_scratch *s, const struct py_offsets *off)
{
	static const __u8 counts[] = { 1, 3, 4, CALL_CACHES_MAX };
	const struct py_walk *w = &s->walk;
	__u16 opcode = py_read_opcode(s, w->leaf_instr);
	__u8 before[2 * CALL_CACHES_MAX], caller;

	if ((w->leaf_stacktop < 0 && opcode != CACHE) ||
	    read_user(before, sizeof(before), w->leaf_instr - sizeof(before)))
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
static __always_inline __u16 py_opcode(struct py_scratch *s, const struct py_offsets *off)
{
	if (!s->walk.depth || s->records[0].flags)
		return OPCODE_NONE;
	if (off->frame_kind == FRAME_OBJECT)
		return py_opcode_of_object(s, off);
	if (off->frame_kind == FRAME_CFRAME)
		return py_opcode_of_cframe(s, off);
	return py_read_opcode(s, s->walk.leaf_instr);
}

/* What py_copy_string() returns: the bytes copied, and the bytes that a character takes. */
#define COPIED_BYTES(copied) ((copied) & (2 * STRING_BYTES_MAX - 1))
#define COPIED_KIND(copied) ((copied) >> 16 & 7)
#define COPIED_CUT (1 << 20) /* there are more */

/*
 * Copies a str's characters to s->message + at. Returns what was copied, or PY_FAULT. A str of an
 * unknown shape has kind 0 and no bytes.
 */
VERIFIED_ONCE int py_copy_string(struct py_scratch *s, const struct py_offsets *off, __u64 addr,
				 __u32 at)
{
	__u32 state, bytes, data, kind;
	__u64 length;
	int cut = 0;

	if (!s || !off)
		return PY_FAULT; /* for the verifier */
	if (py_read_head(s, off->str_state + 8, addr))
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
	if (!bytes || at > sizeof(struct code_event) + STRING_BYTES_MAX)
		return kind << 16; /* at: for the verifier */
	bytes = at_most(bytes, STRING_BYTES_MAX);
	if (py_read(s, s->message + at, bytes, addr + data))
		return PY_FAULT;
	return bytes | kind << 16 | cut;
}

/*
 * Writes the code_event of the code object at addr to s->message. Returns its length, or PY_FAULT:
 * then nothing is sent and a later sample tries again.
 */
static __always_inline int py_describe(struct py_scratch *s, const struct py_offsets *off,
				       const struct py_unsent *u)
{
	struct code_event *e = (struct code_event *)s->message;
	__u32 at = sizeof(*e);
	__u64 total, lines;
	int n;

	if (py_read_code(s, off, u->addr))
		return PY_FAULT;
	__builtin_memset(e, 0, sizeof(*e));
	e->kind = EVENT_CODE;
	e->code = u->id;
	e->process = s->walk.process;
	e->first_line = code_u32(s, off->code_firstlineno);

	n = py_copy_string(s, off, code_u64(s, off->code_filename), at);
	if (n < 0)
		return n;
	e->filename_bytes = COPIED_BYTES(n);
	e->filename_kind = COPIED_KIND(n);
	e->is_cut |= !!(n & COPIED_CUT);
	at += COPIED_BYTES(n);

	n = py_copy_string(
		s, off,
		code_u64(s, off->code_qualname != OFF_NONE ? off->code_qualname : off->code_name),
		at);
	if (n < 0)
		return n;
	e->name_bytes = COPIED_BYTES(n);
	e->name_kind = COPIED_KIND(n);
	e->is_cut |= !!(n & COPIED_CUT) << 1;
	at += COPIED_BYTES(n);

	lines = code_u64(s, off->code_linetable);
	if (py_read_head(s, off->bytes_data, lines))
		return PY_FAULT;
	total = field_u64(s->text, off->bytes_size, STRING_HEAD_BYTES - 1);
	if (total > 0x7fffffff)
		total = 0;
	e->lines_addr = lines + off->bytes_data;
	e->lines_total = total;
	if (total > LINES_CHUNK)
		total = LINES_CHUNK;
	if (at > sizeof(*e) + 2 * STRING_BYTES_MAX)
		return PY_FAULT; /* for the verifier */
	if (total && py_read(s, s->message + at, total, e->lines_addr))
		return PY_FAULT;
	e->lines_bytes = total;
	return at + total;
}

/* A further piece of a line table. Returns the length of the lines_event, or PY_FAULT. */
static __always_inline int py_describe_lines(struct py_scratch *s, __u64 id, __u64 lines_addr,
					     __u32 total, __u32 chunk)
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
	if (py_read(s, s->message + sizeof(*e), bytes, lines_addr + offset))
		return PY_FAULT;
	return sizeof(*e) + bytes;
}

#endif
