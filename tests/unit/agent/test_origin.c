/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <string.h>

#include "agent/origin.h"

#define A "0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef"
#define B "fedcba9876543210fedcba9876543210fedcba9876543210fedcba9876543210"
#define UID "1f2e3d4c-5b6a-7988-a7b6-c5d4e3f2a1b0"
#define UID_ "1f2e3d4c_5b6a_7988_a7b6_c5d4e3f2a1b0"

static void test_origin_of_command_names_the_service(void **state)
{
	static const struct {
		const char *name, *command_line, *want;
	} cases[] = {
		{ "script", "python3 /srv/shop/app.py --port 80", "app" },
		{ "script without suffix", "/usr/bin/python3.11 /usr/bin/celery worker", "celery" },
		{ "module", "python3 -m uvicorn app:api", "uvicorn" },
		{ "options before", "python3 -u -X dev -W ignore app.py", "app" },
		{ "code", "python3 -c import os", "python3" },
		{ "interactive", "python3.12", "python3.12" },
		{ "only options", "python3 -i", "python3" },
		{ "program of its own", "/opt/app/server --x", "server" },
		{ "title", "gunicorn: master [app]", "gunicorn" },
		{ "nothing", "", "" },
		{ "spaces", "   ", "" },
		{ "controls", "/opt/a\x1b[31mb", "a_[31mb" },
		{ "not UTF-8", "/opt/a\xff", "a_" },
		{ "UTF-8", "/opt/\xc3\xbc", "\xc3\xbc" },
	};

	(void)state;
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		char got[128];

		origin_of_command(cases[i].command_line, got, sizeof(got));
		if (strcmp(got, cases[i].want))
			fail_msg("%s: got '%s'", cases[i].name, got);
	}
}

static void test_origin_of_command_is_cut_at_a_character(void **state)
{
	char got[5];

	(void)state;
	origin_of_command("abc\xc3\xbc"
			  "d",
			  got, sizeof(got));
	assert_string_equal(got, "abc");
}

static void test_origin_of_cgroups(void **state)
{
	static const struct {
		const char *name, *text, *container, *pod;
	} cases[] = {
		{ "v2, containerd in a pod",
		  "0::/kubepods.slice/kubepods-burstable.slice/kubepods-burstable-pod" UID_
		  ".slice/cri-containerd-" A ".scope\n",
		  A, UID },
		{ "v1, cgroupfs",
		  "12:cpu,cpuacct:/kubepods/burstable/pod" UID "/" A
		  "\n1:name=systemd:/kubepods/burstable/pod" UID "/" A "\n",
		  A, UID },
		{ "hybrid", "1:name=systemd:/docker/" A "\n0::/system.slice/docker.service\n", A,
		  "" },
		{ "private namespace", "0::/\n", "", "" },
		{ "a container in a container", "0::/docker/" A "/docker/" B "\n", B, "" },
		{ "none", "0::/system.slice/cron.service\n", "", "" },
		{ "pod name too short", "0::/pod1234\n", "", "" },
		{ "no newline", "0::/docker/" A, A, "" },
		{ "nothing", "", "", "" },
	};

	(void)state;
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		struct origin got = { 0 };

		origin_of_cgroups(cases[i].text, strlen(cases[i].text), &got);
		if (strcmp(got.container, cases[i].container) || strcmp(got.pod, cases[i].pod))
			fail_msg("%s: '%s' '%s'", cases[i].name, got.container, got.pod);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_origin_of_command_names_the_service),
		cmocka_unit_test(test_origin_of_command_is_cut_at_a_character),
		cmocka_unit_test(test_origin_of_cgroups),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
