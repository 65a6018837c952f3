/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#include "cmd/cmd.h"
#include "cmd/convert.h"
#include "cmd/input.h"
#include "cmd/select_opts.h"

static int run_with(struct call *call, struct conversion_opts *o, const struct select_opts *select)
{
	int status;

	if (!o->output)
		return cmd_usage(call, "where to? give -o OUT.pyebpf");
	if (!call->operands.len)
		return cmd_usage(call, "no FILE to read");
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
		OPT_STR('o', "output", &o.output, "FILE", "recording to write; needed"),
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
	.summary = "put recordings together, cut parts out",
	.usage = "[OPTION]... FILE... -o OUT.pyebpf",
	.about =
		"Writes one or more recordings, as those of record --rotate, as one file. Each "
		"stays a recording of its own in it, with its counters, losses and times: report "
		"merges them, diff takes them for as many runs. Files of other formats are read as "
		"import reads them. A file that is damaged is refused; of one that ends early, as "
		"its recorder was killed, all that is there is taken.\n\n"
		"With a selection it is that part alone, and names, processes and threads of the "
		"rest are not in it. What was lost is still that of the whole recording. A part by "
		"--time-range lasts as long as the range.\n\n"
		"--strip-paths and --strip-source make a file that may leave the house "
		"(docs/sharing.md).",
	.examples =
		"pyebpf cat app.*.pyebpf -o app.pyebpf\tthe files of record --rotate as one\n"
		"pyebpf cat --time-range 10s..20s app.pyebpf -o slow.pyebpf\tten seconds of it\n"
		"pyebpf cat --strip-paths app.pyebpf -o ticket.pyebpf\twithout folders, command "
		"lines and host",
	.run = run,
};
