/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#include "diff/files.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"

/* A directory with its final slash. */
struct root {
	const char *path; /* borrowed from the profile */
	size_t len;
};

struct roots {
	struct root *items; /* a VEC */
	size_t len;
	size_t cap;
};

static void roots_release(struct roots *r)
{
	vec_release(r);
}

void sources_release_all(struct sources *s)
{
	for (int side = 0; side < DIFF_SIDES; side++) {
		vec_release(&s->of[side]);
		free(s->of_file[side]);
	}
}

const struct source *source_of(const struct sources *s, int side, uint32_t file)
{
	return &s->of[side].items[s->of_file[side][file] - 1];
}

const char *source_path(const struct sources *s, const struct source *source)
{
	return strtab_get(s->p->strings, source->file);
}

/* --- roots of files --------------------------------------------------------------------------- */

/* Bytes of path up to and with `library/`, 0 without one. */
static size_t after_library(const char *path, size_t len, const char *library)
{
	size_t n = strlen(library), found = 0;

	for (const char *at = path; (at = memmem(at, (size_t)(path + len - at), library, n));
	     at += n)
		found = (size_t)(at - path) + n;
	return found;
}

/* The same for `/lib/python3.12/` and `/lib64/python3.13t/`. */
static size_t after_standard_library(const char *path, size_t len)
{
	static const char *const folders[] = { "/lib/python", "/lib64/python" };

	for (size_t i = 0; i < sizeof(folders) / sizeof(folders[0]); i++) {
		size_t at = after_library(path, len, folders[i]);

		while (at && at < len && (strchr("0123456789.t", path[at]) && path[at]))
			at++;
		if (at && at < len && path[at] == '/')
			return at + 1;
	}
	return 0;
}

static size_t library_root(const char *path, size_t len)
{
	size_t at = after_library(path, len, "/site-packages/");

	if (!at)
		at = after_library(path, len, "/dist-packages/");
	return at ? at : after_standard_library(path, len);
}

/* Code of nobody's project: a library's, a frozen module's, none of Python. */
static bool is_foreign(const struct profile *p, const struct frame *f)
{
	const char *file = strtab_get(p->strings, f->file);

	return f->kind != FRAME_PYTHON || !*file || *file == '<' ||
	       library_root(file, strtab_len(p->strings, f->file));
}

static int add_root(const struct sources *s, struct roots *roots, uint32_t file)
{
	const char *path = strtab_get(s->p->strings, file), *slash = strrchr(path, '/');
	struct root root = { path, slash ? (size_t)(slash - path) + 1 : 0 };

	for (size_t i = 0; i < roots->len; i++)
		if (roots->items[i].len == root.len &&
		    !memcmp(roots->items[i].path, path, root.len))
			return 0;
	return root.len ? vec_push(roots, root) : 0;
}

static int compare_root_lengths(const void *a, const void *b)
{
	const struct root *x = a, *y = b;

	return x->len > y->len ? -1 : x->len < y->len;
}

/* Scripts: `<module>` frames with nothing but foreign ones outside of them. The longest first. */
static int find_roots(const struct sources *s, const uint64_t *totals, struct roots *roots)
{
	const struct stack_entry *entries = stacktab_entries(s->p->stacks);
	uint32_t count = stacktab_count(s->p->stacks);
	_cleanup_(freep) bool *is_outside = calloc(count, sizeof(*is_outside));
	int r = 0;

	if (!is_outside)
		return -ENOMEM;
	is_outside[0] = true;
	for (uint32_t i = 1; i < count && !r; i++) {
		const struct frame *f = frametab_get(s->p->frames, entries[i].frame);

		if (!totals[i] || !is_outside[entries[i].parent])
			continue;
		is_outside[i] = is_foreign(s->p, f);
		if (!is_outside[i] && !strcmp(strtab_get(s->p->strings, f->name), "<module>"))
			r = add_root(s, roots, f->file);
	}
	if (roots->len)
		qsort(roots->items, roots->len, sizeof(struct root), compare_root_lengths);
	return r;
}

/* The module is what follows the root. */
static int set_root(struct sources *s, struct source *source, size_t root_len)
{
	const char *module = source_path(s, source) + root_len;

	source->root_len = (uint32_t)root_len;
	return strtab_intern(s->texts, module, strlen(module), &source->module);
}

static int add_source(struct sources *s, int side, uint32_t file, const struct roots *roots)
{
	struct source made = { .file = file };
	const char *path = strtab_get(s->p->strings, file);
	size_t len = strtab_len(s->p->strings, file), root_len = library_root(path, len);
	int r;

	if (s->of_file[side][file])
		return 0;
	made.is_library = root_len;
	for (size_t i = 0; i < roots->len && !root_len; i++) {
		const struct root *root = &roots->items[i];

		if (root->len < len && !memcmp(root->path, path, root->len))
			root_len = root->len;
	}
	r = set_root(s, &made, root_len);
	if (!r)
		r = vec_push(&s->of[side], made);
	if (!r)
		s->of_file[side][file] = (uint32_t)s->of[side].len;
	return r;
}

/* --- files of one side stay apart ------------------------------------------------------------- */

static int compare_modules(const void *a, const void *b, void *sources)
{
	const struct source *items = sources, *x = &items[*(const uint32_t *)a],
			    *y = &items[*(const uint32_t *)b];

	if (x->module != y->module)
		return x->module < y->module ? -1 : 1;
	return x->file < y->file ? -1 : x->file > y->file;
}

/* A component of the root more; of a whole path there is none. */
static int lengthen(struct sources *s, struct source *source)
{
	const char *path = source_path(s, source);
	size_t at = source->root_len;

	if (at)
		at--;
	while (at && path[at - 1] != '/')
		at--;
	return set_root(s, source, at);
}

/*
 * Of one module: each takes a component more, unless it is the only one of a library. Returns how
 * many did, or an error.
 */
static int lengthen_all(struct sources *s, int side, const uint32_t *same, size_t count)
{
	size_t libraries = 0;
	int lengthened = 0, r;

	for (size_t i = 0; i < count; i++)
		libraries += s->of[side].items[same[i]].is_library;
	for (size_t i = 0; i < count; i++) {
		struct source *source = &s->of[side].items[same[i]];

		if (!source->root_len || (source->is_library && libraries == 1))
			continue;
		r = lengthen(s, source);
		if (r < 0)
			return r;
		lengthened++;
	}
	return lengthened;
}

/* Until no two have the same module; whole paths differ, so there is an end. */
static int keep_apart(struct sources *s, int side)
{
	size_t count = s->of[side].len, end;
	_cleanup_(freep) uint32_t *order = calloc(count + 1, sizeof(*order));
	int lengthened = 1;

	if (!order)
		return -ENOMEM;
	while (lengthened > 0) {
		lengthened = 0;
		for (uint32_t i = 0; i < count; i++)
			order[i] = i;
		if (count)
			qsort_r(order, count, sizeof(*order), compare_modules, s->of[side].items);
		for (size_t i = 0; i < count; i = end) {
			uint32_t module = s->of[side].items[order[i]].module;
			int r = 0;

			for (end = i + 1; end < count; end++)
				if (s->of[side].items[order[end]].module != module)
					break;
			if (end - i > 1)
				r = lengthen_all(s, side, order + i, end - i);
			if (r < 0)
				return r;
			lengthened += r;
		}
	}
	return 0;
}

static int find_side(struct sources *s, int side, const bool *has_frame, const uint64_t *totals)
{
	_cleanup_(roots_release) struct roots roots = { 0 };
	int r = find_roots(s, totals, &roots);

	s->of_file[side] = calloc(strtab_count(s->p->strings), sizeof(uint32_t));
	if (!s->of_file[side])
		return -ENOMEM;
	for (uint32_t i = 0; i < frametab_count(s->p->frames) && !r; i++)
		if (has_frame[i])
			r = add_source(s, side, frametab_get(s->p->frames, i)->file, &roots);
	return r ? r : keep_apart(s, side);
}

/* --- files whose root has moved --------------------------------------------------------------- */

/*
 * Tails of paths, a prefix tree of their components, the last one first: for each tail how many
 * files of each side have it, and one of them.
 */
struct tails {
	struct strtab *names;
	struct stacktab *tree;
	VEC(struct tail) of; /* by id in the tree */
};

struct tail {
	uint32_t count[DIFF_SIDES];
	uint32_t source[DIFF_SIDES];
};

static void tails_release(struct tails *t)
{
	strtab_free(t->names);
	stacktab_free(t->tree);
	vec_release(&t->of);
}

/* The tail that is one component longer; *len becomes what is left of the path. */
static int longer_tail(struct tails *t, const char *path, size_t *len, uint32_t *tail)
{
	size_t end = *len, start = end;
	uint32_t name;
	int r;

	while (start && path[start - 1] != '/')
		start--;
	r = strtab_intern(t->names, path + start, end - start, &name);
	if (!r)
		r = stacktab_intern(t->tree, *tail, name, tail);
	while (!r && t->of.len < stacktab_count(t->tree))
		r = vec_push(&t->of, ((struct tail){ { 0 }, { 0 } }));
	*len = start ? start - 1 : 0;
	return r;
}

/* A marker's or generated code's path says nothing. */
static bool may_have_moved(const struct sources *s, const struct source *source)
{
	const char *path = source_path(s, source);

	return !source->is_matched && *path && *path != '<' && *path != '~';
}

static int add_tails(struct tails *t, const struct sources *s, int side, uint32_t index)
{
	const char *path = source_path(s, &s->of[side].items[index]);
	size_t len = strlen(path);
	uint32_t tail = 0;
	int r = 0;

	while (len && !r) {
		r = longer_tail(t, path, &len, &tail);
		if (!r) {
			t->of.items[tail].count[side]++;
			t->of.items[tail].source[side] = index;
		}
	}
	return r;
}

#define NO_SOURCE UINT32_MAX

/*
 * The file of the other side with the longest tail in common, or NO_SOURCE; *is_ambiguous: as
 * several are as long. A name that every package has says nothing by itself.
 */
static int nearest(struct tails *t, const struct sources *s, int side, uint32_t index,
		   uint32_t *found, bool *is_ambiguous)
{
	const char *path = source_path(s, &s->of[side].items[index]), *slash = strrchr(path, '/');
	const char *name = slash ? slash + 1 : path;
	unsigned int components = 0,
		     least = !strcmp(name, "__init__.py") || !strcmp(name, "__main__.py") ? 2 : 1;
	size_t len = strlen(path);
	uint32_t tail = 0;
	int r = 0;

	*found = NO_SOURCE;
	*is_ambiguous = false;
	while (len && !r) {
		r = longer_tail(t, path, &len, &tail);
		if (r < 0 || !t->of.items[tail].count[!side])
			break;
		if (++components < least)
			continue;
		*is_ambiguous = t->of.items[tail].count[!side] > 1;
		*found = *is_ambiguous ? NO_SOURCE : t->of.items[tail].source[!side];
	}
	return r;
}

static int mark_matched(struct sources *s)
{
	size_t modules = strtab_count(s->texts);
	_cleanup_(freep) bool *has_module = calloc(modules * DIFF_SIDES + 1, sizeof(bool));

	if (!has_module)
		return -ENOMEM;
	for (int side = 0; side < DIFF_SIDES; side++)
		for (size_t i = 0; i < s->of[side].len; i++)
			has_module[side * modules + s->of[side].items[i].module] = true;
	for (int side = 0; side < DIFF_SIDES; side++)
		for (size_t i = 0; i < s->of[side].len; i++)
			s->of[side].items[i].is_matched =
				has_module[!side * modules + s->of[side].items[i].module];
	return 0;
}

/* Base's takes current's module, if each is the other's nearest. */
static int match_one(struct tails *t, struct sources *s, uint32_t index)
{
	struct source *source = &s->of[DIFF_BASE].items[index];
	uint32_t partner, back;
	bool is_ambiguous;
	int r = nearest(t, s, DIFF_BASE, index, &partner, &is_ambiguous);

	if (is_ambiguous && !s->ambiguous++)
		s->one_of_them = source->file;
	if (r < 0 || partner == NO_SOURCE)
		return r;
	r = nearest(t, s, DIFF_CURRENT, partner, &back, &is_ambiguous);
	if (!r && back == index)
		source->module = s->of[DIFF_CURRENT].items[partner].module;
	return r;
}

static int match_moved(struct sources *s)
{
	_cleanup_(tails_release) struct tails t = { 0 };
	int r = mark_matched(s);

	if (!r)
		r = strtab_new(&t.names);
	if (!r)
		r = stacktab_new(&t.tree);
	for (int side = 0; side < DIFF_SIDES && !r; side++)
		for (uint32_t i = 0; i < s->of[side].len && !r; i++)
			if (may_have_moved(s, &s->of[side].items[i]))
				r = add_tails(&t, s, side, i);
	for (uint32_t i = 0; i < s->of[DIFF_BASE].len && !r; i++)
		if (may_have_moved(s, &s->of[DIFF_BASE].items[i]))
			r = match_one(&t, s, i);
	return r;
}

int sources_find(struct sources *out, const struct profile *p, struct strtab *texts,
		 const bool *const has_frame[DIFF_SIDES], const uint64_t *const totals[DIFF_SIDES])
{
	int r = 0;

	out->p = p;
	out->texts = texts;
	for (int side = 0; side < DIFF_SIDES && !r; side++)
		r = find_side(out, side, has_frame[side], totals[side]);
	return r ? r : match_moved(out);
}
