/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/vec.h"
#include "cmd/browser.h"
#include "cmd/cmd.h"
#include "cmd/diff_run.h"
#include "cmd/input.h"
#include "cmd/select_opts.h"

#define FORMAT_BY_SUFFIX UINT_MAX
#define PPM 1e6

struct diff_opts {
	struct select_opts select;
	struct diff_call c;
	struct opt_list baselines, renames, outputs;
	const char *work;
	uint64_t threshold_ppm, floor_ppm, run_noise_ppm;
	uint64_t max_memory_bytes;
	unsigned int format;    /* index of diff_exporters[] */
	unsigned int normalize; /* index of diff_normalize_names[] */
};

/* "N,M" units of work of base and current, or "N" of both. */
static int read_work(const struct call *call, struct diff_opts *o)
{
	const char *text = o->work;
	char *end;

	if (!text)
		return EXIT_OK;
	o->c.work[DIFF_BASE] = o->c.work[DIFF_CURRENT] = strtod(text, &end);
	if (end != text && *end == ',') {
		text = end + 1;
		o->c.work[DIFF_CURRENT] = strtod(text, &end);
	}
	if (end == text || *end || !(o->c.work[DIFF_BASE] > 0) || !(o->c.work[DIFF_CURRENT] > 0) ||
	    !isfinite(o->c.work[DIFF_BASE]) || !isfinite(o->c.work[DIFF_CURRENT]))
		return cmd_usage(call,
				 "--work: '%s' is not one or two numbers, e.g. 500 or 500,480",
				 o->work);
	return EXIT_OK;
}

/* BASE CURRENT..., and further runs of base by --baseline. */
static int compare_operands(struct call *call, struct diff_opts *o)
{
	VEC(const char *) base = VEC_INIT;
	struct diff_call *c = &o->c;
	int r = input_begin(call, o->max_memory_bytes), status;

	if (!r)
		r = input_take_pipes(o->baselines.items, o->baselines.len, o->max_memory_bytes);
	if (!r)
		r = vec_push(&base, call->operands.items[0]);
	if (!r)
		r = vec_append(&base, o->baselines.items, o->baselines.len);
	c->base = base.items;
	c->base_count = base.len;
	c->is_one = call->operands.len == 1;
	c->current = c->is_one ? c->base : (const char *const *)call->operands.items + 1;
	c->current_count = c->is_one ? c->base_count : (size_t)call->operands.len - 1;
	status = r < 0 ? cmd_fail(call, r) : diff_run(call, c);
	vec_release(&base);
	return status;
}

static int check_and_compare(struct call *call, struct diff_opts *o)
{
	int status;

	if (call->operands.len < 2 && !(call->operands.len && diff_call_has_parts(&o->c)))
		return cmd_usage(call, "expected two recordings, BASE and CURRENT, or one "
				       "recording with --current-label");
	o->c.normalize = (enum diff_normalize)o->normalize;
	o->c.format = o->format == FORMAT_BY_SUFFIX ? NULL : diff_exporters[o->format];
	o->c.renames = &o->renames;
	o->c.gate = (struct gate_options){
		.threshold = (double)o->threshold_ppm / PPM,
		.floor = (double)o->floor_ppm / PPM,
		.run_noise = (double)o->run_noise_ppm / PPM,
	};
	o->c.outputs = &o->outputs;
	o->c.out = stdout;
	status = select_opts_read(call, &o->select, &o->c.select);
	if (status)
		return status;
	o->c.folds_imports = select_opts_folds_imports(&o->select, o->c.compat == DIFF_NO_COMPAT);
	if (o->c.group_by)
		o->c.select.patterns[SELECT_GROUP] = (struct select_patterns){ &o->c.group_by, 1 };
	status = read_work(call, o);
	if (!status)
		status = diff_check_usage(call, &o->c);
	return status ? status : compare_operands(call, o);
}

static int run_with(struct call *call, const char *const *formats)
{
	static const char *const keys[] = { "self", "total", NULL };
	static const char *const normalizations[] = { "auto",  "absolute", "second",
						      "share", "work",     NULL };
	static const char *const versions[] = { "3.15.0a8", "3.15", NULL };
	static const struct gate_options gate = GATE_OPTIONS_DEFAULT;
	struct diff_opts o = {
		.c = DIFF_CALL_INIT,
		.format = FORMAT_BY_SUFFIX,
		.threshold_ppm = (uint64_t)llround(gate.threshold * PPM),
		.floor_ppm = (uint64_t)llround(gate.floor * PPM),
		.run_noise_ppm = (uint64_t)llround(gate.run_noise * PPM),
	};
	const struct opt opts[] = {
		OPT_GROUP("What to compare"),
		OPT_LIST(0, "baseline", &o.baselines, "FILE",
			 "add another run of BASE; may repeat"),
		OPT_ENUM(0, "normalize", &o.normalize, "BASIS", normalizations,
			 "compare per run (absolute), per second, by share, or per unit of work "
			 "(default: auto)"),
		OPT_STR(0, "work", &o.work, "N,M",
			"units of work done in one run of BASE and of CURRENT"),
		OPT_LIST(0, "rename", &o.renames, "OLD=NEW",
			 "treat OLD in BASE as NEW in CURRENT (file, function or FILE:FUNCTION); "
			 "may repeat"),
		OPT_STR(0, "group-by", &o.c.group_by, "GLOB",
			"make one comparison for each function with a matching name, e.g. "
			"'test_*'"),
		OPT_LIST(0, "current-label", &o.c.labels[DIFF_CURRENT], "NAME=VALUE",
			 "compare samples with this label with all others; works with one "
			 "recording; may repeat"),
		OPT_LIST(0, "base-label", &o.c.labels[DIFF_BASE], "NAME=VALUE",
			 "compare them with samples with this label instead; may repeat"),
		OPT_ENUM(0, "compat", &o.c.compat, "VERSION", versions,
			 "apply the rules of CPython's own differential flame graph"),
		INPUT_OPTIONS(&o.c.choice, &o.max_memory_bytes),
		OPT_FLAG(0, "force", &o.c.is_forced,
			 "compare even if modes, rates or versions differ"),
		SELECT_OPTIONS(&o.select),
		OPT_GROUP("Output"),
		OPT_LIST('o', "output", &o.outputs, "FILE",
			 "write FILE; the suffix sets the format; may repeat"),
		OPT_ENUM('f', "format", &o.format, "FORMAT", formats,
			 "output format, if the suffix does not set it"),
		OPT_SOURCE_ROOT(&o.c.source_root),
		OPT_FLAG(0, "open", &o.c.should_open, BROWSER_OPEN_HELP),
		OPT_ENUM(0, "sort", &o.c.key, "KEY", keys,
			 "compare self or total time of functions (default: self)"),
		OPT_U32('n', "limit", &o.c.limit, "N",
			"print at most N rows per table; 0 for all (default: 10; JSON: all)"),
		OPT_PERCENT(
			0, "min-percent", &o.c.min_percent,
			"JSON: omit rows below PERCENT of the total on both sides (default: 0)"),
		OPT_GROUP("Gate"),
		OPT_FLAG(0, "gate", &o.c.is_gated,
			 "exit 5 if a function certainly became slower, 6 if inconclusive"),
		OPT_SHARE(0, "threshold", &o.threshold_ppm,
			  "fail on slowdowns above this (default: 10%)", .min = 1),
		OPT_SHARE(0, "floor", &o.floor_ppm,
			  "ignore functions below this share of the total (default: 0.5%)"),
		OPT_SHARE(0, "run-noise", &o.run_noise_ppm,
			  "run-to-run noise to assume if there is one run per side (default: 5%)"),
		OPT_FLAG(0, "strict-environment", &o.c.is_strict,
			 "exit 6 if the sides ran on different CPUs, kernels or builds of Python"),
		OPT_END,
	};
	int status;

	if (!cmd_options(call, opts, &status))
		return status;
	status = check_and_compare(call, &o);
	vec_release(&o.baselines);
	vec_release(&o.renames);
	vec_release(&o.c.labels[DIFF_BASE]);
	vec_release(&o.c.labels[DIFF_CURRENT]);
	select_opts_release(&o.select);
	vec_release(&o.outputs);
	return status;
}

static int run(struct call *call)
{
	VEC(const char *) formats = VEC_INIT;
	int r = 0, status;

	for (const struct diff_exporter *const *e = diff_exporters; *e && !r; e++)
		r = vec_push(&formats, (*e)->name);
	if (!r)
		r = vec_push(&formats, NULL);
	status = r < 0 ? cmd_fail(call, r) : run_with(call, formats.items);
	vec_release(&formats);
	return status;
}

const struct command command_diff = {
	.name = "diff",
	.summary = "show which functions became slower or faster",
	.usage = "[OPTION]... BASE CURRENT...\n[OPTION]... --current-label NAME=VALUE FILE",
	.about = "Compares recordings and lists the functions that became slower, faster, new or "
		 "removed, each with a 95 % interval and a certainty. Several recordings of one "
		 "side are its runs, and noise is measured between them. With one run per side, "
		 "noise is estimated from parts of its time.\n\nComplete runs of a command are "
		 "compared per run, parts of running programs per second of recording, and files "
		 "with units of work per unit. Changes of shares and of seconds are relative to "
		 "the typical function.\n\nFiles are recordings, CPython 3.15's binary profiles, "
		 "or collapsed text. Each is recognized by its content.\n\nWith --gate the exit "
		 "status is 0, 5 (regression) or 6 (inconclusive).",
	.examples = "pyebpf diff before.pyebpf after.pyebpf\twhat changed\n"
		    "pyebpf diff before.pyebpf after.pyebpf -o diff.md -o diff.json\tfor a pull "
		    "request, and for programs\n"
		    "pyebpf diff --gate a1.pyebpf b1.pyebpf b2.pyebpf --baseline a2.pyebpf\ttwo "
		    "runs a side; fails if a function is over 10 % slower\n"
		    "pyebpf diff --group-by 'test_*' a.pyebpf b.pyebpf\ta row for each test\n"
		    "pyebpf diff --current-label route=/slow app.pyebpf\twhat these requests do "
		    "that the others do not",
	.run = run,
};
