/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#include "diff/rename.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/err.h"

static bool is_file(const char *text, size_t len)
{
	static const char *const suffixes[] = { ".py", ".pyx", ".pyc", ".so", ".zip" };

	if (memchr(text, '/', len))
		return true;
	for (size_t i = 0; i < sizeof(suffixes) / sizeof(suffixes[0]); i++) {
		size_t n = strlen(suffixes[i]);

		if (len >= n && !memcmp(text + len - n, suffixes[i], n))
			return true;
	}
	return false;
}

static void name_release(struct diff_name *n)
{
	free(n->file);
	free(n->qualname);
	*n = (struct diff_name){ 0 };
}

static void rename_release(struct diff_rename *r)
{
	name_release(&r->old);
	name_release(&r->new);
}

static int copy_part(const char *text, size_t len, char **out)
{
	if (!len)
		return -EINVAL;
	*out = strndup(text, len);
	return *out ? 0 : -ENOMEM;
}

/* FILE:QUALNAME is split at the last colon behind which there is no `/`. */
static int parse_name(const char *text, size_t len, struct diff_name *out)
{
	const char *colon = memrchr(text, ':', len);
	size_t file_len;
	int r;

	if (!colon || memchr(colon, '/', (size_t)(text + len - colon)))
		return copy_part(text, len, is_file(text, len) ? &out->file : &out->qualname);
	file_len = (size_t)(colon - text);
	r = copy_part(text, file_len, &out->file);
	return r ? r : copy_part(colon + 1, len - file_len - 1, &out->qualname);
}

int diff_renames_add(struct diff_renames *renames, const char *text)
{
	_cleanup_(rename_release) struct diff_rename rename = { 0 };
	const char *equals = strchr(text, '=');
	int r;

	if (!equals)
		return err_set(-EINVAL, "'%s' is not OLD=NEW", text);
	r = parse_name(text, (size_t)(equals - text), &rename.old);
	if (!r)
		r = parse_name(equals + 1, strlen(equals + 1), &rename.new);
	if (r == -EINVAL)
		return err_set(r,
			       "'%s': a name is empty; say OLD=NEW, each a FILE, a "
			       "FILE:QUALNAME or a QUALNAME",
			       text);
	if (r < 0)
		return r;
	if (!rename.old.qualname != !rename.new.qualname)
		return err_set(-EINVAL, "'%s' renames a file to a function or the other way round",
			       text);
	if (vec_push(renames, rename) < 0)
		return -ENOMEM;
	rename = (struct diff_rename){ 0 };
	return 0;
}

void diff_renames_release(struct diff_renames *r)
{
	for (size_t i = 0; i < r->len; i++)
		rename_release(&r->items[i]);
	vec_release(r);
}
