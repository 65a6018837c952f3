/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#ifndef BASE_TEXTS_H
#define BASE_TEXTS_H

#include <stddef.h>

/* A list of sentences for people: reasons, notes. Starts as zeros. */
struct texts {
	char **items; /* a VEC; items are owned */
	size_t len;
	size_t cap;
};
void texts_release(struct texts *t);

/* 0, or -ENOMEM with the list unchanged. */
int texts_addf(struct texts *t, const char *fmt, ...) __attribute__((format(printf, 2, 3)));

#endif
