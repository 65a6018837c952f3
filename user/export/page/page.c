/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#include "export/page/page.h"

#include <errno.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "base/hash.h"
#include "profile/idmap.h"
#include "profile/kinds.h"
#include "profile/module.h"

/* Sites while they are found: by creation, callers before callees. */
struct site_builder {
	struct page *page;
	const uint32_t *node_of;                       /* by stack id */
	const uint32_t *other_node_of, *other_site_of; /* of the side that is done; NULL: none */
	struct idmap map;
	VEC(struct page_site) sites;
	VEC(uint32_t) chain;
};

static void site_builder_release(struct site_builder *b)
{
	idmap_release(&b->map);
	vec_release(&b->sites);
	vec_release(&b->chain);
}

void page_release(struct page *page)
{
	vec_release(&page->functions);
	vec_release(&page->nodes);
	vec_release(&page->sites);
	vec_release(&page->tags);
	free(page->tag_of);
	free(page->waits);
	free(page->idle);
	strtab_free(page->modules);
	for (size_t i = 0; i < CUBE_SIDES; i++)
		free(page->site_of[i]);
}

const struct cube_run *page_first_run(const struct page *page, enum cube_side side)
{
	for (size_t i = 0; i < page->cube->runs.len; i++)
		if (page->cube->runs.items[i].side == side)
			return &page->cube->runs.items[i];
	return NULL;
}

bool page_has_kinds(const struct page *page)
{
	return page->tags.len && memchr(page->has_kind + 1, true, KINDS_MAX);
}

static bool is_shown(const struct page *page, uint16_t kind)
{
	const struct kinds *k = page->kinds;

	if (!k || !k->name || kind >= k->roles.len)
		return kind == KIND_TICKS;
	return page->has_kind[kind] && k->roles.items[kind] & KIND_IS_WANTED;
}

/* As the scripts know it, by the facts alone: several kinds are added up in ns. */
uint64_t page_factor(const struct page *page, uint16_t kind)
{
	const struct profile *p = page->profile;
	uint64_t period =
		kind ? p->kinds.items[kind - 1].period : profile_recording(p)->interval_ns;
	uint16_t shown = 0;

	if (!page_has_kinds(page))
		return 1;
	for (uint16_t other = 0; other <= p->kinds.len; other++)
		shown += is_shown(page, other);
	if (!is_shown(page, kind))
		return 0;
	return shown > 1 && period ? period : 1;
}

static int intern_site(struct site_builder *b, uint32_t caller, uint32_t node, uint32_t line,
		       uint32_t *id)
{
	struct page_site made = { .caller = caller, .node = node, .line = line };
	uint64_t hash = hash_combine((uint64_t)caller << 32 | node, line);
	size_t at = IDMAP_START;
	uint32_t found;

	while ((found = idmap_next(&b->map, hash, &at)) != IDMAP_NONE) {
		const struct page_site *s = &b->sites.items[found];

		if (s->caller == caller && s->node == node && s->line == line) {
			*id = found;
			return 0;
		}
	}
	if (idmap_reserve(&b->map) < 0 || vec_push(&b->sites, made) < 0)
		return -ENOMEM;
	*id = (uint32_t)b->sites.len - 1;
	idmap_insert(&b->map, hash, *id);
	return 0;
}

/*
 * The site of a stack whose caller's is known. Nodes that stand between the two are of the other
 * side only: on this one nobody knows their line.
 */
static int find_site(struct site_builder *b, uint32_t caller, uint32_t node, uint32_t line,
		     uint32_t *id)
{
	const struct page_node *nodes = b->page->nodes.items;
	uint32_t from = b->sites.items[caller].node, between = nodes[node].parent;
	int r = 0;

	b->chain.len = 0;
	for (; between != from && between && !r; between = nodes[between].parent)
		r = vec_push(&b->chain, between);
	if (between != from)
		caller = 0;
	while (b->chain.len && !r)
		r = intern_site(b, caller, b->chain.items[--b->chain.len], 0, &caller);
	return r ? r : intern_site(b, caller, node, line, id);
}

/* As most stacks are on both sides, in the same place: the other's site of it; 0: look it up. */
static uint32_t site_of_other(const struct site_builder *b, const uint32_t *site_of, uint32_t stack,
			      uint32_t parent)
{
	const uint32_t *other = b->other_site_of;
	bool is_same = other && b->other_node_of[stack] == b->node_of[stack] &&
		       other[parent] == site_of[parent];

	return is_same ? other[stack] : 0;
}

/* Stacks of one side, callers before callees. */
static int find_sites(struct site_builder *b, uint32_t *site_of)
{
	const struct profile *p = b->page->profile;
	const struct stack_entry *entries = stacktab_entries(p->stacks);
	int r = 0;

	for (uint32_t i = 1; i < b->page->stack_count && !r; i++) {
		const struct stack_entry *e = &entries[i];

		if (!b->node_of[i])
			continue;
		site_of[i] = site_of_other(b, site_of, i, e->parent);
		if (!site_of[i] && b->node_of[i] == b->node_of[e->parent])
			r = intern_site(b, b->sites.items[site_of[e->parent]].caller, b->node_of[i],
					frame_told_line(frametab_get(p->frames, e->frame)),
					&site_of[i]);
		else if (!site_of[i])
			r = find_site(b, site_of[e->parent], b->node_of[i],
				      frame_told_line(frametab_get(p->frames, e->frame)),
				      &site_of[i]);
	}
	return r;
}

/* Puts the sites in order of their nodes, which keeps callers before callees. */
static int order_sites(struct site_builder *b)
{
	struct page *page = b->page;
	size_t count = b->sites.len, nodes = page->nodes.len;
	_cleanup_(freep) uint32_t *place = calloc(count + 1, sizeof(*place));
	_cleanup_(freep) uint32_t *start = calloc(nodes + 1, sizeof(*start));

	if (!place || !start || vec_reserve(&page->sites, count) < 0)
		return -ENOMEM;
	for (size_t i = 0; i < count; i++)
		start[b->sites.items[i].node + 1]++;
	for (size_t i = 0; i < nodes; i++)
		start[i + 1] += start[i];
	for (size_t i = 0; i < count; i++)
		place[i] = start[b->sites.items[i].node]++;
	for (size_t i = 0; i < count; i++) {
		struct page_site s = b->sites.items[i];

		s.caller = place[s.caller];
		page->sites.items[place[i]] = s;
	}
	page->sites.len = count;
	for (size_t side = 0; side < CUBE_SIDES; side++)
		for (size_t i = 0; page->site_of[side] && i < page->stack_count; i++)
			page->site_of[side][i] = place[page->site_of[side][i]];
	return 0;
}

static int make_sites(struct page *page, const uint32_t *const node_of[CUBE_SIDES])
{
	_cleanup_(site_builder_release) struct site_builder b = { .page = page };
	uint32_t root;
	int r = intern_site(&b, 0, 0, 0, &root);

	for (size_t side = 0; side < CUBE_SIDES && !r; side++) {
		if (!node_of[side])
			continue;
		page->site_of[side] = calloc(page->stack_count, sizeof(uint32_t));
		b.node_of = node_of[side];
		r = page->site_of[side] ? find_sites(&b, page->site_of[side]) : -ENOMEM;
		b.other_node_of = b.node_of;
		b.other_site_of = page->site_of[side];
	}
	return r ? r : order_sites(&b);
}

static int name_module(struct page *page, const struct modules *modules, struct page_function *f)
{
	_cleanup_(strbuf_releasep) struct strbuf name = STRBUF_INIT;
	int r = modules_put_name(modules, f->file, &name);

	return r ? r : strtab_intern(page->modules, strbuf_str(&name), name.len, &f->module);
}

static int find_modules(struct page *page)
{
	_cleanup_(modules_release) struct modules modules = { 0 };
	int r = strtab_new(&page->modules);

	if (!r)
		r = modules_find(&modules, page->profile, NULL, NULL);
	for (size_t i = 0; i < page->functions.len && !r; i++) {
		struct page_function *f = &page->functions.items[i];

		f->origin = (uint8_t)origin_of(page->profile, f->name, f->file, f->kind);
		if (f->file && f->kind == FRAME_PYTHON)
			r = name_module(page, &modules, f);
	}
	return r;
}

static bool is_same_row_tag(const struct cube_tag *a, const struct cube_tag *b)
{
	return a->thread == b->thread && a->labels == b->labels && a->kind == b->kind;
}

/* The cube's are in order, instructions last. */
int page_find_tags(struct page *page)
{
	const struct cube_tag *tags = page->cube->tags.items;
	size_t count = page->cube->tags.len;
	bool is_plain = true;
	int r = 0;

	page->tag_of = calloc(count + 1, sizeof(*page->tag_of));
	if (!page->tag_of)
		return -ENOMEM;
	for (size_t i = 0; i < count; i++)
		is_plain = is_plain && !tags[i].labels && tags[i].kind == KIND_TICKS;
	for (size_t i = 0; i < count && !r; i++) {
		bool is_new = !is_plain && (!i || !is_same_row_tag(&tags[i], &tags[i - 1]));

		r = is_new ? vec_push(&page->tags, tags[i]) : 0;
		page->has_kind[tags[i].kind] = true;
		page->tag_of[i] = is_plain ? page->profile->threads.items[tags[i].thread].number
					   : (uint32_t)page->tags.len - 1;
	}
	return r;
}

int page_complete(struct page *page, const uint32_t *const node_of[CUBE_SIDES])
{
	int r = find_modules(page);

	return r ? r : make_sites(page, node_of);
}

static int add_functions(struct page *page, const struct calltree *tree)
{
	struct page_function root = { .kind = FRAME_MARKER };
	int r = vec_push(&page->functions, root);

	for (size_t i = 0; i < tree->function_count && !r; i++) {
		const struct calltree_function *f = &tree->functions[i];
		struct page_function made = {
			.name = f->name,
			.file = f->file,
			.kind = f->kind,
			.line = frametab_get(page->profile->frames, f->frame)->first_line,
		};

		r = vec_push(&page->functions, made);
	}
	return r;
}

static int add_nodes(struct page *page, const struct calltree *tree)
{
	if (vec_reserve(&page->nodes, tree->node_count) < 0)
		return -ENOMEM;
	for (size_t i = 0; i < tree->node_count; i++)
		page->nodes.items[i] = (struct page_node){
			.self = { [CUBE_CURRENT] = tree->nodes[i].self },
			.parent = tree->nodes[i].parent,
			.function = i ? tree->nodes[i].function + 1 : 0,
		};
	page->nodes.len = tree->node_count;
	return 0;
}

int page_of_tree(struct page *page, const struct profile *p, const struct cube *c,
		 const struct calltree *tree, const struct kinds *kinds)
{
	size_t size = tree->stack_count * sizeof(*tree->node_of);
	_cleanup_(freep) uint32_t *node_of = malloc(size + 1);
	const uint32_t *const sides[CUBE_SIDES] = { [CUBE_CURRENT] = node_of };
	int r;

	if (!node_of)
		return -ENOMEM;
	memcpy(node_of, tree->node_of, size);

	*page = (struct page){
		.profile = p,
		.cube = c,
		.blocks = c->blocks,
		.stack_count = tree->stack_count,
		.kinds = kinds,
	};
	if ((r = add_functions(page, tree)) < 0 || (r = add_nodes(page, tree)) < 0 ||
	    (r = page_find_tags(page)) < 0)
		return r;
	if (page_has_kinds(page))
		r = page_tell_kinds(page, node_of);
	return r ? r : page_complete(page, sides);
}
