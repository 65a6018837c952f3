/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "base/err.h"
#include "base/log.h"
#include "base/strbuf.h"
#include "cmd/cmd.h"

enum mode { MODE_CPU, MODE_WALL, MODE_OFF_CPU };

static const char *const modes[] = { "cpu", "wall", "off-cpu", NULL };

struct sample_opts {
	uint32_t freq_hz;
	uint64_t duration_ns;
	uint64_t ring_bytes;
	uint32_t limit;
	uint64_t weight;
	uint64_t least_ppm;
	bool kernel, native, no_children;
	const char *output;
	enum mode mode;
	unsigned int also;
	struct opt_list events;
	struct opt_u32_list pids;
};

/* The table of every test: use() runs while it lives. */
static int with_table(struct sample_opts *o, int (*use)(const struct opt *opts, void *context),
		      void *context)
{
	const struct opt opts[] = {
		OPT_GROUP("What to record"),
		OPT_U32_LIST('p', "pid", &o->pids, "PID[,PID]...", "record these processes",
			     .min = 1),
		OPT_FREQ('F', "freq", &o->freq_hz, "samples per second on each CPU (99)", .min = 1,
			 .max = 100000),
		OPT_ALIAS('r', "rate"),
		OPT_TIME('d', "duration", &o->duration_ns,
			 "stop after TIME, e.g. 30s (until Ctrl-C)", .min = 1000000),
		OPT_ENUM(0, "mode", &o->mode, "MODE", modes, "what makes a sample (cpu)"),
		OPT_ENUM_SET(0, "also", &o->also, "MODE[,MODE]", modes, "and these"),
		OPT_LIST('e', "event", &o->events, "EVENT", "perf event to sample by; may repeat"),
		OPT_FLAG('k', "kernel", &o->kernel, "also record kernel stacks"),
		OPT_FLAG('n', "native", &o->native, "also record native stacks"),
		OPT_FLAG(0, "no-children", &o->no_children, "leave children alone"),
		OPT_GROUP("Output"),
		OPT_STR('o', "output", &o->output, "FILE", "profile to write (profile.pyebpf)"),
		OPT_BYTES(0, "ring", &o->ring_bytes,
			  "size of the ring buffer; a long text that has to be broken into "
			  "lines of at most eighty columns (8MiB)",
			  .min = 4096, .max = UINT64_C(1) << 30),
		OPT_U32('l', NULL, &o->limit, "N", "rows", .max = 10),
		OPT_U64(0, "weight", &o->weight, "N", "weight"),
		OPT_SHARE(0, "least", &o->least_ppm, "share of the total", .max = 500000),
		OPT_END,
	};

	return use(opts, context);
}

struct parse_call {
	int argc;
	char **argv;
	struct operands operands;
};

static int parse(const struct opt *opts, void *context)
{
	struct parse_call *c = context;

	return opt_parse(opts, c->argc, c->argv, &c->operands);
}

enum { MAX_WORDS = 16 };

struct line {
	struct sample_opts o;
	char *argv[MAX_WORDS + 2];
	struct parse_call call;
};

/* Parses "NAME" and words. Free with release(). */
static int parse_words(struct line *l, const char *const *words)
{
	memset(l, 0, sizeof(*l));
	l->argv[l->call.argc++] = (char *)"sample";
	while (*words)
		l->argv[l->call.argc++] = (char *)*words++;
	l->call.argv = l->argv;
	err_clear();
	return with_table(&l->o, parse, &l->call);
}

static void release(struct line *l)
{
	vec_release(&l->o.events);
	vec_release(&l->o.pids);
}

static void test_opt_parse_rejects_with_a_message(void **state)
{
	static const struct {
		const char *name;
		const char *words[4];
		const char *want;
	} cases[] = {
		{ "unknown long", { "--frq", "9" }, "unknown option --frq; did you mean --freq?" },
		{ "swapped letters",
		  { "--ferq=9" },
		  "unknown option --ferq; did you mean --freq?" },
		{ "no abbreviations",
		  { "--dur=1s" },
		  "unknown option --dur; did you mean --duration?" },
		{ "nearest may be an alias",
		  { "--rat" },
		  "unknown option --rat; did you mean --rate?" },
		{ "nearest may be common",
		  { "--hlep" },
		  "unknown option --hlep; did you mean --help?" },
		{ "nothing near", { "--xyzzy" }, "unknown option --xyzzy" },
		{ "unknown short", { "-kx" }, "unknown option -x" },
		{ "three dashes", { "---" }, "unknown option ---" },
		{ "empty long name", { "--=3" }, "unknown option --" },
		{ "value missing, long", { "--freq" }, "--freq needs a value: HZ" },
		{ "value missing, short", { "-kF" }, "--freq needs a value: HZ" },
		{ "flag with value", { "--kernel=1" }, "--kernel takes no value" },
		{ "help with value", { "--help=1" }, "--help takes no value" },
		{ "below", { "-F", "0" }, "--freq: 0 is too small: the minimum is 1" },
		{ "above", { "-F1000000" }, "--freq: 1000000 is too large: the maximum is 100k" },
		{ "above, by alias",
		  { "--rate=1M" },
		  "--rate: 1M is too large: the maximum is 100k" },
		{ "no time", { "-d", "0" }, "--duration: 0 is too small: the minimum is 1ms" },
		{ "not a time",
		  { "-d", "soon" },
		  "--duration: 'soon' is not a time such as 30s, 2m, 500ms or 1h" },
		{ "size below", { "--ring=1k" }, "--ring: 1k is too small: the minimum is 4 KiB" },
		{ "share without sign",
		  { "--least", "5" },
		  "--least: '5' is not a share such as 10% or 0.5%" },
		{ "share above",
		  { "--least=51%" },
		  "--least: 51% is too large: the maximum is 50%" },
		{ "key only", { "-l", "11" }, "-l: 11 is too large: the maximum is 10" },
		{ "beyond 32 bits",
		  { "-p", "4294967296" },
		  "--pid: 4294967296 is too large: the maximum is 4294967295" },
		{ "hole in list", { "-p", "1,,2" }, "--pid: '' is not a whole number" },
		{ "comma at the end", { "-p", "1," }, "--pid: '' is not a whole number" },
		{ "endless number",
		  { "-p", "111111111111111111111111111111111111" },
		  "--pid: '111111111111111111111111111111111111' is too large" },
		{ "no such word",
		  { "--mode", "walk" },
		  "--mode: 'walk' is not one of: cpu, wall, off-cpu" },
		{ "words are not abbreviated",
		  { "--mode=w" },
		  "--mode: 'w' is not one of: cpu, wall, off-cpu" },
		{ "no such word among several",
		  { "--also=cpu,of" },
		  "--also: 'of' is not one of: cpu, wall, off-cpu" },
		{ "comma behind words",
		  { "--also=cpu," },
		  "--also: '' is not one of: cpu, wall, off-cpu" },
	};

	(void)state;
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		struct line l;
		int r = parse_words(&l, cases[i].words);

		release(&l);
		if (r >= 0)
			fail_msg("%s: accepted", cases[i].name);
		if (strcmp(err_message(r), cases[i].want))
			fail_msg("%s: got \"%s\", want \"%s\"", cases[i].name, err_message(r),
				 cases[i].want);
	}
}

static void test_opt_parse_takes_every_form(void **state)
{
	static const char *const words[] = { "-kn",    "-F",      "1k",    "--duration=2m",
					     "--mode", "off-cpu", "-eone", "--event=two",
					     "-p1,2",  "-p",      "3",     "--also=cpu,wall,cpu",
					     "--also", "wall",    NULL };
	struct line l;

	(void)state;
	assert_int_equal(parse_words(&l, words), 1);
	assert_true(l.o.kernel && l.o.native && !l.o.no_children);
	assert_int_equal(l.o.freq_hz, 1000);
	assert_true(l.o.duration_ns == UINT64_C(120000000000));
	assert_int_equal(l.o.mode, MODE_OFF_CPU);
	assert_int_equal(l.o.also, 1u << MODE_CPU | 1u << MODE_WALL);
	assert_int_equal(l.o.events.len, 2);
	assert_string_equal(l.o.events.items[0], "one");
	assert_string_equal(l.o.events.items[1], "two");
	assert_int_equal(l.o.pids.len, 3);
	assert_int_equal(l.o.pids.items[2], 3);
	assert_int_equal(l.call.operands.len, 0);
	assert_int_equal(l.call.operands.dashed, -1);
	release(&l);
}

static void test_opt_parse_last_use_wins(void **state)
{
	static const char *const words[] = { "-F99", "--rate",    "10khz", "-o",
					     "-k",   "--output=", NULL };
	struct line l;

	(void)state;
	assert_int_equal(parse_words(&l, words), 1);
	assert_int_equal(l.o.freq_hz, 10000);
	assert_string_equal(l.o.output, "");
	assert_false(l.o.kernel); /* "-k" was the value of -o */
	release(&l);
}

static void test_opt_parse_gathers_operands(void **state)
{
	static const struct {
		const char *name;
		const char *words[8];
		const char *want; /* operands joined by spaces */
		int dashed;
	} cases[] = {
		{ "none", { "-k" }, "", -1 },
		{ "between options", { "a", "-F", "9", "b", "-k", "c" }, "a b c", -1 },
		{ "a lone dash is one", { "-", "-k" }, "-", -1 },
		{ "after dashes nothing is an option", { "-k", "--", "-F", "--x" }, "-F --x", 2 },
		{ "before and after", { "a", "--", "b", "-k" }, "a b -k", 2 },
		{ "dashes at the end", { "a", "--" }, "a", 0 },
		{ "dashes twice", { "--", "--", "a" }, "-- a", 2 },
		{ "dashes as a value", { "-o", "--", "a" }, "a", -1 },
	};

	(void)state;
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		_cleanup_(strbuf_releasep) struct strbuf got = STRBUF_INIT;
		struct line l;

		assert_int_equal(parse_words(&l, cases[i].words), 1);
		for (int w = 0; w < l.call.operands.len; w++)
			strbuf_appendf(&got, "%s%s", w ? " " : "", l.call.operands.items[w]);
		assert_null(l.call.operands.items[l.call.operands.len]);
		release(&l);
		if (strcmp(strbuf_str(&got), cases[i].want) ||
		    l.call.operands.dashed != cases[i].dashed)
			fail_msg("%s: got \"%s\", %d after dashes", cases[i].name, strbuf_str(&got),
				 l.call.operands.dashed);
	}
}

static void test_opt_parse_help_comes_before_what_follows(void **state)
{
	static const char *const rows[][4] = { { "-h", "--nonsense" },
					       { "-kh" },
					       { "x", "--help" } };

	(void)state;
	for (size_t i = 0; i < 3; i++) {
		struct line l;

		assert_int_equal(parse_words(&l, rows[i]), 0);
		release(&l);
	}
}

static void test_opt_parse_sets_the_log_level(void **state)
{
	static const struct {
		const char *word;
		enum log_level want;
	} cases[] = { { "-v", LOG_LEVEL_NOTE },
		      { "-vv", LOG_LEVEL_DEBUG },
		      { "-vvvv", LOG_LEVEL_DEBUG },
		      { "--quiet", LOG_LEVEL_ERROR } };

	(void)state;
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		const char *const words[] = { cases[i].word, NULL };
		struct line l;

		log_set_level(LOG_LEVEL_WARNING);
		assert_int_equal(parse_words(&l, words), 1);
		assert_int_equal(log_level(), cases[i].want);
		release(&l);
	}
	log_set_level(LOG_LEVEL_WARNING);
}

static void test_opt_table_mistake_rows(void **state)
{
	static bool flag;
	static const char *text;
	static const struct {
		const char *name;
		struct opt opts[3];
		bool wrong;
	} cases[] = {
		{ "fine", { OPT_FLAG('a', "all", &flag, "all of them"), OPT_END }, false },
		{ "name twice",
		  { OPT_FLAG('a', "all", &flag, "x"), OPT_FLAG('b', "all", &flag, "x"), OPT_END },
		  true },
		{ "key twice",
		  { OPT_FLAG('a', "all", &flag, "x"), OPT_FLAG('a', "any", &flag, "x"), OPT_END },
		  true },
		{ "takes -h", { OPT_FLAG('h', "host", &flag, "x"), OPT_END }, true },
		{ "takes --quiet", { OPT_FLAG(0, "quiet", &flag, "x"), OPT_END }, true },
		{ "alias first", { OPT_ALIAS('r', "rate"), OPT_END }, true },
		{ "no name", { OPT_FLAG(0, NULL, &flag, "x"), OPT_END }, true },
		{ "no arg", { OPT_STR('o', "out", &text, NULL, "x"), OPT_END }, true },
		{ "full stop", { OPT_FLAG('a', "all", &flag, "All."), OPT_END }, true },
		{ "small title", { OPT_GROUP("output"), OPT_END }, true },
	};

	(void)state;
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++)
		if (!!opt_table_mistake(cases[i].opts) != cases[i].wrong)
			fail_msg("%s", cases[i].name);
}

static void test_opt_nearest_rows(void **state)
{
	static const char *const names[] = { "record", "report", "export", "diff", "top", NULL };
	static const struct {
		const char *typed, *want;
	} cases[] = {
		{ "recrod", "record" },  { "reprot", "report" }, { "rec", "record" },
		{ "exports", "export" }, { "dif", "diff" },      { "tpo", "top" },
		{ "x", NULL },           { "", NULL },           { "frobnicate", NULL },
	};

	(void)state;
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		const char *got = opt_nearest(cases[i].typed, names);

		if (!got != !cases[i].want || (got && strcmp(got, cases[i].want)))
			fail_msg("%s: got %s", cases[i].typed, got ? got : "nothing");
	}
}

static const struct command sample_command = {
	.name = "sample",
	.summary = "sample Python processes",
	.usage = "-p PID [OPTION]...\n[OPTION]... -- COMMAND [ARG]...",
	.about = "One paragraph that is long enough to be wrapped, because it goes on after the "
		 "eightieth column.\n\nAnother.",
	.examples = "pyebpf sample -p 412\tone process",
};

static int help(const struct opt *opts, void *context)
{
	return cmd_help(&sample_command, opts, context);
}

static const char want_help[] =
	"Usage: pyebpf sample -p PID [OPTION]...\n"
	"       pyebpf sample [OPTION]... -- COMMAND [ARG]...\n"
	"\n"
	"Sample Python processes.\n"
	"\n"
	"One paragraph that is long enough to be wrapped, because it goes on after the\n"
	"eightieth column.\n"
	"\n"
	"Another.\n"
	"\n"
	"What to record:\n"
	"  -p, --pid PID[,PID]...  record these processes\n"
	"  -F, --freq HZ           samples per second on each CPU (99); also -r, --rate\n"
	"  -d, --duration TIME     stop after TIME, e.g. 30s (until Ctrl-C)\n"
	"      --mode MODE         what makes a sample (cpu): cpu, wall, off-cpu\n"
	"      --also MODE[,MODE]  and these: cpu, wall, off-cpu\n"
	"  -e, --event EVENT       perf event to sample by; may repeat\n"
	"  -k, --kernel            also record kernel stacks\n"
	"  -n, --native            also record native stacks\n"
	"      --no-children       leave children alone\n"
	"\n"
	"Output:\n"
	"  -o, --output FILE       profile to write (profile.pyebpf)\n"
	"      --ring SIZE         size of the ring buffer; a long text that has to be\n"
	"                          broken into lines of at most eighty columns (8MiB)\n"
	"  -l N                    rows\n"
	"      --weight N          weight\n"
	"      --least SHARE       share of the total\n"
	"\n"
	"Common:\n"
	"  -h, --help              show this text\n"
	"  -v, --verbose           print more; -vv for debug output\n"
	"  -q, --quiet             print errors only\n"
	"\n"
	"Examples:\n"
	"  pyebpf sample -p 412\n"
	"      one process\n";

static void test_cmd_help_is_grouped_aligned_and_wrapped(void **state)
{
	_cleanup_(strbuf_releasep) struct strbuf got = STRBUF_INIT;
	struct sample_opts o = { 0 };

	(void)state;
	assert_int_equal(with_table(&o, help, &got), 0);
	assert_string_equal(strbuf_str(&got), want_help);
}

static void test_opt_parse_takes_a_value_that_may_be_left_out(void **state)
{
	static const char *const words[] = { "none", "short", "full", NULL };
	static const struct {
		const char *name;
		const char *argv[4];
		unsigned int want;
		int want_operands; /* < 0: refused */
	} cases[] = {
		{ "not given", { "sample", "full", NULL }, 0, 1 },
		{ "bare", { "sample", "--locals", NULL }, 1, 0 },
		{ "an operand behind", { "sample", "--locals", "full", NULL }, 1, 1 },
		{ "a value", { "sample", "--locals=full", NULL }, 2, 0 },
		{ "no such value", { "sample", "--locals=long", NULL }, 0, -EINVAL },
		{ "an empty one", { "sample", "--locals=", NULL }, 0, -EINVAL },
	};

	(void)state;
	for (size_t i = 0; i < sizeof(cases) / sizeof(*cases); i++) {
		unsigned int how = 0;
		const struct opt opts[] = {
			OPT_ENUM(0, "locals", &how, "HOW", words, "variables", .bare = 1),
			OPT_END,
		};
		struct operands operands = { 0 };
		char *argv[4];
		int argc = 0, r;

		memcpy(argv, cases[i].argv, sizeof(argv));
		while (argv[argc])
			argc++;
		r = opt_parse(opts, argc, argv, &operands);
		if (how != cases[i].want || (r < 0) != (cases[i].want_operands < 0) ||
		    (r >= 0 && operands.len != cases[i].want_operands))
			fail_msg("%s: %d, %u", cases[i].name, r, how);
	}
	err_clear();
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_opt_parse_takes_a_value_that_may_be_left_out),
		cmocka_unit_test(test_opt_parse_rejects_with_a_message),
		cmocka_unit_test(test_opt_parse_takes_every_form),
		cmocka_unit_test(test_opt_parse_last_use_wins),
		cmocka_unit_test(test_opt_parse_gathers_operands),
		cmocka_unit_test(test_opt_parse_help_comes_before_what_follows),
		cmocka_unit_test(test_opt_parse_sets_the_log_level),
		cmocka_unit_test(test_opt_table_mistake_rows),
		cmocka_unit_test(test_opt_nearest_rows),
		cmocka_unit_test(test_cmd_help_is_grouped_aligned_and_wrapped),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
