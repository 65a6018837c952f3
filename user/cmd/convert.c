/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#include "cmd/convert.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/err.h"
#include "base/file.h"
#include "base/log.h"
#include "base/partial.h"
#include "base/strbuf.h"
#include "base/units.h"
#include "cmd/input.h"
#include "cmd/road.h"
#include "cmd/select_opts.h"
#include "profile/extract.h"
#include "store/writer.h"

/* Of a part it is what the samples say: nothing of the whole one stands for it. */
#define WHOLE_CPU_TIME "cpu_ns"

#define PART_NOT_TOLD "a selection"

struct conversion {
	struct conversion_opts *o;
	struct road *road;      /* of the file at hand */
	struct profile *p;      /* what is written: of one recording at a time */
	struct extract extract; /* from the road's profile */
	struct writer *writer;  /* NULL before the first recording */
	char *partial;          /* NULL: straight to the output, which is no regular file */
	uint32_t recording;     /* index in p of the one that is being written */
	uint64_t ticks;         /* that it has, and samples of other kinds */
	bool has_good_part;     /* of the file that is damaged */
	uint64_t all;           /* samples that were read, and how many are left: */
	uint64_t kept;
	struct strbuf kinds; /* words for those of the last file, where one is asked for */
};

static void conversion_release(struct conversion *c)
{
	writer_free(c->writer);
	extract_release(&c->extract);
	profile_free(c->p);
	strbuf_release(&c->kinds);
	if (c->partial)
		file_remove_partial(c->partial);
	free(c->partial);
}

static int open_output(struct conversion *c)
{
	_cleanup_(closep) int fd = -1;
	int r = file_output(c->o->output, &fd);

	if (!r) {
		fd = file_open_partial(c->o->output, &c->partial);
		r = fd < 0 ? fd : 0;
	}
	if (r < 0)
		return r;
	r = c->partial ? writer_open_fd(fd, c->o->output, c->p, &c->writer)
		       : writer_open(c->o->output, c->p, &c->writer);
	if (r < 0)
		return r;
	if (c->partial)
		take_fd(fd);
	writer_keep_times(c->writer);
	return r;
}

/* What the user knows and the file does not say. */
static void complete_recording(const struct conversion_opts *o, struct recording *r)
{
	if (o->freq_hz && !r->interval_ns) {
		r->interval_ns = NS_PER_SECOND / o->freq_hz;
		r->rate_hz = o->freq_hz;
	}
	if (o->work)
		r->work = (double)o->work;
}

/* What is left of a selection, behind what was selected of it before. */
static int note_part(const struct conversion_opts *o, struct recording *r)
{
	_cleanup_(strbuf_releasep) struct strbuf text = STRBUF_INIT;
	int e;

	if (!select_is_active(&o->query))
		return 0;
	if (recording_has_counter(r, WHOLE_CPU_TIME))
		recording_set_counter(r, WHOLE_CPU_TIME, 0);
	if (r->part)
		strbuf_appendf(&text, "%s ", r->part);
	/* patterns may name what is not to be told */
	e = strip_is_active(&o->strip) ? strbuf_puts(&text, PART_NOT_TOLD)
				       : select_put_query(&o->query, &text);
	return e ? e : recording_set_text(&r->part, strbuf_str(&text));
}

/* All that is known of it now. */
static int refresh_recording(struct conversion *c)
{
	struct recording *r = &c->p->recordings.items[c->recording];
	int e = extract_facts(&c->extract, c->road->profile, c->p);

	if (!e)
		e = note_part(c->o, r);
	complete_recording(c->o, r);
	return e;
}

static int begin_recording(void *conversion, const struct road_recording *of)
{
	struct conversion *c = conversion;
	const struct recording *r = &c->road->profile->recordings.items[of->index];
	int e;

	if (c->o->freq_hz && r->interval_ns)
		log_warning("-F ignored: the file says its sampling interval is %s",
			    units_ns(r->interval_ns).s);
	extract_forget(&c->extract);
	e = c->writer ? profile_reset(c->p) : 0;
	if (!e)
		e = extract_begin(&c->extract, c->road->profile, of->index, c->p);
	c->recording = c->extract.to_recording;
	if (!e)
		e = refresh_recording(c);
	if (e)
		return e;
	return c->writer ? writer_recording(c->writer, c->p, c->recording) : open_output(c);
}

static int take_samples(void *conversion)
{
	struct conversion *c = conversion;
	const struct profile *from = c->road->profile;
	ssize_t n;
	int r = extract_samples(&c->extract, from, c->p);

	for (size_t i = 0; i < from->samples.len; i++) {
		const struct sample *s = &from->samples.items[i];

		c->ticks += s->kind == KIND_TICKS ? s->value : 1;
	}
	c->kept += from->samples.len;
	if (!r)
		r = refresh_recording(c);
	if (r < 0)
		return r;
	n = writer_flush(c->writer, c->p);
	if (n < 0)
		return (int)n;
	profile_clear_samples(c->p);
	return 0;
}

/* The selection has made it what is left of it. */
static int end_recording(void *conversion, const struct road_recording *of)
{
	struct conversion *c = conversion;
	struct profile *from = c->road->profile;
	int r = select_describe(&c->road->select, from, &from->recordings.items[of->index]);

	return r ? r : refresh_recording(c);
}

static const struct road_taker taker = { begin_recording, NULL, take_samples, end_recording };

/* One that is damaged is refused: who reads what comes of it would not know. */
static int check_damage(const struct road *road, bool *has_samples)
{
	if (!road_is_damaged(road))
		return 0;
	*has_samples = road->samples;
	return err_set(road->end, "%s", road->message ? road->message : strerror(-road->end));
}

static int convert_file(struct conversion *c, const char *path)
{
	struct road road = {
		.taker = &taker,
		.arg = c,
		.choice = c->o->choice,
		.folds_imports = c->o->folds_imports,
		.strip = &c->o->strip,
		.select = { .query = c->o->query, .keeps_kinds = true },
	};
	int r = profile_new(&road.profile);

	c->road = &road;
	if (!r) {
		road_read(&road, path);
		r = check_damage(&road, &c->has_good_part);
	}
	if (!r)
		r = road_conclude(&road, NULL);
	r = r > 0 ? 0 : r;
	strbuf_truncate(&c->kinds, 0);
	if (!r && c->o->query.kind)
		r = kinds_put_words(road.profile, &c->kinds);
	c->all += road.select.sum.count + road.select.others;
	c->road = NULL;
	profile_free(road.profile);
	road_release(&road);
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
	partial_forget(c->partial);
	free(take_ptr(c->partial));
	return 0;
}

static int fail_selection(const struct call *call, const struct conversion *c)
{
	_cleanup_(strbuf_releasep) struct strbuf text = STRBUF_INIT;

	if (select_put_query(&c->o->query, &text) < 0)
		return cmd_fail(call, -ENOMEM);
	cmd_fail(call, err_set(-ENODATA, "none of %s samples matches %s", units_count(c->all).s,
			       strbuf_str(&text)));
	if (c->kinds.len)
		cmd_try("available kinds: %s", strbuf_str(&c->kinds));
	else
		cmd_try("a pattern must match the full name, e.g. 'parse*', '*.parse', "
			"'orders.py:*'");
	return EXIT_NOTHING;
}

int convert(struct call *call, struct conversion_opts *o)
{
	_cleanup_(conversion_release) struct conversion c = { .o = o, .kinds = STRBUF_INIT };
	const char *path = NULL;
	int r = input_begin(call, o->max_memory_bytes);

	if (!r)
		r = profile_new(&c.p);
	/* who is not selected is not in it */
	c.extract.only_sampled = o->query.patterns[SELECT_THREAD].len ||
				 o->query.patterns[SELECT_PROCESS].len ||
				 o->query.patterns[SELECT_CONTAINER].len;
	for (int i = 0; i < call->operands.len && !r; i++)
		r = convert_file(&c, path = call->operands.items[i]);
	if (!r && !c.kept && c.all)
		return fail_selection(call, &c);
	if (!r && !c.writer)
		r = err_set(-ENODATA, "%s: contains no recording", path);
	if (!r)
		r = finish(&c);
	if (r < 0) {
		cmd_fail(call, r);
		if (c.has_good_part)
			cmd_try("pyebpf report %s, to see the readable part", path);
		return r == -EPIPE ? EXIT_OK : EXIT_RUNTIME;
	}
	if (strcmp(o->output, "-") && log_level() > LOG_LEVEL_ERROR)
		printf("%s: %s samples, %s\n", o->output, units_count(c.ticks).s,
		       units_bytes(writer_size(c.writer)).s);
	return EXIT_OK;
}
