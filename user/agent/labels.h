/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#ifndef AGENT_LABELS_H
#define AGENT_LABELS_H

#include <stdbool.h>
#include <stddef.h>

#include "base/vec.h"

/* Texts as a configuration lists them. */
struct config_list {
	char **items; /* a VEC; owned */
	size_t len;
	size_t cap;
};

#define LABELS_MAX 64 /* of a set on its way; what is sent has fewer */

struct label {
	char *name, *value; /* owned; neither is "" */
};

/* Names and values, each name once, in the order of names: equal sets look the same. */
struct labels {
	VEC(struct label) list;
};

void labels_release(struct labels *l);

/* "" where there is none. Borrowed until the set is changed. */
const char *labels_get(const struct labels *l, const char *name);

/* Sets it, or with "" for a value removes it. 0, -ENOMEM, or -E2BIG beyond LABELS_MAX. */
int labels_set(struct labels *l, const char *name, const char *value);

void labels_remove_at(struct labels *l, size_t i);
bool labels_equal(const struct labels *a, const struct labels *b);

/* Letters, digits and _, no digit first: what all engines take. */
bool label_is_name(const char *name);

#endif
