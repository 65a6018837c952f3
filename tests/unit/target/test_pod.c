/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "target/pod.h"

#define UID1 "1f2e3d4c-5b6a-7988-a7b6-c5d4e3f2a1b0"
#define UID2 "aaaabbbb-5b6a-7988-a7b6-c5d4e3f2a1b0"
#define STATIC "0f1e2d3c4b5a69788796a5b4c3d2e1f0"

static void test_pod_name_of_folder_reads_the_kubelets_names(void **state)
{
	static const struct {
		const char *name, *folder, *space, *pod, *uid; /* uid NULL: refused */
	} cases[] = {
		{ "a pod", "prod_shop-7d9f_" UID1, "prod", "shop-7d9f", UID1 },
		{ "a static pod", "kube-system_kube-proxy-n1_" STATIC, "kube-system",
		  "kube-proxy-n1", STATIC },
		{ "a name with dots", "a_b.c.d_" UID1, "a", "b.c.d", UID1 },
		{ "two parts", "prod_shop", NULL, NULL, NULL },
		{ "four parts", "a_b_c_d", NULL, NULL, NULL },
		{ "an empty part", "a__" UID1, NULL, NULL, NULL },
		{ "a dot", ".", NULL, NULL, NULL },
	};

	(void)state;
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		struct pod_name got;
		bool is_pod = pod_name_of_folder(cases[i].folder, &got);

		if (is_pod != (cases[i].uid != NULL))
			fail_msg("%s: %d", cases[i].name, is_pod);
		if (is_pod && (strcmp(got.space, cases[i].space) ||
			       strcmp(got.name, cases[i].pod) || strcmp(got.uid, cases[i].uid)))
			fail_msg("%s: %s %s %s", cases[i].name, got.space, got.name, got.uid);
	}
}

static void test_pod_name_find_looks_for_the_pods_own_folder(void **state)
{
	static const char *const folders[] = { "prod_other_" UID2, "prod_shop-7d9f_" UID1, "x" };
	char logs[] = "/tmp/test_pod-XXXXXX", path[3][128];
	struct pod_name got = { .name = "before" };

	(void)state;
	assert_non_null(mkdtemp(logs));
	for (size_t i = 0; i < 3; i++) {
		snprintf(path[i], sizeof(path[i]), "%s/%s", logs, folders[i]);
		assert_int_equal(mkdir(path[i], 0755), 0);
	}
	assert_false(pod_name_find(logs, STATIC, &got));
	assert_false(pod_name_find("/nonexistent", UID1, &got));
	assert_string_equal(got.name, "before");
	assert_true(pod_name_find(logs, UID1, &got));
	assert_string_equal(got.uid, UID1);
	assert_string_equal(got.space, "prod");
	assert_string_equal(got.name, "shop-7d9f");
	for (size_t i = 0; i < 3; i++)
		assert_int_equal(rmdir(path[i]), 0);
	assert_int_equal(rmdir(logs), 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_pod_name_of_folder_reads_the_kubelets_names),
		cmocka_unit_test(test_pod_name_find_looks_for_the_pods_own_folder),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
