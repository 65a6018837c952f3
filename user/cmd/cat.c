/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#include "cmd/cmd.h"
#include "cmd/convert.h"
#include "cmd/input.h"
#include "cmd/select_opts.h"

static int run_with(struct call *call, struct conversion_opts *o, const struct select_opts *select)
{
	int status;

	if (!o->output)
		return cmd_usage(call, "no output file: use -o OUT.pyebpf");
	if (!call->operands.len)
		return cmd_usage(call, "no input file given");
	status = select_opts_read(call, select, &o->query);
	o->folds_imports = select_opts_folds_imports(select, false);
	return status ? status : convert(call, o);
}

static int run(struct call *call)
{
	struct conversion_opts o = { 0 };
	struct select_opts select = { 0 };
	const struct opt opts[] = {
		OPT_GROUP("Output"),
		OPT_STR('o', "output", &o.output, "FILE", "write this recording (required)"),
		STRIP_OPTIONS(&o.strip),
		OPT_GROUP("Input"),
		INPUT_OPTIONS(&o.choice, &o.max_memory_bytes),
		SELECT_OPTIONS(&select),
		OPT_END,
	};
	int status;

	if (!cmd_options(call, opts, &status))
		return status;
	status = run_with(call, &o, &select);
	strip_release(&o.strip);
	select_opts_release(&select);
	return status;
}

const struct command command_cat = {
	.name = "cat",
	.summary = "merge recordings, or extract a part of one",
	.usage = "[OPTION]... FILE... -o OUT.pyebpf",
	.about = "Merges recordings into one file, or copies a part of one. Each stays a recording "
		 "of its own in the file, with its counters, losses and times: report merges them, "
		 "and diff treats each as one run. Reads files of other formats as import does. "
		 "Refuses damaged files. Uses the readable part of truncated ones.\n\nWith a "
		 "selection, the file has that part alone, without the names, processes and "
		 "threads of the rest. Losses are still those of the complete recording. A part by "
		 "--time-range lasts as long as the range.\n\n--strip-paths and --strip-source "
		 "remove private data before you share a file (docs/sharing.md).",
	.examples = "pyebpf cat app.*.pyebpf -o app.pyebpf\tmerge the files of record "
		    "--rotate\npyebpf cat --time-range 10s..20s app.pyebpf -o slow.pyebpf\tcopy "
		    "ten seconds\npyebpf cat --strip-paths app.pyebpf -o ticket.pyebpf\tremove "
		    "directories, command lines and host",
	.run = run,
};
