/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#ifndef COLLECT_MODES_H
#define COLLECT_MODES_H

#include "base/strbuf.h"

/* What is recorded, enum session_mode, in the words of options and recordings. */

/* In the order in which recordings name them; NULL last. */
extern const char *const mode_words[];

/* Of several words: bit i is mode_words[i]. */
unsigned int modes_of_words(unsigned int words);

/* "wall", "off-cpu,gil". 0 or -ENOMEM. */
int modes_put(unsigned int modes, struct strbuf *out);

#endif
