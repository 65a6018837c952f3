/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <errno.h>

#include "profile/merge.h"
#include "profile/profile.h"

#define NAMES 7
#define VALUES 4

static uint32_t add(struct labeltab *t, uint32_t set, uint32_t name, uint32_t value)
{
	uint32_t id;

	assert_int_equal(labeltab_add(t, set, name, value, &id), 0);
	return id;
}

/* By name; 0: it has none. Names rise towards the last entry, parents have lower ids. */
static void read_set(const struct labeltab *t, uint32_t set, uint32_t *values)
{
	const struct label_entry *entries = labeltab_entries(t);

	for (size_t i = 0; i < NAMES; i++)
		values[i] = 0;
	for (uint32_t at = set; at; at = entries[at].parent) {
		assert_true(entries[at].parent < at && entries[at].name < NAMES);
		assert_true(!entries[at].parent ||
			    entries[entries[at].parent].name < entries[at].name);
		values[entries[at].name] = entries[at].value;
	}
}

/* One id for one set, whatever the order; a label of a name that is there replaces it. */
static void test_sets_are_one_however_they_are_made(void **state)
{
	struct labeltab *t;
	uint32_t id_of[VALUES * VALUES * VALUES] = { 0 }, random = 1;

	(void)state;
	assert_int_equal(labeltab_new(&t), 0);
	for (int round = 0; round < 3000; round++) {
		uint32_t want[NAMES] = { 0 }, found[NAMES], set = 0, key;

		for (int i = 0; i < 8; i++) {
			uint32_t name, value;

			random = random * 1103515245 + 12345;
			name = 1 + (random >> 16) % 3;
			value = 1 + (random >> 24) % (VALUES - 1);
			set = add(t, set, name, value);
			want[name] = value;
		}
		read_set(t, set, found);
		assert_memory_equal(found, want, sizeof(want));
		key = want[1] + VALUES * (want[2] + VALUES * want[3]);
		assert_true(!id_of[key] || id_of[key] == set);
		id_of[key] = set;
	}
	assert_true(labeltab_count(t) <= VALUES * VALUES * VALUES);
	labeltab_free(t);
}

static void test_a_set_has_so_many_labels_at_most(void **state)
{
	struct labeltab *t;
	uint32_t set = 0, id = 77;

	(void)state;
	assert_int_equal(labeltab_new(&t), 0);
	for (uint32_t name = LABEL_SET_MAX; name > 0; name--)
		set = add(t, set, name, 1);
	assert_int_equal(labeltab_add(t, set, LABEL_SET_MAX + 1, 1, &id), -E2BIG);
	assert_int_equal(labeltab_add(t, set, 0, 1, &id), -E2BIG);
	assert_int_equal(id, 77);
	assert_true(add(t, set, LABEL_SET_MAX, 2) != set); /* replaced */
	assert_int_equal(add(t, set, LABEL_SET_MAX / 2, 1), set);
	labeltab_free(t);
}

static uint32_t text(struct profile *p, const char *s)
{
	uint32_t id;

	assert_int_equal(strtab_intern(p->strings, s, strlen(s), &id), 0);
	return id;
}

/* Names have other ids there, so that the order of a set's labels may be another. */
static void test_merged_sets_and_kinds(void **state)
{
	struct profile *to, *from;
	struct profile_ids ids = { 0 };
	struct sample_kind bytes = { .unit = UNIT_BYTES, .period = 512 }, other;
	uint16_t first, second, same;
	uint32_t set;

	(void)state;
	assert_int_equal(profile_new(&to), 0);
	assert_int_equal(profile_new(&from), 0);
	text(to, "tenant");
	text(to, "route");
	set = add(from->labels, 0, text(from, "route"), text(from, "/buy"));
	set = add(from->labels, set, text(from, "tenant"), text(from, "acme"));
	bytes.name = text(from, "memory");
	assert_int_equal(profile_add_kind(from, &bytes, &first), 0);
	other = bytes;
	other.unit = UNIT_COUNT;
	assert_int_equal(profile_add_kind(from, &other, &second), 0);
	assert_int_equal(profile_add_kind(from, &bytes, &same), 0);
	assert_true(first != KIND_TICKS && second != first && same == first);
	bytes.name = text(to, "memory");
	other.name = bytes.name;
	assert_int_equal(profile_add_kind(to, &other, &same), 0);
	assert_int_equal(profile_merge(to, from, &ids), 0);
	assert_int_equal(ids.kinds[KIND_TICKS], KIND_TICKS);
	assert_int_equal(ids.kinds[second], same);
	assert_int_equal(to->kinds.items[ids.kinds[first] - 1].period, 512);
	assert_int_equal(add(to->labels, add(to->labels, 0, text(to, "tenant"), text(to, "acme")),
			     text(to, "route"), text(to, "/buy")),
			 ids.labels[set]);
	profile_ids_release(&ids);
	profile_free(to);
	profile_free(from);
}

static void test_kinds_have_a_limit(void **state)
{
	struct sample_kind kind = { .unit = UNIT_NS };
	struct profile *p;
	uint16_t id;

	(void)state;
	assert_int_equal(profile_new(&p), 0);
	for (uint64_t i = 1; i <= KINDS_MAX; i++) {
		kind.period = i;
		assert_int_equal(profile_add_kind(p, &kind, &id), 0);
		assert_int_equal(id, i);
	}
	kind.period = 0;
	assert_int_equal(profile_add_kind(p, &kind, &id), -EOVERFLOW);
	assert_int_equal(profile_reset(p), 0);
	assert_int_equal(profile_add_kind(p, &kind, &id), 0);
	assert_int_equal(id, 1);
	profile_free(p);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_sets_are_one_however_they_are_made),
		cmocka_unit_test(test_a_set_has_so_many_labels_at_most),
		cmocka_unit_test(test_merged_sets_and_kinds),
		cmocka_unit_test(test_kinds_have_a_limit),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
