/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include "target/environment.h"

static void test_cpu_of_cpuinfo(void **state)
{
	static const struct {
		const char *name, *text, *want;
	} cases[] = {
		{ "x86, two alike",
		  "processor\t: 0\ncpu family\t: 6\nmodel name\t: Intel(R) Xeon(R) Processor\n"
		  "cpu MHz\t\t: 2100\n\nprocessor\t: 1\nmodel name\t: Intel(R) Xeon(R) Processor\n",
		  "Intel(R) Xeon(R) Processor" },
		{ "two kinds", "model name\t: A\n\nmodel name\t: B\n\nmodel name\t: A\n", "A, B" },
		{ "one is the start of the other", "model name\t: AB\n\nmodel name\t: A\n",
		  "AB, A" },
		{ "arm64",
		  "processor\t: 0\nCPU implementer\t: 0x41\nCPU architecture: 8\nCPU part\t: "
		  "0xd0c\n\n"
		  "processor\t: 1\nCPU implementer\t: 0x41\nCPU part\t: 0xd0c\n",
		  "0x41:0xd0c" },
		{ "POWER", "processor\t: 0\ncpu\t\t: POWER9 (raw)\n", "POWER9 (raw)" },
		{ "no newline at the end", "model name\t: A", "A" },
		{ "a name without a value", "model name\nmodel name\t:\n", "" },
		{ "nothing", "", "" },
	};

	(void)state;
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		_cleanup_(strbuf_releasep) struct strbuf got = STRBUF_INIT;

		assert_int_equal(environment_cpu_of(cases[i].text, strlen(cases[i].text), &got), 0);
		if (strcmp(strbuf_str(&got), cases[i].want) != 0)
			fail_msg("%s: '%s', not '%s'", cases[i].name, strbuf_str(&got),
				 cases[i].want);
	}
}

static void test_find_in_a_block(void **state)
{
	static const char block[] = "HOME=/root\0XPYTHONHASHSEED=1\0PYTHONHASHSEED=42\0"
				    "PYTHONHASHSEED=43\0EMPTY=\0PYTHONMALLOC";
	static const struct {
		const char *name, *want; /* NULL: not there */
	} cases[] = {
		{ "HOME", "/root" },      { "PYTHONHASHSEED", "42" }, { "EMPTY", "" },
		{ "PYTHONMALLOC", NULL }, { "PYTHON", NULL },         { "root", NULL },
	};

	(void)state;
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		const char *value = NULL;
		size_t len = 0;
		bool found = environment_find(block, sizeof(block), cases[i].name, &value, &len);

		if (found != (cases[i].want != NULL) ||
		    (found && (len != strlen(cases[i].want) || memcmp(value, cases[i].want, len))))
			fail_msg("%s: '%.*s'", cases[i].name, (int)len, value ? value : "none");
	}
}

/* Starts a program with these variables, which runs once it has answered. */
static pid_t start_program(char *const variables[], int *line)
{
	char *const argv[] = { (char *)"cat", NULL };
	char answer = 0;
	int pair[2];
	pid_t pid;

	assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, pair), 0);
	pid = fork();
	assert_true(pid >= 0);
	if (!pid) {
		if (dup2(pair[1], STDIN_FILENO) >= 0 && dup2(pair[1], STDOUT_FILENO) >= 0)
			execve("/bin/cat", argv, variables);
		_exit(1);
	}
	close(pair[1]);
	assert_int_equal(write(pair[0], "?", 1), 1);
	assert_int_equal(read(pair[0], &answer, 1), 1);
	assert_int_equal(answer, '?');
	*line = pair[0];
	return pid;
}

static void check_child(char *const variables[], const char *seed, const char *allocator)
{
	_cleanup_(strbuf_releasep) struct strbuf got_seed = STRBUF_INIT,
						 got_allocator = STRBUF_INIT;
	int line, r;
	pid_t pid = start_program(variables, &line);

	r = environment_put_python(pid, &got_seed, &got_allocator);
	close(line);
	assert_int_equal(waitpid(pid, NULL, 0), pid);
	assert_int_equal(r, 0);
	assert_string_equal(strbuf_str(&got_seed), seed);
	assert_string_equal(strbuf_str(&got_allocator), allocator);
}

static void test_variables_of_a_process(void **state)
{
	static char *const none[] = { NULL };
	static char *const both[] = { (char *)"PYTHONHASHSEED=7", (char *)"PYTHONMALLOC=malloc",
				      NULL };
	static char *const empty[] = { (char *)"PYTHONHASHSEED=", NULL };
	static char *const longer[] = {
		(char *)"PYTHONMALLOC=0123456789012345678901234567890123456789012345678901234567"
			"890123456789",
		NULL,
	};
	_cleanup_(strbuf_releasep) struct strbuf seed = STRBUF_INIT, allocator = STRBUF_INIT;

	(void)state;
	check_child(none, "random", "default");
	check_child(both, "7", "malloc");
	check_child(empty, "random", "default");
	check_child(longer, "random",
		    "0123456789012345678901234567890123456789012345678901234567890123");
	assert_int_equal(environment_put_python(1 << 22, &seed, &allocator), 0); /* nobody */
	assert_int_equal(seed.len + allocator.len, 0);
}

static void test_this_machine(void **state)
{
	_cleanup_(strbuf_releasep) struct strbuf cpu = STRBUF_INIT, governor = STRBUF_INIT;

	(void)state;
	assert_int_equal(environment_put_cpu(&cpu), 0);
	assert_true(cpu.len > 0);
	assert_int_equal(environment_put_governor(&governor), 0); /* a virtual machine has none */
	assert_null(strchr(strbuf_str(&governor), '\n'));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_cpu_of_cpuinfo),
		cmocka_unit_test(test_find_in_a_block),
		cmocka_unit_test(test_variables_of_a_process),
		cmocka_unit_test(test_this_machine),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
