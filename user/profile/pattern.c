/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#include "profile/pattern.h"

#include <fnmatch.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/strbuf.h"
#include "profile/imports.h"

bool pattern_matches(const char *pattern, const char *text)
{
	return !fnmatch(pattern, text, 0);
}

/* The text, or what is behind or before one of these separators in it. */
static bool matches_part(const char *before, const char *pattern, const char *after,
			 const char *text)
{
	_cleanup_(strbuf_releasep) struct strbuf wider = STRBUF_INIT;

	strbuf_puts(&wider, before);
	strbuf_puts(&wider, pattern);
	strbuf_puts(&wider, after);
	return !strbuf_error(&wider) && pattern_matches(strbuf_str(&wider), text);
}

/* The colon of FILE:FUNCTION; NULL: none. "ns::f" has none. */
static const char *find_colon(const char *pattern)
{
	const char *colon = strrchr(pattern, ':');

	return colon && colon > pattern && colon[-1] != ':' ? colon : NULL;
}

/* Of "import urllib.parse" there is no last part. */
static bool matches_qualname(const char *pattern, const char *name)
{
	bool is_import = !strncmp(name, IMPORT_PREFIX, strlen(IMPORT_PREFIX));
	const char *dot = is_import ? NULL : strrchr(name, '.');

	return pattern_matches(pattern, name) || (dot && pattern_matches(pattern, dot + 1));
}

unsigned int pattern_function_fits(const char *pattern, const char *text)
{
	const char *colon = find_colon(pattern);
	_cleanup_(freep) char *of_file = colon ? strndup(pattern, (size_t)(colon - pattern)) : NULL;
	unsigned int fits = matches_qualname(pattern, text) ? PATTERN_FITS_FUNCTION : 0;

	if (of_file && pattern_matches_file(of_file, text))
		fits |= PATTERN_FITS_FILE;
	if (of_file && matches_qualname(colon + 1, text))
		fits |= PATTERN_FITS_IN_FILE;
	return fits;
}

bool pattern_matches_file(const char *pattern, const char *path)
{
	return *path && (pattern_matches(pattern, path) || matches_part("*/", pattern, "", path));
}

bool pattern_matches_module(const char *pattern, bool is_library, const char *name)
{
	static const char *const sides[][2] = {
		{ "", "" },
		{ "", ".*" }, /* a package it is in */
		{ "*.", "" },
		{ "*.", ".*" },
	};

	for (size_t i = 0; i < (is_library ? 2 : sizeof(sides) / sizeof(sides[0])); i++)
		if (matches_part(sides[i][0], pattern, sides[i][1], name))
			return true;
	return false;
}

static bool is_number(const char *text)
{
	return *text && text[strspn(text, "0123456789")] == '\0';
}

bool pattern_matches_numbered(const char *pattern, const char *name, uint32_t id, uint32_t other_id)
{
	unsigned long number = is_number(pattern) ? strtoul(pattern, NULL, 10) : 0;

	return pattern_matches(pattern, name) || (number && (number == id || number == other_id));
}

bool pattern_matches_label(const char *pattern, const char *name, const char *value)
{
	const char *equals = strchr(pattern, '=');
	size_t len = equals ? (size_t)(equals - pattern) : strlen(pattern);

	if (strlen(name) != len || strncmp(pattern, name, len) != 0)
		return false;
	return !equals || pattern_matches(equals + 1, value);
}
