/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#ifndef PROFILE_STRTAB_H
#define PROFILE_STRTAB_H

#include <stddef.h>
#include <stdint.h>

/* Interned strings. Ids are dense, start at 0 (the empty string) and never move. */
struct strtab;

#define STRTAB_LEN_MAX (1u << 20) /* far beyond any name; keeps every table entry storable */

int strtab_new(struct strtab **out);
void strtab_free(struct strtab *t);

/*
 * Copies s if it is new; s may hold NUL bytes. Returns 0 and *id, or with *id untouched: -ENOMEM,
 * -EMSGSIZE (longer than STRTAB_LEN_MAX), -EOVERFLOW (4 G strings).
 */
int strtab_intern(struct strtab *t, const char *s, size_t len, uint32_t *id);

/*
 * The same for a string from a file. One longer than STRTAB_NAME_BYTES_MAX loses its middle, for
 * which it has an ellipsis: rows of a few bytes may all have it, and outputs write it for each.
 */
#define STRTAB_NAME_BYTES_MAX (16u << 10)
int strtab_intern_name(struct strtab *t, const char *s, size_t len, uint32_t *id);

/* NUL-terminated. Borrowed: valid until strtab_free(). id < strtab_count(). */
const char *strtab_get(const struct strtab *t, uint32_t id);
size_t strtab_len(const struct strtab *t, uint32_t id); /* without the final NUL */
uint32_t strtab_count(const struct strtab *t);
size_t strtab_bytes(const struct strtab *t); /* memory it holds */

#endif
