/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#ifndef PROFILE_RECORDING_H
#define PROFILE_RECORDING_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/vec.h"
#include "profile/kind.h"

/*
 * One run of a recorder, and what it knew of it. A profile has one for each that was merged into
 * it; times of samples count from the start of theirs.
 */

#define COUNTERS_MAX 4096
#define COUNTER_NAME_MAX 255 /* bytes */

/* A named total of the whole recording so far: samples lost, by reason. */
struct counter {
	char *name; /* owned */
	uint64_t value;
};

/* Texts are owned (free()) or NULL: unknown. Numbers are 0 where unknown. */
struct recording {
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
	char *part;      /* what of a recording it is, as it was selected: "--thread worker" */
	double work;     /* units of work done meanwhile, as the user counts them; finite, >= 0 */
	VEC(struct counter) counters;
	struct value_unit
		other_unit; /* of what a selection left of it, and is no time; in no file */
};

enum recording_type {
	RECORDING_NUMBER, /* uint64_t */
	RECORDING_TEXT,   /* char * */
	RECORDING_REAL,   /* double */
};

/* The facts, which are all fields but the counters. Ids are those of the file format. */
struct recording_field {
	unsigned int id;
	enum recording_type type;
	size_t offset;
};
#define RECORDING_FIELDS 25
extern const struct recording_field recording_fields[RECORDING_FIELDS];

static inline void *recording_field(const struct recording *r, const struct recording_field *f)
{
	return (char *)r + f->offset;
}

/* Frees the texts and counters, zeroes all. */
void recording_release(struct recording *r);

/*
 * The facts of *to become those of *from, with texts of their own; its counters stay. 0, or -ENOMEM
 * with *to unchanged.
 */
int recording_copy(struct recording *to, const struct recording *from);

/* Copies s (NULL: unknown) to one of the texts: recording_set_text(&r->host, ...). 0 or -ENOMEM. */
int recording_set_text(char **text, const char *s);

/* What one of its ticks is; a count where nothing else is known. */
struct value_unit recording_value_unit(const struct recording *r);

/*
 * Creates it or replaces its value. 0, -ENOMEM, -EMSGSIZE (name too long), -EOVERFLOW (more than
 * COUNTERS_MAX).
 */
int recording_set_counter(struct recording *r, const char *name, uint64_t value);

void recording_clear_counters(struct recording *r);
/* But for those whose names begin so. */
void recording_keep_counters(struct recording *r, const char *prefix);
bool recording_has_counter(const struct recording *r, const char *name);

/* 0 where there is none of that name. */
uint64_t recording_counter(const struct recording *r, const char *name);

/* Adds those of *from. As recording_set_counter(). */
int recording_add_counters(struct recording *r, const struct recording *from);

#endif
