/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#ifndef BPF_EVENTS_H
#define BPF_EVENTS_H

/*
 * What crosses between kernel and user space: ring records, map values, enums. Both sides compile
 * this file. Everything is fixed-width and padded by hand; the sizes are asserted at the end.
 */

#ifndef __bpf__
#include <linux/types.h>
#endif

#define FRAMES_MAX 4096     /* frames in one sample; deeper stacks keep their leaf end, flagged */
#define CODES_PER_SAMPLE 64 /* code objects described in one sample, leaf first */
#define LEAF_CODES 8        /* the first of them, also where the walk took all of its time */
#define CODE_BYTES_PER_SAMPLE 16384
#define STRING_BYTES_MAX 4096 /* a name or file name, in the target's own encoding; longer: cut */
#define LINES_CHUNK 4096      /* a line table travels in chunks of this size */
#define LINES_CHUNKS_MAX 16   /* the kernel sends 64 KiB of a table; user space reads the rest */
#define COMM_BYTES 16
#define ARGS_BYTES 512            /* start of the command line, NUL between arguments */
#define THREAD_WAKEUP_NS 10000000 /* see bpf/describe.h */
#define TASK_SCRATCHES_MIN 8      /* samples that task work walks at the same time: for half of */
#define TASK_SCRATCHES_MAX 512    /* the CPUs, a power of two */
#define REMOTE_SCRATCHES 4        /* passes over threads that wait: one, and three left behind */
#define SILENT_MAX 8            /* processes that are not visited, as their memory did not answer */
#define BEGUN_SLOTS 64          /* Pythons that have begun, for passes over their threads */
#define RUNNING_SLOTS 1024      /* processes whose program is told without an iterator */
#define TASK_WORKS_MAX 16384    /* samples that wait for it; power of two */
#define TASK_WORKS_OF_PAGES 256 /* the same where only missing pages are waited for */
#define LONG_WALKS 4096         /* power of two: see bpf/task_work.h */
#define FAULTS_MAX 8            /* of what a sample could not read, so much is noted */
#define LAYOUTS_MAX 64
#define WALKED_TASKS_MAX 65536    /* processes that are found without iterators */
#define SENT_SLOTS 65536          /* power of two */
#define TASK_WORK_SCHEDULE 0x7479 /* stands for a kernel function; no helper has this number */
#define RDONLY_CAST 0x747a        /* likewise */
#define TRUSTED_TAG "arg:trusted" /* Documentation/bpf/kfuncs.rst; see bpf/verifier.h */
#define TIMES_SLOTS_SHIFT 13      /* 8,192: see bpf/times_slot.h */
#define OFF_NONE 0xffff           /* a field this interpreter does not have */
#define OPCODE_NONE 0xffff        /* not asked for, or not known */
#define BUDGET_SHARE 4            /* of a CPU, that the sampler may take: a quarter */
#define EVENTS_MAX 16             /* perf events that the user may name */
#define EVENT_SPARE_SLOTS 16      /* see bpf/event.bpf.c */
#define CONTEXT_LABELS_MAX 8      /* labels that a session may ask for */
#define LABEL_NAME_BYTES 64       /* of a context variable's name, ASCII */
#define LABEL_TASK 0xff           /* number of the label that is a task's name */
#define ASYNC_TASKS_MAX 4         /* of several loops that are looked for on one stack */
#define LABEL_BYTES_MAX 64        /* of a value, as it lies in the target; longer: cut */

/* Line-table formats: Objects/lnotab_notes.txt (<= 3.9 and 3.10), Objects/locations.md (3.11+). */
enum lines_format { LINES_LNOTAB, LINES_DELTAS, LINES_LOCATIONS };

/* How frames are kept. */
enum frame_kind {
	FRAME_OBJECT,   /* <= 3.10: PyFrameObject on the heap, tstate->frame */
	FRAME_CFRAME,   /* 3.11, 3.12: _PyInterpreterFrame, tstate->cframe->current_frame */
	FRAME_INTERNAL, /* 3.13+: _PyInterpreterFrame, tstate->current_frame */
};

/* Where an instance has its attributes. */
enum object_attributes {
	ATTRIBUTES_DICT,     /* up to 3.10: a dict, at tp_dictoffset */
	ATTRIBUTES_POINTERS, /* 3.11: before the object, a dict and a pointer to values */
	ATTRIBUTES_TAGGED,   /* 3.12: before it, one of the two: an odd pointer is of values */
	ATTRIBUTES_INLINE,   /* 3.13 on: a dict before it, or values behind its fields */
};

/* Of struct object_layout (user/target/object.h), what the sampler needs of dicts, attributes and
 * tuples. */
struct py_object_offsets {
	__u8 attributes;    /* enum object_attributes */
	__u8 keys_are_logs; /* keys_size is the binary logarithm of the index' size in bytes */
	__u8 keys_size;     /* else the number of its places */
	__u8 keys_kind;     /* 0: entries with a hash; OFF_NONE_8: all have */
	__u8 keys_nentries;
	__u8 keys_indices;
	__u8 values_items;
	__u8 tuple_items; /* this and the next from the end of PyObject */
	__u16 type_cached_keys;
};
#define OFF_NONE_8 0xff

/*
 * One CPython build as the unwinder sees it: byte offsets of the fields it reads. From 3.13 filled
 * from _Py_DebugOffsets, before from the table in user/target/offsets.c. OFF_NONE: no such field.
 */
struct py_offsets {
	__u8 minor, micro;     /* 3.minor.micro */
	__u8 is_free_threaded; /* Py_GIL_DISABLED */
	__u8 is_debug;         /* Py_DEBUG with _PyObject_HEAD_EXTRA (3.6, 3.7) */
	__u8 frame_kind;       /* enum frame_kind */
	__u8 lines;            /* enum lines_format */
	__u8 lasti_unit;     /* FRAME_OBJECT: bytes in one step of f_lasti: 1 (<= 3.9), 2 (3.10) */
	__u8 owner_boundary; /* owner >= this: a C boundary, never shown (3.12+: 3); 0: none */
	__u8 tagged_mask;    /* low bits of frame_code that are a tag (3.14 on: 3) */
	__u8 status_bound_gilstate; /* bit mask in tstate->_status, 0: no such bit (3.12+: 8) */
	__u8 status_active;         /* bit mask: attached, holds the GIL, 0: none (3.12+: 16) */
	__u8 is_best_effort;        /* an unknown minor read by its own _Py_DebugOffsets */
	__u8 str_kind_shift;  /* PyASCIIObject.state: kind, 3 bits (2; free-threaded 3.14+: 8) */
	__u8 str_compact_bit; /* bit number (5; 11) */
	__u8 str_ascii_bit;   /* bit number (6; 12) */
	__u8 is_jit;          /* 3.13 with its JIT, which does not say when it runs */

	/* _PyRuntime, from its start; 3.6: its two variables, from the first of them */
	__u16 runtime_interpreters_head;
	__u16 runtime_tstate_current; /* gilstate.tstate_current (<= 3.11) */
	__u16 runtime_gil;            /* the GIL itself (3.8 to 3.11) */
	__u16 gil_last_holder;        /* in struct _gil_runtime_state; OFF_NONE: 3.6, 3.7 */

	/* PyInterpreterState: needs 32 bits in some builds */
	__u32 interp_next;
	__u32 interp_threads_head;
	__u32 interp_id;              /* OFF_NONE: 3.6 */
	__u32 interp_code_generation; /* 3.14+, 0: none */
	__u32 interp_modules;         /* sys.modules; for user space */
	__u32 interp_gil;             /* pointer to its GIL (3.12+) */
	__u32 interp_gc_collecting;   /* 3.9+: an int */
	__u32 interp_gc_frame;        /* 3.15+: the frame that the collector runs on */
	__u32 interp_eval_frame;      /* 3.11+: what evaluates frames; NULL: CPython itself */
	__u32 runtime_size;           /* 3.13+, 0: not known. The main interpreter lies within */

	/* PyThreadState */
	__u16 tstate_prev;
	__u16 tstate_next;
	__u16 tstate_interp;
	__u16 tstate_frame; /* frame, cframe or current_frame, by frame_kind */
	__u16 tstate_status;
	__u16 tstate_thread_id;
	__u16 tstate_native_thread_id;
	__u16 tstate_executor; /* 3.14+: not NULL while it runs machine code (JIT) */
	__u16 tstate_exc_info; /* 3.7+: the innermost _PyErr_StackItem */
	__u16 tstate_context;  /* 3.7+: the context that it runs in, or NULL */
	__u16 tstate_size;     /* bytes that cover all of the above */
	__u16 cframe_current;
	__u16 tstate_cframe; /* 3.10 to 3.12: it leads to the C stack of who runs it; 0: none */

	/* _PyErr_StackItem: a thread's, and one of each generator that runs */
	__u16 exc_value;
	__u16 exc_previous;

	__u16 runtime_gc_collecting; /* in _PyRuntime: gc.collecting, an int (3.7, 3.8) */

	/* PyFrameObject or _PyInterpreterFrame */
	__u16 frame_code;
	__u16 frame_previous;
	__u16 frame_instr;  /* f_lasti, behind it f_lineno (ints); prev_instr or instr_ptr (pointer)
			     */
	__u16 frame_object; /* 3.11+: the PyFrameObject that was made for it, or NULL */
	__u16 frame_owner;
	__u16 frame_is_entry;   /* 3.11 only */
	__u16 frame_tlbc_index; /* free-threaded 3.14+ */
	__u16 frame_size;       /* bytes that cover all of the above */

	/* PyCodeObject */
	__u16 code_firstlineno;
	__u16 code_filename;
	__u16 code_name;
	__u16 code_qualname;
	__u16 code_linetable; /* co_lnotab up to 3.9 */
	__u16 code_adaptive;  /* the bytecode; up to 3.10 co_code: a pointer to it */
	__u16 code_firsttraceable;
	__u16 code_tlbc;    /* free-threaded 3.14+ */
	__u16 code_version; /* 3.12+: unique for each code object of an interpreter */
	__u16 code_size;    /* sizeof(PyCodeObject) without the bytecode: what one read takes */

	/* PyASCIIObject, PyCompactUnicodeObject, PyBytesObject */
	__u16 str_length;
	__u16 str_hash;
	__u16 str_state;
	__u16 str_ascii_data;
	__u16 str_compact_data;
	__u16 bytes_size;
	__u16 bytes_data;

	__u16 contextvar_hash; /* PyContextVar (3.7+); what else is read of contexts is alike in all
				*/

	/* Not CPython's: struct pthread of the C library that the process runs with. */
	__u16 pthread_bytes; /* from pthread_self() to the thread pointer; x86-64: 0 */
	__u16 pthread_tid;   /* from pthread_self() to the thread's id, an int; 0: not known */
	struct py_object_offsets objects;
};

/* One process that runs Python: value of the `procs` map, key: its pid. */
struct proc_row {
	__u64 start_ns;   /* task_struct.start_boottime of the group leader */
	__u64 runtime;    /* address of _PyRuntime */
	__u64 recheck_ns; /* LAYOUT_NONE: ask again after this (CLOCK_MONOTONIC) */
	__u32 exec_id;    /* task_struct.self_exec_id: another one means another program */
	__u16 layout;     /* index into layouts[], LAYOUT_NONE: no Python runtime in this process */
	__u8 is_target;   /* recorded when session.has_filter */
	__u8 is_ours;     /* not recorded as long as it is that: our fork that becomes a COMMAND */
};
#define LAYOUT_NONE 0xffff
#define LAYOUT_UNSURE 0xfffe
#define ANY_PROGRAM 0xffffffffU /* an exec_id that no program has: whatever runs is asked about */

/*
 * A process that has asyncio, or trio: value of `asyncio_rows`, key: its pid. Byte offsets as
 * user/inspect/task_layout.h has them. All zeros: none.
 */
struct asyncio_row {
	__u64 process;       /* identity: another program of that pid has none */
	__u64 current_tasks; /* address of the dict (up to 3.13); of the variable */
	__u16 tstate_task;   /* 3.14 on: the task that runs, in PyThreadState; 0: elsewhere */
	__u16 task_coro;     /* in a task */
	__u16 task_name;
	__u16 coro_frame;     /* in a coroutine */
	__u8 is_frame_inside; /* the frame itself, and not a pointer to it (3.11 on) */
	__u8 is_variable;     /* trio's: the task that runs is a variable of its loop */
	__u8 reserved[6];
};

/*
 * Key and value of `binaries`: a file whose executable mapping belongs to a known interpreter, or
 * (LAYOUT_NONE) a program that was seen not to be Python, LAYOUT_UNSURE: that may load it later.
 */
struct binary_key {
	__u64 inode;
	__u64 dev; /* super_block.s_dev, the kernel's own number */
};

struct binary_row {
	__s64 text_to_runtime; /* _PyRuntime = vm_start - file offset of the mapping + this */
	/* Of a program, 0: not known. From its mm_struct.start_code to _PyRuntime, or
	 * (LAYOUT_UNSURE) to a pointer that leads into the code of the interpreter it is linked
	 * with. */
	__s64 from_start;
	__u32 layout;
	__u32 interpreter; /* LAYOUT_UNSURE: index into layouts[] of the one it is linked with */
};

/* What has the sampler take a sample. Counters, budget and work spaces are of a CPU and a source.
 */
enum sample_source {
	SOURCE_TICKS,    /* time on a CPU: values are ticks */
	SOURCE_SWITCHES, /* time off the CPU: values are ns */
	SOURCE_EVENTS,   /* perf events that the user names: values are of theirs */
	SOURCE_COUNT_
};

/* Set by user space before loading. */
struct session_config {
	__u32 cpus;         /* possible CPUs */
	__u32 wakeup_bytes; /* a quarter of the ring: the consumer is woken when so much waits */
	__u32 own_pid;      /* never recorded; as all PIDs here: in our own PID namespace */
	__u32 pidns_inode;  /* our PID namespace, whose processes alone exist; 0: the initial one */
	__u8 has_filter;    /* record only rows with is_target (per-CPU events) */
	__u8 follow_children; /* children of targets are targets */
	__u8 has_task_work;   /* TASK_WORK_SCHEDULE was replaced; 0: as kernels before 6.18 */
	__u8 has_cgroup;      /* record only tasks in cgroups[0] or below it */
	__u32 target_pidns;   /* inode: record only processes of this PID namespace; 0: of all */
	__u32 target_pidns_depth; /* its level less that of our own */
	__u32 regs_type;          /* id of struct pt_regs; 0: RDONLY_CAST was not replaced */
	__u32 task_type;          /* id of struct task_struct; likewise */
	__u32 ticks_flags;  /* enum sample_flag: ticks are kept that have one of them; 0: all are */
	__u8 has_opcodes;   /* samples tell the instruction of their leaf frame */
	__u8 has_gc;        /* and whether the collector runs */
	__u8 has_spans;     /* of waiting, and each thread's times */
	__u8 has_exit_hook; /* they are sampled when they end (sched_exit_tp); 0: when they begin,
			     * as on kernels before 6.16 */
	/* Sources that are on have a row of work spaces, one a CPU: which, and how many there are.
	 */
	__u8 scratch_rows;
	__u8 scratch_row[SOURCE_COUNT_];
	__u8 label_count;         /* of label_configs; 0: no context is looked at */
	__u8 has_thread_contexts; /* thread_contexts has rows of processes that publish them */
	__u8 has_async;           /* samples tell which task they are in */
	__u8 has_exit_work; /* spans sampled when they end are so by task work, not sched_exit_tp */
	__u8 has_slots;     /* the times of threads are in times_slots, as far as these reach */
	__u8 page_shift;    /* the kernel's pages are 1 << this bytes: 12, on arm64 also 14, 16 */
	__u64 span_ns; /* what a tick stands for. Times spans_stride (bpf/span.h) it is T0: spans of
			* waiting of at least that are all kept, shorter ones by chance */
	__u64 cgroup_id;  /* of cgroups[0]: the inode of its folder */
	__u64 root_inode; /* of pyebpf's own root directory, and */
	__u32 root_mount; /* the id of its mount: in another mount namespace it has another one */
	__u32 task_works; /* entries of task_samples: a power of two, at most TASK_WORKS_MAX */
	__u32 task_scratches; /* work spaces of task work: a power of two, <= TASK_SCRATCHES_MAX */
};

/* Ways in which events come, a program each: see user/collect/events.h. */
enum event_class {
	EVENT_CLASS_PERF, /* the kernel counts periods */
	EVENT_CLASS_TRACEPOINT,
	EVENT_CLASS_FUNCTION,
	EVENT_CLASS_PROBE,  /* USDT */
	EVENT_CLASS_MEMORY, /* growth of resident memory */
	EVENT_CLASS_COUNT_
};

/* What one of the user's perf events stands for. */
enum event_value {
	EVENT_ONE,    /* itself */
	EVENT_PERIOD, /* what the kernel counted since the one before */
	EVENT_ARG,    /* an argument of the function or the probe */
	EVENT_FIELD,  /* a field of the tracepoint */
};

/* One of them. Set by user space before loading. */
struct event_config {
	__u64 period;       /* a sample every so many of its unit; 1: all that come */
	__u8 value;         /* enum event_value */
	__u8 arg;           /* EVENT_ARG: which, 0 the first */
	__u8 field_bytes;   /* EVENT_FIELD: 1, 2, 4 or 8, */
	__u8 field_signed;  /* is it signed, */
	__u32 field_offset; /* and where it is in the record of the tracepoint */
};

/* What of a context variable's value is a label. */
enum label_part {
	LABEL_WHOLE,
	LABEL_TRACE_ID, /* of the span that OpenTelemetry's SDK keeps there */
	LABEL_SPAN_ID,
};

/* A label that samples get: the value of a context variable. Set by user space before loading. */
struct label_config {
	__u64 name[LABEL_NAME_BYTES / 8]; /* of the variable, ASCII, zeros behind it */
	__u32 name_bytes;                 /* 1 to LABEL_NAME_BYTES */
	__u32 part;                       /* enum label_part */
};

/*
 * Where the threads of a process have the pointer to the context that they are in (OTEP 4947):
 * value of `thread_contexts`, key: its pid. What is in a static block of thread-local storage is
 * counted from the thread pointer, else in the block of a module, which the thread's table has.
 */
struct thread_context_row {
	__u64 process; /* identity; another one: not this row's */
	__s64 offset;
	__u32 module;     /* in the table; 0: static */
	__u16 table_at;   /* where the table's address is, from the thread pointer */
	__u16 table_step; /* bytes of an entry, which begins with the block's address */
};

/*
 * The ticks of one CPU: value of `cpu_ticks`, key: its number. Written by user space just before it
 * sets the event's period, and to be read at any moment: the fields may not belong together.
 */
struct cpu_ticks {
	__u64 set_ns; /* CLOCK_MONOTONIC: since when */
	__u64 period_ns;
	__u32 weight; /* ticks that one event stands for; 0: nothing is recorded */
	__u32 reserved;
};

/* Entries of the sampler's caches, bpf/cache.h: here because the skeleton shows their arrays. */
struct cache_slot {
	__u64 check; /* key ^ value */
	__u64 value;
};

/*
 * A search for a thread's state that took too long, as its next sample continues it. A slot torn by
 * two writers belongs to no thread: check is the thread's key ^ all the other words.
 */
struct kept_search {
	__u64 check;
	__u64 tstate; /* the next one to look at; 0: the slot is free */
	__u64 head;   /* the newest one when the search began */
	__u64 found;  /* as in struct py_search, and so on */
	__u64 found_interp;
	__u64 mark;
	__u64 counts; /* matches, busy */
	__u64 facts;  /* enum state_rank, then bits: enum kept_fact */
};

struct trust {
	__u64 process;
	__u64 none;  /* address of its None, 0: not met yet */
	__u32 clean; /* samples without reuse so far, or TRUST_NEVER */
	__u32 reserved;
};

/* Of a sample that waits for task work: see bpf/task_work.h. */
#define TASK_OWNER_SOURCE 32 /* bits of task_slot.owner from here on: its source, 8, */
#define TASK_OWNER_EVENT 40  /* and the event */
struct task_slot {
	__u64 owner;  /* its thread's tid, its source and event: task_owner(); 0: free */
	__u64 value;  /* what it stands for, as its source's counters count, without: */
	__u64 joined; /* the value of samples of the same owner that joined it */
};

/*
 * What a thread waited for. The kinds of file of READ and WRITE are told of what is sampled; sums
 * of all are of classes. X(enum, class)
 */
#define WAIT_REASONS(X)                                  \
	X(WAIT_RUNNABLE, CLASS_RUNNABLE) /* for a CPU */ \
	X(WAIT_LOCK, CLASS_LOCK)                         \
	X(WAIT_LOCK_FILE, CLASS_LOCK)                    \
	X(WAIT_GIL, CLASS_GIL)                           \
	X(WAIT_SLEEP, CLASS_SLEEP)                       \
	X(WAIT_POLL, CLASS_POLL)                         \
	X(WAIT_READ_SOCKET, CLASS_READ)                  \
	X(WAIT_READ_FILE, CLASS_READ)                    \
	X(WAIT_READ_PIPE, CLASS_READ)                    \
	X(WAIT_WRITE_SOCKET, CLASS_WRITE)                \
	X(WAIT_WRITE_FILE, CLASS_WRITE)                  \
	X(WAIT_WRITE_PIPE, CLASS_WRITE)                  \
	X(WAIT_PROCESS, CLASS_PROCESS)                   \
	X(WAIT_FAULT, CLASS_FAULT)                       \
	X(WAIT_DISK, CLASS_DISK)                         \
	X(WAIT_STOPPED, CLASS_OTHER)                     \
	X(WAIT_OTHER, CLASS_OTHER) /* another system call, which is told */

enum wait_class {
	CLASS_RUNNABLE,
	CLASS_LOCK,
	CLASS_GIL,
	CLASS_SLEEP,
	CLASS_POLL,
	CLASS_READ,
	CLASS_WRITE,
	CLASS_PROCESS,
	CLASS_FAULT,
	CLASS_DISK,
	CLASS_OTHER,
	CLASS_COUNT_
};

enum wait_reason {
	WAIT_NONE, /* no span of waiting */
#define X(reason, class) reason,
	WAIT_REASONS(X)
#undef X
		WAIT_COUNT_
};
#define SYSCALL_NONE 0xffff

/* Ring records. Each starts with its kind. */
enum event_kind {
	EVENT_SAMPLE = 1, /* struct sample_event */
	EVENT_CODE,       /* struct code_event: a code object at first sight */
	EVENT_LINES,      /* struct lines_event: a further piece of a line table */
	EVENT_PROCESS,    /* struct process_event: a process at its first sample */
	EVENT_THREAD, /* struct thread_event: a thread at its first sample or under a new name */
	EVENT_WHO,    /* struct who_event: a process user space should look at */
	EVENT_PAGE,   /* struct page_event: memory user space should read in */
	EVENT_THREAD_TIMES, /* struct thread_times_event: a thread has ended */
	EVENT_SPAN_END, /* struct span_end_event: of a sample that was taken as its span began */
	EVENT_LABELS,   /* struct labels_event: a set of labels at its first sample */
};

/* How an unwind ended. */
enum unwind_status {
	UNWIND_COMPLETE,  /* reached the thread's outermost frame */
	UNWIND_TRUNCATED, /* deeper than FRAMES_MAX: the leaf end is kept */
	UNWIND_FAULT,     /* a page was not present: the leaf end is kept */
	UNWIND_CUT,       /* the chain ends in a frame that is not an entry frame */
	UNWIND_INVALID,   /* memory that cannot be a frame chain: a cycle, a wild length */
	UNWIND_LATE,      /* it took too long: the leaf end is kept */
	UNWIND_OUTSIDE,   /* the thread runs no Python code, its process has a Python: no frames */
	UNWIND_UNIDENTIFIED, /* the process is not known yet: no frames */
};

enum sample_flag {
	SAMPLE_HOLDS_GIL = 1 << 0,   /* attached: holds the GIL, or runs free-threaded */
	SAMPLE_WEIGHTED = 1 << 1,    /* stands for several ticks: stride, skipped by the budget */
	SAMPLE_AMBIGUOUS = 1 << 2,   /* several thread states of this thread: the likeliest one */
	SAMPLE_TASK_WORK = 1 << 3,   /* walked in the thread's own context, missing pages read in */
	SAMPLE_KERNEL = 1 << 4,      /* interrupted in kernel mode */
	SAMPLE_CODE_FAULT = 1 << 5,  /* some frame's code object could not be read */
	SAMPLE_SHORT = 1 << 6,       /* a span that was kept by chance, of value / duration */
	SAMPLE_OPEN = 1 << 7,        /* a span that begins: its end comes as an event of its own */
	SAMPLE_EPISODE = 1 << 8,     /* a span that begins an episode of waiting for the GIL */
	SAMPLE_HANDLES = 1 << 9,     /* the thread handles an exception */
	SAMPLE_IN_GC = 1 << 10,      /* it collects garbage: some frame is FRAME_COLLECTS */
	SAMPLE_LABEL_TYPE = 1 << 11, /* the variable of a label is set, but to no str or int */
	SAMPLE_TASK_NAMED = 1 << 12, /* its labels have the name that the task was given */
};

/* What the frames of a part are. */
enum part_kind {
	PART_PYTHON, /* struct frame_record */
	PART_COUNT_
};

enum frame_flag {
	FRAME_UNREADABLE = 1 << 0,  /* code is the code object's address, not an identity */
	FRAME_NOT_STARTED = 1 << 1, /* no instruction yet: shows the def line */
	FRAME_IN_JIT = 1 << 2,      /* runs machine code, which seldom says where it is */
	FRAME_ENTRY = 1 << 3,       /* 3.11+: called by C, which is between it and the next one */
	FRAME_COLLECTS = 1 << 4,    /* the collector runs on top of it; before 3.15: of the leaf */
	FRAME_TASK_ROOT = 1 << 5,   /* of the outermost coroutine of the sample's task */
	FRAME_INTERPRETER = 1 << 6, /* no frame: those above are of the interpreter whose id is
				     * code, which those below have entered */
	FRAME_COMPILED = 1 << 7,    /* machine code that has a frame (Nuitka): instr is its line */
};

/* One frame. code: identity, see py_code_identity() in bpf/python_code.h. */
struct frame_record {
	__u64 code;
	__u32 instr; /* byte offset from the first bytecode; of FRAME_COMPILED the line */
	__u32 flags; /* enum frame_flag */
};

/* A frame of one thread that is looked at for its own sake: with where it lies. */
struct walk_frame {
	__u64 frame;    /* address of PyFrameObject or _PyInterpreterFrame; of FRAME_INTERPRETER
			 * the id, and nothing else */
	__u64 code;     /* address of its code object */
	__u64 identity; /* of that: see py_code_identity() in bpf/python_code.h; 0: unreadable */
	__u32 instr;    /* byte offset from the first bytecode; of FRAME_COMPILED the line */
	__u32 flags;    /* enum frame_flag */
};

/* What is told of that thread besides. */
struct walk_head {
	__u32 status;      /* enum unwind_status */
	__u32 flags;       /* enum sample_flag */
	__u64 tstate;      /* its PyThreadState */
	__u64 interp;      /* and that one's interpreter, */
	__u64 interpreter; /* whose id this is, + 1; 0: its process has but one */
	__u64 gil;         /* address of last_holder of its GIL; 0: not known, or none yet */
	__u64 exception;   /* type of the one that it handles; 0: none */
	__u32 depth;
	__u32 reserved;
};

/* A thread that runs, walked in its own context (bpf/own.bpf.c), or one that stands still
 * (bpf/still.bpf.c). Who changes the state does so in one atomic step: user space gives up what the
 * kernel has not begun. */
enum own_state {
	OWN_NONE,
	OWN_WAITS,  /* for the thread to come back to its own code */
	OWN_BEGUN,  /* it is walked */
	OWN_DONE,   /* and here is what was found */
	OWN_RESTS,  /* it is off the CPU: to be read as such */
	OWN_MOVED,  /* it was, but not all along */
	OWN_FAILED, /* the kernel has no room for it */
	OWN_GIVEN_UP,
};

struct own_ask {
	__u64 pointer; /* pthread_self() */
	__u64 runtime; /* address of _PyRuntime */
	__u64 process; /* another number for another process: identities are made of it */
	__u32 tid;     /* in our PID namespace */
	__u32 reserved;
};

/* What the scheduler has of a thread that is off the CPU. */
struct task_stand {
	__u64 switches;      /* how often it has left the CPU */
	__u64 exec_start_ns; /* when it was last seen there, by that CPU's clock */
	__s64 syscall;       /* that it is in; < 0: none */
	__u64 args[2];
	__u32 task_state; /* task_struct.__state: 0: it waits for a CPU */
	__u32 cpu;
	char comm[COMM_BYTES];
};

struct own_walk {
	__u32 state;              /* enum own_state */
	__s32 result;             /* 0, or of py_look(): no thread state, or it cannot be read */
	__u64 began_ns, ended_ns; /* CLOCK_MONOTONIC: so long it was held up */
	struct own_ask asked;
	struct task_stand stand; /* of still.bpf.c */
	struct walk_head head;
	struct walk_frame frames[FRAMES_MAX]; /* leaf first */
};

/* Head; parts follow, to the end of the record. As long as it needs to be. */
struct sample_event {
	__u8 kind;
	__u8 source; /* enum sample_source */
	__u16 cpu;
	__u32 flags;    /* enum sample_flag */
	__u64 ktime_ns; /* CLOCK_MONOTONIC */
	__u64 process;  /* process identity, as in process_event */
	__u64 value;    /* what it stands for, in the source's unit, >= 1 */
	__u32 pid;      /* thread group id, in our PID namespace */
	__u32 tid;
	__u64 duration_ns; /* of a span, which ended at ktime_ns; 0: a moment */
	__u64 blocked_ns;  /* that others waited for the GIL meanwhile, which this thread held */
	__u8 wait;         /* enum wait_reason */
	__u8 event;        /* of SOURCE_EVENTS: which of the session's */
	__u16 syscall;     /* of WAIT_OTHER: its number, or SYSCALL_NONE */
	__u32 interpreter; /* id of the one that it runs, + 1; 0: its process has but one */
	__u64 labels;      /* identity of its set, as in labels_event; 0: none */
	__u64 task;        /* address of the task that it is in; 0: in none, or not known */
	__u64 coro_frame;  /* and of the frame of its coroutine: tasks' addresses are used again */
	__u64 thread;      /* identity, as in thread_event; 0: not known */
	__u64 gil;         /* address of last_holder of the GIL that it takes; 0: not known */
};

/* A stack of one kind. Head; depth frames follow, leaf first. */
struct sample_part {
	__u8 kind;    /* enum part_kind */
	__u8 status;  /* enum unwind_status */
	__u16 opcode; /* of the instruction that the leaf frame is at, or OPCODE_NONE */
	__u32 depth;
};

/*
 * A code object. Behind the head: filename_bytes, then name_bytes, each in the target's encoding
 * (kind 1, 2 or 4 bytes a character), then lines_bytes of the line table from its start.
 */
struct code_event {
	__u8 kind;
	__u8 filename_kind; /* bytes a character; 0: could not be read */
	__u8 name_kind;
	__u8 is_cut; /* bit 0: file name, bit 1: name longer than STRING_BYTES_MAX */
	__u32 pid;
	__u64 code;       /* identity */
	__u64 process;    /* identity */
	__u64 lines_addr; /* of the table's bytes object, for what the kernel does not send */
	__u32 first_line;
	__u32 lines_total; /* length of the whole table */
	__u32 lines_bytes;
	__u16 filename_bytes;
	__u16 name_bytes;
	__u16 layout;
	__u8 owner; /* enum code_owner */
	__u8 reserved[5];
	__u32 uid, gid; /* of the file system, in the initial user namespace: what the thread may
			   read */
	__u64 start_ns; /* of the process: another one may have its PID by now */
};

/* The thread that runs a code object, beside its user and group. */
enum code_owner {
	OWNER_READS_ALL = 1 << 0, /* CAP_DAC_OVERRIDE or CAP_DAC_READ_SEARCH over the machine */
	OWNER_IS_HERE = 1 << 1,   /* its root directory is pyebpf's, in the same mount */
};

/* Head; bytes follow. */
struct lines_event {
	__u8 kind;
	__u8 reserved[3];
	__u32 pid;
	__u64 code;
	__u32 offset;
	__u32 bytes;
};

/* Head; args_bytes of the command line follow. */
struct process_event {
	__u8 kind;
	__u8 reserved[3];
	__u32 pid;
	__u64 process; /* identity: hash of start time and exec count */
	__u64 start_ns;
	__u32 ppid;
	__u32 exec_id;
	__u16 layout;
	__u16 args_bytes;
	__u32 ns_pid; /* in its own, innermost PID namespace */
	char comm[COMM_BYTES];
};

struct thread_event {
	__u8 kind;
	__u8 reserved[3];
	__u32 pid;
	__u64 process;
	__u32 tid;
	__u32 reserved2;
	__u64 pointer;  /* pthread_self() */
	__u64 start_ns; /* task_struct.start_boottime */
	__u64 thread; /* identity: hash of all of these, so that another name is another identity */
	char comm[COMM_BYTES];
};

/*
 * The times of a thread of a Python process since since_ns: where it is off the CPU now, of spans
 * that have ended. cpu_ns + unseen_ns + all classes = the time of the last end - since_ns. In the
 * ring (it has ended), and from the iterator that lists them.
 */
struct thread_times_event {
	__u8 kind;
	__u8 reserved[3];
	__u32 pid;
	__u64 process;
	__u32 tid;
	__u32 reserved2;
	__u64 ktime_ns;               /* CLOCK_MONOTONIC: now */
	__u64 since_ns;               /* its first moment in the recording */
	__u64 cpu_ns;                 /* on a CPU, up to now */
	__u64 unseen_ns;              /* off the CPU, before it was watched: nobody knows why */
	__u64 short_ns[CLASS_COUNT_]; /* off the CPU, in spans that are kept by chance */
	__u64 long_ns[CLASS_COUNT_];  /* in spans that are all kept */
	__u64 spans;                  /* how many */
	__u64 episodes;               /* of waiting for the GIL */
	__u64 gil;                    /* that it takes, as in sample_event */
	char comm[COMM_BYTES];
};

/* The end of the span that the sample with SAMPLE_OPEN of that thread and ktime_ns began. */
struct span_end_event {
	__u8 kind;
	__u8 wait; /* enum wait_reason */
	__u16 syscall;
	__u32 tid;
	__u64 process;
	__u64 begin_ns; /* ktime_ns of the sample */
	__u64 ktime_ns;
	__u64 value; /* 0: it is not kept */
	__u64 blocked_ns;
	__u32 flags; /* enum sample_flag, to be added: SAMPLE_SHORT, SAMPLE_EPISODE */
	__u32 reserved;
};

/* What the value of a label is. */
enum label_kind {
	LABEL_TEXT,      /* str: characters of char_bytes each */
	LABEL_INT,       /* int: its digits of 30 bits, the lowest first, 4 bytes each; none: 0 */
	LABEL_BOOL,      /* the same of False or True */
	LABEL_ID,        /* bytes of a trace's or a span's id */
	LABEL_ATTRIBUTE, /* of a thread's context (OTEP 4947): UTF-8; what it is called the process
			  * says: it is its key-th */
};

struct label_value {
	__u8 number;     /* of the session's label_configs, or LABEL_TASK; of LABEL_ATTRIBUTE 0 */
	__u8 kind;       /* enum label_kind */
	__u8 char_bytes; /* 1, 2, 4 */
	__u8 is_cut;     /* there is more of it */
	__u8 is_negative;
	__u8 key; /* LABEL_ATTRIBUTE */
	__u16 bytes;
	__u64 value[LABEL_BYTES_MAX / 8]; /* zeros behind it */
};

/* As long as it needs to be: `count` values are sent. */
struct labels_event {
	__u8 kind;
	__u8 count; /* 1 to CONTEXT_LABELS_MAX */
	__u8 reserved[2];
	__u32 pid;
	__u64 process; /* identity */
	__u64 labels;  /* hash of the process and the values */
	struct label_value values[CONTEXT_LABELS_MAX];
};
#define LABELS_EVENT_HEAD 24

struct who_event {
	__u8 kind;
	__u8 is_exec; /* it has just begun this program: its Python may come in a moment */
	__u8 reserved[2];
	__u32 pid;
	__u64 process; /* identity */
	__u64 start_ns;
	__u32 exec_id;
	__u32 reserved2;
	/* The mapping of the interrupted user address, zero where unknown. */
	struct binary_key text;
	__u64 vm_start;
	__u64 vm_pgoff;        /* bytes */
	struct binary_key exe; /* the program file */
	__u64 start_code;      /* mm_struct.start_code: where its code begins */
	__u64 ktime_ns;        /* CLOCK_MONOTONIC: when it was asked */
};

/* Memory of a target that a sample could not read. */
struct page_range {
	__u64 addr;
	__u32 bytes;
	__u32 is_code; /* a code object: its names and its line table will be wanted next */
};

struct page_event {
	__u8 kind;
	__u8 count; /* of ranges */
	__u16 layout;
	__u32 pid;
	struct page_range ranges[FAULTS_MAX];
};

/* What the task iterator reports of each process. */
struct task_record {
	__u32 pid;
	__u32 exec_id;
	__u64 start_ns;
	__u64 process;         /* identity */
	struct binary_key exe; /* as in who_event */
	__u64 start_code;
};

/*
 * The counters of a source. Every tick ends in exactly one of those from STAT_RECORDED to
 * STAT_TW_JOINED; where the events come less often than the ticks, each counts as all the ticks
 * that it stands for. The ones behind them say more about recorded samples and about the sampler's
 * own work. X(enum, name in files and /metrics, words for people)
 */
#define TICK_STATS(X)                                                                    \
	X(STAT_RECORDED, "recorded", "recorded")                                         \
	X(STAT_RING_FULL, "ring_full", "lost: ring buffer full")                         \
	X(STAT_IDLE, "idle", "CPU idle")                                                 \
	X(STAT_NO_MM, "kernel_thread", "kernel threads, exiting tasks")                  \
	X(STAT_FILTERED, "filtered", "other processes")                                  \
	X(STAT_NOT_PYTHON, "not_python", "processes without Python")                     \
	X(STAT_UNKNOWN, "unknown_process", "lost: process not identified yet")           \
	X(STAT_NO_ROW, "no_row", "lost: table of processes full")                        \
	X(STAT_NOT_ASKED, "not_asked", "left out by the mode")                           \
	X(STAT_SKIPPED, "skipped", "skipped by the time budget")                         \
	X(STAT_TSTATE_FAULT, "thread_state_fault", "lost: thread state not readable")    \
	X(STAT_TSTATE_LATE, "thread_state_late", "lost: thread state not found in time") \
	X(STAT_NO_SCRATCH, "no_scratch", "lost: no work space")                          \
	X(STAT_NO_TASK_WORK, "no_task_work", "lost: too many threads in system calls")   \
	X(STAT_UNSEEN, "unseen", "lost: the kernel did not tell of its end")             \
	X(STAT_SILENT, "silent", "lost: memory that does not answer")                    \
	X(STAT_NO_TIMES, "no_times", "lost: no memory for a thread's times")             \
	X(STAT_TASK_WORK, "task_work", "handed to task work")                            \
	X(STAT_TW_JOINED, "task_work_joined", "joined a sample that waits in task work")

#define DETAIL_STATS(X)                                                                   \
	X(STAT_TW_RECORDED, "task_work_recorded", "recorded in task work")                \
	X(STAT_TW_RING_FULL, "task_work_ring_full", "lost: ring buffer full (task work)") \
	X(STAT_TW_NOT_ASKED, "task_work_not_asked", "left out by the mode in task work")  \
	X(STAT_TW_FAILED, "task_work_failed", "lost: thread state gone (task work)")      \
	X(STAT_TW_NO_SCRATCH, "task_work_no_scratch", "lost: no work space (task work)")  \
	X(STAT_MISSED, "missed", "missing before a tick of a thread that ran all along")  \
	X(STAT_WEIGHT, "weight", "ticks that the recorded samples stand for")             \
	X(STAT_CARRIED, "carried", "skipped ticks whose weight a later sample took")      \
	X(STAT_OUTSIDE, "outside", "recorded outside of Python code")                     \
	X(STAT_TRUNCATED, "truncated", "deeper than the frame limit")                     \
	X(STAT_LATE, "late", "cut by the time limit")                                     \
	X(STAT_FAULT, "fault", "cut by a missing page")                                   \
	X(STAT_CUT, "cut", "outermost frame not an entry frame")                          \
	X(STAT_INVALID, "invalid", "frame chain not valid")                               \
	X(STAT_AMBIGUOUS, "ambiguous", "several thread states of one thread")             \
	X(STAT_CODE_FAULT, "code_fault", "code object not readable")                      \
	X(STAT_TW_BUSY, "task_work_busy", "walked in an interrupt, no task work free")    \
	X(STAT_FRAMES, "frames", "frames walked")                                         \
	X(STAT_CODE_SENT, "code_sent", "code objects described")                          \
	X(STAT_CODE_DEFERRED, "code_deferred", "code objects put off to a later sample")  \
	X(STAT_LINES_SENT, "lines_sent", "further line-table pieces")                     \
	X(STAT_TSTATE_WALK, "thread_state_walk", "thread lists walked")                   \
	X(STAT_DISCOVERED, "discovered", "processes recognised at a tick")                \
	X(STAT_WHO, "who", "processes asked about")                                       \
	X(STAT_PAGE, "page", "pages asked for")                                           \
	X(STAT_LABELS_SENT, "labels_sent", "sets of labels sent")                         \
	X(STAT_LABEL_TYPE, "label_type", "label values that are no str and no int")       \
	X(STAT_GIL_DRIFT, "gil_drift", "sums of waits for the GIL that cannot be right")  \
	X(STAT_RUN_NS, "run_ns", "time in the sampler, ns")

enum stat_kind {
#define X(id, name, words) id,
	TICK_STATS(X) STAT_TICK_END, /* ticks seen = sum of all before this */
	STAT_DETAIL_START_ = STAT_TICK_END - 1,
	DETAIL_STATS(X)
#undef X
		STAT_COUNT_
};

_Static_assert(sizeof(struct proc_row) == 32, "map value ABI");
_Static_assert(sizeof(struct asyncio_row) == 32, "map value ABI");
_Static_assert(sizeof(struct event_config) == 16, "map value ABI");
_Static_assert(sizeof(struct cpu_ticks) == 24, "map value ABI");
_Static_assert(sizeof(struct frame_record) == 16, "ring buffer ABI");
_Static_assert(sizeof(struct thread_context_row) == 24, "map value ABI");
_Static_assert(sizeof(struct label_config) == 8 + LABEL_NAME_BYTES, "map value ABI");
_Static_assert(sizeof(struct sample_event) == 104, "ring buffer ABI");
_Static_assert(sizeof(struct own_walk) == 56 + sizeof(struct task_stand) +
						  sizeof(struct walk_head) +
						  FRAMES_MAX * sizeof(struct walk_frame),
	       "map value ABI");
_Static_assert(sizeof(struct label_value) == 8 + LABEL_BYTES_MAX, "ring buffer ABI");
_Static_assert(sizeof(struct labels_event) ==
		       LABELS_EVENT_HEAD + CONTEXT_LABELS_MAX * sizeof(struct label_value),
	       "ring buffer ABI");
_Static_assert(sizeof(struct thread_times_event) == 96 + 16 * CLASS_COUNT_, "ring buffer ABI");
_Static_assert(sizeof(struct span_end_event) == 56, "ring buffer ABI");
_Static_assert(sizeof(struct sample_part) == 8, "ring buffer ABI");
_Static_assert(sizeof(struct code_event) == 72, "ring buffer ABI");
_Static_assert(sizeof(struct lines_event) == 24, "ring buffer ABI");
_Static_assert(sizeof(struct process_event) == 56, "ring buffer ABI");
_Static_assert(sizeof(struct thread_event) == 64, "ring buffer ABI");
_Static_assert(sizeof(struct who_event) == 96, "ring buffer ABI");
_Static_assert(sizeof(struct page_event) == 8 + 16 * FAULTS_MAX, "ring buffer ABI");

#endif
