/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#ifndef PROFILE_PROFILE_H
#define PROFILE_PROFILE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/cleanup.h"
#include "base/strbuf.h"
#include "base/vec.h"
#include "profile/frametab.h"
#include "profile/stacktab.h"
#include "profile/strtab.h"

/*
 * What was recorded: interning tables, processes, threads, samples, counters, and what is known
 * about the recording. Fields may be read directly; they are changed by the functions below.
 */

/* Marker of a thread that runs no Python code in a process that has a Python. */
#define PROFILE_OUTSIDE_PYTHON "<outside Python>"

struct process {
	uint32_t pid;    /* initial pid namespace */
	uint32_t ns_pid; /* in its own namespace; 0: unknown */
	uint32_t ppid;
	uint32_t name;           /* string ids from here on; 0 (""): unknown */
	uint32_t command_line;   /* arguments joined by spaces */
	uint32_t python_version; /* "3.12.4" */
	uint32_t implementation; /* "CPython", "CPython free-threaded" */
	uint32_t executable;     /* path */
	uint32_t container;      /* id */
	uint32_t pod_uid;        /* of Kubernetes */
	uint32_t pod_name, pod_namespace;
	uint64_t start_ns; /* CLOCK_BOOTTIME */
};

/* A thread that changes its name gets a second entry. */
struct thread {
	uint32_t process; /* index */
	uint32_t tid;     /* initial pid namespace */
	uint32_t name;    /* string id */
};

/* The numbers are those of the file format. */
enum sample_bits {
	SAMPLE_BIT_HOLDS_GIL = 1 << 0,
	SAMPLE_BIT_TRUNCATED = 1 << 1,    /* deeper than the sampler goes: leaf end kept */
	SAMPLE_BIT_FAULT = 1 << 2,        /* a page was missing: leaf end kept */
	SAMPLE_BIT_CUT = 1 << 3,          /* the chain ends in a frame that is no entry frame */
	SAMPLE_BIT_AMBIGUOUS = 1 << 4,    /* several thread states: the likeliest one */
	SAMPLE_BIT_WEIGHTED = 1 << 5,     /* stands for several ticks */
	SAMPLE_BIT_APPROX_LINES = 1 << 6, /* some frame's line is approximate */
	SAMPLE_BIT_TASK_WORK = 1 << 7,    /* walked in the thread's own context */
	SAMPLE_BIT_KERNEL = 1 << 8,       /* interrupted in kernel mode */
};

struct sample {
	uint64_t time_ns; /* CLOCK_MONOTONIC since the recording's start; < 2^63 */
	uint32_t thread;  /* index */
	uint32_t stack;   /* stack id */
	uint32_t weight;  /* ticks, >= 1 */
	uint16_t cpu;
	uint16_t flags;  /* enum sample_bits */
	uint32_t opcode; /* string id: the instruction its leaf frame was at; 0: not recorded */
};

#define COUNTERS_MAX 4096
#define COUNTER_NAME_MAX 255 /* bytes */

/* A named total of the whole recording so far: samples lost, by reason. */
struct counter {
	char *name; /* owned */
	uint64_t value;
};

/* Texts are owned (free()) or NULL: unknown. Numbers are 0 where unknown. */
struct metadata {
	uint64_t start_realtime_ns; /* CLOCK_REALTIME at the start */
	uint64_t start_monotonic_ns;
	uint64_t duration_ns;
	uint64_t rate_hz;
	uint64_t interval_ns; /* one tick; 0: the event does not count time */
	uint64_t cpus;
	uint64_t has_ended; /* 1: the recorder finished in good order */
	uint64_t is_whole;  /* 1: a command from its start to its end, and not a stretch of it */
	uint64_t is_summed; /* 1: samples are sums of stacks, all at time 0: from text */
	char *host;
	char *kernel;  /* uname -r */
	char *machine; /* uname -m */
	char *version; /* of the pyebpf that recorded */
	char *command; /* of the recorder */
	char *mode;    /* "cpu" */
	char *event;   /* "cpu-clock": ticks lie on one grid a CPU; "task-clock": a thread */
	char *target;  /* "pid 412" */
	char *source;  /* what it was imported from: "collapsed text"; NULL: we recorded it */
	/* what speed depends on beside the code: target/environment.h */
	char *cpu_model; /* "Intel(R) Xeon(R) Processor" */
	char *governor;  /* of the CPUs' frequency: "performance" */
	char *build;     /* of the interpreter: its build ID, hexadecimal */
	char *hash_seed; /* "random", or the number */
	char *allocator; /* PYTHONMALLOC, or "default" */
	double work;     /* units of work done meanwhile, as the user counts them; finite, >= 0 */
};

struct profile {
	struct strtab *strings;
	struct frametab *frames;
	struct stacktab *stacks;
	VEC(struct process) processes;
	VEC(struct thread) threads;
	VEC(struct sample) samples; /* in no order of time */
	VEC(struct counter) counters;
	struct metadata meta;
	uint32_t recordings; /* files merged into it by store/reader */
	struct profile_maps *maps;
};

int profile_new(struct profile **out);
void profile_free(struct profile *p);
DEFINE_CLEANUP(struct profile *, profile_free)

/*
 * Interned over all fields, but for where a process runs: there the first word stands. Return 0
 * and *index, or -ENOMEM, -EOVERFLOW with *index untouched. The strings must be in p->strings,
 * t->process below p->processes.len.
 */
int profile_add_process(struct profile *p, const struct process *process, uint32_t *index);
int profile_add_thread(struct profile *p, const struct thread *t, uint32_t *index);

/* Container and pod become those of `from`, unless they are known. */
void process_set_place(struct process *p, const struct process *from);

static inline bool process_has_place(const struct process *p)
{
	return p->container || p->pod_uid;
}

/*
 * Appends what people call the place: "NAMESPACE/POD", "pod 1f2e3d4c", "container 0123456789ab";
 * nothing where none is known. The bytes are the recording's. 0 or -ENOMEM.
 */
int process_put_place(const struct profile *p, const struct process *process, struct strbuf *out);

/* 0 or -ENOMEM. thread and stack must be in p. */
static inline int profile_add_sample(struct profile *p, const struct sample *s)
{
	return vec_push(&p->samples, *s);
}

/* Forgets the samples, keeps their memory and everything else: after a flush. */
void profile_clear_samples(struct profile *p);

/*
 * Empties all tables, samples included, and frees their memory; counters and metadata stay. Every
 * id handed out before is invalid, so is every borrowed string. 0, or -ENOMEM with p unchanged.
 */
int profile_reset(struct profile *p);

/*
 * Creates it or replaces its value. 0, -ENOMEM, -EMSGSIZE (name too long), -EOVERFLOW (more than
 * COUNTERS_MAX).
 */
int profile_set_counter(struct profile *p, const char *name, uint64_t value);

/* 0 where there is none of that name. */
uint64_t profile_counter(const struct profile *p, const char *name);

/* Copies s (NULL: unknown) to one of the texts of p->meta: profile_set_text(&p->meta.host, ...). */
int profile_set_text(char **text, const char *s);

/* Frees the texts, zeroes all. profile_free() does it for p->meta. */
void metadata_release(struct metadata *m);

/* *to becomes as from, with texts of its own. 0, or -ENOMEM with *to unchanged. */
int metadata_copy(struct metadata *to, const struct metadata *from);

/*
 * A further recording joins those that *to is of: work adds up, and is unknown if that of one of
 * them is; one of sums makes it sums.
 */
void metadata_join(struct metadata *to, const struct metadata *further);

/* Memory it holds, samples included. */
size_t profile_bytes(const struct profile *p);

#endif
