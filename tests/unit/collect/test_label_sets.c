/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/strbuf.h"
#include "collect/label_sets.h"

struct fixture {
	struct context_label_list labels;
	struct profile *profile;
	struct label_sets *sets;
};

static void begin(struct fixture *f)
{
	*f = (struct fixture){ 0 };
	assert_int_equal(context_labels_add(&f->labels, "route=contextvar:r"), 0);
	assert_int_equal(context_labels_add(&f->labels, "user=contextvar:u"), 0);
	assert_int_equal(context_labels_add(&f->labels, "trace_id=contextvar:t"), 0);
	assert_int_equal(context_labels_add(&f->labels, "span_id=contextvar:s"), 0);
	assert_int_equal(profile_new(&f->profile), 0);
	assert_int_equal(label_sets_new(&f->labels, f->profile, &f->sets), 0);
}

static void end(struct fixture *f)
{
	label_sets_free(f->sets);
	profile_free(f->profile);
	context_labels_release(&f->labels);
}

static size_t size_of(const struct labels_event *e)
{
	return LABELS_EVENT_HEAD + e->count * sizeof(e->values[0]);
}

/* "route=/a user=7" */
static void put_set(const struct profile *p, uint32_t set, struct strbuf *out)
{
	const struct label_entry *entries = labeltab_entries(p->labels);

	if (!set)
		return;
	put_set(p, entries[set].parent, out);
	strbuf_appendf(out, "%s%s=%s", out->len ? " " : "",
		       strtab_get(p->strings, entries[set].name),
		       strtab_get(p->strings, entries[set].value));
}

static void check_set(struct fixture *f, const char *name, uint64_t labels, const char *want)
{
	_cleanup_(strbuf_releasep) struct strbuf got = STRBUF_INIT;
	uint32_t set = 0;

	assert_int_equal(label_sets_find(f->sets, labels, &set), 0);
	put_set(f->profile, set, &got);
	if (strcmp(strbuf_str(&got), want) != 0)
		fail_msg("%s: %s, want %s", name, strbuf_str(&got), want);
}

/* Digits of 30 bits, the lowest first, in pairs. */
#define DIGITS(low, high) ((uint64_t)(high) << 32 | (low))

static void test_label_sets_find_tells_values(void **state)
{
	/* clang-format off */
	static const struct {
		const char *want;
		struct label_value value;
	} cases[] = {
		{ "route=", { .kind = LABEL_TEXT, .char_bytes = 1 } },
		{ "route=/a", { .kind = LABEL_TEXT, .char_bytes = 1, .bytes = 2, .value = { 0x612f } } },
		{ "route=/a\u2026", { .kind = LABEL_TEXT, .char_bytes = 1, .bytes = 2, .is_cut = 1, .value = { 0x612f } } },
		{ "route=\u00e9", { .kind = LABEL_TEXT, .char_bytes = 1, .bytes = 1, .value = { 0xe9 } } },
		{ "route=\u20ac", { .kind = LABEL_TEXT, .char_bytes = 2, .bytes = 2, .value = { 0x20ac } } },
		{ "route=\\udc80", { .kind = LABEL_TEXT, .char_bytes = 2, .bytes = 2, .value = { 0xdc80 } } },
		{ "route=0", { .kind = LABEL_INT } },
		{ "route=-42", { .kind = LABEL_INT, .bytes = 4, .is_negative = 1, .value = { 42 } } },
		{ "route=1073741824", { .kind = LABEL_INT, .bytes = 8, .value = { DIGITS(0, 1) } } },
		{ "route=18446744073709551615", { .kind = LABEL_INT, .bytes = 12,
			.value = { DIGITS(0x3fffffff, 0x3fffffff), 15 } } },
		{ "route=0x10000000000000000", { .kind = LABEL_INT, .bytes = 12, .value = { 0, 16 } } },
		{ "route=-0x3fffff" "ffffffffffffffff" "ffffffffffffffff", { .kind = LABEL_INT, .bytes = 24, .is_negative = 1,
			.value = { DIGITS(0x3fffffff, 0x3fffffff), DIGITS(0x3fffffff, 0x3fffffff), DIGITS(0x3fffffff, 0) } } },
		{ "trace_id=" "0000000000000000" "0000000000000000", { .number = 2, .kind = LABEL_INT } },
		{ "trace_id=" "0000000000000010" "0000000000000001", { .number = 2, .kind = LABEL_INT, .bytes = 12, .value = { 1, 256 } } },
		{ "span_id=000000000000002a", { .number = 3, .kind = LABEL_INT, .bytes = 4, .value = { 42 } } },
		{ "span_id=0x10000000000000000", { .number = 3, .kind = LABEL_INT, .bytes = 12, .value = { 0, 16 } } },
		{ "span_id=-42", { .number = 3, .kind = LABEL_INT, .bytes = 4, .is_negative = 1, .value = { 42 } } },
		{ "trace_id=" "0102030405060708" "0000000000000a00", { .number = 2, .kind = LABEL_ID, .bytes = 16,
			.value = { 0x0807060504030201, 0x000a000000000000 } } },
		{ "span_id=ff00000000000000", { .number = 3, .kind = LABEL_ID, .bytes = 8, .value = { 0xff } } },
		{ "", { .kind = LABEL_ATTRIBUTE, .bytes = 2, .value = { 0x612f } } },
		{ "route=False", { .kind = LABEL_BOOL } },
		{ "route=True", { .kind = LABEL_BOOL, .bytes = 4, .value = { 1 } } },
	};
	/* clang-format on */
	struct fixture f;

	(void)state;
	begin(&f);
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		struct labels_event e = { .kind = EVENT_LABELS, .count = 1, .labels = i + 1 };

		e.values[0] = cases[i].value;
		assert_int_equal(label_sets_add(f.sets, &e, size_of(&e)), 0);
		check_set(&f, cases[i].want, e.labels, cases[i].want);
	}
	assert_true(label_sets_has_met(f.sets, 0) && label_sets_has_met(f.sets, 3));
	assert_false(label_sets_has_met(f.sets, 1));
	end(&f);
}

/* Its first is called a, its second not as a label may be, its third as one that there is. */
static const char *name_of(void *arg, uint64_t process, uint8_t key)
{
	static const char *const names[] = { "a", "not a name", "route" };

	return process == 7 && key < *(const uint8_t *)arg ? names[key] : NULL;
}

static void test_label_sets_find_names_attributes(void **state)
{
	static const char part[] = "12\xe2\x82"; /* of a character of three bytes */
	struct labels_event e = { .kind = EVENT_LABELS, .count = 5, .process = 7, .labels = 1 };
	uint32_t changes = 0, name, value, base = 0, set;
	uint8_t known = 0;
	struct fixture f;

	(void)state;
	begin(&f);
	label_sets_set_names(f.sets, name_of, &known, &changes);
	e.values[0] = (struct label_value){ .kind = LABEL_TEXT, .char_bytes = 1, .number = 1 };
	for (uint8_t key = 0; key < 4; key++) {
		e.values[key + 1] = (struct label_value){
			.kind = LABEL_ATTRIBUTE, .key = key, .bytes = 4, .is_cut = 1
		};
		memcpy(e.values[key + 1].value, part, 4);
	}
	assert_int_equal(label_sets_add(f.sets, &e, size_of(&e)), 0);
	check_set(&f, "no names yet", 1, "user=");
	known = 3;
	check_set(&f, "not told of them", 1, "user=");
	changes++;
	check_set(&f, "told", 1, "user= a=12\u2026 route=12\u2026");
	assert_int_equal(strtab_intern(f.profile->strings, "z", 1, &name), 0);
	assert_int_equal(strtab_intern(f.profile->strings, "y", 1, &value), 0);
	assert_int_equal(labeltab_add(f.profile->labels, 0, name, value, &base), 0);
	for (int again = 0; again < 2; again++) {
		_cleanup_(strbuf_releasep) struct strbuf got = STRBUF_INIT;

		set = base;
		assert_int_equal(label_sets_find(f.sets, 1, &set), 0);
		put_set(f.profile, set, &got);
		assert_string_equal(strbuf_str(&got), "user= a=12\u2026 route=12\u2026 z=y");
	}
	end(&f);
}

static void test_label_sets_add_refuses_what_cannot_be(void **state)
{
	static const struct {
		const char *name;
		struct labels_event e;
		int missing; /* bytes of it */
		int want;
	} cases[] = {
		{ "characters of no width", { .count = 1, .labels = 1 }, 0, -EBADMSG },
		{ "without values", { .labels = 1 }, 0, -EBADMSG },
		{ "too many", { .count = CONTEXT_LABELS_MAX + 1, .labels = 1 }, 0, -EBADMSG },
		{ "cut", { .count = 1, .labels = 1, .values[0].kind = LABEL_INT }, 1, -EBADMSG },
		{ "without identity", { .count = 1, .values[0].kind = LABEL_INT }, 0, -EBADMSG },
		{ "no such label",
		  { .count = 1, .labels = 1, .values[0] = { .number = 4, .kind = LABEL_INT } },
		  0,
		  -EBADMSG },
		{ "no such kind", { .count = 1, .labels = 1, .values[0].kind = 3 }, 0, -EBADMSG },
		{ "too long",
		  { .count = 1, .labels = 1, .values[0] = { .kind = LABEL_INT, .bytes = 68 } },
		  0,
		  -EBADMSG },
		{ "part of a digit",
		  { .count = 1, .labels = 1, .values[0] = { .kind = LABEL_INT, .bytes = 3 } },
		  0,
		  -EBADMSG },
		{ "an int", { .count = 1, .labels = 1, .values[0].kind = LABEL_INT }, 0, 0 },
	};
	struct fixture f;

	(void)state;
	begin(&f);
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		int r = label_sets_add(f.sets, &cases[i].e,
				       size_of(&cases[i].e) - (size_t)cases[i].missing);

		if (r != cases[i].want)
			fail_msg("%s: %d, want %d", cases[i].name, r, cases[i].want);
	}
	end(&f);
}

static void add_int(struct fixture *f, uint64_t labels, uint8_t number, uint64_t value)
{
	struct labels_event e = {
		.count = 1,
		.labels = labels,
		.values[0] = { .number = number, .kind = LABEL_INT, .bytes = 4, .value = { value } }
	};

	assert_int_equal(label_sets_add(f->sets, &e, size_of(&e)), 0);
}

static void test_label_sets_forget_ids_keeps_what_is_used(void **state)
{
	struct fixture f;

	(void)state;
	begin(&f);
	add_int(&f, 1, 0, 7);
	add_int(&f, 2, 1, 8);
	check_set(&f, "first", 1, "route=7");
	assert_int_equal(profile_reset(f.profile), 0);
	assert_true(label_sets_forget_ids(f.sets));
	check_set(&f, "used", 1, "route=7");
	check_set(&f, "forgotten", 2, "");
	assert_int_equal(label_sets_lost(f.sets), 1);
	assert_int_equal(profile_reset(f.profile), 0);
	assert_false(label_sets_forget_ids(f.sets));
	end(&f);
}

static void test_label_sets_add_is_bounded(void **state)
{
	struct fixture f;

	(void)state;
	begin(&f);
	for (uint64_t i = 1; i <= 65536; i++)
		add_int(&f, i * 0x9e3779b97f4a7c15ull, 0, i & 0x3fffffff);
	assert_false(label_sets_has_overflown(f.sets));
	add_int(&f, 3, 0, 5);
	assert_true(label_sets_has_overflown(f.sets));
	assert_false(label_sets_has_overflown(f.sets));
	check_set(&f, "the last one", 3, "route=5");
	end(&f);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_label_sets_find_tells_values),
		cmocka_unit_test(test_label_sets_find_names_attributes),
		cmocka_unit_test(test_label_sets_add_refuses_what_cannot_be),
		cmocka_unit_test(test_label_sets_forget_ids_keeps_what_is_used),
		cmocka_unit_test(test_label_sets_add_is_bounded),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
