/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#include "diff/files.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"

void sources_release_all(struct sources *s)
{
	for (int side = 0; side < DIFF_SIDES; side++) {
		modules_release(&s->modules[side]);
		vec_release(&s->of[side]);
	}
}

static int find_side(struct sources *s, int side, const bool *has_frame, const uint64_t *totals)
{
	const struct modules *m = &s->modules[side];
	int r = modules_find(&s->modules[side], s->p, has_frame, totals);

	for (size_t i = 0; i < m->items.len && !r; i++) {
		const char *path = module_path(m, &m->items.items[i]);
		struct source source = { 0 };

		r = strtab_intern(s->texts, path, strlen(path), &source.module);
		if (!r)
			r = vec_push(&s->of[side], source);
	}
	return r;
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
static bool may_have_moved(const struct sources *s, int side, uint32_t index)
{
	const char *path = source_path(s, side, index);

	return !s->of[side].items[index].is_matched && *path && *path != '<' && *path != '~';
}

static int add_tails(struct tails *t, const struct sources *s, int side, uint32_t index)
{
	const char *path = source_path(s, side, index);
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
	const char *path = source_path(s, side, index), *slash = strrchr(path, '/');
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
		s->one_of_them = s->modules[DIFF_BASE].items.items[index].file;
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
			if (may_have_moved(s, side, i))
				r = add_tails(&t, s, side, i);
	for (uint32_t i = 0; i < s->of[DIFF_BASE].len && !r; i++)
		if (may_have_moved(s, DIFF_BASE, i))
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
