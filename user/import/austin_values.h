/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#ifndef IMPORT_AUSTIN_VALUES_H
#define IMPORT_AUSTIN_VALUES_H

#include "import/intake.h"

/*
 * What Austin's text and its binary format, MOJO, have in common: what it says of a run, and what
 * its numbers are. It tells what passed since a thread's last sample and not when that was.
 */
enum austin_mode { AUSTIN_UNKNOWN, AUSTIN_WALL, AUSTIN_CPU, AUSTIN_MEMORY, AUSTIN_FULL };

struct austin_values {
	enum austin_mode mode;
	struct intake_values time, idle, memory;
	bool is_ready; /* kinds are in the profile */
};

/* A line `# KEY: VALUE` or a record of the two. Keys that are not known are left out. */
int austin_metadata(struct austin_values *a, struct recording *r, struct span key,
		    struct span value);

/* One sample's numbers; those that the mode does not have are 0. As intake_value(). */
struct austin_metrics {
	int64_t time_us, memory_bytes;
	bool is_idle;
};
int austin_add(struct austin_values *a, struct profile *p, struct sample s,
	       const struct austin_metrics *m);

/* Every format begins with it. */
int austin_describe(struct recording *r);

/* Kernel frames have this for a file. */
#define AUSTIN_KERNEL "kernel"

#endif
