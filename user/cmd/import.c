/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/err.h"
#include "base/log.h"
#include "base/units.h"
#include "cmd/cmd.h"
#include "cmd/input.h"
#include "profile/profile.h"
#include "store/writer.h"

struct import_call {
	unsigned int from;
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
	uint32_t recording;    /* index of the one that is being written */
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

/* What the user knows and the file does not say. */
static void complete_recording(const struct import_call *o, struct recording *r)
{
	if (o->freq_hz && !r->interval_ns) {
		r->interval_ns = NS_PER_SECOND / o->freq_hz;
		r->rate_hz = o->freq_hz;
	}
	if (o->work)
		r->work = (double)o->work;
}

static bool is_replaced(const char *path)
{
	struct stat st;

	return strcmp(path, "-") && (lstat(path, &st) < 0 || S_ISREG(st.st_mode));
}

static int open_output(struct conversion *c)
{
	const char *path = c->o->output;

	if (is_replaced(path)) {
		if (asprintf(&c->partial, "%s.%d.partial", path, (int)getpid()) < 0) {
			c->partial = NULL;
			return -ENOMEM;
		}
		path = c->partial;
	}
	return writer_open(path, c->p, &c->writer);
}

/* Of the input's next recording, of which p has what the batch brought and no more. */
static int begin_recording(struct conversion *c, uint32_t index)
{
	struct recording *r = &c->p->recordings.items[index];

	if (c->o->freq_hz && r->interval_ns)
		log_warning("-F is left aside: its samples are of %s each",
			    units_ns(r->interval_ns).s);
	complete_recording(c->o, r);
	c->recording = index;
	return c->writer ? writer_recording(c->writer, c->p, index) : open_output(c);
}

static int write_batch(struct conversion *c)
{
	for (size_t i = 0; i < c->p->samples.len; i++)
		c->ticks += c->p->samples.items[i].kind == KIND_TICKS ? c->p->samples.items[i].value
								      : 1;
	/* a batch may have brought the file's last word on it, over what the user said */
	complete_recording(c->o, &c->p->recordings.items[c->recording]);
	if (writer_flush(c->writer, c->p) < 0)
		return -EIO;
	profile_clear_samples(c->p);
	return 0;
}

/* All of one input. */
static int convert(struct conversion *c, struct input *in)
{
	bool is_first = true;
	int n, r = 0;

	if (c->writer && profile_reset(c->p) < 0)
		return -ENOMEM;
	do {
		n = input_next(in, c->p);
		if (n < 0)
			return n;
		if (is_first || input_recording_index(in) != c->recording) {
			if (!is_first) /* what begins a recording brings nothing else */
				r = profile_reset(c->p);
			if (!r)
				r = begin_recording(c, input_recording_index(in));
		}
		is_first = false;
		if (!r)
			r = write_batch(c);
	} while (n > 0 && !r);
	return r;
}

static int convert_file(struct conversion *c, const char *path)
{
	_cleanup_(input_freep) struct input *in = NULL;
	uint64_t offset;
	int r = input_open(path, import_of_word(c->o->from), &in);

	if (r < 0)
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
	int r = writer_finish(c->writer, c->p);

	if (r < 0 || !c->partial)
		return r;
	if (rename(c->partial, to) < 0)
		return err_set(-errno, "%s: %s", to, strerror(errno));
	free(take_ptr(c->partial));
	return 0;
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
		INPUT_FROM_OPTION(&o.from),
		OPT_FREQ('F', "freq", &o.freq_hz, "samples per second they were taken at", .min = 1,
			 .max = 1000000000),
		OPT_ALIAS('r', "rate"),
		OPT_U64(0, "work", &o.work, "N", "units of work that each did, for diff", .min = 1),
		OPT_END,
	};
	int status;

	if (!cmd_options(call, opts, &status))
		return status;
	if (!o.output)
		return cmd_usage(call, "where to? give -o OUT.pyebpf");
	if (!call->operands.len)
		return cmd_usage(call, "no FILE to import");
	return import_files(call, &o);
}

const struct command command_import = {
	.name = "import",
	.summary = "make recordings of other profilers' files",
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
	.examples =
		"pyebpf import a.pyebpf b.pyebpf c.pyebpf -o base.pyebpf\tthree runs in one file\n"
		"pyebpf import baseline.bin -o baseline.pyebpf\twhat profiling.sampling wrote\n"
		"pyebpf import heap.pb.gz -o heap.pyebpf\twhat a Go program wrote, all its kinds\n"
		"pyebpf import -F 100 raw.txt -o before.pyebpf\tpy-spy's, taken at 100 Hz",
	.run = run,
};
