/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#include "collect/label_sets.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/utf8.h"
#include "base/vec.h"
#include "profile/idmap.h"
#include "symbolize/pystring.h"

#define SETS_MAX 65536
#define DIGIT_BITS 30 /* of CPython's int */
#define TEXT_BYTES PYSTRING_UTF8_BYTES(LABEL_BYTES_MAX)
_Static_assert(TEXT_BYTES > LABEL_BYTES_MAX / 4 * DIGIT_BITS / 4 + sizeof("-0x"), "an int fits");

struct label_set {
	uint64_t labels; /* identity */
	uint64_t process;
	uint32_t base;    /* the set that it was added to, */
	uint32_t changes; /* of names, then */
	uint32_t id;      /* and then is in the profile; 0: not yet */
	bool is_used;     /* since ids were forgotten */
	uint8_t count;
	struct label_value *values; /* owned */
};

struct label_sets {
	const struct context_label_list *labels;
	struct profile *profile;
	label_sets_name_fn name_of; /* NULL: no thread has attributes */
	void *arg;
	const uint32_t *changes; /* of names */
	VEC(struct label_set) sets;
	struct idmap ids;
	size_t values; /* of all sets */
	uint64_t lost;
	uint32_t met; /* bits by the labels' numbers */
	bool has_overflown;
};

int label_sets_new(const struct context_label_list *labels, struct profile *profile,
		   struct label_sets **out)
{
	struct label_sets *t = calloc(1, sizeof(*t));

	if (!t)
		return -ENOMEM;
	t->labels = labels;
	t->profile = profile;
	*out = t;
	return 0;
}

void label_sets_set_names(struct label_sets *t, label_sets_name_fn fn, void *arg,
			  const uint32_t *changes)
{
	t->name_of = fn;
	t->arg = arg;
	t->changes = changes;
}

static uint32_t changes(const struct label_sets *t)
{
	return t->changes ? *t->changes : 0;
}

static void forget_all(struct label_sets *t)
{
	for (size_t i = 0; i < t->sets.len; i++)
		free(t->sets.items[i].values);
	t->sets.len = 0;
	t->values = 0;
	idmap_release(&t->ids);
}

void label_sets_free(struct label_sets *t)
{
	if (!t)
		return;
	forget_all(t);
	vec_release(&t->sets);
	free(t);
}

static struct label_set *find(const struct label_sets *t, uint64_t labels)
{
	size_t at = IDMAP_START;
	uint32_t i;

	while ((i = idmap_next(&t->ids, labels, &at)) != IDMAP_NONE)
		if (t->sets.items[i].labels == labels)
			return &t->sets.items[i];
	return NULL;
}

static const struct context_label *label_of(const struct label_sets *t, const struct label_value *v)
{
	return t->labels && v->number < t->labels->len ? &t->labels->items[v->number] : NULL;
}

static bool is_sound_value(const struct label_sets *t, const struct label_value *v)
{
	if ((v->number != LABEL_TASK && !label_of(t, v)) || v->bytes > LABEL_BYTES_MAX)
		return false;
	if (v->kind == LABEL_ATTRIBUTE)
		return !v->number;
	if (v->kind == LABEL_ID)
		return v->bytes % 8 == 0 && v->bytes;
	if (v->kind == LABEL_TEXT)
		return v->char_bytes == 1 || v->char_bytes == 2 || v->char_bytes == 4;
	return (v->kind == LABEL_INT || v->kind == LABEL_BOOL) && v->bytes % 4 == 0;
}

static bool is_sound(const struct label_sets *t, const struct labels_event *e, size_t size)
{
	if (!e->count || e->count > CONTEXT_LABELS_MAX || !e->labels ||
	    size < LABELS_EVENT_HEAD + e->count * sizeof(e->values[0]))
		return false;
	for (size_t i = 0; i < e->count; i++)
		if (!is_sound_value(t, &e->values[i]))
			return false;
	return true;
}

int label_sets_add(struct label_sets *t, const struct labels_event *e, size_t size)
{
	struct label_set set = { .labels = e->labels, .process = e->process, .count = e->count };
	int r;

	if (!is_sound(t, e, size))
		return -EBADMSG;
	if (find(t, e->labels))
		return 0;
	if (t->sets.len == SETS_MAX) {
		forget_all(t);
		t->has_overflown = true;
	}
	set.values = malloc(e->count * sizeof(*set.values));
	if (!set.values)
		return -ENOMEM;
	memcpy(set.values, e->values, e->count * sizeof(*set.values));
	r = idmap_reserve(&t->ids);
	if (!r)
		r = vec_push(&t->sets, set);
	if (r < 0) {
		free(set.values);
		return r;
	}
	idmap_insert(&t->ids, e->labels, (uint32_t)t->sets.len - 1);
	t->values += e->count;
	for (size_t i = 0; i < e->count; i++)
		if (label_of(t, &e->values[i]) && e->values[i].kind != LABEL_ATTRIBUTE)
			t->met |= 1u << e->values[i].number;
	return 0;
}

#define LIMBS (LABEL_BYTES_MAX * 8 / 64 + 1)

/* The digits of an int, the lowest first; returns the highest limb that is not 0. */
static size_t read_limbs(const struct label_value *v, uint64_t limbs[LIMBS])
{
	const uint32_t *digits = (const uint32_t *)v->value;
	size_t top = LIMBS - 1;

	memset(limbs, 0, LIMBS * sizeof(*limbs));
	for (size_t i = 0; i < v->bytes / sizeof(*digits); i++) {
		size_t bit = i * DIGIT_BITS;
		unsigned __int128 digit = (unsigned __int128)(digits[i] & ((1u << DIGIT_BITS) - 1))
					  << bit % 64;

		limbs[bit / 64] |= (uint64_t)digit;
		limbs[bit / 64 + 1] |= (uint64_t)(digit >> 64);
	}
	while (top && !limbs[top])
		top--;
	return top;
}

/* Beyond 64 bits in hexadecimal; an id always, all of its bytes. */
static size_t put_int(const struct label_value *v, size_t id_bytes, char out[TEXT_BYTES])
{
	uint64_t limbs[LIMBS];
	size_t top = read_limbs(v, limbs), id_top = id_bytes ? id_bytes / 8 - 1 : 0;
	const char *sign = v->is_negative ? "-" : "";
	int len;

	if (id_bytes && !v->is_negative && top <= id_top)
		len = snprintf(out, TEXT_BYTES, "%016llx", (unsigned long long)limbs[top = id_top]);
	else if (top)
		len = snprintf(out, TEXT_BYTES, "%s0x%llx", sign, (unsigned long long)limbs[top]);
	else
		return (size_t)snprintf(out, TEXT_BYTES, "%s%llu", sign,
					(unsigned long long)limbs[0]);
	while (top--)
		len += snprintf(out + len, TEXT_BYTES - (size_t)len, "%016llx",
				(unsigned long long)limbs[top]);
	return (size_t)len;
}

static size_t put_bytes(const struct label_value *v, char out[TEXT_BYTES])
{
	const uint8_t *bytes = (const uint8_t *)v->value;
	size_t len = 0;

	for (size_t i = 0; i < v->bytes; i++)
		len += (size_t)snprintf(out + len, TEXT_BYTES - len, "%02x", bytes[i]);
	return len;
}

/* What a process says is UTF-8; if it is cut, without its last character, which may be a part. */
static size_t put_utf8(const struct label_value *v, char out[TEXT_BYTES])
{
	static const char ellipsis[] = "\xe2\x80\xa6";
	const uint8_t *bytes = (const uint8_t *)v->value;
	size_t count = v->bytes, len;

	while (v->is_cut && count && (bytes[count - 1] & 0xc0) == 0x80)
		count--;
	if (v->is_cut && count && bytes[count - 1] >= 0xc0)
		count--;
	len = utf8_copy((const char *)bytes, count, out, TEXT_BYTES - sizeof(ellipsis));
	if (!v->is_cut)
		return len;
	memcpy(out + len, ellipsis, sizeof(ellipsis) - 1);
	return len + sizeof(ellipsis) - 1;
}

static size_t put_value(const struct label_value *v, size_t id_bytes, char out[TEXT_BYTES])
{
	const struct pystring text = { .bytes = (const uint8_t *)v->value,
				       .len = v->bytes,
				       .kind = v->char_bytes,
				       .is_cut = v->is_cut };

	if (v->kind == LABEL_TEXT)
		return (size_t)pystring_utf8(&text, out, TEXT_BYTES);
	if (v->kind == LABEL_ID)
		return put_bytes(v, out);
	if (v->kind == LABEL_ATTRIBUTE)
		return put_utf8(v, out);
	if (v->kind == LABEL_BOOL)
		return (size_t)snprintf(out, TEXT_BYTES, v->value[0] ? "True" : "False");
	return put_int(v, id_bytes, out);
}

/* NULL: nobody knows, or none that a label may have. */
static const char *name_of(const struct label_sets *t, uint64_t process,
			   const struct label_value *v)
{
	const struct context_label *label = label_of(t, v);
	const char *name;

	if (v->kind != LABEL_ATTRIBUTE)
		return label ? label->name : PROFILE_TASK;
	name = t->name_of ? t->name_of(t->arg, process, v->key) : NULL;
	return name && context_label_is_name(name) ? name : NULL;
}

static int add_to_profile(struct label_sets *t, uint64_t process, const struct label_value *v,
			  uint32_t *set)
{
	const struct context_label *label = v->kind == LABEL_INT ? label_of(t, v) : NULL;
	const char *name = name_of(t, process, v);
	struct strtab *strings = t->profile->strings;
	char text[TEXT_BYTES];
	uint32_t name_id, value_id;
	size_t len;
	int r;

	if (!name)
		return 0;
	len = put_value(v, label ? label->id_bytes : 0, text);
	if ((r = strtab_intern(strings, name, strlen(name), &name_id)) < 0 ||
	    (r = strtab_intern(strings, text, len, &value_id)) < 0)
		return r;
	return labeltab_add(t->profile->labels, *set, name_id, value_id, set);
}

/* What it was added to, and what its labels are called, may have changed since. */
static bool is_in_profile(const struct label_sets *t, const struct label_set *set, uint32_t base)
{
	return set->id && set->base == base && set->changes == changes(t);
}

int label_sets_find(struct label_sets *t, uint64_t labels, uint32_t *set)
{
	struct label_set *found = find(t, labels);
	uint32_t id = *set;
	int r = 0;

	if (!found) {
		t->lost++;
		return 0;
	}
	if (!is_in_profile(t, found, *set)) {
		for (size_t i = 0; i < found->count && !r; i++)
			r = add_to_profile(t, found->process, &found->values[i], &id);
		if (r < 0)
			return r;
		found->base = *set;
		found->changes = changes(t);
		found->id = id;
	}
	found->is_used = true;
	*set = found->id;
	return 0;
}

uint64_t label_sets_lost(const struct label_sets *t)
{
	return t->lost;
}

bool label_sets_has_met(const struct label_sets *t, size_t number)
{
	return t->met >> number & 1;
}

bool label_sets_forget_ids(struct label_sets *t)
{
	size_t kept = 0, before = t->sets.len;

	for (size_t i = 0; i < before; i++) {
		struct label_set set = t->sets.items[i];

		if (!set.is_used) {
			t->values -= set.count;
			free(set.values);
			continue;
		}
		set.is_used = false;
		set.id = 0;
		t->sets.items[kept++] = set;
	}
	t->sets.len = kept;
	idmap_release(&t->ids);
	for (size_t i = 0; i < kept; i++) {
		if (idmap_reserve(&t->ids) < 0) {
			forget_all(t);
			break;
		}
		idmap_insert(&t->ids, t->sets.items[i].labels, (uint32_t)i);
	}
	return t->sets.len < before;
}

bool label_sets_has_overflown(struct label_sets *t)
{
	bool has = t->has_overflown;

	t->has_overflown = false;
	return has;
}

size_t label_sets_bytes(const struct label_sets *t)
{
	return t->sets.cap * sizeof(*t->sets.items) + idmap_bytes(&t->ids) +
	       t->values * sizeof(struct label_value);
}
