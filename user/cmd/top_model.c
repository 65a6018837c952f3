/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#include "cmd/top_model.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/hash.h"
#include "cmd/top_inside.h"

/* --- begin and end ---------------------------------------------------------------------------- */

int top_model_new(uint64_t window_ns, struct top_model **out)
{
	_cleanup_(top_model_freep) struct top_model *m = calloc(1, sizeof(*m));
	int r = m ? profile_new(&m->profile) : -ENOMEM;

	if (r < 0)
		return r;
	m->window_ns = window_ns;
	m->select.keeps_kinds = true;
	*out = take_ptr(m);
	return 0;
}

static void drop_slices(struct top_model *m)
{
	for (size_t i = 0; i < m->slices.len; i++)
		vec_release(&m->slices.items[i].cells);
	vec_release(&m->slices);
}

static void drop_keys(struct top_model *m)
{
	drop_slices(m);
	vec_release(&m->keys);
	idmap_release(&m->key_map);
	for (int i = 0; i < TOP_SPANS; i++)
		vec_release(&m->values[i]);
	vec_release(&m->held_values);
	vec_release(&m->hints);
	vec_release(&m->function_of);
	vec_release(&m->thread_of);
	vec_release(&m->newest_of);
	idmap_release(&m->function_map);
	idmap_release(&m->thread_map);
}

void top_model_free(struct top_model *m)
{
	if (!m)
		return;
	drop_keys(m);
	import_fold_release(&m->imports);
	select_release(&m->select);
	kinds_release(&m->kinds);
	profile_ids_release(&m->ids);
	profile_free(m->profile);
	free(m);
}

void top_model_select(struct top_model *m, const struct select_query *q)
{
	select_release(&m->select);
	m->select = (struct select){ .query = *q, .keeps_kinds = true };
}

void top_model_forget_ids(struct top_model *m)
{
	profile_ids_forget_tables(&m->ids);
	kinds_release(&m->kinds);
}

int top_model_reset(struct top_model *m, uint64_t now_ns)
{
	struct select_query query = m->select.query;
	int r = profile_reset(m->profile);

	if (r < 0)
		return r;
	drop_keys(m);
	import_fold_release(&m->imports);
	m->imports = (struct import_fold){ 0 };
	top_model_select(m, &query); /* what it knew were ids */
	profile_ids_forget_tables(&m->ids);
	m->counts = (struct top_counts){ 0 };
	m->held_counts = (struct top_counts){ 0 };
	m->since_ns = m->now_ns = m->held_until_ns = now_ns;
	m->generation++;
	return 0;
}

uint32_t top_model_generation(const struct top_model *m)
{
	return m->generation;
}

const struct profile *top_model_profile(const struct top_model *m)
{
	return m->profile;
}

/* --- what comes ------------------------------------------------------------------------------- */

static uint64_t hash_of(const struct key *k)
{
	return hash_combine((uint64_t)k->stack << 32 | k->thread,
			    (uint64_t)k->labels << 16 | k->kind);
}

static int key_id(struct top_model *m, const struct key *k, uint32_t *id)
{
	uint64_t hash = hash_of(k);
	size_t at = IDMAP_START;
	int r;

	while ((*id = idmap_next(&m->key_map, hash, &at)) != IDMAP_NONE) {
		const struct key *found = &m->keys.items[*id];

		if (found->stack == k->stack && found->thread == k->thread &&
		    found->labels == k->labels && found->kind == k->kind)
			return 0;
	}
	*id = (uint32_t)m->keys.len;
	if ((r = idmap_reserve(&m->key_map)) < 0 || (r = vec_reserve(&m->keys, 1)) < 0 ||
	    (r = vec_push(&m->values[TOP_LAST], 0)) < 0 ||
	    (r = vec_push(&m->values[TOP_SINCE_START], 0)) < 0 ||
	    (r = vec_push(&m->held_values, 0)) < 0 || (r = vec_push(&m->hints, 0)) < 0)
		return r;
	m->keys.items[m->keys.len++] = *k;
	idmap_insert(&m->key_map, hash, *id);
	return 0;
}

static uint64_t sum_of(uint64_t a, uint64_t b)
{
	uint64_t sum;

	return __builtin_add_overflow(a, b, &sum) ? UINT64_MAX : sum;
}

static void add_to(uint64_t *value, uint64_t ns)
{
	*value = sum_of(*value, ns);
}

/* The newest slice has most of them: there one cell a key. */
static int put_cell(struct top_model *m, size_t slice, uint32_t key, uint64_t ns)
{
	struct slice *s = &m->slices.items[slice];
	uint32_t *hint = &m->hints.items[key];

	add_to(&m->values[TOP_LAST].items[key], ns);
	if (slice + 1 == m->slices.len) {
		if (*hint < s->cells.len && s->cells.items[*hint].key == key) {
			add_to(&s->cells.items[*hint].ns, ns);
			return 0;
		}
		*hint = (uint32_t)s->cells.len;
	}
	return vec_push(&s->cells, ((struct cell){ .key = key, .ns = ns }));
}

/* Deals a sample's ns out over the slices that it covers: a span comes as it ends. */
static int deal(struct top_model *m, const struct sample *s, uint64_t start_ns, uint32_t key)
{
	uint64_t until = s->value; /* of the value, what is before the end of the slice */
	int r = 0;

	for (size_t i = m->slices.len; i-- && until && !r;) {
		uint64_t from_ns = difference(m->slices.items[i].from_ns, start_ns);
		uint64_t before = sample_end_ns(s) <= from_ns ? until
				  : s->duration_ns            ? sample_value_until(s, from_ns)
							      : 0;

		if (before < until)
			r = put_cell(m, i, key, until - before);
		until = before;
	}
	return r;
}

static int take_sample(struct top_model *m, const struct profile *p, const struct sample *from)
{
	uint8_t role = m->kinds.roles.items[from->kind];
	const struct key k = { .stack = m->ids.stacks[from->stack],
			       .thread = m->ids.threads[from->thread],
			       .labels = m->ids.labels[from->labels],
			       .kind = m->ids.kinds[from->kind] };
	struct sample s = *from;
	uint32_t key;
	int r;

	if (!(role & (KIND_IS_CPU | KIND_IS_OFF_CPU | KIND_IS_TASK)))
		return 0;
	m->has_waits |= !!(role & KIND_IS_OFF_CPU);
	s.value = kinds_scaled(p, from);
	r = key_id(m, &k, &key);
	if (r < 0)
		return r;
	if (m->is_held) {
		add_to(&m->held_values.items[key], s.value);
		return 0;
	}
	add_to(&m->values[TOP_SINCE_START].items[key], s.value);
	return deal(m, &s, profile_recording(p)->start_monotonic_ns, key);
}

void top_counts_add(struct top_counts *to, const struct top_counts *from)
{
	to->samples += from->samples;
	to->lost += from->lost;
	to->lost_wait_ns += from->lost_wait_ns;
	to->ticks += from->ticks;
	to->idle_ticks += from->idle_ticks;
	to->python_ticks += from->python_ticks;
	to->own_ns += from->own_ns;
	to->sampler_ns += from->sampler_ns;
}

static void expire(struct top_model *m)
{
	size_t gone = 0;

	while (gone + 1 < m->slices.len &&
	       m->slices.items[gone].to_ns + m->window_ns <= m->now_ns) {
		struct slice *s = &m->slices.items[gone++];

		for (size_t i = 0; i < s->cells.len; i++)
			m->values[TOP_LAST].items[s->cells.items[i].key] -= s->cells.items[i].ns;
		vec_release(&s->cells);
	}
	m->slices.len -= gone;
	if (gone)
		memmove(m->slices.items, m->slices.items + gone,
			m->slices.len * sizeof(m->slices.items[0]));
}

static size_t bytes_of(const struct top_model *m)
{
	return profile_bytes(m->profile) + m->keys.cap * sizeof(struct key) +
	       idmap_bytes(&m->key_map) + 3 * m->values[TOP_LAST].cap * sizeof(uint64_t);
}

/* What comes is of a slice until then. */
static int begin_slice(struct top_model *m, uint64_t now_ns, const struct top_counts *counts)
{
	struct slice slice = { .from_ns = m->now_ns, .to_ns = now_ns, .counts = *counts };

	if (m->is_held) {
		m->held_until_ns = now_ns;
		top_counts_add(&m->held_counts, counts);
		return 0;
	}
	m->now_ns = now_ns;
	top_counts_add(&m->counts, counts);
	return vec_push(&m->slices, slice);
}

int top_model_add(struct top_model *m, const struct profile *p, uint64_t now_ns,
		  const struct top_counts *counts)
{
	int r = 0;

	if (bytes_of(m) > TOP_BYTES_MAX)
		r = top_model_reset(m, m->now_ns);
	if (!m->since_ns)
		m->since_ns = m->now_ns = profile_recording(p)->start_monotonic_ns;
	if (r < 0 || (r = profile_merge(m->profile, p, &m->ids)) < 0 ||
	    (r = kinds_choose(&m->kinds, p, NULL)) < 0 || (r = begin_slice(m, now_ns, counts)) < 0)
		return r;
	for (size_t i = 0; i < p->samples.len && !r; i++)
		r = take_sample(m, p, &p->samples.items[i]);
	expire(m);
	return r;
}

static void let_go(struct top_model *m)
{
	for (size_t i = 0; i < m->keys.len; i++) {
		add_to(&m->values[TOP_SINCE_START].items[i], m->held_values.items[i]);
		m->values[TOP_LAST].items[i] = m->held_values.items[i] = 0;
	}
	top_counts_add(&m->counts, &m->held_counts);
	m->held_counts = (struct top_counts){ 0 };
	m->now_ns = m->held_until_ns;
	drop_slices(m);
}

void top_model_hold(struct top_model *m, bool is_held)
{
	if (m->is_held == is_held)
		return;
	m->is_held = is_held;
	m->held_until_ns = is_held ? m->now_ns : m->held_until_ns;
	if (!is_held)
		let_go(m);
}
