/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/file.h"
#include "cmd/cmd.h"
#include "profile/profile.h"
#include "store/writer.h"

/*
 * What `diff` makes of files that do not fit together, of odd ones, and of hostile names. Real
 * recordings are compared in tests/integration/test_diff.py.
 */

static const struct command *const commands[] = { &command_diff, &command_import, NULL };
static char folder[] = "/tmp/test_diff_run.XXXXXX";

struct result {
	int status;
	char out[65536], err[4096];
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
	char words[512], *argv[32] = { words }, *save;
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

/* --- files ------------------------------------------------------------------------------------ */

struct file {
	const char *path, *mode, *event, *python;
	uint64_t interval_ns, lost, samples;
	const char *cpu_model, *hash_seed;
};

static uint32_t push(struct profile *p, uint32_t stack, const char *name)
{
	struct frame f = { .line = 5, .first_line = 1 };
	uint32_t id;

	assert_int_equal(strtab_intern(p->strings, name, strlen(name), &f.name), 0);
	assert_int_equal(strtab_intern(p->strings, "/a/app.py", 9, &f.file), 0);
	assert_int_equal(frametab_intern(p->frames, &f, &id), 0);
	assert_int_equal(stacktab_intern(p->stacks, stack, id, &stack), 0);
	return stack;
}

static void write_recording(const struct file *r)
{
	_cleanup_(profile_freep) struct profile *p = NULL;
	_cleanup_(writer_freep) struct writer *w = NULL;
	struct process process = { .pid = 412 };
	struct thread thread = { .tid = 412 };
	struct recording *made;
	uint32_t index;

	assert_int_equal(profile_new(&p), 0);
	made = profile_recording(p);
	made->interval_ns = r->interval_ns;
	made->duration_ns = 1000000000;
	made->has_ended = made->is_whole = 1;
	assert_int_equal(recording_set_text(&made->mode, r->mode), 0);
	assert_int_equal(recording_set_text(&made->event, r->event), 0);
	assert_int_equal(recording_set_text(&made->cpu_model, r->cpu_model), 0);
	assert_int_equal(recording_set_text(&made->hash_seed, r->hash_seed), 0);
	assert_int_equal(profile_set_counter(p, "ring_full", r->lost), 0);
	assert_int_equal(
		strtab_intern(p->strings, r->python, strlen(r->python), &process.python_version),
		0);
	assert_int_equal(profile_add_process(p, &process, &index), 0);
	assert_int_equal(profile_add_thread(p, &thread, &index), 0);
	assert_int_equal(writer_open(r->path, p, &w), 0);
	for (uint32_t i = 0; i < r->samples; i++) {
		struct sample s = { .time_ns = i * r->interval_ns, .value = 1 };

		s.stack = push(p, push(p, 0, "main"), i % 2 ? "odd" : "even");
		assert_int_equal(profile_add_sample(p, &s), 0);
	}
	assert_int_equal(writer_finish(w, p), 0);
}

static const struct file recordings[] = {
	{ "base", "cpu", "task-clock", "3.12.4", 1000000, 0, 1000, NULL, NULL },
	{ "mode", "wall", "task-clock", "3.12.4", 1000000, 0, 1000, NULL, NULL },
	{ "event", "cpu", "cpu-clock", "3.12.4", 1000000, 0, 1000, NULL, NULL },
	{ "rate", "cpu", "task-clock", "3.12.4", 2000000, 0, 500, NULL, NULL },
	{ "python", "cpu", "task-clock", "3.13.0", 1000000, 0, 1000, NULL, NULL },
	{ "micro", "cpu", "task-clock", "3.12.9", 1000000, 0, 1000, NULL, NULL },
	{ "lossy", "cpu", "task-clock", "3.12.4", 1000000, 500, 1000, NULL, NULL },
	{ "none", "cpu", "task-clock", "3.12.4", 1000000, 0, 0, NULL, NULL },
	{ "xeon", "cpu", "task-clock", "3.12.4", 1000000, 0, 40000, "Xeon", "0" },
	{ "again", "cpu", "task-clock", "3.12.4", 1000000, 0, 40000, "Xeon", "0" },
	{ "epyc", "cpu", "task-clock", "3.12.4", 1000000, 0, 40000, "EPYC", "random" },
};

#define HEADER "# pyebpf-collapsed interval_us=1000\n"

static const struct {
	const char *path, *text;
} texts[] = {
	{ "zero", "" },
	{ "other", HEADER "run (/b/lib.py:1);work (/b/lib.py:5) 1000\n" },
	{ "header", "# pyebpf-collapsed interval_us=1000 work=10\n" },
	{ "t1", HEADER "main (a.py:1);f (a.py:2) 1000\nmain (a.py:1);g (a.py:9) 1000\n" },
	{ "t2", HEADER "main (a.py:1);f (a.py:2) 1010\nmain (a.py:1);g (a.py:9) 995\n" },
	{ "t3", HEADER "main (a.py:1);f (a.py:2) 990\nmain (a.py:1);g (a.py:9) 1005\n" },
	{ "t4", HEADER "main (a.py:1);f (a.py:2) 1002\nmain (a.py:1);g (a.py:9) 1001\n" },
	{ "raw", "main (a.py:1);f (a.py:2) 100\nmain (a.py:1);even (a.py:9) 100\n" },
	{ "it's raw", "main (a.py:1);f (a.py:2) 100\n" },
	{ "s1", HEADER "main (a.py:1);f (a.py:2) 2000\nmain (a.py:1);g (a.py:9) 1000\n" },
	{ "s2", HEADER "main (a.py:1);f (a.py:2) 2015\nmain (a.py:1);g (a.py:9) 1005\n" },
	{ "s3", HEADER "main (a.py:1);f (a.py:2) 1990\nmain (a.py:1);g (a.py:9) 1004\n" },
	/* g is gone, and what took its place costs three times as much */
	{ "m1", HEADER "main (a.py:1);f (a.py:2) 1000\nmain (a.py:1);h (a.py:9) 3000\n" },
	{ "m2", HEADER "main (a.py:1);f (a.py:2) 1010\nmain (a.py:1);h (a.py:9) 2990\n" },
	{ "m3", HEADER "main (a.py:1);f (a.py:2) 1010\nmain (a.py:1);h (a.py:9) 2990\n" },
	/* much faster; also a new wrapper of a new function, and a new one of next to nothing */
	{ "n1", HEADER "main (a.py:1);f (a.py:2) 200\nmain (a.py:1);w (a.py:5) 20\n"
		       "main (a.py:1);w (a.py:5);v (a.py:7) 100\nmain (a.py:1);r (a.py:8) 12\n" },
	{ "n2", HEADER "main (a.py:1);f (a.py:2) 205\nmain (a.py:1);w (a.py:5) 18\n"
		       "main (a.py:1);w (a.py:5);v (a.py:7) 98\nmain (a.py:1);r (a.py:8) 8\n" },
	{ "n3", HEADER "main (a.py:1);f (a.py:2) 197\nmain (a.py:1);w (a.py:5) 21\n"
		       "main (a.py:1);w (a.py:5);v (a.py:7) 103\nmain (a.py:1);r (a.py:8) 15\n" },
};

static void write_newer(void)
{
	_cleanup_(freep) char *bytes = NULL;
	size_t len;

	assert_int_equal(file_read("base", 1 << 20, &bytes, &len), 0);
	bytes[8] = 9; /* the major version follows the magic */
	assert_int_equal(file_write_whole("newer", bytes, len), 0);
}

static int enter_folder(void **state)
{
	(void)state;
	if (!mkdtemp(folder) || chdir(folder) < 0)
		return -1;
	for (size_t i = 0; i < sizeof(recordings) / sizeof(recordings[0]); i++)
		write_recording(&recordings[i]);
	for (size_t i = 0; i < sizeof(texts) / sizeof(texts[0]); i++)
		if (file_write_whole(texts[i].path, texts[i].text, strlen(texts[i].text)) < 0)
			return -1;
	write_newer();
	return symlink("base", "link");
}

static int leave_folder(void **state)
{
	static const char *const made[] = { "newer", "link", "x.json", "x.md", "x.xml", "evil" };

	(void)state;
	for (size_t i = 0; i < sizeof(recordings) / sizeof(recordings[0]); i++)
		unlink(recordings[i].path);
	for (size_t i = 0; i < sizeof(texts) / sizeof(texts[0]); i++)
		unlink(texts[i].path);
	for (size_t i = 0; i < sizeof(made) / sizeof(made[0]); i++)
		unlink(made[i]);
	return chdir("/") < 0 ? -1 : rmdir(folder);
}

/* --- tests ------------------------------------------------------------------------------------ */

#define REFUSED "pyebpf diff: not comparable: "
#define TRY "try: pyebpf diff --force, to compare them anyway\n"
#define FORCED "note      compared despite (--force): "
#define TEXT_RUNS " t1 s1 s2 s3 --baseline t2 --baseline t3 --gate --work 1"

static void test_inputs(void **state)
{
	static const struct {
		const char *name, *line;
		int status;
		const char *out, *err; /* out: is in it, or NULL: nothing; err: exactly */
	} cases[] = {
		{ "mode", "diff base mode", EXIT_RUNTIME, NULL,
		  REFUSED "base was recorded in mode cpu, mode in mode wall\n" TRY },
		{ "event", "diff base event", EXIT_RUNTIME, NULL,
		  REFUSED "base was recorded by the event task-clock, event by cpu-clock\n" TRY },
		{ "rate", "diff base rate", EXIT_RUNTIME, NULL,
		  REFUSED "different sampling intervals: base 1000 us, rate 2000 us\n" TRY },
		{ "python", "diff base python", EXIT_RUNTIME, NULL,
		  REFUSED "base is of Python 3.12.4, python of Python 3.13.0\n" TRY },
		{ "lost", "diff base lossy", EXIT_RUNTIME, NULL,
		  REFUSED "base lost 0.0% of its samples, current 33.3%\n" TRY },
		{ "two reasons", "diff mode rate", EXIT_RUNTIME, NULL,
		  REFUSED "mode was recorded in mode wall, rate in mode cpu\n" REFUSED
			  "different sampling intervals: mode 1000 us, rate 2000 us\n" TRY },
		{ "one file twice on a side", "diff base micro link --baseline link", EXIT_RUNTIME,
		  NULL, REFUSED "link is given twice as a run of base\n" TRY },
		{ "forced", "diff --force base mode", EXIT_OK,
		  FORCED "base was recorded in mode cpu, mode in mode wall\n", "" },
		{ "another micro version", "diff base micro", EXIT_OK, "unchanged", "" },
		{ "one file", "diff base", EXIT_USAGE, NULL,
		  "pyebpf diff: expected two recordings, BASE and CURRENT, or one recording with "
		  "--current-label\ntry: pyebpf diff --help\n" },
		{ "one file, of which nothing has the label", "diff base --current-label route",
		  EXIT_OK, "note      current has no samples\n", "" },
		{ "parts of one file are not the same twice",
		  "diff base --base-label route=/a --current-label route=/b", EXIT_OK,
		  "(0.0%): --base-label 'route=/a'\n", "" },
		{ "parts by the rules of CPython", "diff base --current-label route --compat 3.15",
		  EXIT_USAGE, NULL, "cannot be combined with --base-label and --current-label" },
		{ "absent", "diff base absent", EXIT_RUNTIME, NULL,
		  "pyebpf diff: absent: No such file or directory\n" },
		{ "zero bytes", "diff zero base", EXIT_RUNTIME, NULL,
		  "pyebpf diff: zero: empty file\n" },
		{ "newer than the reader", "diff newer base", EXIT_RUNTIME, NULL, "newer pyebpf" },
		{ "empty base", "diff none base", EXIT_OK, "\nnew, total  ", "" },
		{ "empty current", "diff base none", EXIT_OK, "\nremoved, total  ", "" },
		{ "both empty", "diff none none", EXIT_OK, "total", "" },
		{ "a file with itself", "diff base link", EXIT_OK,
		  "note      link is on both sides\n", "" },
		{ "unrelated", "diff t1 other", EXIT_OK,
		  "note      almost no call paths match: these are different programs", "" },
		{ "unknown format", "diff base micro -o x.zip", EXIT_USAGE, NULL,
		  "pyebpf diff: x.zip: unknown suffix: set the format with -f (" },
		{ "one format, two outputs", "diff base micro -f json -o a -o b", EXIT_USAGE, NULL,
		  "pyebpf diff: -f applies to one output, but there are 2: omit -f and use a "
		  "suffix for each\ntry: pyebpf diff --help\n" },
		{ "work", "diff base micro --work 1,x", EXIT_USAGE, NULL,
		  "pyebpf diff: --work: '1,x' is not one or two numbers, e.g. 500 or 500,480\ntry: "
		  "pyebpf diff --help\n" },
		{ "threshold", "diff base micro --threshold 0.1", EXIT_USAGE, NULL,
		  "pyebpf diff: --threshold: '0.1' is not a share such as 10% or 0.5%\ntry: "
		  "pyebpf diff --help\n" },
		{ "rename", "diff base micro --rename x", EXIT_RUNTIME, NULL, "--rename: " },
		{ "samples of unknown length", "diff base raw", EXIT_OK,
		  "note      shares are compared: a text does not say how long its samples are "
		  "(interval_us=)\n",
		  "" },
		{ "their share", "diff raw base --normalize share", EXIT_OK, "compared  share",
		  "" },
		{ "no run of theirs", "diff base raw --normalize absolute", EXIT_USAGE, NULL,
		  "pyebpf diff: raw has no sampling interval: compare shares (--normalize share), "
		  "or import it with -F HZ\ntry: pyebpf diff --help\n" },
		{ "no second", "diff raw base --normalize second", EXIT_USAGE, NULL,
		  "compare shares" },
		{ "no unit of work", "diff raw base --work 1", EXIT_USAGE, NULL, "compare shares" },
		{ "by CPython's rules they are of 1 ms", "diff raw raw --compat 3.15", EXIT_OK,
		  "base x 1,", "" },
		{ "another environment", "diff xeon epyc", EXIT_OK,
		  "differs   CPU model: Xeon -> EPYC; hash seed: 0 -> random\nbase ", "" },
		{ "both on both sides", "diff xeon again epyc --baseline epyc", EXIT_OK,
		  "note      epyc is on both sides\n", "" },
		{ "the gate says so", "diff xeon epyc --gate", EXIT_OK,
		  "gate      pass, different environments: ", "" },
		{ "and may insist", "diff xeon epyc --gate --strict-environment", EXIT_INCONCLUSIVE,
		  "the sides ran in different environments", "" },
		{ "the same environment", "diff xeon again --gate --strict-environment", EXIT_OK,
		  "gate      pass: ", "" },
		{ "what is not known does not differ", "diff base xeon --gate --strict-environment",
		  EXIT_REGRESSION, "gate      REGRESSION: ", "" },
		{ "quiet", "diff base micro -q", EXIT_OK, NULL, "" },
		{ "quiet, but asked for", "diff base micro -q -f json", EXIT_OK, "pyebpf-diff/1",
		  "" },
		{ "gate: pass", "diff t1 t3 t4 --baseline t2 --gate --work 1 --threshold 50%",
		  EXIT_OK, "gate      pass", "" },
		{ "gate: regression", "diff" TEXT_RUNS, EXIT_REGRESSION, "gate      REGRESSION",
		  "" },
		{ "gate: more than it took over",
		  "diff t1 m1 m2 m3 --baseline t2 --baseline t3 --gate --work 1", EXIT_REGRESSION,
		  "  1 s of it moved here from the caller\n", "" },
		{ "gate: one text a side", "diff t1 s1 --gate --work 1", EXIT_INCONCLUSIVE,
		  "gate      inconclusive", "" },
		{ "below the threshold", "diff" TEXT_RUNS " --threshold 150%", EXIT_OK,
		  "gate      pass", "" },
	};

	(void)state;
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		static struct result got;
		bool is_part = cases[i].err[0] && !strchr(cases[i].err, '\n');

		run(cases[i].line, &got);
		if (got.status != cases[i].status ||
		    (cases[i].out ? !strstr(got.out, cases[i].out) : got.out[0] != '\0') ||
		    (is_part ? !strstr(got.err, cases[i].err) : strcmp(got.err, cases[i].err)))
			fail_msg("%s: exit %d\n%s--- stderr:\n%s", cases[i].name, got.status,
				 got.out, got.err);
	}
}

/* What is to be typed next can be typed, whatever the files are called. */
static void test_the_hint_is_quoted(void **state)
{
	static struct result got;
	char *argv[] = { (char *)"pyebpf",   (char *)"diff",     (char *)"raw",
			 (char *)"it's raw", (char *)"--rename", (char *)"a b=it's" };
	int fd = memfd_create("out", MFD_CLOEXEC), status;
	pid_t pid;

	(void)state;
	fflush(NULL);
	pid = fork();
	assert_true(pid >= 0 && fd >= 0);
	if (!pid) {
		dup2(fd, STDOUT_FILENO);
		status = cmd_main(commands, 6, argv);
		fflush(NULL);
		_exit(status);
	}
	assert_int_equal(waitpid(pid, &status, 0), pid);
	read_back(fd, got.out, sizeof(got.out));
	if (!strstr(got.out, "next: pyebpf diff raw 'it'\\''s raw' --rename 'a b=it'\\''s'"))
		fail_msg("%s", got.out);
}

/* What a comparison says, without the names of its files. */
static void findings(const struct result *from, char *out, size_t size)
{
	const char *start = strstr(from->out, "\ncompared"), *end = strstr(from->out, "\nnext:");

	if (from->status || !start || !end || (size_t)(end - start) >= size)
		fail_msg("exit %d: %s%s", from->status, from->out, from->err);
	snprintf(out, size, "%.*s", (int)(end - start), start);
}

/* Three files in one are three runs, as if each had been given. */
static void test_imported_runs_stay_apart(void **state)
{
	static char apart[8192], together[8192];
	static struct result got;

	(void)state;
	run("import n1 n2 n3 -o merged", &got);
	assert_int_equal(got.status, EXIT_OK);
	run("import t1 t2 t3 -o other", &got);
	assert_int_equal(got.status, EXIT_OK);
	run("diff t1 n1 n2 n3 --baseline t2 --baseline t3", &got);
	findings(&got, apart, sizeof(apart));
	run("diff other merged", &got);
	findings(&got, together, sizeof(together));
	assert_string_equal(together, apart);
	assert_non_null(strstr(got.out, "merged, merged (2)"));
	run("import merged other base -o further", &got);
	assert_int_equal(got.status, EXIT_OK);
	run("diff t1 further --force", &got);
	assert_non_null(strstr(got.out, "further, further (2) and 5 more"));
	unlink("merged");
	unlink("other");
	unlink("further");
}

/* By what is printed of them, their total: what wraps the other costs more, though not itself. */
static void test_new_ones_are_by_their_total(void **state)
{
	static struct result got;
	const char *wrapper, *wrapped;

	(void)state;
	run("diff t1 n1 n2 n3 --baseline t2 --baseline t3", &got);
	wrapper = strstr(got.out, "\n  w ");
	wrapped = strstr(got.out, "\n  v ");
	if (!strstr(got.out, "\nnew, total ") || !wrapper || !wrapped || wrapper > wrapped)
		fail_msg("%s", got.out);
}

static void test_markdown_opens_with_what_is_sure(void **state)
{
	static const struct {
		const char *name, *line, *want; /* the line after the marker begins so */
	} cases[] = {
		{ "the total, and what did most to it",
		  "diff t1 n1 n2 n3 --baseline t2 --baseline t3 -f markdown",
		  "### total -83%: <code>g</code> is gone, it took 1 s\n" },
		{ "what fails the gate", "diff" TEXT_RUNS " -f markdown",
		  "### Regression: <code>f</code> 1 s -> 2 s, +100%\n" },
		{ "nothing", "diff xeon again -f markdown", "### no change found\n" },
		{ "nothing that is sure", "diff n1 n3 -f markdown", "### no change is sure\n" },
	};
	static const char marker[] = "<!-- pyebpf-diff -->\n";

	(void)state;
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		static struct result got;

		run(cases[i].line, &got);
		if (strncmp(got.out, marker, strlen(marker)) ||
		    strncmp(got.out + strlen(marker), cases[i].want, strlen(cases[i].want)))
			fail_msg("%s: %.300s%s", cases[i].name, got.out, got.err);
	}
}

#define EVIL                                                                                \
	"`a`|b|<script>alert(1)</script> [x](http://y) **z** @me #1 www.x.y \\x0a\\x1b[31m" \
	"\\xe2\\x80\\xae\\xff"

/* Name and file, on one side only, so that they head everything. */
static void write_evil(void)
{
	_cleanup_(strbuf_releasep) struct strbuf text = STRBUF_INIT;

	strbuf_puts(&text, HEADER "main (a.py:1);" EVIL " (d|`<b>.py:1) 1000\nmain (a.py:1);");
	for (int i = 0; i < 10000; i++)
		strbuf_putc(&text, 'n');
	strbuf_puts(&text, " (e.py:1) 900\nmain (a.py:1);f (a.py:2) 1000\n");
	assert_int_equal(file_write_whole("evil", text.bytes, text.len), 0);
}

static bool is_control(unsigned char c)
{
	return (c < 0x20 && c != '\n') || c == 0x7f;
}

/* Every `<` in Markdown is of a tag of ours. */
static void check_tags(const char *text)
{
	static const char *const ours[] = {
		"<!-- pyebpf-diff -->", "<code>",    "</code>",   "<sub>", "</sub>", "<details>",
		"</details>",           "<summary>", "</summary>"
	};

	for (const char *at = text; (at = strchr(at, '<')); at++) {
		bool is_ours = false;

		for (size_t i = 0; i < sizeof(ours) / sizeof(ours[0]); i++)
			is_ours = is_ours || !strncmp(at, ours[i], strlen(ours[i]));
		if (!is_ours)
			fail_msg("foreign tag: %.40s", at);
	}
}

/* Rows of a table have as many bars as its head. */
static void check_bars(const char *text)
{
	size_t head = 0;

	while (*text) {
		size_t len = strcspn(text, "\n"), bars = 0;

		for (size_t i = 0; i < len; i++)
			bars += text[i] == '|';
		if (bars && !head)
			head = bars;
		if (bars && bars != head)
			fail_msg("%zu bars, not %zu: %.*s", bars, head, (int)len, text);
		if (!len)
			head = 0;
		text += len + (text[len] == '\n');
	}
}

static void test_hostile_names_are_inert(void **state)
{
	static const char *const paths[] = { "x.md", "x.xml" };
	static struct result got;

	(void)state;
	write_evil();
	run("diff t1 evil --work 1 -o x.md -o x.xml -o x.json", &got);
	assert_int_equal(got.status, EXIT_OK);
	for (const char *c = got.out; *c; c++)
		assert_false(is_control((unsigned char)*c));
	assert_null(strstr(got.out, "\xe2\x80\xae"));
	for (size_t i = 0; i < 2; i++) {
		_cleanup_(freep) char *text = NULL;
		size_t len;

		assert_int_equal(file_read(paths[i], 1 << 20, &text, &len), 0);
		for (size_t k = 0; k < len; k++)
			assert_false(is_control((unsigned char)text[k]));
		assert_null(strstr(text, "<script"));
		assert_null(strstr(text, "\xe2\x80\xae"));
		assert_non_null(strstr(text, "script"));
		if (!i) {
			check_tags(text);
			check_bars(text);
			assert_null(strstr(text, "](")); /* no link */
			assert_null(strstr(text, "http://"));
			assert_null(strstr(text, "@me"));
			assert_true(len < 8192); /* the long one is cut */
		}
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_inputs),
		cmocka_unit_test(test_the_hint_is_quoted),
		cmocka_unit_test(test_imported_runs_stay_apart),
		cmocka_unit_test(test_new_ones_are_by_their_total),
		cmocka_unit_test(test_markdown_opens_with_what_is_sure),
		cmocka_unit_test(test_hostile_names_are_inert),
	};

	return cmocka_run_group_tests(tests, enter_folder, leave_folder);
}
