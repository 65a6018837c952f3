/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#ifndef INSPECT_TEXT_CACHE_H
#define INSPECT_TEXT_CACHE_H

/* Texts of a process, each str read once. They stay where they are. Starts as zeros. */

#include "base/vec.h"
#include "inspect/address_map.h"
#include "target/object.h"

#define TEXT_CHARS_MAX 1000 /* of a str that are kept; longer ones end in U+2026 */

struct text_cache {
	struct address_map map;
	VEC(char *) texts;
};

void text_cache_release(struct text_cache *c);

/*
 * The str at an address, as UTF-8: *out is borrowed until text_cache_release(). 0, or as
 * object_str(), or -ENOMEM.
 */
int text_cache_get(struct text_cache *c, struct object_reader *r, uint64_t object,
		   const char **out);

/* Keeps a copy of a text that is not the target's. 0 or -ENOMEM. */
int text_cache_keep(struct text_cache *c, const char *text, const char **out);

#endif
