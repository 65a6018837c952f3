/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <fcntl.h>
#include <pty.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/file.h"
#include "cmd/cmd.h"
#include "cmd/summary.h"
#include "profile/profile.h"
#include "store/writer.h"

/* Exact output is in tests/golden; here: what inputs, terminals and record's summary make of it. */

static const struct command *const commands[] = { &command_report, &command_export, NULL };
static char folder[] = "/tmp/test_report.XXXXXX";

static int enter_folder(void **state)
{
	(void)state;
	return mkdtemp(folder) ? chdir(folder) : -1;
}

static int leave_folder(void **state)
{
	static const char *const files[] = { "x.pyebpf", "y.pyebpf", "cut.pyebpf", "out.folded" };

	(void)state;
	for (size_t i = 0; i < sizeof(files) / sizeof(files[0]); i++)
		unlink(files[i]);
	return chdir("/") < 0 ? -1 : rmdir(folder);
}

struct result {
	int status;
	char out[16384], err[4096];
};

static void read_back(int fd, char *text, size_t size)
{
	ssize_t n = pread(fd, text, size - 1, 0);

	assert_true(n >= 0);
	text[n] = '\0';
	close(fd);
}

/* Runs a command line in a child, so that its streams are its own. */
static void run(const char *line, struct result *result)
{
	int out = memfd_create("out", MFD_CLOEXEC), err = memfd_create("err", MFD_CLOEXEC);
	char words[256], *argv[16] = { words }, *save;
	int argc = 1, status; /* argv[0] is only for show */
	pid_t pid;

	assert_true(out >= 0 && err >= 0 && strlen(line) < sizeof(words));
	memcpy(words, line, strlen(line) + 1);
	for (char *w = strtok_r(words, " ", &save); w; w = strtok_r(NULL, " ", &save))
		argv[argc++] = w;
	fflush(NULL);
	pid = fork();
	assert_true(pid >= 0);
	if (!pid) {
		dup2(out, STDOUT_FILENO);
		dup2(err, STDERR_FILENO);
		status = cmd_main(commands, argc, argv);
		fflush(NULL);
		_exit(status);
	}
	assert_int_equal(waitpid(pid, &status, 0), pid);
	assert_true(WIFEXITED(status));
	result->status = WEXITSTATUS(status);
	read_back(out, result->out, sizeof(result->out));
	read_back(err, result->err, sizeof(result->err));
}

static uint32_t push(struct profile *p, uint32_t stack, const char *name, uint32_t line)
{
	struct frame f = { .line = line, .first_line = 1 };
	uint32_t id;

	assert_int_equal(strtab_intern(p->strings, name, strlen(name), &f.name), 0);
	assert_int_equal(strtab_intern(p->strings, "/a/b/app.py", 11, &f.file), 0);
	assert_int_equal(frametab_intern(p->frames, &f, &id), 0);
	assert_int_equal(stacktab_intern(p->stacks, stack, id, &stack), 0);
	return stack;
}

/* main calls seven functions, f1 .. f7, with 10, 20, ... 70 ticks, in two flushes. */
static void write_recording(const char *path, bool has_samples, uint64_t lost)
{
	_cleanup_(profile_freep) struct profile *p = NULL;
	_cleanup_(writer_freep) struct writer *w = NULL;
	struct process process = { .pid = 412 };
	struct thread thread = { .tid = 412 };
	uint32_t index;

	assert_int_equal(profile_new(&p), 0);
	profile_recording(p)->interval_ns = 1000000;
	profile_recording(p)->has_ended = 1;
	assert_int_equal(profile_set_counter(p, "ring_full", lost), 0);
	assert_int_equal(profile_set_counter(p, "malformed", lost / 3), 0);
	assert_int_equal(profile_set_counter(p, "not_python", 17), 0);
	assert_int_equal(profile_set_counter(p, "outside", 30), 0);
	assert_int_equal(profile_set_counter(p, "ticks", 1400), 0);
	assert_int_equal(profile_set_counter(p, "idle", 840), 0);
	assert_int_equal(profile_set_counter(p, "expected", 1700), 0);
	assert_int_equal(profile_add_process(p, &process, &index), 0);
	assert_int_equal(profile_add_thread(p, &thread, &index), 0);
	unlink(path);
	assert_int_equal(writer_open(path, p, &w), 0);
	for (uint32_t i = 1; i <= 7 && has_samples; i++) {
		char name[8] = { 'f', (char)('0' + i) };
		struct sample s = { .value = 10 * i };

		s.stack = push(p, push(p, 0, "main", 5), name, 10 * i);
		assert_int_equal(profile_add_sample(p, &s), 0);
		if (i == 4) {
			assert_true(writer_flush(w, p) > 0);
			profile_clear_samples(p);
		}
	}
	assert_int_equal(writer_finish(w, p), 0);
}

static void test_inputs(void **state)
{
	static const struct {
		const char *name, *line;
		int status;
		const char *out, *err; /* must be there; NULL: nothing at all */
	} cases[] = {
		{ "absent", "report absent.pyebpf", EXIT_RUNTIME, NULL, "absent.pyebpf: No such" },
		{ "default file", "export -f collapsed", EXIT_RUNTIME, NULL, "profile.pyebpf" },
		{ "two of three", "report x.pyebpf x.pyebpf absent", EXIT_RUNTIME, NULL, "absent" },
		{ "good", "report x.pyebpf", EXIT_OK,
		  "samples    280 of 1 ms each: 280 ms (7 records", NULL },
		{ "merged", "report x.pyebpf x.pyebpf", EXIT_OK, "samples    560 of 1 ms", NULL },
		{ "merged export", "export -f collapsed x.pyebpf x.pyebpf", EXIT_OK,
		  ";f7 (/a/b/app.py:70) 140\n", NULL },
		{ "by suffix", "export -o out.folded x.pyebpf", EXIT_OK, NULL, NULL },
		{ "unknown suffix", "export -o out.zip x.pyebpf", EXIT_USAGE, NULL, "collapsed" },
		{ "no format", "export x.pyebpf", EXIT_USAGE, NULL, "use -f (collapsed" },
		{ "unknown format", "export -f zip x.pyebpf", EXIT_USAGE, NULL, "collapsed" },
		{ "no samples", "report y.pyebpf", EXIT_NOTHING, "samples    0 of",
		  "pyebpf report: no samples of Python code: 17 ticks, 17 in processes without "
		  "Python\ntry: pgrep" },
		{ "time", "report x.pyebpf", EXIT_OK, "time       280 ms of CPU time\n", NULL },
		{ "outside", "report x.pyebpf", EXIT_OK, "outside    Python: 30 samples", NULL },
		{ "no samples to export", "export -f collapsed y.pyebpf", EXIT_NOTHING, NULL,
		  "no samples" },
		{ "percent", "report --min-percent 101 x.pyebpf", EXIT_USAGE, NULL, "'101'" },
		{ "percent text", "report --min-percent 1x x.pyebpf", EXIT_USAGE, NULL, "'1x'" },
		{ "percent of nothing", "report --min-percent nan x.pyebpf", EXIT_USAGE, NULL,
		  "'nan'" },
		{ "tree pruned", "report --no-summary --tree --min-percent 20 x.pyebpf", EXIT_OK,
		  "100.0%    0.0%  main  b/app.py:1\n"
		  " 25.0%   25.0%  |- f7  b/app.py:1\n"
		  " 21.4%   21.4%  `- f6  b/app.py:1\n",
		  NULL },
		{ "limit", "report --no-summary --limit 6 x.pyebpf", EXIT_OK,
		  "  3.6%                       1 more function\n", NULL },
		{ "no limit", "report --no-summary --limit 0 --sort total x.pyebpf", EXIT_OK,
		  "f1        b/app.py:1\n", NULL },
	};
	struct result r;

	(void)state;
	write_recording("x.pyebpf", true, 0);
	write_recording("y.pyebpf", false, 0);
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		run(cases[i].line, &r);
		if (r.status != cases[i].status)
			fail_msg("%s: status %d, %s", cases[i].name, r.status, r.err);
		if (cases[i].out ? !strstr(r.out, cases[i].out) : *r.out != '\0')
			fail_msg("%s: printed %s", cases[i].name, r.out);
		if (cases[i].err ? !strstr(r.err, cases[i].err) : *r.err != '\0')
			fail_msg("%s: said %s", cases[i].name, r.err);
	}
}

/* Cut anywhere: the flushes that are whole, with a word; or an error. Never more than there was. */
static void test_cut_recording(void **state)
{
	_cleanup_(freep) char *bytes = NULL;
	size_t len, with_first_half = 0, errors = 0;
	struct result r;

	(void)state;
	write_recording("x.pyebpf", true, 0);
	assert_int_equal(file_read("x.pyebpf", 1 << 20, &bytes, &len), 0);
	for (size_t cut = 0; cut < len; cut += 7) {
		assert_int_equal(file_write_whole("cut.pyebpf", bytes, cut), 0);
		run("report cut.pyebpf", &r);
		if (!strstr(r.err, "cut.pyebpf"))
			fail_msg("%zu bytes: said %s", cut, r.err);
		if (r.status == EXIT_RUNTIME) {
			errors++;
			continue;
		}
		assert_int_equal(r.status, EXIT_OK);
		assert_non_null(strstr(r.out, "note       a file is truncated"));
		with_first_half += strstr(r.out, "samples    100 of 1 ms") != NULL;
	}
	assert_true(errors > 0);
	assert_true(with_first_half > 0);
}

/* A terminal of 31 columns that shows what `report --tree` makes of x.pyebpf. */
static void run_on_terminal(const char *locale, const char *no_colour, char *text, size_t size)
{
	static char name[] = "report", tree[] = "--tree", quiet[] = "--no-summary",
		    file[] = "x.pyebpf", program[] = "pyebpf";
	char *argv[] = { program, name, quiet, tree, file, NULL };
	struct winsize window = { .ws_row = 25, .ws_col = 31 };
	size_t len = 0;
	int terminal, status;
	ssize_t n;
	pid_t pid;

	fflush(NULL);
	pid = forkpty(&terminal, NULL, NULL, &window);
	assert_true(pid >= 0);
	if (!pid) {
		setenv("LC_ALL", locale, 1);
		setenv("TERM", "xterm", 1);
		setenv("NO_COLOR", no_colour, 1);
		status = cmd_main(commands, 5, argv);
		fflush(NULL);
		_exit(status);
	}
	while ((n = read(terminal, text + len, size - 1 - len)) > 0) /* EIO at the end */
		len += (size_t)n;
	text[len] = '\0';
	close(terminal);
	assert_int_equal(waitpid(pid, &status, 0), pid);
	assert_int_equal(status, 0);
}

static void test_terminal(void **state)
{
	static const struct {
		const char *name, *locale, *no_colour, *line;
	} cases[] = {
		{ "plain", "C", "1", "\r\n 25.0%   25.0%  |- f7  ..p.py:1\r\n" },
		{ "unicode", "C.UTF-8", "1",
		  "\r\n 25.0%   25.0%  \xe2\x94\x9c\xe2\x94\x80 f7  ..p.py:1\r\n" },
		{ "colour", "C", "",
		  "\r\n\033[31m 25.0%\033[0m  \033[31m 25.0%\033[0m  \033[2m|- \033[0mf7  "
		  "\033[2m..\033[0m\033[2mp.py\033[0m\033[2m:1\033[0m\r\n" },
	};
	char text[8192];

	(void)state;
	write_recording("x.pyebpf", true, 0);
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		run_on_terminal(cases[i].locale, cases[i].no_colour, text, sizeof(text));
		if (!strstr(text, cases[i].line))
			fail_msg("%s: %s", cases[i].name, text);
		if (*cases[i].no_colour && strchr(text, '\033'))
			fail_msg("%s: coloured", cases[i].name);
	}
}

static void test_summary_print(void **state)
{
	static const struct times_sum times = {
		.threads = 3,
		.cpu_ns = UINT64_C(5000000000),
		.wait_ns = { [CLASS_SLEEP] = UINT64_C(7500000000),
			     [CLASS_GIL] = UINT64_C(2490000000) },
		.unseen_ns = 10000000,
		.not_sampled_cpu_ns = 30000000,
		.not_sampled_wait_ns = 300000000,
		.episodes = 412,
	};
	static const struct times_sum stopped = {
		.threads = 2,
		.cpu_ns = UINT64_C(1000000000),
		.wait_ns = { [CLASS_OTHER] = UINT64_C(9000000000) },
		.stopped_ns = UINT64_C(7000000000),
	};
	static const struct {
		const char *name;
		bool has_samples;
		uint64_t lost;
		struct summary_extra x;
		int status;
		const char *want;
		uint64_t cpu_ns; /* as counted */
	} cases[] = {
		{ "all there is",
		  true,
		  3,
		  { .output = "x.pyebpf",
		    .processes = 1,
		    .wall_ns = UINT64_C(2000000000),
		    .cpu_ns = 18000000,
		    .sampler_ns = 2000000,
		    .rss_bytes_max = 21 << 20,
		    .is_system_wide = true },
		  0,
		  "x.pyebpf: 280 samples of 1 process (7 records)\n"
		  "280 ms of CPU time in 2 s\n"
		  "   25.0%  f7  b/app.py:1\n"
		  "   21.4%  f6  b/app.py:1\n"
		  "   17.9%  f5  b/app.py:1\n"
		  "   14.3%  f4  b/app.py:1\n"
		  "   10.7%  f3  b/app.py:1\n"
		  "lost: 4 of 284 (1.4%): ring buffer full 3, malformed record (a bug in pyebpf: "
		  "please report it) 1\n"
		  "target never paused; pyebpf used 20 ms of CPU time, 1.0% of one CPU (2 ms in "
		  "the "
		  "kernel), 21 MiB of memory\n"
		  "Python code was 50.0% of all CPU time used\n"
		  "next: pyebpf report --tree x.pyebpf\n",
		  0 },
		{ "mostly waits",
		  true,
		  0,
		  { .output = "x.pyebpf", .processes = 1, .wall_ns = UINT64_C(8000000000) },
		  0,
		  "x.pyebpf: 280 samples of 1 process (7 records)\n"
		  "300 ms of CPU time in 8 s, 17 ms of it without Python: mostly waiting; "
		  "use record --mode wall to see why\n"
		  "   25.0%  f7  b/app.py:1\n"
		  "   21.4%  f6  b/app.py:1\n"
		  "   17.9%  f5  b/app.py:1\n"
		  "   14.3%  f4  b/app.py:1\n"
		  "   10.7%  f3  b/app.py:1\n"
		  "nothing lost\n"
		  "target never paused\n"
		  "next: pyebpf report --tree x.pyebpf\n",
		  300000000 },
		{ "a format of others",
		  true,
		  0,
		  { .output = "x.pb.gz", .processes = 1, .wall_ns = UINT64_C(2000000000) },
		  0,
		  "x.pb.gz: 280 samples of 1 process (7 records)\n"
		  "280 ms of CPU time in 2 s\n"
		  "   25.0%  f7  b/app.py:1\n"
		  "   21.4%  f6  b/app.py:1\n"
		  "   17.9%  f5  b/app.py:1\n"
		  "   14.3%  f4  b/app.py:1\n"
		  "   10.7%  f3  b/app.py:1\n"
		  "nothing lost\n"
		  "target never paused\n",
		  0 },
		{ "what threads did",
		  true,
		  0,
		  { .output = "x.pyebpf",
		    .processes = 1,
		    .wall_ns = UINT64_C(5000000000),
		    .times = &times },
		  0,
		  "x.pyebpf: 7 samples of 1 process\n"
		  "15 s of 3 threads in 5 s: CPU 5 s (33.3%), sleep 7.5 s (50.0%), "
		  "GIL 2.5 s (16.6%), before tracking began 10 ms (0.1%)\n"
		  "GIL: 412 waits, 2.5 s (16.6%); to see who held it: pyebpf report --gil\n"
		  "not sampled: 30 ms of CPU time, 300 ms of waiting (2.2%)\n"
		  "   25.0%  f7  b/app.py:1\n"
		  "   21.4%  f6  b/app.py:1\n"
		  "   17.9%  f5  b/app.py:1\n"
		  "   14.3%  f4  b/app.py:1\n"
		  "   10.7%  f3  b/app.py:1\n"
		  "nothing lost\n"
		  "target never paused\n"
		  "next: pyebpf report --tree x.pyebpf\n",
		  0 },
		{ "threads that were stopped",
		  true,
		  0,
		  { .output = "x.pyebpf",
		    .processes = 1,
		    .wall_ns = UINT64_C(5000000000),
		    .times = &stopped },
		  0,
		  "x.pyebpf: 7 samples of 1 process\n"
		  "10 s of 2 threads in 5 s: CPU 1 s (10.0%), stopped 7 s (70.0%), "
		  "other 2 s (20.0%)\n"
		  "   25.0%  f7  b/app.py:1\n"
		  "   21.4%  f6  b/app.py:1\n"
		  "   17.9%  f5  b/app.py:1\n"
		  "   14.3%  f4  b/app.py:1\n"
		  "   10.7%  f3  b/app.py:1\n"
		  "nothing lost\n"
		  "target never paused\n"
		  "next: pyebpf report --tree x.pyebpf\n",
		  0 },
		{ "no samples",
		  false,
		  0,
		  { .output = "out.folded", .processes = 1 },
		  1,
		  "out.folded: 0 samples of 1 process\n"
		  "nothing lost\n"
		  "target never paused\n",
		  0 },
	};

	(void)state;
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		_cleanup_(load_release) struct load loaded = { 0 };
		_cleanup_(freep) char *text = NULL;
		const char *path = "x.pyebpf";
		size_t len;
		FILE *out = open_memstream(&text, &len);

		assert_non_null(out);
		write_recording("x.pyebpf", cases[i].has_samples, cases[i].lost);
		assert_int_equal(load_files(&loaded, &path, 1), 0);
		assert_int_equal(profile_set_counter(loaded.profile, "cpu_ns", cases[i].cpu_ns), 0);
		assert_int_equal(profile_set_counter(loaded.profile, "weight", loaded.ticks), 0);
		assert_int_equal(summary_print(out, &loaded, &cases[i].x), cases[i].status);
		assert_int_equal(fclose(out), 0);
		if (strcmp(text, cases[i].want))
			fail_msg("%s: %s", cases[i].name, text);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_inputs),
		cmocka_unit_test(test_cut_recording),
		cmocka_unit_test(test_terminal),
		cmocka_unit_test(test_summary_print),
	};

	return cmocka_run_group_tests(tests, enter_folder, leave_folder);
}
