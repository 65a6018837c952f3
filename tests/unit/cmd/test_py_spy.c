/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <stdbool.h>
#include <string.h>

#include "cmd/cmd.h"
#include "cmd/py_spy.h"

struct known {
	const char *name;
	char key;
	bool is_there;
};

static void look_for(const struct command *command, const struct opt *opts, void *context)
{
	const struct opt *const tables[] = { opts, opt_common };
	struct known *k = context;

	(void)command;
	for (size_t t = 0; t < 2; t++)
		for (const struct opt *o = tables[t]; o->kind != OPT_END_; o++)
			k->is_there |= k->name ? o->name && !strcmp(o->name, k->name)
					       : o->key && o->key == k->key;
}

static bool record_has(const char *name, char key)
{
	struct known k = { name, key, false };

	cmd_describe(&command_record, look_for, &k);
	return k.is_there;
}

/* `py-spy record --help` of 0.4.3. */
static void test_py_spy_option_has_all_that_record_lacks(void **state)
{
	static const struct {
		const char *name;
		char key;
	} theirs[] = {
		{ "pid", 'p' },          { "full-filenames", 0 }, { "output", 'o' },
		{ "format", 'f' },       { "duration", 'd' },     { "rate", 'r' },
		{ "subprocesses", 's' }, { "nolineno", 0 },       { "threads", 't' },
		{ "gil", 'g' },          { "idle", 'i' },         { "native", 'n' },
		{ "nonblocking", 0 },    { "help", 'h' },         { "function", 0 },
	};

	(void)state;
	for (size_t i = 0; i < sizeof(theirs) / sizeof(*theirs); i++) {
		const char *name = theirs[i].name, *here;

		here = py_spy_option("record", name, strlen(name), 0);
		if (record_has(name, 0) == (here != NULL))
			fail_msg("--%s: %s", name, here ? "ours, and refused" : "not explained");
		if (!theirs[i].key)
			continue;
		here = py_spy_option("record", NULL, 0, theirs[i].key);
		if (record_has(NULL, theirs[i].key) == (here != NULL))
			fail_msg("-%c: %s", theirs[i].key,
				 here ? "ours, and refused" : "not explained");
	}
	assert_null(py_spy_option("record", "idl", 3, 0));
	assert_null(py_spy_option("report", "idle", 4, 0));
	assert_null(py_spy_option("record", NULL, 0, 'x'));
}

static void test_py_spy_command_is_none_of_ours(void **state)
{
	const char *next = NULL;

	(void)state;
	assert_non_null(py_spy_command("help", &next));
	assert_non_null(strstr(next, "pyebpf --help"));
	next = NULL;
	assert_null(py_spy_command("record", &next));
	assert_null(py_spy_command("to", &next));
	assert_null(next);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_py_spy_option_has_all_that_record_lacks),
		cmocka_unit_test(test_py_spy_command_is_none_of_ours),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
