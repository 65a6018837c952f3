/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "agent/config.h"
#include "base/cleanup.h"
#include "base/err.h"
#include "base/strbuf.h"

/* "a=1 b=2" -> labels. */
static void parse_labels(const char *text, struct labels *out)
{
	char name[64], value[64];
	int n;

	for (; sscanf(text, " %63[^=]=%63[^ ]%n", name, value, &n) == 2; text += n)
		assert_int_equal(labels_set(out, name, value), 0);
}

static void print_labels(const struct labels *l, struct strbuf *out)
{
	for (size_t i = 0; i < l->list.len; i++)
		strbuf_appendf(out, "%s%s=%s", i ? " " : "", l->list.items[i].name,
			       l->list.items[i].value);
	assert_int_equal(strbuf_error(out), 0);
}

/* What each does is what Prometheus' documentation of relabel_config says. */
static void test_relabel_apply(void **state)
{
	static const struct {
		const char *name, *rules, *labels, *want; /* want NULL: left out */
	} cases[] = {
		{ "no rules", "", "a=1 b=2", "a=1 b=2" },
		{ "lowercase", "{action: lowercase, source_labels: [a, b], target_label: c}",
		  "a=WeB b=\xc3\x9cZ", "a=WeB b=\xc3\x9cZ c=web;\xc3\x9cz" },
		{ "lowercase: of nothing",
		  "{action: lowercase, source_labels: [x], target_label: a}", "a=A", "" },
		{ "uppercase", "{action: uppercase, source_labels: [a], target_label: a}",
		  "a=we-b1", "a=WE-B1" },
		/* the values of Prometheus' own relabel_test.go */
		{ "hashmod",
		  "{action: hashmod, source_labels: [c], target_label: d, modulus: 1000}",
		  "a=foo b=bar c=baz", "a=foo b=bar c=baz d=976" },
		{ "hashmod: one shard of two",
		  "{action: hashmod, source_labels: [c], target_label: __shard, modulus: 2}, "
		  "{action: keep, source_labels: [__shard], regex: 1}",
		  "c=baz", NULL },
		{ "replace", "{source_labels: [a], target_label: b}", "a=1", "a=1 b=1" },
		{ "replace: a part", "{source_labels: [a], regex: '(.*)-\\d+', target_label: a}",
		  "a=web-17", "a=web" },
		{ "replace: the whole has to match",
		  "{source_labels: [a], regex: w, target_label: b}", "a=web", "a=web" },
		{ "replace: alternatives are whole too",
		  "{source_labels: [a], regex: w|we, target_label: b, replacement: x}", "a=web",
		  "a=web" },
		{ "replace: joined by ;",
		  "{source_labels: [a, b, c], regex: '1;2;', target_label: d, replacement: x}",
		  "a=1 b=2", "a=1 b=2 d=x" },
		{ "replace: joined by what is said",
		  "{source_labels: [a, b], separator: '/', target_label: c}", "a=1 b=2",
		  "a=1 b=2 c=1/2" },
		{ "replace: groups by number and by name",
		  "{source_labels: [a], regex: '(?P<x>.)(.)', target_label: a, "
		  "replacement: '$2${1}$x-$$'}",
		  "a=pq", "a=qpp-$" },
		{ "replace: a group that is not there",
		  "{source_labels: [a], target_label: a, replacement: 'x$7'}", "a=1", "a=x" },
		{ "replace: by nothing", "{target_label: a, replacement: ''}", "a=1 b=2", "b=2" },
		{ "replace: always", "{target_label: a, replacement: x}", "b=2", "a=x b=2" },
		{ "keep", "{action: keep, source_labels: [a], regex: 'x.*'}", "a=xy", "a=xy" },
		{ "keep: not", "{action: keep, source_labels: [a], regex: x}", "a=xy", NULL },
		{ "keep: not there", "{action: keep, source_labels: [b], regex: .+}", "a=xy",
		  NULL },
		{ "drop", "{action: drop, source_labels: [a], regex: 'x.'}", "a=xy", NULL },
		{ "drop: not", "{action: drop, source_labels: [a], regex: x}", "a=xy", "a=xy" },
		{ "labelmap", "{action: labelmap, regex: 'pod_(.+)', replacement: 'p_$1'}",
		  "pod_a=1 pod_b=2 c=3", "c=3 p_a=1 p_b=2 pod_a=1 pod_b=2" },
		{ "labelmap: no names", "{action: labelmap, regex: '(.).*', replacement: '$1 x'}",
		  "ab=1", "ab=1" },
		{ "labeldrop", "{action: labeldrop, regex: 'a|b.'}", "a=1 b=2 bc=3", "b=2" },
		{ "labelkeep", "{action: labelkeep, regex: 'a|b.'}", "a=1 b=2 bc=3", "a=1 bc=3" },
		{ "one after another",
		  "{source_labels: [a], target_label: b}, {action: labeldrop, regex: a}, "
		  "{action: keep, source_labels: [b], regex: '1'}",
		  "a=1", "b=1" },
		{ "none after one that drops",
		  "{action: drop, source_labels: [a], regex: '1'}, {target_label: a, replacement: "
		  "2}",
		  "a=1", NULL },
		{ "too many steps: not kept",
		  "{action: keep, source_labels: [a], regex: '(a*)*[bd]'}",
		  "a=aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaac", NULL },
		{ "too many steps: dropped",
		  "{action: drop, source_labels: [a], regex: '(a*)*[bd]'}",
		  "a=aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaac", NULL },
	};

	(void)state;
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		_cleanup_(strbuf_releasep) struct strbuf got = STRBUF_INIT;
		_cleanup_(labels_release) struct labels l = { 0 };
		_cleanup_(config_release) struct config c = { 0 };
		char text[512];
		int r;

		snprintf(text, sizeof(text),
			 "output: {engine: otlp, url: http://h}\nrelabel: [%s]\n", cases[i].rules);
		r = config_parse("x", text, strlen(text), &c);
		if (r < 0)
			fail_msg("%s: %s", cases[i].name, err_message(r));
		parse_labels(cases[i].labels, &l);
		r = relabel_apply(&c.relabel, &l);
		print_labels(&l, &got);
		if (r != (cases[i].want != NULL) || (r && strcmp(strbuf_str(&got), cases[i].want)))
			fail_msg("%s: %d '%s'", cases[i].name, r, strbuf_str(&got));
	}
}

static void test_labels_set_keeps_order_and_bound(void **state)
{
	_cleanup_(labels_release) struct labels l = { 0 }, other = { 0 };
	char name[16];

	(void)state;
	for (int i = LABELS_MAX; i-- > 0;) {
		snprintf(name, sizeof(name), "n%02d", i);
		assert_int_equal(labels_set(&l, name, "x"), 0);
		snprintf(name, sizeof(name), "n%02d", LABELS_MAX - 1 - i);
		assert_int_equal(labels_set(&other, name, "x"), 0);
	}
	assert_true(labels_equal(&l, &other));
	assert_int_equal(labels_set(&l, "more", "x"), -E2BIG);
	assert_int_equal(labels_set(&l, "n07", "y"), 0);
	assert_string_equal(labels_get(&l, "n07"), "y");
	assert_false(labels_equal(&l, &other));
	assert_int_equal(labels_set(&l, "n07", ""), 0);
	assert_int_equal(l.list.len, LABELS_MAX - 1);
	assert_string_equal(labels_get(&l, "n07"), "");
	assert_false(labels_equal(&l, &other));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_relabel_apply),
		cmocka_unit_test(test_labels_set_keeps_order_and_bound),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
