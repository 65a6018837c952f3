/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#include "collect/modes.h"

#include <stddef.h>

#include "collect/session.h"

/* X(word, modes): those that stand for several before these. */
#define MODES(X)                       \
	X("wall", MODE_WALL)           \
	X("cpu", MODE_CPU)             \
	X("off-cpu", MODE_OFF_CPU)     \
	X("gil", MODE_GIL)             \
	X("exception", MODE_EXCEPTION) \
	X("memory", MODE_MEMORY)

#define X(word, modes) word,
const char *const mode_words[] = { MODES(X) NULL };
#undef X

#define X(word, modes) modes,
static const unsigned int modes_of[] = { MODES(X) };
#undef X

#define WORDS (sizeof(modes_of) / sizeof(modes_of[0]))

unsigned int modes_of_words(unsigned int words)
{
	unsigned int modes = 0;

	for (size_t i = 0; i < WORDS; i++)
		if (words & 1u << i)
			modes |= modes_of[i];
	return modes;
}

int modes_put(unsigned int modes, struct strbuf *out)
{
	const char *comma = "";

	for (size_t i = 0; i < WORDS; i++) {
		if ((modes & modes_of[i]) != modes_of[i])
			continue;
		modes &= ~modes_of[i];
		strbuf_appendf(out, "%s%s", comma, mode_words[i]);
		comma = ",";
	}
	return strbuf_error(out);
}
