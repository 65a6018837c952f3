/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#include "profile/pattern.h"

#include <fnmatch.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "profile/imports.h"
#include "profile/module.h"

bool pattern_matches(const char *pattern, const char *text)
{
	return !fnmatch(pattern, text, 0);
}

/* The text, or what is behind one of these characters in it. */
static bool matches_end(const char *pattern, const char *text, char separator)
{
	for (; text; text = strchr(text, separator), text = text ? text + 1 : NULL)
		if (pattern_matches(pattern, text))
			return true;
	return false;
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

bool pattern_matches_function(const char *pattern, const char *name, const char *file)
{
	const char *colon = find_colon(pattern);
	_cleanup_(freep) char *of_file = colon ? strndup(pattern, (size_t)(colon - pattern)) : NULL;

	if (matches_qualname(pattern, name))
		return true;
	return of_file && matches_end(of_file, file, '/') && matches_qualname(colon + 1, name);
}

/* A dotted name, or a package it is in. */
static bool matches_package(const char *pattern, char *name)
{
	bool is_match = pattern_matches(pattern, name);

	for (char *dot = strrchr(name, '.'); dot && !is_match; dot = strrchr(name, '.')) {
		*dot = '\0';
		is_match = pattern_matches(pattern, name);
	}
	return is_match;
}

bool pattern_matches_file(const char *pattern, const char *path)
{
	return *path && matches_end(pattern, path, '/');
}

bool pattern_matches_module(const char *pattern, const char *path, const char *name)
{
	bool is_library = module_library_root(path, strlen(path)) || *path == '<';
	bool is_match = false;

	while (name && !is_match) {
		_cleanup_(freep) char *copy = strdup(name);

		is_match = copy && matches_package(pattern, copy);
		name = is_library ? NULL : strchr(name, '.');
		name = name ? name + 1 : NULL;
	}
	return is_match;
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
