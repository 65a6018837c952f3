/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/err.h"
#include "base/log.h"
#include "base/units.h"
#include "cmd/cmd.h"
#include "cmd/input.h"
#include "profile/profile.h"
#include "store/writer.h"

struct import_call {
	const char *output;
	uint32_t freq_hz; /* 0: as the files say */
	uint64_t work;    /* 0: as the files say */
};

/* A recording in the making: under a name of its own until it is whole. */
struct conversion {
	const struct import_call *o;
	struct profile *p;
	struct writer *writer; /* NULL before the first batch */
	char *partial;         /* NULL: straight to the output, which is no regular file */
	uint64_t ticks;
};

static void conversion_release(struct conversion *c)
{
	writer_free(c->writer);
	profile_free(c->p);
	if (c->partial)
		unlink(c->partial);
	free(c->partial);
}

/* What the user knows and the files do not say. */
static void complete_metadata(const struct import_call *o, struct metadata *meta)
{
	if (o->freq_hz && !meta->interval_ns) {
		meta->interval_ns = 1000000000 / o->freq_hz;
		meta->rate_hz = o->freq_hz;
	}
	if (o->work)
		meta->work = (double)o->work;
}

static bool is_replaced(const char *path)
{
	struct stat st;

	return strcmp(path, "-") && (lstat(path, &st) < 0 || S_ISREG(st.st_mode));
}

static int begin(struct conversion *c)
{
	const char *path = c->o->output;

	if (c->o->freq_hz && c->p->meta.interval_ns)
		log_warning("-F is left aside: its samples are of %s each",
			    units_ns(c->p->meta.interval_ns).s);
	complete_metadata(c->o, &c->p->meta);
	if (is_replaced(path)) {
		if (asprintf(&c->partial, "%s.%d.partial", path, (int)getpid()) < 0) {
			c->partial = NULL;
			return -ENOMEM;
		}
		path = c->partial;
	}
	return writer_open(path, c->p, &c->writer);
}

/* All of one input. */
static int convert(struct conversion *c, struct input *in)
{
	int n, r = 0;

	do {
		n = input_next(in, c->p);
		if (n >= 0 && !c->writer)
			r = begin(c);
		if (n < 0 || r < 0)
			return n < 0 ? n : r;
		for (size_t i = 0; i < c->p->samples.len; i++)
			c->ticks += c->p->samples.items[i].weight;
		if (writer_flush(c->writer, c->p) < 0)
			return -EIO;
		profile_clear_samples(c->p);
	} while (n > 0);
	return 0;
}

static int convert_file(struct conversion *c, const char *path)
{
	_cleanup_(input_freep) struct input *in = NULL;
	uint64_t offset;
	int r = input_open(path, &in);

	if (r < 0)
		return r;
	if ((r = input_compare_intervals(in, c->p, path, NULL)) < 0)
		return r;
	r = convert(c, in);
	if (!r && input_is_truncated(in, &offset))
		log_warning("%s: ends early at byte %" PRIu64 ": what is before that is taken",
			    path, offset);
	return r;
}

static int finish(struct conversion *c)
{
	const char *to = c->o->output;
	int r;

	complete_metadata(c->o, &c->p->meta);
	r = writer_finish(c->writer, c->p);
	if (r < 0 || !c->partial)
		return r;
	if (rename(c->partial, to) < 0)
		return err_set(-errno, "%s: %s", to, strerror(errno));
	free(take_ptr(c->partial));
	return 0;
}

/* Is it a command from its start to its end? That stands at the end of a recording. 1, 0 or an
 * error.
 */
static int is_whole_run(const char *path)
{
	_cleanup_(profile_freep) struct profile *p = NULL;
	_cleanup_(input_freep) struct input *in = NULL;
	int r = profile_new(&p);

	if (!r)
		r = input_open(path, &in);
	if (r < 0)
		return r;
	while ((r = input_next(in, p)) > 0)
		profile_clear_samples(p);
	return r < 0 ? r : input_metadata(in)->is_whole != 0;
}

/*
 * A recording does not know of how many runs it is: several whole ones in one would be compared as
 * one that did as much. EXIT_OK, or another status with a message.
 */
static int check_runs(struct call *call)
{
	const char *first = NULL;

	for (int i = 0; call->operands.len > 1 && i < call->operands.len; i++) {
		int r = is_whole_run(call->operands.items[i]);

		if (r < 0)
			return cmd_fail(call, r);
		if (r && first)
			return cmd_usage(
				call,
				"%s and %s are whole runs, and one recording of both would "
				"be taken for one run: diff takes each as it is "
				"(--baseline FILE)",
				first, call->operands.items[i]);
		if (r)
			first = call->operands.items[i];
	}
	return EXIT_OK;
}

static int import_files(struct call *call, const struct import_call *o)
{
	_cleanup_(conversion_release) struct conversion c = { .o = o };
	int r = profile_new(&c.p);

	for (int i = 0; i < call->operands.len && !r; i++)
		r = convert_file(&c, call->operands.items[i]);
	if (!r)
		r = finish(&c);
	if (r < 0)
		return cmd_fail(call, r);
	if (strcmp(o->output, "-") && log_level() > LOG_LEVEL_ERROR)
		printf("%s: %s samples, %s\n", o->output, units_count(c.ticks).s,
		       units_bytes(writer_size(c.writer)).s);
	return EXIT_OK;
}

static int run(struct call *call)
{
	struct import_call o = { 0 };
	const struct opt opts[] = {
		OPT_GROUP("Output"),
		OPT_STR('o', "output", &o.output, "FILE", "recording to write; needed"),
		OPT_GROUP("What the files do not say"),
		OPT_FREQ('F', "freq", &o.freq_hz, "samples per second they were taken at", .min = 1,
			 .max = 1000000000),
		OPT_ALIAS('r', "rate"),
		OPT_U64(0, "work", &o.work, "N", "units of work that were done, for diff",
			.min = 1),
		OPT_END,
	};
	int status;

	if (!cmd_options(call, opts, &status))
		return status;
	if (!o.output)
		return cmd_usage(call, "where to? give -o OUT.pyebpf");
	if (!call->operands.len)
		return cmd_usage(call, "no FILE to import");
	status = check_runs(call);
	return status ? status : import_files(call, &o);
}

const struct command command_import = {
	.name = "import",
	.summary = "make recordings of other profilers' files",
	.usage = "[OPTION]... FILE... -o OUT.pyebpf",
	.about =
		"Writes one or more files of other profilers, merged, as a recording. Formats are "
		"told "
		"by the content: the binary format of CPython 3.15 (python -m profiling.sampling "
		"run "
		"--binary), collapsed text (py-spy record -f raw, FlameGraph's stackcollapse-*.pl, "
		"async-profiler, pyebpf export), recordings. Several whole runs of a command are "
		"refused: a recording does not know of how many runs it is.\n\n"
		"What a file does not say stays unknown. Text says neither when its samples were "
		"taken nor how long one is: -F tells that. report, export and diff read all these "
		"files as they are, too.",
	.examples = "pyebpf import baseline.bin -o baseline.pyebpf\twhat profiling.sampling wrote\n"
		    "pyebpf import -F 100 raw.txt -o before.pyebpf\tpy-spy's, taken at 100 Hz",
	.run = run,
};
