/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <errno.h>
#include <string.h>
#include <sys/resource.h>

#include "base/cleanup.h"
#include "base/err.h"
#include "collect/features.h"

static const struct feature *find(const char *name)
{
	for (int i = 0; i < features_count; i++)
		if (!strcmp(features[i].name, name))
			return &features[i];
	fail_msg("no row %s", name);
	return NULL;
}

static void test_every_row_can_be_told(void **state)
{
	(void)state;
	assert_true(features_count > 20);
	for (int i = 0; i < features_count; i++) {
		const struct feature *f = &features[i];

		for (int j = 0; j < i; j++)
			if (!strcmp(features[j].name, f->name))
				fail_msg("%s: twice", f->name);
		if (f->refusal && f->refusal != -EPERM && f->refusal != -EOPNOTSUPP)
			fail_msg("%s: refusal %d", f->name, f->refusal);
		if (!f->problem != !f->remedy || !*f->problem != !*f->remedy)
			fail_msg("%s: a problem without remedy", f->name);
		if (f->refusal && !*f->problem)
			fail_msg("%s: refuses without a word", f->name);
	}
}

/* Whoever runs it: no probe fails, and the check refuses by the first row that is missing. */
static void test_features_check_agrees_with_the_rows(void **state)
{
	_cleanup_(feature_probe_release) struct feature_probe p = { 0 };
	const struct feature *first = NULL;
	int r;

	(void)state;
	for (int i = 0; i < features_count; i++) {
		const struct feature *f = &features[i];
		enum feature_state s = feature_run(f, &p);

		assert_non_null(feature_state_name(s));
		assert_true(strlen(p.found) < sizeof(p.found));
		if (!*f->problem && s != FEATURE_OK)
			fail_msg("%s: %s, with nothing to say", f->name, feature_state_name(s));
		if (!first && f->refusal && s == FEATURE_MISSING)
			first = f;
	}
	r = features_check(&p);
	assert_int_equal(r, first ? first->refusal : 0);
	if (first &&
	    (!strstr(err_message(r), first->problem) || !strstr(err_message(r), first->remedy)))
		fail_msg("%s: \"%s\"", first->name, err_message(r));
}

static void test_feature_run_sees_what_changes(void **state)
{
	static const struct {
		const char *name;
		rlim_t limit;
		enum feature_state want;
		const char *found;
	} cases[] = {
		{ "few", 100, FEATURE_LIMITED, "100" },
		{ "one for each of very many CPUs", 10000, FEATURE_OK, "10000" },
	};
	_cleanup_(feature_probe_release) struct feature_probe p = { 0 };
	const struct feature *f = find("open files");
	struct rlimit before;

	(void)state;
	assert_int_equal(getrlimit(RLIMIT_NOFILE, &before), 0);
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		struct rlimit limit = { .rlim_cur = cases[i].limit, .rlim_max = before.rlim_max };
		enum feature_state got;

		assert_int_equal(setrlimit(RLIMIT_NOFILE, &limit), 0);
		got = feature_run(f, &p);
		if (got != cases[i].want || strcmp(p.found, cases[i].found))
			fail_msg("%s: %s, \"%s\"", cases[i].name, feature_state_name(got), p.found);
	}
	setrlimit(RLIMIT_NOFILE, &before);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_every_row_can_be_told),
		cmocka_unit_test(test_features_check_agrees_with_the_rows),
		cmocka_unit_test(test_feature_run_sees_what_changes),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
