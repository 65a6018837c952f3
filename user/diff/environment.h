/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#ifndef DIFF_ENVIRONMENT_H
#define DIFF_ENVIRONMENT_H

#include <stddef.h>

#include "diff/input.h"

/*
 * Where the sides ran: another CPU, kernel or build of Python makes code faster or slower that has
 * not changed. Compared is what is known of both; values of several runs are joined by ", ".
 */
#define ENVIRONMENT_FACTS 9
extern const char *const environment_keys[ENVIRONMENT_FACTS]; /* for programs: "cpu_model" */

/* Appends the values of a side, each once; nothing: unknown. 0 or -ENOMEM. */
struct strbuf;
int environment_put(const struct diff_input *in, enum diff_side side, size_t fact,
		    struct strbuf *out);

struct difference {
	const char *what; /* "CPU model"; static */
	char *value[DIFF_SIDES];
};

struct differences {
	struct difference *items; /* a VEC */
	size_t len;
	size_t cap;
};

/* Appends to *out, which starts as { 0 } and ends in differences_release(). 0 or -ENOMEM. */
int environment_compare(const struct diff_input *in, struct differences *out);
void differences_release(struct differences *d);

#endif
