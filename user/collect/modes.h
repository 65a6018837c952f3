/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#ifndef COLLECT_MODES_H
#define COLLECT_MODES_H

#include <stdbool.h>

#include "base/strbuf.h"

/* What is recorded, enum session_mode, in the words of options and recordings. */

#define MODES_CLASH \
	"gil and exception keep only part of the CPU time: do not combine them with cpu or wall"

/* Is some of what is recorded asked for beside all of it? MODES_CLASH. */
bool modes_clash(unsigned int modes);

/* In the order in which recordings name them; NULL last. */
extern const char *const mode_words[];

/* Of several words: bit i is mode_words[i]. */
unsigned int modes_of_words(unsigned int words);

/* Of a text as modes_put() makes it, words between commas. -EINVAL with a message. */
int modes_parse(const char *text, unsigned int *modes);

/* "wall", "off-cpu,gil". 0 or -ENOMEM. */
int modes_put(unsigned int modes, struct strbuf *out);

#endif
