/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#include "collect/modes.h"

#include <errno.h>
#include <stddef.h>
#include <string.h>

#include "base/err.h"
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

bool modes_clash(unsigned int modes)
{
	return modes & MODE_CPU && modes & (MODE_GIL | MODE_EXCEPTION);
}

static int find_word(const char *word, size_t len, unsigned int *modes)
{
	_cleanup_(strbuf_releasep) struct strbuf words = STRBUF_INIT;

	for (size_t i = 0; i < WORDS; i++) {
		if (strlen(mode_words[i]) == len && !memcmp(mode_words[i], word, len)) {
			*modes |= modes_of[i];
			return 0;
		}
		strbuf_appendf(&words, "%s%s", i ? ", " : "", mode_words[i]);
	}
	return err_set(-EINVAL, "'%.*s' is not one of: %s", (int)len, word, strbuf_str(&words));
}

int modes_parse(const char *text, unsigned int *modes)
{
	unsigned int found = 0;
	int r = 0;

	for (const char *at = text; at && !r; at = strchr(at, ',') ? strchr(at, ',') + 1 : NULL)
		r = find_word(at, strcspn(at, ","), &found);
	if (!r && modes_clash(found))
		r = err_set(-EINVAL, MODES_CLASH);
	if (!r)
		*modes = found;
	return r;
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
