/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#ifndef BPF_PYTHON_H
#define BPF_PYTHON_H

/*
 * The CPython unwinder: from a thread's TLS base to its frames and the description of its code
 * objects. Here is what its parts share; they are python_thread.h, python_state.h, python_frames.h,
 * python_code.h, python_context.h and python_opcode.h. Pure: needs events.h, cache.h and
 * read_user() only, so the host tests run the same code over recorded memory. All it reads is
 * hostile: torn, cyclic, out of range.
 *
 * One read costs about the same for 8 bytes and for 800, so everything is read in blocks and taken
 * apart locally. Buffers carry 8 bytes of slack: field_*() mask the offset, which is what bounds it
 * for the verifier, and may then touch the word behind the last byte.
 */

#include "bpf/events.h"
#include "bpf/read.h"
#include "bpf/verifier.h"

#define FRAME_BYTES 256      /* covers the head of every version's frame (3.6 debug: 140) */
#define BLOCK_BYTES 4096     /* memory with several frames, read in one go */
#define CODE_BYTES 256       /* covers PyCodeObject without its bytecode (3.15t: 240) */
#define TSTATE_BYTES 512     /* covers what is read of PyThreadState (3.15: 312) */
#define STRING_HEAD_BYTES 64 /* covers what is read of the heads of str and bytes (at most 56) */
#define TEXT_BYTES (2 * STRING_HEAD_BYTES + PROBE_BYTES) /* data begins at 88 at the latest */
#define PROBE_BYTES 96 /* of a name or line table that go into an identity */
/*
 * For one sample. In an interrupt of a thread that can walk itself instead: 500 us with the frames
 * between two looks at the clock and the names of LEAF_CODES. In an interrupt of one that cannot: a
 * whole stack is worth more. In the thread itself, which may lose its CPU for long: WALK_STEPS and
 * LIST_STEPS end the walk. Of another thread, whose pages are waited for.
 */
#define TIME_MAX_SHORT_NS 400000
#define TIME_MAX_NS 2000000
#define TIME_MAX_TASK_NS 1000000000
#define TIME_MAX_OPEN_NS 100000000
#define TIME_STEPS 64 /* the clock is looked at every so many frames or thread states */

/* Results of the steps below zero. */
enum py_error { PY_FAULT = -14, PY_NONE = -2, PY_LATE = -62 };

struct py_thread {
	__u64 pointer; /* pthread_self */
	__u64 runtime; /* address of _PyRuntime */
	__u64 process; /* identity */
	__u64 family;  /* of processes that have one where they were forked alike; 0: not asked */
	__u32 tid;
	/*
	 * Where pointer may be one from before an exec (arm64): the id that the process's first
	 * thread has for itself, by which it is found, too. 0: of another thread, or not needed.
	 */
	__u32 leader;
};

/* A code object that user space does not know yet. */
struct py_unsent {
	__u64 id;
	__u64 addr;
};

struct py_walk {
	__u64 frame;          /* the next one, 0 at the end */
	__u64 above;          /* the one that led there; 0: none */
	__u64 entry_previous; /* 3.11, 3.12: where the newest entry frame must lead, 0: not checked
			       */
	__u64 block_addr;     /* where block came from */
	__u32 block_len;
	__u32 depth; /* frames recorded */
	__u64 process;
	__u64 family;              /* of py_thread */
	__u64 interp;              /* the interpreter whose frames are walked */
	__u64 interpreter;         /* its id; 0: the main one */
	__u64 salt_of_interpreter; /* what of it goes into identities */
	__u64 pass;                /* what generation is to be; 0: as it is read */
	__u64 shim;                /* 3.12+: the last frame of an entry that was met; 0: none */
	__u64 generation; /* 3.14+: hash of the interpreter and its code generation; 0: not known */
	__u64 gc_frame;   /* 3.15+: that the collector runs on; 0: it does not, or not known */
	__u64 leaf_instr; /* of the first frame recorded, as that has it */
	__u64 leaf_bytecode; /* up to 3.10: its co_code, a bytes object */
	__s32 leaf_stacktop; /* 3.11, 3.12 */
	__u32 salt;          /* picks the frames whose identity is checked in full */
	__u32 unsent;
	__u32 deferred;
	__u32 bytes_left;  /* of CODE_BYTES_PER_SAMPLE */
	__u64 time_max_ns; /* for the walk */
	__s32 outcome;     /* the counter that says what became of it */
	__u32 reserved;
	__u64 deadline_ns; /* CLOCK_MONOTONIC */
	__u32 steps;       /* since the start, of frames and thread states */
	__u32 faults;      /* of py_scratch.faults that are filled in: what could not be read */
	__u32 flags;       /* enum sample_flag */
	__u32 entry;       /* FRAME_ENTRY, where entries tell that C called */
	__u8 status;       /* enum unwind_status */
	__u8 is_entry;     /* the last frame seen may be outermost */
	__u8 is_strict;    /* identities are checked in full */
	__u8 is_reused;    /* a code address turned out to be reused */
	__u8 is_new;       /* a code object was not met before */
	__u8 is_jit;       /* the leaf runs machine code */
	__u8 has_several;  /* the process has several interpreters */
	__u8 is_moment;    /* all that is met is of one moment: an address is of one code object */
};

/* The frame that the walk is at, taken apart. */
struct py_frame {
	__u64 code;      /* address of its code object */
	__u64 id;        /* identity of that, 0: not readable */
	__u64 raw_instr; /* as the frame has it */
	__u64 bytecode;  /* where it begins */
	__u64 object;    /* compiled: the frame object that it lies in, 0: it is bytecode */
	__u32 line;      /* compiled: as that object has it, 0: not readable */
	__u32 tlbc;      /* which thread's copy of the bytecode runs */
	__s32 stacktop;  /* 3.11, 3.12: behind prev_instr */
	__u8 owner;
	__u8 is_code_read;  /* s->code is this code object */
	__u8 is_compared;   /* id is of that object for certain, as long as a frame runs it */
	__u8 is_entry;      /* 3.11: called by C; 3.12+: a boundary behind one that is */
	__u8 is_collecting; /* the collector runs on it */
	__u8 is_task_root;  /* it is that of a task's coroutine */
	__u8 reserved[6];
};

/* A code object of an outer frame, remembered for the rest of the walk. */
struct py_repeated {
	__u64 code;
	__u64 id;
};
#define REPEATED_MAX 8 /* power of two */

/* What is known of a thread besides, where its state is searched for. */
struct py_met {
	__u64 sp; /* its stack pointer in user code; 0: not known, as is where the stack ends */
	__u64 stack_end; /* its C stack is below */
	__u32 tid;       /* its id, as it has it itself; 0: not known */
	__u8 is_met;     /* was asked for in this walk */
	__u8 is_first;   /* of its process */
	__u8 is_forked;  /* the process runs the program of its parent */
	__u8 reserved;
};

/* How likely a thread runs a state: of what is known, the best comes last. */
enum state_rank {
	STATE_NONE,
	STATE_ELSEWHERE, /* the thread made it, but its calls are not on the thread's stack */
	STATE_IDLE,      /* it made it; it has no frames */
	STATE_BUSY,      /* it made it; it has some */
	STATE_BOUND,     /* and swapped it in last */
	STATE_HERE,      /* its calls are on the thread's stack */
};

/*
 * A thread state whose calls are on the thread's stack: the one that it runs, or one from which
 * that was entered, in another interpreter.
 */
struct py_nested {
	__u64 tstate;
	__u64 interp;
	__u64 frame; /* as the state has it: tstate_frame */
	__u64 mark;  /* where on the C stack its innermost call is: the one of several that is
		      * farther down was called by the other. Not known: of their place in the list
		      */
};
#define NESTED_MAX 8               /* power of two */
#define NESTED_LISTED (1ULL << 63) /* marks from here on are places in the list */

/* Search of the thread lists. */
struct py_search {
	__u64 interp;
	__u64 tstate;
	__u64 frame; /* of tstate: at which of its frames the search is; 0: at none */
	__u64 known; /* which one the thread ran before; 0: not known */
	__u64 runs;  /* and which it runs; 0: not known yet */
	__u64 found; /* the best so far; with its interpreter, and where on a C stack it is */
	__u64 found_interp;
	__u64 mark;
	__u64 head;     /* the newest state when the search began */
	__u64 began_at; /* the first state that this sample looks at */
	struct py_met met;
	__u32 matches; /* how many the thread made, */
	__u32 busy;    /* and how many of these have frames */
	__u8 rank;     /* enum state_rank, of found */
	__u8 is_own;   /* the thread made tstate */
	__u8 is_tied;  /* found is taken for its place in the list */
	__u8 is_settled;
	__u8 is_second;  /* states that others made are looked at as well */
	__u8 is_late;    /* it took too long */
	__u8 is_resumed; /* an earlier sample of the thread began it */
	__u8 is_old;     /* found is from an earlier sample */
	__u8 is_deep;    /* the frames of tstate are too many to be followed */
	__u8 is_of_new;  /* only the states that were made since it began are left */
	__u8 is_cut;     /* of several interpreters some could not be read */
	__u8 has_walked; /* the lists were gone through */
	__u8 is_bound;   /* the thread made one that is bound, or found is another one's */
	__s32 result;    /* what py_find_tstate() returned, for the walk behind it */
	__u32 nested_count;
	__u64 nested_mark; /* of the one whose frames are walked; 0: all the others called it */
	struct py_nested nested[NESTED_MAX];
};

/* Search of the exceptions that a thread handles. */
struct py_handling {
	__u64 item; /* the next one */
	__u64 none; /* address of None; 0: not met yet */
};

/* Tasks that run, and the one that the walk has met. */
struct py_async {
	struct asyncio_row row;
	__u64 tasks[ASYNC_TASKS_MAX];
	__u64 frames[ASYNC_TASKS_MAX]; /* of their coroutines */
	__u64 task, frame;             /* 0: none was met */
	__u32 count;
	__u32 entries; /* of the dict that are looked at */
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

/* A node of a HAMT, as its head has it. */
struct hamt_node {
	__u64 addr;
	__u32 kind;    /* enum hamt_kind */
	__u32 entries; /* pairs; of an array its places */
	__u32 bitmap;
	__u32 at; /* of a search: the next entry */
};

struct hamt_pair {
	__u64 key; /* a variable; 0: value is a node, or nothing */
	__u64 value;
};

/* Names and what they stand for: of a dict, or of an object's attributes. */
struct py_entries {
	__u64 first;      /* where the key of the first one is; its value is behind it, */
	__u64 values;     /* or they are here, apart; 0: they are not */
	__u64 name[2];    /* what is looked for, ASCII, */
	__u32 name_bytes; /* so many of it: ends with NUL, or is what the names begin with */
	__u32 count;
	__u32 bytes; /* of an entry */
	__u32 at;    /* the next one that is looked at */
};

/* The context that the thread runs in, and the variable that is looked for in it. */
#define HAMT_LEVELS 8 /* _Py_HAMT_MAX_TREE_DEPTH, pycore_hamt.h */
struct py_context {
	__u64 root;  /* the HAMT's */
	__u64 var;   /* its address; one at another address is another one */
	__u64 value; /* what it is set to, an object; 0: nothing */
	struct hamt_node node;
	__u32 bits;                     /* of the variable's hash, those of the next levels */
	__u32 found;                    /* labels whose variable is set: bits by their numbers */
	__u32 learned;                  /* variables of labels that the search met */
	__u32 depth;                    /* of the search */
	__u32 first;                    /* where in the root it begins */
	__u32 steps;                    /* that it took */
	struct thread_context_row slot; /* of its process; process 0: it publishes none */
	__u64 span;    /* where its trace's id is, its own behind it, or the Context that has it; 0:
			* none */
	__u32 spanned; /* labels that are of that: bits by their numbers */
	__u32 reserved;
	struct py_entries entries;
	struct hamt_node levels[HAMT_LEVELS];
	struct hamt_pair
		pair;       /* an entry of a node; here and not on the stack, of which there is */
	__u64 type_name[2]; /* little, as is the name of a type or an entry */
};

/* Work space: too large for the stack, so it lives in a map. Not cleared between samples. */
struct py_scratch {
	struct py_thread thread;
	struct py_walk walk;
	struct py_frame frame;
	struct py_search search;
	struct py_handling handling;
	struct py_describing describing;
	struct py_context context;
	struct py_async async;
	struct py_repeated repeated[REPEATED_MAX];
	struct py_unsent unsent[CODES_PER_SAMPLE];
	struct page_range faults[FAULTS_MAX];
	__u8 tstate[TSTATE_BYTES + 8];
	__u8 code[CODE_BYTES + 8];
	__u8 text[2 * STRING_HEAD_BYTES + PROBE_BYTES + 8];
	__u8 frames[FRAME_BYTES + BLOCK_BYTES + FRAME_BYTES + 8]; /* one frame, then the block */
	struct labels_event labels;
	/* The record, in one piece. */
	struct sample_event sample;
	struct sample_part part;
	struct frame_record records[FRAMES_MAX];
	__u8 message[sizeof(struct code_event) + 2 * STRING_BYTES_MAX + LINES_CHUNK + 8];
};

struct py_loop {
	struct py_scratch *s;
	const struct py_offsets *off;
	const struct py_thread *thread;
	struct door door;
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
static __always_inline int py_read(struct door door, struct py_scratch *s, void *dst, __u32 size,
				   __u64 addr)
{
	return read_user(door, dst, size, addr) ? py_note_fault(s, addr, size, false) : 0;
}

/* Reads a pointer. 0 if it cannot be read: that ends a search. */
static __always_inline __u64 read_pointer(struct door door, struct py_scratch *s, __u64 addr)
{
	__u64 value = 0;

	return py_read(door, s, &value, sizeof(value), addr) ? 0 : value;
}

/* Has the process several interpreters, which have ids? */
static __always_inline bool py_has_numbered(const struct py_walk *w, const struct py_offsets *off)
{
	return w->has_several && off->interp_id != OFF_NONE;
}

/* The id of the interpreter whose frames are walked, + 1; 0: its process has but one. */
static __always_inline __u64 py_interpreter_shown(const struct py_walk *w,
						  const struct py_offsets *off)
{
	return py_has_numbered(w, off) ? w->interpreter + 1 : 0;
}

/* Has this sample taken too long? Looks at the clock now and then only. */
static __always_inline bool py_is_late(struct py_walk *w)
{
	return !(++w->steps & (TIME_STEPS - 1)) && clock_ns() > w->deadline_ns;
}

#endif
