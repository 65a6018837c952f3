/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <string.h>

#include "agent/origin.h"

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
		{ "module behind other letters", "python3 -Ium shop.worker --x", "shop.worker" },
		{ "module in the same word", "python3 -mshop", "shop" },
		{ "option with its value", "python3 -Xdev -Wignore app.py", "app" },
		{ "code behind other letters", "python3 -Ec import os", "python3" },
		{ "long option", "python3 --version-like-m app.py", "app" },
		{ "folder", "python3 /srv/shop", "shop" },
		{ "folder's main", "python3 /srv/shop/__main__.py", "shop" },
		{ "folder's main, relative", "python3 shop/__main__.py --x", "shop" },
		{ "main of nobody knows what", "python3 __main__.py", "__main__" },
		{ "module's main", "python3 -m shop.web.__main__", "shop.web" },
		{ "standard input", "python3 - a b", "python3" },
		{ "module that is not there", "python3 -m", "python3" },
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

static void test_origin_of_attributes(void **state)
{
	static const struct {
		const char *name, *text, *want;
	} cases[] = {
		{ "alone", "service.name=shop", "shop" },
		{ "among others", "a=b, service.name=shop,c=d", "shop" },
		{ "another's end", "x.service.name=shop", "" },
		{ "empty", "service.name=,a=b", "" },
		{ "commas alone", ",, ,", "" },
		{ "nothing", "", "" },
	};

	(void)state;
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		char got[128];

		origin_of_attributes(cases[i].text, got, sizeof(got));
		if (strcmp(got, cases[i].want))
			fail_msg("%s: got '%s'", cases[i].name, got);
	}
}

static void test_origin_attribute_by_its_key(void **state)
{
	static const struct {
		const char *name, *text, *key, *want;
	} cases[] = {
		{ "version", "service.name=a,service.version=1.2", "service.version", "1.2" },
		{ "environment", "deployment.environment=prod", "deployment.environment", "prod" },
		{ "a longer key", "deployment.environment.name=prod", "deployment.environment",
		  "" },
		{ "a shorter key", "service=a", "service.version", "" },
		{ "key alone", "service.version", "service.version", "" },
		{ "empty", "service.version=,", "service.version", "" },
	};

	(void)state;
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		char got[64];

		origin_attribute(cases[i].text, cases[i].key, got, sizeof(got));
		if (strcmp(got, cases[i].want))
			fail_msg("%s: got '%s'", cases[i].name, got);
	}
}

#define ENVIRONMENT(text) text, sizeof(text) - 1

static void test_origin_of_environment_finds_the_variable(void **state)
{
	static const struct {
		const char *name, *bytes;
		size_t len;
		const char *want;
	} cases[] = {
		{ "among others", ENVIRONMENT("A=b\0NAME=shop\0Z=\0"), "shop" },
		{ "the last counts", ENVIRONMENT("NAME=old\0NAME=new\0"), "new" },
		{ "another's end", ENVIRONMENT("MY_NAME=shop\0"), "before" },
		{ "another's beginning", ENVIRONMENT("NAMES=shop\0"), "before" },
		{ "without a value", ENVIRONMENT("NAME=\0"), "" },
		{ "no variable", ENVIRONMENT("NAME\0\0=\0"), "before" },
		{ "cut off", ENVIRONMENT("NAME=sho"), "sho" },
		{ "controls, not UTF-8", ENVIRONMENT("NAME=a\x1b\xff\0"), "a__" },
		{ "none", ENVIRONMENT(""), "before" },
	};

	(void)state;
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		char got[128] = "before";

		origin_of_environment(cases[i].bytes, cases[i].len, "NAME", got, sizeof(got));
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

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_origin_of_command_names_the_service),
		cmocka_unit_test(test_origin_of_attributes),
		cmocka_unit_test(test_origin_attribute_by_its_key),
		cmocka_unit_test(test_origin_of_environment_finds_the_variable),
		cmocka_unit_test(test_origin_of_command_is_cut_at_a_character),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
