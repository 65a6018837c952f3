/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#include "export/export.h"

#include <limits.h>
#include <stdio.h>
#include <string.h>

#include "base/log.h"
#include "base/strbuf.h"
#include "base/vec.h"
#include "cmd/browser.h"
#include "cmd/cmd.h"
#include "cmd/input.h"
#include "cmd/load.h"
#include "cmd/select_opts.h"

#define FORMAT_BY_SUFFIX UINT_MAX

struct export_call {
	struct import_choice choice;
	uint64_t max_memory_bytes;
	unsigned int format; /* index of exporters[] */
	const char *output;
	struct select_opts select;
	struct strip strip;
	struct export_opts opts;
};

static const struct exporter *choose_format(const struct export_call *o)
{
	return o->format == FORMAT_BY_SUFFIX ? exporter_for_path(o->output) : exporters[o->format];
}

/* No -f, and no suffix that tells. */
static int unknown_format(const struct call *call, const char *output)
{
	_cleanup_(strbuf_releasep) struct strbuf names = STRBUF_INIT;

	for (const struct exporter *const *e = exporters; *e; e++)
		strbuf_appendf(&names, "%s%s", e == exporters ? "" : ", ", (*e)->name);
	if (!strcmp(output, "-"))
		return cmd_usage(call, "no output format: use -f (%s), or -o FILE with a suffix",
				 strbuf_str(&names));
	return cmd_usage(call, "%s: unknown suffix: set the format with -f (%s)", output,
			 strbuf_str(&names));
}

/* Kinds that a format has no place for. */
static int say_what_is_left_out(const struct load *l)
{
	_cleanup_(strbuf_releasep) struct strbuf text = STRBUF_INIT;
	int r;

	if (l->road.select.query.kind || !select_has_others(&l->road.select))
		return 0;
	r = select_put_others(&l->road.select, l->profile, &text);
	if (!r)
		log_warning("this format holds one kind of sample: wrote %s; %s",
			    l->road.select.kinds.name, strbuf_str(&text));
	return r;
}

static int export_to(struct call *call, struct export_call *o, const struct exporter *e)
{
	_cleanup_(load_release) struct load l = {
		.road.choice = o->choice,
		.road.folds_imports =
			select_opts_folds_imports(&o->select, exporter_folds_imports(e)),
		.road.strip = &o->strip,
		.to = { .exporter = e, .path = o->output, .x.o = &o->opts },
	};
	int r;

	o->opts.no_sources = strip_is_active(&o->strip);
	r = select_opts_read(call, &o->select, &l.road.select.query);
	if (r)
		return r;
	r = load_operands(&l, call, o->max_memory_bytes);
	if (r < 0)
		return cmd_fail(call, r);
	if (load_lacks_selected(&l))
		return load_fail_selection(call, &l);
	if (select_is_active(&l.road.select.query))
		log_note("%s", l.notes.items[l.notes.len - 1]);
	if (!l.taken) {
		log_line("pyebpf export: ", "the recording has no samples");
		cmd_try("pyebpf report %s", call->operands.len ? call->operands.items[0] : "");
		return EXIT_NOTHING;
	}
	r = say_what_is_left_out(&l);
	if (!r)
		r = load_export(&l);
	if (!r)
		browser_tell_how(o->output);
	return r < 0 ? cmd_fail(call, r) : EXIT_OK;
}

static int run_with(struct call *call, const char *const *formats)
{
	struct export_call o = { .format = FORMAT_BY_SUFFIX, .output = "-" };
	const struct opt opts[] = {
		OPT_GROUP("Output"),
		OPT_ENUM('f', "format", &o.format, "FORMAT", formats,
			 "output format (default: by the suffix of the output)"),
		OPT_STR('o', "output", &o.output, "FILE", "write FILE (default: standard output)"),
		OPT_SOURCE_ROOT(&o.opts.source_root),
		STRIP_OPTIONS(&o.strip),
		OPT_GROUP("Collapsed text, pprof, OTLP"),
		OPT_FLAG(
			0, "threads", &o.opts.threads,
			"add the thread: as outermost frame (collapsed) or as label (pprof, OTLP)"),
		OPT_FLAG(0, "processes", &o.opts.processes,
			 "add the process: as outermost frame process NAME (PID) or as label; "
			 "labels include container and pod"),
		OPT_FLAG(0, "labels", &o.opts.labels,
			 "pprof, OTLP: write labels under their own names: wait, route"),
		OPT_GROUP("Input"),
		INPUT_OPTIONS(&o.choice, &o.max_memory_bytes),
		SELECT_OPTIONS(&o.select),
		OPT_GROUP("Collapsed text, JSON, JSON lines"),
		OPT_FLAG(0, "no-lines", &o.opts.no_lines, "write functions without their lines"),
		OPT_GROUP("JSON"),
		OPT_U32('n', "limit", &o.opts.limit, "N",
			"write at most N paths, functions and threads, the largest; 0 for all "
			"(default: 0)"),
		OPT_PERCENT(0, "min-percent", &o.opts.min_percent,
			    "omit paths, functions and threads below PERCENT of the total "
			    "(default: 0)"),
		OPT_GROUP("Collapsed text"),
		OPT_FLAG(0, "header", &o.opts.header,
			 "write a first line with the sampling interval, so that pyebpf can read "
			 "it back"),
		OPT_END,
	};
	const struct exporter *e;
	int status;

	if (!cmd_options(call, opts, &status))
		return status;
	e = choose_format(&o);
	if (!e)
		status = unknown_format(call, o.output);
	else if (exporter_makes_folders(e) && !strcmp(o.output, "-"))
		status = cmd_usage(call, "%s writes a directory: use -o DIR", e->name);
	else
		status = export_to(call, &o, e);
	strip_release(&o.strip);
	select_opts_release(&o.select);
	return status;
}

static int run(struct call *call)
{
	VEC(const char *) formats = VEC_INIT;
	int r = 0, status;

	for (const struct exporter *const *e = exporters; *e && !r; e++)
		r = vec_push(&formats, (*e)->name);
	if (!r)
		r = vec_push(&formats, NULL);
	status = r < 0 ? cmd_fail(call, r) : run_with(call, formats.items);
	vec_release(&formats);
	return status;
}

const struct command command_export = {
	.name = "export",
	.summary = "convert recordings to other formats",
	.usage = "-f FORMAT [OPTION]... [FILE]...",
	.about =
		"Writes one or more recordings, merged, in a format that other tools read. FILE is "
		"profile.pyebpf if left out. Without -f the suffix of the output tells the format: "
		".collapsed, .folded and .txt are collapsed stacks, .pb.gz and .pprof are pprof, "
		".json is JSON for programs, .jsonl the same a sample a line (docs/json.md), "
		".otlp is OTLP: the body of a request to an OpenTelemetry Collector, to be POSTed "
		"to /v1development/profiles as application/x-protobuf; docs/formats.md has the "
		"others. A heatmap is a folder.\n\n"
		"Collapsed stacks are lines of text: root first, frames joined by semicolons, a "
		"space, "
		"the number of samples. A frame is `qualname (file:line)`. Semicolons, "
		"backslashes, "
		"control characters and what would make a frame ambiguous are written as \\xHH, "
		"one "
		"for each byte of UTF-8.\n\n"
		"Of a recording with several kinds of samples pprof, OTLP and JSON have all, each "
		"under "
		"the name that engines know (docs/fleet.md); collapsed text has one, by default "
		"what "
		"`report` shows. --kind is one of them alone.\n\n"
		"Other tools warn of a header, so there is none by default; without it pyebpf "
		"does not know how long a sample is, and `pyebpf diff` takes it for one "
		"millisecond.",
	.examples = "pyebpf export -f collapsed | flamegraph.pl > flame.svg\ta classic flame "
		    "graph\npyebpf export --no-lines -o app.collapsed app.pyebpf\tone line per "
		    "call path, without source lines\npyebpf export -f json --limit 100 "
		    "app.pyebpf\tthe largest paths and functions, for a program\npyebpf export -o "
		    "app.heatmap app.pyebpf\tsource pages; open app.heatmap/index.html\npyebpf "
		    "export -o app.pb.gz app.pyebpf\tfor go tool pprof -http=: app.pb.gz",
	.run = run,
};
