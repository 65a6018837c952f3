/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#include "diff/identity.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/hash.h"
#include "base/strbuf.h"
#include "diff/files.h"
#include "profile/idmap.h"

#define NONE IDENTITY_NONE
#define PAIRS_MAX                                                                      \
	1000000 /* of nameless functions of one parent: beyond, they go by their order \
		 */

/* A frame's name on its way to a key. */
struct named {
	uint32_t module; /* string ids in `texts` */
	uint32_t name;
	uint32_t line; /* of the def */
	uint32_t frame;
	uint32_t ordinal;
	uint8_t side;
	uint8_t kind;
	bool is_renamed;
};

struct builder {
	const struct diff_input *in;
	const struct profile *p;
	const uint64_t *const *totals;
	const struct diff_renames *renames;
	struct identity *id;
	struct strtab *texts; /* modules and names, as keys have them */
	struct strbuf text;
	struct sources sources;
	VEC(uint32_t) new_module; /* by rename: of the file it leads to; NONE: no such file */
	VEC(struct named) names;
	VEC(struct named) keys; /* the first of each */
	struct idmap map;       /* of keys */
};

static void builder_release(struct builder *b)
{
	sources_release_all(&b->sources);
	strtab_free(b->texts);
	strbuf_release(&b->text);
	vec_release(&b->new_module);
	vec_release(&b->names);
	vec_release(&b->keys);
	idmap_release(&b->map);
}

/* --- renames ---------------------------------------------------------------------------------- */

/* Is name prefix, or something inside it? */
static bool has_prefix(const char *name, const char *prefix)
{
	size_t n = strlen(prefix);

	return !strncmp(name, prefix, n) && (!name[n] || name[n] == '.');
}

static int find_new_modules(struct builder *b)
{
	int r = 0;

	for (size_t i = 0; b->renames && i < b->renames->len && !r; i++) {
		const char *file = b->renames->items[i].new.file;
		uint32_t module = NONE;

		for (size_t s = 0; file && s < b->sources.of[DIFF_CURRENT].len && module == NONE;
		     s++) {
			const char *path = source_path(&b->sources, DIFF_CURRENT, s);

			if (path_has_tail(path, strlen(path), file))
				module = b->sources.of[DIFF_CURRENT].items[s].module;
		}
		r = vec_push(&b->new_module, module);
		if (!r)
			r = vec_push(&b->id->used_renames, false);
	}
	return r;
}

static bool fits(const struct builder *b, const struct diff_name *old, const struct frame *f)
{
	if (old->file && !path_has_tail(strtab_get(b->p->strings, f->file),
					strtab_len(b->p->strings, f->file), old->file))
		return false;
	return !old->qualname || has_prefix(strtab_get(b->p->strings, f->name), old->qualname);
}

/* The name of a base frame, as current calls it. */
static int apply_rename(struct builder *b, size_t index, const struct frame *f, struct named *n)
{
	const struct diff_rename *rename = &b->renames->items[index];
	int r = 0;

	b->id->used_renames.items[index] = true;
	n->is_renamed = true;
	if (rename->new.file) {
		n->module = b->new_module.items[index];
		if (n->module == NONE)
			r = strtab_intern(b->texts, rename->new.file, strlen(rename->new.file),
					  &n->module);
	}
	if (r < 0 || !rename->new.qualname)
		return r;
	strbuf_truncate(&b->text, 0);
	strbuf_puts(&b->text, rename->new.qualname);
	r = strbuf_puts(&b->text,
			strtab_get(b->p->strings, f->name) + strlen(rename->old.qualname));
	return r ? r : strtab_intern(b->texts, strbuf_str(&b->text), b->text.len, &n->name);
}

/* --- names ------------------------------------------------------------------------------------ */

static int name_frame(struct builder *b, int side, uint32_t frame)
{
	const struct frame *f = frametab_get(b->p->frames, frame);
	const char *name = strtab_get(b->p->strings, f->name);
	struct named n = {
		.module = source_module(&b->sources, side, f->file),
		.line = f->first_line,
		.frame = frame,
		.side = (uint8_t)side,
		.kind = f->kind,
	};
	size_t i = 0, count = side == DIFF_BASE && b->renames ? b->renames->len : 0;
	int r = strtab_intern(b->texts, name, strtab_len(b->p->strings, f->name), &n.name);

	if (!r && !frame_has_place(f->kind)) /* of no file, or of "~" */
		r = strtab_intern(b->texts, "~", 1, &n.module);
	while (i < count && !fits(b, &b->renames->items[i].old, f))
		i++;
	if (!r && i < count)
		r = apply_rename(b, i, f, &n);
	return r ? r : vec_push(&b->names, n);
}

static int compare_names(const void *a, const void *b)
{
	const struct named *x = a, *y = b;

	if (x->module != y->module)
		return x->module < y->module ? -1 : 1;
	if (x->name != y->name)
		return x->name < y->name ? -1 : 1;
	if (x->side != y->side)
		return x->side < y->side ? -1 : 1;
	if (x->line != y->line)
		return x->line < y->line ? -1 : 1;
	return x->frame < y->frame ? -1 : x->frame > y->frame;
}

/* Functions without a name of their own: several may stand in one parent. */
static const char *const nameless[] = { "<listcomp>", "<setcomp>", "<dictcomp>", "<lambda>",
					"<genexpr>" };
#define COMPREHENSIONS 3 /* the first so many; a generator has a frame in all versions */
#define NAMELESS (sizeof(nameless) / sizeof(nameless[0]))

static bool is_one_of(const char *name, const char *const *kinds, size_t count)
{
	const char *dot = strrchr(name, '.'), *last = dot ? dot + 1 : name;

	for (size_t i = 0; i < count; i++)
		if (!strcmp(last, kinds[i]))
			return true;
	return false;
}

static bool is_comprehension(const struct profile *p, uint32_t frame)
{
	const struct frame *f = frametab_get(p->frames, frame);

	return f->kind == FRAME_PYTHON &&
	       is_one_of(strtab_get(p->strings, f->name), nameless, COMPREHENSIONS);
}

/* --- order of the nameless -------------------------------------------------------------------- */

/* First lines of one (module, name), both sides; rising, each once. */
struct lines {
	VEC(uint32_t) of[DIFF_SIDES];
	VEC(uint32_t) partner[DIFF_SIDES]; /* index on the other side, or NONE */
	uint32_t parent[DIFF_SIDES];       /* first line of the parent; 0: unknown */
};

static void lines_release(struct lines *l)
{
	for (int s = 0; s < DIFF_SIDES; s++) {
		vec_release(&l->of[s]);
		vec_release(&l->partner[s]);
	}
}

/* The line of the def that holds the nameless one, where its qualname tells; else 0. */
static uint32_t parent_line(struct builder *b, const struct named *n)
{
	const char *name = strtab_get(b->texts, n->name), *inside = strrchr(name, '.');
	struct named parent = { .module = n->module, .side = n->side };
	size_t low = 0, high = b->names.len;
	const size_t suffix = strlen(".<locals>");

	if (!inside || (size_t)(inside - name) < suffix ||
	    strncmp(inside - suffix, ".<locals>", suffix) != 0 ||
	    strtab_intern(b->texts, name, (size_t)(inside - name) - suffix, &parent.name) < 0)
		return 0;
	while (low < high) {
		size_t middle = (low + high) / 2;

		if (compare_names(&b->names.items[middle], &parent) < 0)
			low = middle + 1;
		else
			high = middle;
	}
	if (low == b->names.len || b->names.items[low].module != parent.module ||
	    b->names.items[low].name != parent.name || b->names.items[low].side != parent.side)
		return 0;
	return b->names.items[low].line;
}

static double line_distance(const struct lines *l, int few, size_t i, size_t j)
{
	double x = l->of[few].items[i], y = l->of[!few].items[j];

	if (l->parent[0] && l->parent[1]) {
		x -= l->parent[few];
		y -= l->parent[!few];
	}
	return x > y ? x - y : y - x;
}

/*
 * Pairs all of the side with fewer lines with as many of the other, in order, such that they move
 * as little as can be, relative to their parent. Not all lambdas are seen on both sides, so their
 * bare order would not do.
 */
static int pair_lines(struct lines *l)
{
	int few = l->of[DIFF_CURRENT].len < l->of[DIFF_BASE].len;
	size_t rows = l->of[few].len, columns = l->of[!few].len, i, j;
	bool in_order = rows == columns || rows * columns > PAIRS_MAX;
	_cleanup_(freep) double *cost = NULL;

	for (int s = 0; s < DIFF_SIDES; s++) {
		if (vec_reserve(&l->partner[s], l->of[s].len) < 0)
			return -ENOMEM;
		for (i = 0; i < l->of[s].len; i++)
			l->partner[s].items[i] = in_order && i < rows ? (uint32_t)i : NONE;
		l->partner[s].len = l->of[s].len;
	}
	if (in_order || !rows)
		return 0;
	cost = calloc((rows + 1) * (columns + 1), sizeof(*cost));
	if (!cost)
		return -ENOMEM;
#define COST(i, j) cost[(i) * (columns + 1) + (j)]
	for (i = 1; i <= rows; i++) {
		for (j = 0; j < i; j++)
			COST(i, j) = 1e300; /* more than there are */
		for (j = i; j <= columns; j++) {
			double with = COST(i - 1, j - 1) + line_distance(l, few, i - 1, j - 1);

			COST(i, j) = j > i && COST(i, j - 1) <= with ? COST(i, j - 1) : with;
		}
	}
	for (i = rows, j = columns; i > 0; j--) {
		if (j > i && COST(i, j) == COST(i, j - 1))
			continue;
		l->partner[few].items[i - 1] = (uint32_t)j - 1;
		l->partner[!few].items[j - 1] = (uint32_t)i - 1;
		i--;
	}
#undef COST
	return 0;
}

/* Current's are numbered by line; base's take their partner's number, or one beyond. */
static uint32_t ordinal(const struct lines *l, const struct named *n)
{
	size_t low = 0, high = l->of[n->side].len - 1;
	uint32_t i, partner;

	while (low < high) {
		size_t middle = (low + high) / 2;

		if (l->of[n->side].items[middle] < n->line)
			low = middle + 1;
		else
			high = middle;
	}
	i = (uint32_t)low;
	partner = l->partner[n->side].items[i];
	if (n->side == DIFF_CURRENT)
		return i;
	return partner != NONE ? partner : (uint32_t)l->of[DIFF_CURRENT].len + i;
}

/* names: all of one (module, name). */
static int number_nameless(struct builder *b, struct named *names, size_t count)
{
	_cleanup_(lines_release) struct lines l = { 0 };
	int r = 0;

	for (size_t i = 0; i < count && !r; i++) {
		int side = names[i].side;

		if (!l.of[side].len)
			l.parent[side] = parent_line(b, &names[i]);
		if (!l.of[side].len || l.of[side].items[l.of[side].len - 1] != names[i].line)
			r = vec_push(&l.of[side], names[i].line);
	}
	if (!r)
		r = pair_lines(&l);
	for (size_t i = 0; i < count && !r; i++)
		names[i].ordinal = ordinal(&l, &names[i]);
	return r;
}

static int number_all(struct builder *b)
{
	size_t end;
	int r = 0;

	if (b->names.len)
		qsort(b->names.items, b->names.len, sizeof(struct named), compare_names);
	for (size_t i = 0; i < b->names.len && !r; i = end) {
		const struct named *first = &b->names.items[i];

		for (end = i + 1; end < b->names.len; end++)
			if (b->names.items[end].module != first->module ||
			    b->names.items[end].name != first->name)
				break;
		if (is_one_of(strtab_get(b->texts, first->name), nameless, NAMELESS))
			r = number_nameless(b, &b->names.items[i], end - i);
	}
	return r;
}

/* --- keys ------------------------------------------------------------------------------------- */

static int key_intern(struct builder *b, const struct named *n, uint32_t *key)
{
	uint64_t hash = hash_combine((uint64_t)n->module << 32 | n->name,
				     (uint64_t)n->ordinal << 8 | n->kind);
	struct identity_key fresh = { .frame = { NONE, NONE } };
	size_t at = IDMAP_START;

	while ((*key = idmap_next(&b->map, hash, &at)) != IDMAP_NONE) {
		const struct named *k = &b->keys.items[*key];

		if (k->module == n->module && k->name == n->name && k->ordinal == n->ordinal &&
		    k->kind == n->kind)
			return 0;
	}
	if (idmap_reserve(&b->map) < 0 || vec_push(&b->keys, *n) < 0 ||
	    vec_push(&b->id->keys, fresh) < 0)
		return -ENOMEM;
	*key = (uint32_t)b->keys.len - 1;
	idmap_insert(&b->map, hash, *key);
	return 0;
}

static int make_keys(struct builder *b)
{
	for (size_t i = 0; i < b->names.len; i++) {
		const struct named *n = &b->names.items[i];
		uint32_t file = frametab_get(b->p->frames, n->frame)->file, key;
		struct identity_key *k;

		if (key_intern(b, n, &key) < 0)
			return -ENOMEM;
		k = &b->id->keys.items[key];
		b->id->key_of[n->side][n->frame] = key;
		k->is_renamed = k->is_renamed || n->is_renamed;
		if (k->frame[n->side] != NONE && k->frame[n->side] < n->frame)
			continue;
		k->frame[n->side] = n->frame;
		k->root_len[n->side] = module_of(&b->sources.modules[n->side], file)->root_len;
	}
	return 0;
}

/* Frames of the side get key 0 for now, others IDENTITY_NONE. */
static int find_frames(struct builder *b, int side, bool inlines, bool *has_frame)
{
	const struct stack_entry *entries = stacktab_entries(b->p->stacks);
	size_t frames = frametab_count(b->p->frames);
	uint32_t *key_of = malloc((frames + 1) * sizeof(*key_of));

	b->id->key_of[side] = key_of;
	if (!key_of)
		return -ENOMEM;
	memset(key_of, 0xff, (frames + 1) * sizeof(*key_of));
	for (uint32_t i = 1; i < stacktab_count(b->p->stacks); i++)
		if (b->totals[side][i]) {
			uint32_t frame = entries[i].frame;

			has_frame[frame] = !inlines || !is_comprehension(b->p, frame);
			key_of[frame] = has_frame[frame] ? 0 : IDENTITY_INLINED;
		}
	return 0;
}

static int find_sources(struct builder *b)
{
	size_t frames = frametab_count(b->p->frames);
	_cleanup_(freep) bool *has_frame = calloc(DIFF_SIDES * frames + 1, sizeof(bool));
	const bool *of[DIFF_SIDES] = { has_frame, has_frame + frames };
	bool inlines = diff_input_versions_differ(b->in);
	int r = has_frame ? 0 : -ENOMEM;

	for (int s = 0; s < DIFF_SIDES && !r; s++)
		r = find_frames(b, s, inlines, has_frame + s * frames);
	if (!r)
		r = sources_find(&b->sources, b->p, b->texts, of, b->totals);
	b->id->ambiguous_files = b->sources.ambiguous;
	b->id->ambiguous_file = b->sources.one_of_them;
	return r;
}

int identity_make(struct identity *id, const struct diff_input *in,
		  const uint64_t *const totals[DIFF_SIDES], const struct diff_renames *renames)
{
	_cleanup_(builder_release) struct builder b = {
		.in = in,
		.p = in->profile,
		.totals = totals,
		.renames = renames,
		.id = id,
		.text = STRBUF_INIT,
	};
	int r = strtab_new(&b.texts);

	if (!r)
		r = find_sources(&b);
	if (!r)
		r = find_new_modules(&b);
	for (int s = 0; s < DIFF_SIDES && !r; s++)
		for (uint32_t i = 0; i < frametab_count(in->profile->frames) && !r; i++)
			if (!id->key_of[s][i])
				r = name_frame(&b, s, i);
	if (!r)
		r = number_all(&b);
	return r ? r : make_keys(&b);
}

void identity_release(struct identity *id)
{
	for (int s = 0; s < DIFF_SIDES; s++)
		free(id->key_of[s]);
	vec_release(&id->keys);
	vec_release(&id->used_renames);
}
