/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "agent/pods.h"
#include "base/cleanup.h"
#include "base/err.h"
#include "base/file.h"

#define A "0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef"
#define B "fedcba9876543210fedcba9876543210fedcba9876543210fedcba9876543210"
#define UID1 "1f2e3d4c-5b6a-7988-a7b6-c5d4e3f2a1b0"
#define UID2 "aaaabbbb-5b6a-7988-a7b6-c5d4e3f2a1b0"
#define STATIC "0f1e2d3c4b5a69788796a5b4c3d2e1f0"
#define CONFIG                                                                               \
	"output: {engine: otlp, url: http://h}\nservices: {label: app.kubernetes.io/name}\n" \
	"kubernetes: {source: kubelet, labels: [team, tier]}\n"

/* As a kubelet answers, shortened: braces and quotes in texts, a pod that has not started. */
static const char list[] =
	"{\"kind\":\"PodList\",\"apiVersion\":\"v1\",\"metadata\":{\"x\":[{\"uid\":\"no\"}]},"
	"\"items\":["
	"{\"metadata\":{\"name\":\"shop-7d9f\",\"namespace\":\"prod\",\"uid\":\"" UID1 "\","
	"\"labels\":{\"app.kubernetes.io/"
	"name\":\"shop\",\"team\":\"pay\",\"pod-template-hash\":\"1\"},"
	"\"annotations\":{\"note\":\"}]} \\\\\\\" {[\"}},"
	"\"spec\":{\"containers\":[{\"name\":\"web\"}]},"
	"\"status\":{\"containerStatuses\":[{\"name\":\"web\",\"containerID\":\"containerd://" A
	"\"},{\"name\":\"late\",\"containerID\":\"\"}],"
	"\"initContainerStatuses\":[{\"name\":\"setup\",\"containerID\":\"cri-o://" B "\"}]}},\n"
	" {\"metadata\":{\"name\":\"kube-proxy-n1\",\"namespace\":\"kube-system\",\"uid\":\"" UID2
	"\","
	"\"annotations\":{\"kubernetes.io/config.hash\":\"" STATIC "\"}}},"
	"{\"metadata\":{\"name\":\"nameless\"}}"
	"]}\n";

static void read_config(struct config *out)
{
	assert_int_equal(config_parse("x", CONFIG, strlen(CONFIG), out), 0);
}

static int read_all(struct pods_reader *r, const char *text)
{
	int error = pods_reader_feed(r, text, strlen(text));

	return error ? error : pods_reader_finish(r);
}

static void check_list(const struct pods *pods, const char *how)
{
	const struct pod *shop = pods_find(pods, UID1), *proxy = pods_find(pods, STATIC);

	if (pods->len != 2 || !shop || !proxy)
		fail_msg("%s: %zu pods", how, pods->len);
	assert_string_equal(shop->names.space, "prod");
	assert_string_equal(shop->names.name, "shop-7d9f");
	assert_string_equal(shop->service, "shop");
	assert_string_equal(shop->labels[0], "pay");
	assert_string_equal(shop->labels[1], "");
	assert_int_equal(shop->containers.len, 2);
	assert_string_equal(shop->containers.items[0].id, A);
	assert_string_equal(shop->containers.items[0].name, "web");
	assert_string_equal(shop->containers.items[1].name, "setup");
	assert_string_equal(proxy->names.name, "kube-proxy-n1");
	assert_null(pods_find(pods, UID2));
}

static void test_pods_reader_takes_any_pieces(void **state)
{
	static const size_t pieces[] = { 1, 2, 7, 64, sizeof(list) };
	_cleanup_(config_release) struct config c;

	(void)state;
	read_config(&c);
	for (size_t i = 0; i < sizeof(pieces) / sizeof(pieces[0]); i++) {
		struct pods_reader r = { .config = &c };
		char how[32];

		for (size_t at = 0; at < strlen(list); at += pieces[i])
			assert_int_equal(
				pods_reader_feed(&r, list + at, strnlen(list + at, pieces[i])), 0);
		assert_int_equal(pods_reader_finish(&r), 0);
		snprintf(how, sizeof(how), "pieces of %zu", pieces[i]);
		check_list(&r.pods, how);
		pods_reader_release(&r);
	}
}

static void test_pods_reader_finds_the_workload(void **state)
{
#define OWNER(kind, name) "{\"kind\":\"" kind "\",\"name\":\"" name "\",\"controller\":true}"
	static const struct {
		const char *name, *owners, *hash, *workload, *kind;
	} cases[] = {
		{ "nobody", "", "", "", "" },
		{ "deployment", OWNER("ReplicaSet", "shop-7d9f"), "7d9f", "shop", "Deployment" },
		{ "replica set of its own", OWNER("ReplicaSet", "shop-7d9f"), "", "shop-7d9f",
		  "ReplicaSet" },
		{ "hash of another", OWNER("ReplicaSet", "shop-7d9f"), "d9f", "shop-7d9f",
		  "ReplicaSet" },
		{ "stateful set", OWNER("StatefulSet", "db"), "", "db", "StatefulSet" },
		{ "daemon set", OWNER("DaemonSet", "agent"), "", "agent", "DaemonSet" },
		{ "cron job", OWNER("Job", "nightly-28914300"), "", "nightly", "CronJob" },
		{ "job", OWNER("Job", "import-42"), "", "import-42", "Job" },
		{ "job of a number", OWNER("Job", "28914300"), "", "28914300", "Job" },
		{ "static pod", OWNER("Node", "worker-7"), "", "", "" },
		{ "owner that does not control",
		  "{\"kind\":\"Foo\",\"name\":\"a\"}," OWNER("Rollout", "b"), "", "b", "Rollout" },
	};
#undef OWNER
	_cleanup_(config_release) struct config c;

	(void)state;
	read_config(&c);
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		struct pods_reader r = { .config = &c };
		char text[1024];

		snprintf(
			text, sizeof(text),
			"{\"items\":[{\"metadata\":{\"name\":\"p\",\"uid\":\"" UID1
			"\",\"labels\":{\"pod-template-hash\":\"%s\"},\"ownerReferences\":[%s]}}]}",
			cases[i].hash, cases[i].owners);
		assert_int_equal(read_all(&r, text), 0);
		if (strcmp(r.pods.items[0].workload, cases[i].workload) ||
		    strcmp(r.pods.items[0].kind, cases[i].kind))
			fail_msg("%s: %s %s", cases[i].name, r.pods.items[0].kind,
				 r.pods.items[0].workload);
		pods_reader_release(&r);
	}
}

static void test_pods_reader_refuses(void **state)
{
	static const struct {
		const char *name, *text;
		int want; /* 0: read, and as many pods */
		size_t pods;
	} cases[] = {
		{ "empty list", "{\"kind\":\"PodList\",\"items\":[]}", 0, 0 },
		{ "items null: no pods", "{\"items\":null}", 0, 0 },
		{ "objects of another array",
		  "{\"other\":[{\"metadata\":{\"uid\":\"u\",\"name\":\"n\"}}]}", 0, 0 },
		{ "wrong types",
		  "{\"items\":[{\"metadata\":[1]},{\"metadata\":{\"uid\":1,\"name\":{},\"labels\":["
		  "2]},"
		  "\"status\":{\"containerStatuses\":{\"a\":1}}},3,[{}]]}",
		  0, 0 },
		{ "a name with a control",
		  "{\"items\":[{\"metadata\":{\"uid\":\"u\",\"name\":\"a\\n\"}}]}", 0, 0 },
		{ "a uid too long",
		  "{\"items\":[{\"metadata\":{\"uid\":\"" UID1 "0\",\"name\":\"n\"}}]}", 0, 0 },
		{ "nothing", "", -EBADMSG, 0 },
		{ "a web page", "<html></html>", -EBADMSG, 0 },
		{ "cut in a pod", "{\"items\":[{\"metadata\":{\"uid\":\"u\",", -EBADMSG, 0 },
		{ "cut behind a pod", "{\"items\":[{\"metadata\":{\"uid\":\"u\",\"name\":\"n\"}}",
		  -EBADMSG, 1 },
		{ "an array", "[{}]", -EBADMSG, 0 },
		{ "two lists", "{}{}", -EBADMSG, 0 },
		{ "a bracket too many", "{}}", -EBADMSG, 0 },
		{ "a pod that is no JSON", "{\"items\":[{]}}]}", -EBADMSG, 0 },
	};
	_cleanup_(config_release) struct config c;

	(void)state;
	read_config(&c);
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		struct pods_reader r = { .config = &c };
		int got = read_all(&r, cases[i].text);

		if (got != cases[i].want || r.pods.len != cases[i].pods)
			fail_msg("%s: %d, %zu pods", cases[i].name, got, r.pods.len);
		pods_reader_release(&r);
	}
}

static void test_pods_reader_names_the_next_page(void **state)
{
	static const struct {
		const char *name, *text, *want; /* NULL: refused */
	} cases[] = {
		{ "none", "{\"metadata\":{\"resourceVersion\":\"1\"},\"items\":[]}", "" },
		{ "before the pods", "{\"metadata\":{\"continue\":\"a/+=b\"},\"items\":[]}",
		  "a/+=b" },
		{ "behind them", "{\"items\":[{}],\"metadata\":{\"x\":{},\"continue\":\"c\"}}",
		  "c" },
		{ "of a pod", "{\"items\":[{\"metadata\":{\"continue\":\"c\"}}]}", "" },
		{ "deeper", "{\"metadata\":{\"x\":{\"continue\":\"c\"}}}", "" },
		{ "of another object", "{\"metadata1\":{\"continue\":\"c\"}}", "" },
		{ "no text", "{\"metadata\":{\"continue\":[1]}}", "" },
		{ "metadata in a list", "{\"metadata\":[{\"continue\":\"c\"}]}", "" },
		{ "a control", "{\"metadata\":{\"continue\":\"c\\n\"}}", NULL },
		{ "no JSON", "{\"metadata\":{\"continue\":}}", NULL },
	};
	_cleanup_(config_release) struct config c;

	(void)state;
	read_config(&c);
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		struct pods_reader r = { .config = &c };
		int got = read_all(&r, cases[i].text);

		if (got != (cases[i].want ? 0 : -EBADMSG))
			fail_msg("%s: %d", cases[i].name, got);
		if (cases[i].want && strcmp(r.next, cases[i].want) != 0)
			fail_msg("%s: '%s'", cases[i].name, r.next);
		pods_reader_release(&r);
	}
}

static void test_pods_reader_adds_up_pages(void **state)
{
	struct pods_reader r = { .config = NULL };
	_cleanup_(config_release) struct config c;

	(void)state;
	read_config(&c);
	r.config = &c;
	for (int page = 0; page < 3; page++) {
		char text[128];

		snprintf(text, sizeof(text),
			 "{\"metadata\":{%s},\"items\":[{\"metadata\":{\"uid\":\"%d\",\"name\":"
			 "\"n\"}}]}",
			 page < 2 ? "\"continue\":\"more\"" : "", page);
		pods_reader_next(&r);
		assert_int_equal(read_all(&r, text), 0);
		assert_string_equal(r.next, page < 2 ? "more" : "");
	}
	assert_int_equal(r.pods.len, 3);
	assert_non_null(pods_find(&r.pods, "0"));
	pods_reader_next(&r); /* one that never comes */
	assert_int_equal(pods_reader_finish(&r), -EBADMSG);
	pods_reader_release(&r);
}

static void test_pods_reader_is_bounded(void **state)
{
	static const char block[] =
		"                                                                ";
	_cleanup_(config_release) struct config c;
	struct pods_reader pod = { .config = NULL }, all = { .config = NULL },
			   many = { .config = NULL };
	int r = 0;

	(void)state;
	read_config(&c);
	pod.config = all.config = many.config = &c;
	assert_int_equal(pods_reader_feed(&pod, "{\"items\":[{", 11), 0);
	for (size_t i = 0; i <= PODS_ITEM_BYTES && !r; i += sizeof(block) - 1)
		r = pods_reader_feed(&pod, block, sizeof(block) - 1);
	assert_int_equal(r, -EFBIG);
	pods_reader_release(&pod);

	for (r = 0; !r;)
		r = pods_reader_feed(&all, block, sizeof(block) - 1);
	assert_int_equal(r, -EFBIG);
	assert_true(all.bytes <= PODS_BYTES_MAX + sizeof(block));
	pods_reader_release(&all);

	r = pods_reader_feed(&many, "{\"items\":[", 10);
	for (int i = 0; i <= PODS_MAX && !r; i++) {
		char item[80];
		int len = snprintf(item, sizeof(item),
				   "{\"metadata\":{\"uid\":\"%d\",\"name\":\"n\"}},", i);

		r = pods_reader_feed(&many, item, (size_t)len);
	}
	assert_int_equal(r, -EFBIG);
	assert_int_equal(many.pods.len, PODS_MAX);
	pods_reader_release(&many);
}

static void write_file(const char *folder, const char *name, const char *text)
{
	char path[256];

	snprintf(path, sizeof(path), "%s/%s", folder, name);
	assert_int_equal(file_write_whole(path, text, strlen(text)), 0);
}

static void remove_file(const char *folder, const char *name)
{
	char path[256];

	snprintf(path, sizeof(path), "%s/%s", folder, name);
	assert_int_equal(remove(path), 0);
}

static void test_pods_read_files(void **state)
{
	static const char *const files[] = { "uid", "name", "namespace", "labels" };
	_cleanup_(config_release) struct config c;
	char info[] = "/tmp/test_pods-XXXXXX", logs[] = "/tmp/test_pods-XXXXXX", folder[256];
	struct pods pods = { NULL, 0, 0 };

	(void)state;
	read_config(&c);
	assert_non_null(mkdtemp(info));
	assert_non_null(mkdtemp(logs));
	assert_int_equal(pods_read_downward(&c, info, &pods), -ENOENT);
	write_file(info, "uid", UID1);
	write_file(info, "name", "shop-7d9f\n");
	write_file(info, "namespace", "prod");
	write_file(info, "labels",
		   "app.kubernetes.io/name=\"shop\"\nteam=\"pay\"\nodd\ntier=\"\ntier=");
	snprintf(folder, sizeof(folder), "%s/prod_other_" UID2, logs);
	assert_int_equal(mkdir(folder, 0755), 0);

	assert_int_equal(pods_read_downward(&c, info, &pods), 0);
	assert_int_equal(pods_read_logs(logs, &pods), 0);
	assert_int_equal(pods.len, 2);
	assert_string_equal(pods_find(&pods, UID1)->service, "shop");
	assert_string_equal(pods_find(&pods, UID1)->labels[0], "pay");
	assert_string_equal(pods_find(&pods, UID1)->labels[1], "");
	assert_string_equal(pods_find(&pods, UID2)->names.name, "other");
	pods_release(&pods);

	for (size_t i = 0; i < sizeof(files) / sizeof(files[0]); i++)
		remove_file(info, files[i]);
	assert_int_equal(rmdir(info), 0);
	assert_int_equal(rmdir(folder), 0);
	assert_int_equal(rmdir(logs), 0);
	assert_int_equal(pods_read_logs(logs, &pods), -ENOENT);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_pods_reader_names_the_next_page),
		cmocka_unit_test(test_pods_reader_adds_up_pages),
		cmocka_unit_test(test_pods_reader_takes_any_pieces),
		cmocka_unit_test(test_pods_reader_finds_the_workload),
		cmocka_unit_test(test_pods_reader_refuses),
		cmocka_unit_test(test_pods_reader_is_bounded),
		cmocka_unit_test(test_pods_read_files),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
