/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#include "profile/gil.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/hash.h"
#include "profile/waits.h"

#define FREE_THREADED "free-threaded" /* in a process' implementation */

/* A span of waiting for the GIL. */
struct wait {
	uint64_t from_ns, to_ns;
	double weight;   /* what a ns of it stands for */
	double left_ns;  /* of what it stands for, that no hold has met yet */
	double episodes; /* that it begins, and no row has yet */
	uint32_t function;
	uint32_t row, holder; /* the last row that it was dealt to, and whose that is */
	bool is_selected;
};

/* A moment, or a span, of holding it while others wait. */
struct hold {
	uint64_t from_ns, to_ns; /* equal: a moment */
	uint64_t ns;             /* that others waited */
	uint32_t function;
};

/* What has no place in time, by function. */
struct remainder {
	double ns, selected_ns; /* that no hold has met yet */
	double episodes;        /* selected, and in no row */
};

/* Waits and holds of a GIL of a process, or those whose GIL is unknown. */
struct gil_group {
	struct gil_group *next; /* of the same process */
	uint16_t gil;
	VEC(struct wait) waits;
	VEC(struct hold) holds;
	VEC(uint32_t) active;         /* indices of waits that a hold may overlap */
	VEC(struct remainder) waited; /* all waits, by function */
	VEC(double) kept_ns;          /* by function of who held it: what met no wait */
	bool has_holder;
};

static void groups_free(struct gil_group *first)
{
	for (struct gil_group *of = first, *next; of; of = next) {
		next = of->next;
		vec_release(&of->waits);
		vec_release(&of->holds);
		vec_release(&of->active);
		vec_release(&of->waited);
		vec_release(&of->kept_ns);
		free(of);
	}
}

void gil_release(struct gil *g)
{
	for (size_t i = 0; i < g->processes.len; i++)
		groups_free(g->processes.items[i]);
	vec_release(&g->processes);
	vec_release(&g->functions);
	vec_release(&g->rows);
	vec_release(&g->function_of);
	idmap_release(&g->function_map);
	idmap_release(&g->row_map);
}

/* --- functions -------------------------------------------------------------------------------- */

static int intern_function(struct gil *g, const struct profile *p, uint32_t frame, uint32_t *id)
{
	const struct frame *f = frametab_get(p->frames, frame);
	uint64_t hash = hash_combine(f->name, f->file);
	size_t at = IDMAP_START;

	while ((*id = idmap_next(&g->function_map, hash, &at)) != IDMAP_NONE)
		if (g->functions.items[*id].name == f->name &&
		    g->functions.items[*id].file == f->file)
			return 0;
	if (idmap_reserve(&g->function_map) < 0 ||
	    vec_push(&g->functions, ((struct gil_function){ f->name, f->file, frame })) < 0)
		return -ENOMEM;
	*id = (uint32_t)g->functions.len - 1;
	idmap_insert(&g->function_map, hash, *id);
	return 0;
}

/* The innermost code; of a stack without any what is said in its stead. */
static uint32_t innermost(const struct profile *p, uint32_t stack)
{
	const struct stack_entry *entries = stacktab_entries(p->stacks);
	uint32_t said = stack;

	for (uint32_t at = stack; at; at = entries[at].parent) {
		if (frametab_get(p->frames, entries[at].frame)->kind != FRAME_MARKER)
			return entries[at].frame;
		said = wait_is_marker(p, entries[at].frame) ? said : at;
	}
	return entries[said].frame;
}

static int function_of(struct gil *g, const struct profile *p, uint32_t stack, uint32_t *id)
{
	int r = 0;

	*id = GIL_NOBODY;
	if (!stack)
		return 0;
	while (g->function_of.len <= stack && !r)
		r = vec_push(&g->function_of, 0);
	if (r < 0)
		return r;
	if (!g->function_of.items[stack]) {
		r = intern_function(g, p, innermost(p, stack), id);
		if (r < 0)
			return r;
		g->function_of.items[stack] = *id + 1;
	}
	*id = g->function_of.items[stack] - 1;
	return 0;
}

/* --- rows ------------------------------------------------------------------------------------- */

static int find_row(struct gil *g, uint32_t waiter, uint32_t holder, uint32_t *row)
{
	uint64_t hash = hash_u64((uint64_t)waiter << 32 | holder);
	size_t at = IDMAP_START;

	while ((*row = idmap_next(&g->row_map, hash, &at)) != IDMAP_NONE)
		if (g->rows.items[*row].waiter == waiter && g->rows.items[*row].holder == holder)
			return 0;
	if (g->rows.len == IDMAP_NONE)
		return -EOVERFLOW;
	if (idmap_reserve(&g->row_map) < 0 ||
	    vec_push(&g->rows, ((struct gil_row){ waiter, holder, 0, 0 })) < 0)
		return -ENOMEM;
	*row = (uint32_t)g->rows.len - 1;
	idmap_insert(&g->row_map, hash, *row);
	return 0;
}

static int add_to_row(struct gil *g, uint32_t waiter, uint32_t holder, double ns, double episodes)
{
	uint32_t row;
	int r = find_row(g, waiter, holder, &row);

	if (r < 0)
		return r;
	g->rows.items[row].ns += ns;
	g->rows.items[row].episodes += episodes;
	return 0;
}

/* --- holds and the waits they overlap --------------------------------------------------------- */

static int compare_waits(const void *a, const void *b)
{
	uint64_t x = ((const struct wait *)a)->from_ns, y = ((const struct wait *)b)->from_ns;

	return x < y ? -1 : x > y;
}

static int compare_holds(const void *a, const void *b)
{
	uint64_t x = ((const struct hold *)a)->from_ns, y = ((const struct hold *)b)->from_ns;

	return x < y ? -1 : x > y;
}

/* What a wait has of a hold, which it begins before the end of. */
static double overlap(const struct wait *w, const struct hold *h)
{
	uint64_t from = w->from_ns > h->from_ns ? w->from_ns : h->from_ns;
	uint64_t to = w->to_ns < h->to_ns ? w->to_ns : h->to_ns;

	if (h->from_ns == h->to_ns)
		return w->weight;
	return to > from ? w->weight * (double)(to - from) : 0;
}

/* A part of a hold, at most what is left of the wait, is taken from *ns_left. */
static int deal_to(struct gil *g, struct gil_group *of, struct wait *w, const struct hold *h,
		   double ns, double *ns_left)
{
	int r = 0;

	ns = ns < w->left_ns ? ns : w->left_ns;
	if (ns <= 0)
		return 0;
	*ns_left -= ns;
	w->left_ns -= ns;
	of->waited.items[w->function].ns -= ns;
	if (!w->is_selected)
		return 0;
	of->waited.items[w->function].selected_ns -= ns;
	if (w->row == IDMAP_NONE || w->holder != h->function)
		r = find_row(g, w->function, h->function, &w->row);
	if (r < 0)
		return r;
	w->holder = h->function;
	g->rows.items[w->row].ns += ns;
	g->rows.items[w->row].episodes += w->episodes;
	w->episodes = 0;
	return 0;
}

static int keep(struct gil_group *of, uint32_t function, double ns)
{
	int r = 0;

	while (of->kept_ns.len <= function && !r)
		r = vec_push(&of->kept_ns, 0);
	if (!r)
		of->kept_ns.items[function] += ns;
	return r;
}

/* next: the first wait that begins after the hold does; those before are active, or over. */
static int deal(struct gil *g, struct gil_group *of, const struct hold *h, size_t next)
{
	double whole = 0, left = (double)h->ns;
	size_t end = next;
	int r = 0;

	while (end < of->waits.len && of->waits.items[end].from_ns < h->to_ns)
		end++;
	for (size_t i = 0; i < of->active.len; i++)
		whole += overlap(&of->waits.items[of->active.items[i]], h);
	for (size_t i = next; i < end; i++)
		whole += overlap(&of->waits.items[i], h);
	for (size_t i = 0; whole > 0 && i < of->active.len && !r; i++) {
		struct wait *w = &of->waits.items[of->active.items[i]];

		r = deal_to(g, of, w, h, (double)h->ns * overlap(w, h) / whole, &left);
	}
	for (size_t i = next; whole > 0 && i < end && !r; i++) {
		struct wait *w = &of->waits.items[i];

		r = deal_to(g, of, w, h, (double)h->ns * overlap(w, h) / whole, &left);
	}
	return r || left <= 0 ? r : keep(of, h->function, left);
}

static void drop_ended(struct gil_group *of, uint64_t at_ns)
{
	size_t kept = 0;

	for (size_t i = 0; i < of->active.len; i++)
		if (of->waits.items[of->active.items[i]].to_ns > at_ns)
			of->active.items[kept++] = of->active.items[i];
	of->active.len = kept;
}

/* Forgets what ended before; its episodes are of no hold. */
static void forget(struct gil *g, struct gil_group *of, size_t holds, uint64_t before_ns)
{
	size_t kept = 0;

	for (size_t i = 0; i < of->waits.len; i++) {
		struct wait *w = &of->waits.items[i];

		if (w->to_ns > before_ns)
			of->waits.items[kept++] = *w;
		else if (w->function != GIL_NOBODY)
			of->waited.items[w->function].episodes += w->episodes;
	}
	g->pending -= of->waits.len - kept + holds;
	of->waits.len = kept;
	if (holds)
		memmove(of->holds.items, of->holds.items + holds,
			(of->holds.len - holds) * sizeof(*of->holds.items));
	of->holds.len -= holds;
}

/* Deals out the oldest of its holds, so many: waits that overlap them have been added. */
static int settle(struct gil *g, struct gil_group *of, size_t holds)
{
	uint64_t before_ns;
	size_t next = 0;
	int r = 0;

	if (of->waits.len)
		qsort(of->waits.items, of->waits.len, sizeof(*of->waits.items), compare_waits);
	if (of->holds.len)
		qsort(of->holds.items, of->holds.len, sizeof(*of->holds.items), compare_holds);
	before_ns = holds < of->holds.len ? of->holds.items[holds].from_ns : UINT64_MAX;
	of->active.len = 0;
	for (size_t i = 0; i < holds && !r; i++) {
		const struct hold *h = &of->holds.items[i];

		while (next < of->waits.len && of->waits.items[next].from_ns <= h->from_ns && !r)
			r = vec_push(&of->active, (uint32_t)next++);
		drop_ended(of, h->from_ns);
		if (!r)
			r = deal(g, of, h, next);
	}
	if (!r)
		forget(g, of, holds, before_ns);
	return r;
}

/* Of all processes, but for the newest 1 / newest of each, in whose time spans may begin that are
 * still to come; 0: of all. */
static int settle_all(struct gil *g, size_t newest)
{
	int r = 0;

	for (size_t i = 0; i < g->processes.len; i++)
		for (struct gil_group *of = g->processes.items[i]; of && !r; of = of->next)
			r = settle(g, of, of->holds.len - (newest ? of->holds.len / newest : 0));
	return r;
}

static int stay_small(struct gil *g)
{
	int r = g->pending < GIL_PENDING_MAX ? 0 : settle_all(g, 4);

	return r || g->pending < GIL_PENDING_MAX / 4 * 3 ? r : settle_all(g, 0);
}

/* --- samples ---------------------------------------------------------------------------------- */

static int group_of(struct gil *g, uint32_t index, uint16_t gil, struct gil_group **out)
{
	struct gil_group **at;
	int r = 0;

	while (g->processes.len <= index && !r)
		r = vec_push(&g->processes, NULL);
	if (r < 0)
		return r;
	at = &g->processes.items[index];
	while (*at && (*at)->gil != gil)
		at = &(*at)->next;
	if (!*at && (*at = calloc(1, sizeof(**at))))
		(*at)->gil = gil;
	*out = *at;
	return *out ? 0 : -ENOMEM;
}

/* When a span ends; files may be anybody's. */
static uint64_t end_of(const struct sample *s)
{
	uint64_t end_ns;

	return __builtin_add_overflow(s->time_ns, s->duration_ns, &end_ns) ? UINT64_MAX : end_ns;
}

static int cover(struct gil_group *of, uint32_t function)
{
	int r = 0;

	while (of->waited.len <= function && !r)
		r = vec_push(&of->waited, ((struct remainder){ 0 }));
	return r;
}

static int add_hold(struct gil *g, struct gil_group *of, uint32_t function, const struct sample *s,
		    uint64_t ns)
{
	struct hold h = {
		.from_ns = s->time_ns, .to_ns = end_of(s), .ns = ns, .function = function
	};

	of->has_holder = true;
	g->pending++;
	return vec_push(&of->holds, h);
}

/* How many spans like this one there were, of which it was kept by chance. */
static double weight_of(const struct sample *s, uint64_t ns)
{
	return s->duration_ns ? (double)ns / (double)s->duration_ns : 1;
}

/* What no sample stands for was somewhen in its span, which is all of a recording or a life. */
static bool has_place(const struct gil *g, const struct profile *p, uint32_t function)
{
	return strcmp(strtab_get(p->strings, g->functions.items[function].name),
		      PROFILE_NOT_SAMPLED) != 0;
}

static int add_wait(struct gil *g, struct gil_group *of, uint32_t function, bool has_place,
		    const struct sample *s, uint64_t ns, bool is_selected)
{
	bool begins = s->flags & SAMPLE_BIT_EPISODE && is_selected;
	struct wait w = {
		.from_ns = s->time_ns,
		.to_ns = s->duration_ns ? end_of(s) : s->time_ns + 1,
		.weight = weight_of(s, ns),
		.left_ns = (double)ns,
		.episodes = begins ? weight_of(s, ns) : 0,
		.function = function,
		.row = IDMAP_NONE,
		.is_selected = is_selected,
	};
	int r = cover(of, function);

	if (r < 0)
		return r;
	of->waited.items[function].ns += (double)ns;
	of->waited.items[function].selected_ns += is_selected ? (double)ns : 0;
	g->waited_ns += is_selected ? (double)ns : 0;
	g->episodes += w.episodes;
	if (!has_place)
		return 0;
	g->pending++;
	return vec_push(&of->waits, w);
}

static bool is_free_threaded(const struct profile *p, const struct process *of)
{
	return strstr(strtab_get(p->strings, of->implementation), FREE_THREADED) != NULL;
}

int gil_add(struct gil *g, const struct kinds *k, const struct profile *p, const struct sample *s,
	    bool is_selected)
{
	uint8_t role = k->roles.items[s->kind];
	uint32_t index = p->threads.items[s->thread].process, marker, function;
	uint64_t ns = kinds_scaled(p, s);
	const char *waits_for;
	struct gil_group *of;
	int r;

	if (!(role & (KIND_IS_OFF_CPU | KIND_IS_GIL)))
		return 0;
	marker = role & KIND_IS_GIL ? 0 : wait_of_stack(p, s->stack);
	if (!(role & KIND_IS_GIL) && !marker)
		return 0;
	waits_for = strtab_get(p->strings, marker);
	if (marker && strcmp(waits_for, WAIT_MARKER_GIL) != 0) {
		if (!is_selected || strcmp(waits_for, WAIT_MARKER_LOCK) != 0 ||
		    !is_free_threaded(p, &p->processes.items[index]))
			return 0;
		g->is_free_threaded = true;
		g->lock_ns += (double)ns;
		r = function_of(g, p, s->stack, &function);
		return r ? r : add_to_row(g, function, GIL_NOBODY, (double)ns, weight_of(s, ns));
	}
	r = group_of(g, index, s->gil, &of);
	if (!r)
		r = function_of(g, p, s->stack, &function);
	if (r < 0 || function == GIL_NOBODY)
		return r;
	r = marker ? add_wait(g, of, function, has_place(g, p, function), s, ns, is_selected)
		   : add_hold(g, of, function, s, ns);
	return r ? r : stay_small(g);
}

/* --- finished --------------------------------------------------------------------------------- */

static int compare_rows(const void *a, const void *b)
{
	const struct gil_row *x = a, *y = b;

	if (x->ns != y->ns)
		return x->ns > y->ns ? -1 : 1;
	if (x->waiter != y->waiter)
		return x->waiter < y->waiter ? -1 : 1;
	return x->holder < y->holder ? -1 : x->holder > y->holder;
}

/* Deals out what no wait met over what is left of all that waited, as far as that goes; if nobody
 * did nobody knows who it was. */
static int deal_kept(struct gil *g, const struct gil_group *of)
{
	double left = 0, kept = 0, whole;
	int r = 0;

	for (size_t i = 0; i < of->waited.len; i++)
		left += of->waited.items[i].ns;
	for (size_t i = 0; i < of->kept_ns.len; i++)
		kept += of->kept_ns.items[i];
	whole = left > kept ? left : kept;
	for (uint32_t h = 0; h < of->kept_ns.len && !r; h++) {
		if (of->kept_ns.items[h] <= 0)
			continue;
		if (!of->waited.len)
			r = add_to_row(g, GIL_NOBODY, h, of->kept_ns.items[h], 0);
		for (uint32_t w = 0; w < of->waited.len && !r; w++)
			if (of->waited.items[w].selected_ns > 0)
				r = add_to_row(g, w, h,
					       of->kept_ns.items[h] *
						       of->waited.items[w].selected_ns / whole,
					       0);
	}
	return r;
}

/* Nobody was seen to hold it: who waited is known. */
static int add_waited(struct gil *g, const struct gil_group *of)
{
	int r = 0;

	for (uint32_t w = 0; w < of->waited.len && !r; w++)
		if (of->waited.items[w].selected_ns > 0)
			r = add_to_row(g, w, GIL_NOBODY, of->waited.items[w].selected_ns, 0);
	return r;
}

/* Those that no hold was seen of are of each row that they may be of, as far as it waited. */
static int deal_episodes(struct gil *g)
{
	size_t count = g->functions.len;
	double *ns = calloc(count + 1, sizeof(*ns)), *left = calloc(count + 1, sizeof(*left));
	int r = ns && left ? 0 : -ENOMEM;

	for (size_t i = 0; i < g->processes.len && !r; i++)
		for (const struct gil_group *of = g->processes.items[i]; of; of = of->next)
			for (size_t w = 0; w < of->waited.len; w++)
				left[w] += of->waited.items[w].episodes;
	for (size_t i = 0; i < g->rows.len && !r; i++)
		if (g->rows.items[i].waiter != GIL_NOBODY)
			ns[g->rows.items[i].waiter] += g->rows.items[i].ns;
	for (size_t i = 0; i < g->rows.len && !r; i++) {
		struct gil_row *row = &g->rows.items[i];

		if (row->waiter != GIL_NOBODY && ns[row->waiter] > 0)
			row->episodes += left[row->waiter] * row->ns / ns[row->waiter];
	}
	free(ns);
	free(left);
	return r;
}

/* Moves all waits and holds of one group of a process to another. */
static int merge(struct gil_group *to, struct gil_group *from)
{
	int r = 0;

	for (uint32_t f = 0; f < from->waited.len && !r; f++) {
		const struct remainder *more = &from->waited.items[f];

		r = cover(to, f);
		if (r < 0)
			break;
		to->waited.items[f].ns += more->ns;
		to->waited.items[f].selected_ns += more->selected_ns;
		to->waited.items[f].episodes += more->episodes;
	}
	for (uint32_t f = 0; f < from->kept_ns.len && !r; f++)
		r = keep(to, f, from->kept_ns.items[f]);
	to->has_holder |= from->has_holder;
	from->has_holder = false;
	from->waited.len = from->kept_ns.len = 0;
	return r;
}

/* A GIL that is not known is the only one there is, if there is but one. */
static int settle_unknown(struct gil_group *first)
{
	struct gil_group *unknown = NULL, *known = NULL;
	size_t count = 0;

	for (struct gil_group *of = first; of; of = of->next) {
		if (!of->gil) {
			unknown = of;
			continue;
		}
		known = of;
		count++;
	}
	return unknown && count == 1 ? merge(known, unknown) : 0;
}

int gil_finish(struct gil *g)
{
	int r = settle_all(g, 0);

	for (size_t i = 0; i < g->processes.len && !r; i++) {
		r = settle_unknown(g->processes.items[i]);
		for (const struct gil_group *of = g->processes.items[i]; of && !r; of = of->next)
			r = of->has_holder ? deal_kept(g, of) : add_waited(g, of);
	}
	if (!r)
		r = deal_episodes(g);
	if (!r && g->rows.len)
		qsort(g->rows.items, g->rows.len, sizeof(*g->rows.items), compare_rows);
	return r;
}

int gil_by_holder(const struct gil *g, struct gil_rows *out)
{
	size_t count = g->functions.len, kept = 0;

	if (vec_reserve(out, count + 1) < 0)
		return -ENOMEM;
	out->len = count + 1; /* the last: of those that nobody knows */
	for (size_t i = 0; i <= count; i++)
		out->items[i] = (struct gil_row){ .waiter = GIL_NOBODY,
						  .holder = i < count ? (uint32_t)i : GIL_NOBODY };
	for (size_t i = 0; i < g->rows.len; i++) {
		const struct gil_row *row = &g->rows.items[i];
		struct gil_row *sum = &out->items[row->holder == GIL_NOBODY ? count : row->holder];

		sum->ns += row->ns;
		sum->episodes += row->episodes;
	}
	for (size_t i = 0; i <= count; i++)
		if (out->items[i].ns > 0)
			out->items[kept++] = out->items[i];
	out->len = kept;
	qsort(out->items, kept, sizeof(*out->items), compare_rows);
	return 0;
}
