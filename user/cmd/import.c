/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#include "cmd/cmd.h"
#include "cmd/convert.h"
#include "cmd/input.h"

static int run(struct call *call)
{
	struct conversion_opts o = { 0 };
	const struct opt opts[] = {
		OPT_GROUP("Output"),
		OPT_STR('o', "output", &o.output, "FILE", "write this recording (required)"),
		OPT_GROUP("What the files do not contain"),
		INPUT_OPTIONS(&o.choice, &o.max_memory_bytes),
		OPT_FREQ('F', "freq", &o.freq_hz, "samples per second they were taken at", .min = 1,
			 .max = 1000000000),
		OPT_ALIAS('r', "rate"),
		OPT_U64(0, "work", &o.work, "N", "units of work of each file, for diff", .min = 1),
		OPT_END,
	};
	int status;

	if (!cmd_options(call, opts, &status))
		return status;
	if (!o.output)
		return cmd_usage(call, "no output file: use -o OUT.pyebpf");
	if (!call->operands.len)
		return cmd_usage(call, "no FILE to import");
	return convert(call, &o);
}

const struct command command_import = {
	.name = "import",
	.summary = "convert other profilers' files to recordings",
	.usage = "[OPTION]... FILE... -o OUT.pyebpf",
	.about = "Writes one or more files of other profilers as a recording. Formats are told by "
		 "the content, also where gzip or zstd packed it: Austin's text and MOJO, perf "
		 "script, pprof (Go, Pyroscope, Parca), speedscope (py-spy and others), the binary "
		 "format of CPython 3.15 (python -m profiling.sampling run --binary), collapsed "
		 "text (py-spy record -f raw, FlameGraph's stackcollapse-*.pl, async-profiler, "
		 "pyebpf export), recordings. Each stays a recording of its own in the file: diff "
		 "takes them for as many runs. docs/formats.md says what each has.\n\n"
		 "What a file does not say stays unknown. Text says neither when its samples were "
		 "taken nor how long one is: -F tells that. report, export and diff read all these "
		 "files as they are, too.",
	.examples = "pyebpf import a.pyebpf b.pyebpf c.pyebpf -o base.pyebpf\tmerge three runs "
		    "into one file\npyebpf import baseline.bin -o baseline.pyebpf\tconvert a file "
		    "of profiling.sampling\npyebpf import heap.pb.gz -o heap.pyebpf\tconvert a Go "
		    "program's profile, all kinds\npyebpf import -F 100 raw.txt -o "
		    "before.pyebpf\tconvert py-spy's raw format, sampled at 100 Hz",
	.run = run,
};
