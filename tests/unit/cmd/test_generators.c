/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/file.h"
#include "cmd/cmd.h"
#include "tests/unit/skip.h"

/*
 * Completions and man pages of a sample command, in the hands of the programs that read them.
 * Shells that are not installed are skipped, aloud.
 */

static const char *const modes[] = { "cpu", "wall", "off-cpu", NULL };
static bool sample_ran;

static int sample_run(struct call *call)
{
	uint32_t freq_hz = 99;
	unsigned int mode = 0;
	bool kernel = false;
	const char *output = NULL;
	const struct opt opts[] = {
		OPT_GROUP("It's [odd]: \\ and 'quoted'"),
		OPT_FREQ('F', "freq", &freq_hz, "don't [stop]: a\\b $HOME `id`"),
		OPT_ALIAS('r', "rate"),
		OPT_ENUM(0, "mode", &mode, "MODE", modes, ".leading dot"),
		OPT_FLAG('k', "kernel", &kernel, "kernel stacks"),
		OPT_STR('o', "output", &output, "FILE", "where to"),
		OPT_END,
	};
	int status;

	if (!cmd_options(call, opts, &status))
		return status;
	sample_ran = true;
	return EXIT_INCONCLUSIVE;
}

static const struct command command_sample = {
	.name = "sample",
	.summary = "it's a 'sample': \\ $HOME",
	.usage = "[OPTION]... FILE",
	.run = sample_run,
};

static const struct command *const commands[] = { &command_sample, &command_completions,
						  &command_man, NULL };

static char folder[] = "/tmp/pyebpf-test-XXXXXX";

static int enter_folder(void **state)
{
	(void)state;
	return mkdtemp(folder) && chdir(folder) == 0 && mkdir("sub", 0700) == 0 ? 0 : -1;
}

static int redirect(int fd, const char *path)
{
	int file = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
	int saved = fcntl(fd, F_DUPFD_CLOEXEC, 10);

	assert_true(file >= 0 && saved >= 0);
	dup2(file, fd);
	close(file);
	return saved;
}

/* cmd_main() with output to files "script" and "err". Returns its exit code. */
static int run(const char *a, const char *b, const char *c)
{
	char *argv[] = { (char *)"pyebpf", (char *)a, (char *)b, (char *)c, NULL };
	int argc = !a ? 1 : !b ? 2 : !c ? 3 : 4;
	int saved_out, saved_err, status;

	fflush(stdout);
	saved_out = redirect(STDOUT_FILENO, "script");
	saved_err = redirect(STDERR_FILENO, "err");
	status = cmd_main(commands, argc, argv);
	fflush(stdout);
	dup2(saved_out, STDOUT_FILENO);
	dup2(saved_err, STDERR_FILENO);
	close(saved_out);
	close(saved_err);
	return status;
}

static void assert_contains(const char *name, const char *path, const char *want)
{
	_cleanup_(freep) char *got = NULL;
	size_t len;

	assert_int_equal(file_read(path, 1 << 20, &got, &len), 0);
	if (want[0] ? !strstr(got, want) : len > 0)
		fail_msg("%s: \"%s\" is not in:\n%s", name, want, got);
}

/* Runs a program on PATH; what it prints goes to files "out" and "err". 127: not installed. */
static int spawn(const char *const *argv)
{
	int status;
	pid_t pid;

	fflush(stdout);
	pid = fork();
	assert_true(pid >= 0);
	if (pid == 0) {
		redirect(STDOUT_FILENO, "out");
		redirect(STDERR_FILENO, "err");
		setenv("HOME", folder, 1);
		setenv("TERM", "dumb", 1);
		execvp(argv[0], (char *const *)argv);
		_exit(127);
	}
	assert_int_equal(waitpid(pid, &status, 0), pid);
	assert_true(WIFEXITED(status));
	return WEXITSTATUS(status);
}

/* Shells leave folders of their own in it. */
static int leave_folder(void **state)
{
	const char *const argv[] = { "rm", "-rf", folder, NULL };

	(void)state;
	return spawn(argv);
}

static void test_main_exit_codes_and_messages(void **state)
{
	static const struct {
		const char *name, *a, *b, *c;
		int want;
		const char *out, *err;
	} cases[] = {
		{ "nothing", NULL, NULL, NULL, EXIT_USAGE, "", "Usage: pyebpf COMMAND" },
		{ "help", "--help", NULL, NULL, EXIT_OK, "  sample       it's a", "" },
		{ "version", "--version", NULL, NULL, EXIT_OK, "pyebpf " PYEBPF_VERSION "\n", "" },
		{ "unknown command", "smaple", NULL, NULL, EXIT_USAGE, "",
		  "pyebpf: unknown command smaple; did you mean sample?\ntry: pyebpf --help\n" },
		{ "unknown option", "--verison", NULL, NULL, EXIT_USAGE, "",
		  "pyebpf: unknown option --verison\n" },
		{ "command help", "sample", "-h", NULL, EXIT_OK, "-F, --freq HZ", "" },
		{ "command usage", "sample", "--fre", NULL, EXIT_USAGE, "",
		  "pyebpf sample: unknown option --fre; did you mean --freq?\n"
		  "try: pyebpf sample --help\n" },
		{ "command's own code", "sample", "-k", NULL, EXIT_INCONCLUSIVE, "", "" },
		{ "no shell", "completions", NULL, NULL, EXIT_USAGE, "", "needs one shell" },
		{ "wrong shell", "completions", "ksh", NULL, EXIT_USAGE, "",
		  "unknown shell 'ksh'" },
		{ "wrong page", "man", "sampel", NULL, EXIT_USAGE, "", "no command 'sampel'" },
		{ "two pages", "man", "man", "man", EXIT_USAGE, "", "one command at a time" },
	};

	(void)state;
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		int got = run(cases[i].a, cases[i].b, cases[i].c);

		if (got != cases[i].want)
			fail_msg("%s: exit code %d, want %d", cases[i].name, got, cases[i].want);
		assert_contains(cases[i].name, "script", cases[i].out);
		assert_contains(cases[i].name, "err", cases[i].err);
	}
}

static void test_generators_do_not_run_commands(void **state)
{
	(void)state;
	sample_ran = false;
	assert_int_equal(run("man", "sample", NULL), EXIT_OK);
	assert_int_equal(run("completions", "zsh", NULL), EXIT_OK);
	assert_false(sample_ran);
}

/* COMP_WORDS as bash splits them, and what _pyebpf must offer. */
static void test_completions_bash_offers(void **state)
{
	static const struct {
		const char *name, *words, *want;
	} cases[] = {
		{ "commands", "pyebpf ''", "sample completions man --help --version\n" },
		{ "command by prefix", "pyebpf sa", "sample\n" },
		{ "options", "pyebpf sample --ra", "--rate\n" },
		{ "common options", "pyebpf sample --he", "--help\n" },
		{ "choice", "pyebpf sample --mode ''", "cpu wall off-cpu\n" },
		{ "choice after =", "pyebpf sample --mode = w", "wall\n" },
		{ "choice right at =", "pyebpf sample --mode =", "cpu wall off-cpu\n" },
		{ "file", "pyebpf sample -o su", "sub\n" },
		{ "operand file", "pyebpf sample su", "sub\n" },
		{ "nothing for numbers", "pyebpf sample -F ''", "\n" },
		{ "fixed operands", "pyebpf completions f", "fish\n" },
		{ "commands as operands", "pyebpf man c", "completions\n" },
		{ "unknown command", "pyebpf frob ''", "\n" },
	};

	(void)state;
	assert_int_equal(run("completions", "bash", NULL), EXIT_OK);
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		char program[256];
		const char *const argv[] = { "bash", "--norc", "-c", program, NULL };

		snprintf(program, sizeof(program),
			 "source ./script; COMP_WORDS=(%s); COMP_CWORD=$((${#COMP_WORDS[@]} - 1)); "
			 "_pyebpf 2>/dev/null; echo \"${COMPREPLY[*]}\"",
			 cases[i].words);
		if (spawn(argv) == 127)
			SKIP("bash is not installed: its completions were not run");
		assert_contains(cases[i].name, "out", cases[i].want);
		assert_contains(cases[i].name, "err", "");
	}
}

static void test_completions_zsh_parses_and_defines(void **state)
{
	static const char *const argv[] = {
		"zsh", "-f", "-c",
		"compdef() { print \"compdef $*\"; }; source ./script; "
		"_arguments() { print -r -- \"$@\"; }; words=(pyebpf sample x); CURRENT=3; _pyebpf",
		NULL
	};

	(void)state;
	assert_int_equal(run("completions", "zsh", NULL), EXIT_OK);
	assert_contains("zsh", "script", "#compdef pyebpf\n");
	if (spawn(argv) == 127)
		SKIP("zsh is not installed: its completions were not run");
	assert_contains("zsh", "err", "");
	assert_contains("zsh registers", "out", "compdef _pyebpf pyebpf\n");
	assert_contains("zsh quotes", "out",
			"*--freq=[don't \\[stop\\]\\: a\\\\b $HOME `id`]:HZ: ");
	assert_contains("zsh choices", "out", "*--mode=[.leading dot]:MODE:(cpu wall off-cpu)");
}

static void test_completions_fish_offers(void **state)
{
	static const struct {
		const char *name, *line, *want;
	} cases[] = {
		{ "commands", "pyebpf sam", "sample\tit's a 'sample': \\ $HOME\n" },
		{ "options", "pyebpf sample --fr", "--freq\tdon't [stop]: a\\b $HOME `id`\n" },
		{ "choices", "pyebpf sample --mode off", "off-cpu" },
		{ "operands", "pyebpf completions zs", "zsh" },
	};

	(void)state;
	assert_int_equal(run("completions", "fish", NULL), EXIT_OK);
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		char program[256];
		const char *const argv[] = { "fish", "--no-config", "-c", program, NULL };

		snprintf(program, sizeof(program), "source ./script; complete -C '%s'",
			 cases[i].line);
		if (spawn(argv) == 127)
			SKIP("fish is not installed: its completions were not run");
		assert_contains(cases[i].name, "err", "");
		assert_contains(cases[i].name, "out", cases[i].want);
	}
}

static void test_man_page_formats_without_warnings(void **state)
{
	static const char *const pages[] = { NULL, "sample", "completions" };
	static const char *const argv[] = { "groff", "-ww",  "-man",   "-Tascii", "-P-c",
					    "-P-b",  "-P-u", "script", NULL };

	(void)state;
	for (size_t i = 0; i < sizeof(pages) / sizeof(pages[0]); i++) {
		assert_int_equal(run("man", pages[i], NULL), EXIT_OK);
		if (spawn(argv) == 127)
			SKIP("groff is not installed: man pages were not formatted");
		assert_contains("warnings", "err", "");
		if (pages[i] && !strcmp(pages[i], "sample")) {
			assert_contains("label", "out", "-F, --freq HZ, -r, --rate\n");
			assert_contains("text", "out", "don't [stop]: a\\b $HOME `id`\n");
			assert_contains("leading dot", "out",
					" .leading dot: cpu, wall, off-cpu\n");
		}
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_main_exit_codes_and_messages),
		cmocka_unit_test(test_generators_do_not_run_commands),
		cmocka_unit_test(test_completions_bash_offers),
		cmocka_unit_test(test_completions_zsh_parses_and_defines),
		cmocka_unit_test(test_completions_fish_offers),
		cmocka_unit_test(test_man_page_formats_without_warnings),
	};

	return cmocka_run_group_tests(tests, enter_folder, leave_folder);
}
