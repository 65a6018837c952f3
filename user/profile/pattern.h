/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#ifndef PROFILE_PATTERN_H
#define PROFILE_PATTERN_H

#include <stdbool.h>
#include <stdint.h>

/*
 * Patterns of selections, globs as fnmatch() takes them: what each kind of them is held against.
 * select.h says what users write. Without memory for a copy nothing matches.
 */

bool pattern_matches(const char *pattern, const char *text);

/*
 * A pattern is of a qualname or its last part, or "FILE:FUNCTION" of such a file. Tells which part
 * of it a text fits, be that the name or the file. A text is asked about once, however many
 * functions have it.
 */
enum pattern_fit {
	PATTERN_FITS_FUNCTION = 1 << 0, /* all of it, as a qualname */
	PATTERN_FITS_FILE = 1 << 1,     /* FILE */
	PATTERN_FITS_IN_FILE = 1 << 2,  /* FUNCTION, behind FILE */
};
unsigned int pattern_function_fits(const char *pattern, const char *text);

static inline bool pattern_fits(unsigned int name, unsigned int file)
{
	return name & PATTERN_FITS_FUNCTION ||
	       (name & PATTERN_FITS_IN_FILE && file & PATTERN_FITS_FILE);
}

/* Of a path, or its end behind a slash. */
bool pattern_matches_file(const char *pattern, const char *path);

/*
 * A pattern is of a module, dotted, or of a package it is in. Of no library's the folders in front
 * may be of its name.
 */
bool pattern_matches_module(const char *pattern, bool is_library, const char *name);

/* Of a name, or one of two numbers, 0: there is none. */
bool pattern_matches_numbered(const char *pattern, const char *name, uint32_t id,
			      uint32_t other_id);

/* NAME=VALUE, or NAME, of one label: the name as it is, the value by glob. */
bool pattern_matches_label(const char *pattern, const char *name, const char *value);

#endif
