/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#include "cmd/record_files.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/file.h"
#include "base/err.h"
#include "cmd/browser.h"
#include "cmd/environment.h"
#include "export/export.h"

#define SUFFIX ".pyebpf"
#define FLUSH_SAMPLES 65536      /* are written at once */
#define SEGMENT_BYTES (4u << 20) /* tables beyond this start a new segment of the file */
#define COUNTERS_NS 10000000000ULL

static const struct opt_list default_paths = { (const char *[]){ DEFAULT_RECORDING }, 1, 1 };

static const struct opt_list *paths_of(const struct record_outputs *o)
{
	return o->paths.len ? &o->paths : &default_paths;
}

/* From the last dot of the file's own name on; "" where it has none, or begins with it. */
static const char *suffix_of(const char *path)
{
	const char *slash = strrchr(path, '/'), *base = slash ? slash + 1 : path;
	const char *dot = strrchr(base, '.');

	return dot && dot > base ? dot : "";
}

/* Written by us as it is; else an exporter makes it, or nobody. */
static bool is_recording(const char *path)
{
	const char *suffix = suffix_of(path);

	return !*suffix || !strcmp(suffix, SUFFIX);
}

/* --- usage ------------------------------------------------------------------------------------ */

static int unknown_format(const struct call *call, const char *path)
{
	_cleanup_(strbuf_releasep) struct strbuf known = STRBUF_INIT;

	for (const struct exporter *const *e = exporters; *e; e++)
		for (const char *const *s = (*e)->suffixes; *s; s++)
			strbuf_appendf(&known, ", %s", *s);
	return cmd_usage(call, "%s: unknown suffix: use %s (or none) for a recording, or%s", path,
			 SUFFIX, strbuf_str(&known) + 1);
}

static int check_paths(const struct call *call, const struct opt_list *paths, bool *has_page)
{
	const char *recording = NULL;

	for (size_t i = 0; i < paths->len; i++) {
		const char *path = paths->items[i];

		if (!*path)
			return cmd_usage(call, "--output: no file name");
		for (size_t k = 0; k < i; k++)
			if (!strcmp(paths->items[k], path))
				return cmd_usage(call, "%s is given twice as output", path);
		if (is_recording(path) && recording)
			return cmd_usage(
				call,
				"%s and %s: only one .pyebpf output is written; copy it afterwards",
				recording, path);
		if (is_recording(path))
			recording = path;
		else if (!exporter_for_path(path))
			return unknown_format(call, path);
		*has_page |= exporter_for_path(path) == &exporter_html;
	}
	return EXIT_OK;
}

int record_files_check(const struct call *call, const struct record_outputs *o)
{
	const struct opt_list *paths = paths_of(o);
	bool has_page = false;
	int status = check_paths(call, paths, &has_page);

	if (status)
		return status;
	if (o->should_open && !has_page)
		return cmd_usage(call, "--open needs an HTML output: add -o FILE.html");
	if (o->rotate_keep && !o->rotate_ns)
		return cmd_usage(call, "--rotate-keep goes with --rotate");
	if (o->rotate_ns && paths->len > 1)
		return cmd_usage(call, "--rotate writes recordings: give one --output");
	if (o->rotate_ns && (!strcmp(paths->items[0], "-") || !is_recording(paths->items[0])))
		return cmd_usage(call, "--rotate writes .pyebpf files: --output cannot be %s",
				 paths->items[0]);
	return EXIT_OK;
}

/* --- names ------------------------------------------------------------------------------------ */

/* NULL: none was asked for. */
static const char *find_recording(const struct record_outputs *o)
{
	const struct opt_list *paths = paths_of(o);

	for (size_t i = 0; i < paths->len; i++)
		if (is_recording(paths->items[i]))
			return paths->items[i];
	return NULL;
}

const char *record_files_name(const struct record_files *f)
{
	return f->o->rotate_ns ? f->path : paths_of(f->o)->items[0];
}

bool record_files_has_recording(const struct record_files *f)
{
	return find_recording(f->o) != NULL;
}

/* app.pyebpf -> app-20260131T093000Z.pyebpf */
static int rotated_path(const char *output, time_t start, char **path)
{
	const char *suffix = suffix_of(output);
	char stamp[32];
	struct tm utc;

	gmtime_r(&start, &utc);
	strftime(stamp, sizeof(stamp), "%Y%m%dT%H%M%SZ", &utc);
	if (asprintf(path, "%.*s-%s%s", (int)(strlen(output) - strlen(suffix)), output, stamp,
		     suffix) < 0) {
		*path = NULL;
		return -ENOMEM;
	}
	return 0;
}

/* Chooses the name of a recording that starts then (CLOCK_REALTIME). */
static int choose_path(struct record_files *f, uint64_t start_realtime_ns)
{
	const char *recording = find_recording(f->o), *first = paths_of(f->o)->items[0];
	time_t start = (time_t)(start_realtime_ns / NS_PER_SECOND);
	char *path = NULL;
	int r = 0;

	if (!f->o->rotate_ns) {
		if (asprintf(&path, "%s%s", recording ? recording : first,
			     recording ? "" : SUFFIX) < 0)
			return -ENOMEM;
	} else {
		do {
			free(path);
			r = rotated_path(recording, start++, &path);
		} while (!r && !access(path, F_OK));
	}
	if (r < 0)
		return r;
	free(f->path);
	f->path = path;
	return 0;
}

/* The file is there: removes the oldest ones of this recording beyond --rotate-keep. */
static int remove_older(struct record_files *f)
{
	char *path;
	int r;

	if (!f->o->rotate_keep)
		return 0;
	path = strdup(f->path);
	r = path ? vec_push(&f->older, path) : -ENOMEM;
	if (r < 0) {
		free(path);
		return r;
	}
	if (f->older.len <= f->o->rotate_keep)
		return 0;
	unlink(f->older.items[0]);
	free(f->older.items[0]);
	memmove(f->older.items, f->older.items + 1, --f->older.len * sizeof(f->older.items[0]));
	return 0;
}

/* --- what is written while it is recorded ----------------------------------------------------- */

static int open_file(struct record_files *f)
{
	struct profile *p = recorder_profile(f->recorder);
	const struct recording *m = profile_recording(p);
	int r;

	f->last_counters_ns = m->start_monotonic_ns;
	if ((r = choose_path(f, m->start_realtime_ns)) < 0 ||
	    (r = writer_open(f->path, p, &f->writer)) < 0)
		return r;
	return remove_older(f);
}

/* Those that are written at the end are refused before anything is recorded, if they will be. */
static int check_outputs(const struct opt_list *paths)
{
	int r = 0;

	for (size_t i = 0; i < paths->len && r >= 0; i++) {
		const struct exporter *e = exporter_for_path(paths->items[i]);
		_cleanup_(closep) int fd = -1;

		if (!is_recording(paths->items[i]) && !exporter_makes_folders(e))
			r = file_output(paths->items[i], &fd);
	}
	return r < 0 ? r : 0;
}

int record_files_open(struct record_files *f, struct recorder *recorder)
{
	int r = check_outputs(paths_of(f->o));

	if (r < 0 || (r = profile_new(&f->top.profile)) < 0)
		return r;
	f->recorder = recorder;
	profile_recording(f->top.profile)->interval_ns =
		profile_recording(recorder_profile(recorder))->interval_ns;
	return open_file(f);
}

/* The tables have grown too large. */
static int begin_segment(struct record_files *f)
{
	int r = writer_segment(f->writer);

	f->leaves.len = 0;
	return r < 0 ? r : recorder_clear(f->recorder);
}

static int flush(struct record_files *f)
{
	struct profile *p = recorder_profile(f->recorder);
	ssize_t n;
	int r;

	n = writer_flush(f->writer, p);
	if (n < 0)
		return n;
	r = load_add_leaves(&f->top, p, &f->leaves);
	if (r < 0)
		return r;
	profile_clear_samples(p);
	return profile_bytes(p) < SEGMENT_BYTES ? 0 : begin_segment(f);
}

static int store_counters(struct record_files *f, uint64_t now)
{
	f->last_counters_ns = now;
	return recorder_store_counters(f->recorder);
}

/*
 * The account of ticks goes into the file now and then only: a line of it a second would outweigh
 * the samples at 99 Hz.
 */
static int write_now(struct record_files *f, uint64_t now)
{
	int r = now - f->last_counters_ns < COUNTERS_NS ? 0 : store_counters(f, now);

	return r < 0 ? r : flush(f);
}

int record_files_write_all(struct record_files *f)
{
	int r;

	if ((r = recorder_settle_to_write(f->recorder)) < 0 ||
	    (r = store_counters(f, monotonic_ns())) < 0)
		return r;
	return flush(f);
}

int record_files_end(struct record_files *f, bool is_whole)
{
	struct profile *p = recorder_profile(f->recorder);
	int r;

	profile_recording(p)->is_whole = is_whole;
	if ((r = writer_finish(f->writer, p)) < 0)
		return r;
	return load_add_leaves(&f->top, p, &f->leaves);
}

/*
 * The next file of --rotate: complete by itself, so all tables begin anew. What comes meanwhile
 * waits in the ring and goes into the new one.
 */
static int rotate(struct record_files *f)
{
	int r;

	if ((r = recorder_cut(f->recorder)) < 0 || (r = record_files_end(f, false)) < 0)
		return r;
	writer_free(f->writer);
	f->writer = NULL;
	f->leaves.len = 0;
	r = recorder_begin(f->recorder);
	return r < 0 ? r : open_file(f);
}

int record_files_step(struct record_files *f, bool is_time)
{
	const struct profile *p = recorder_profile(f->recorder);
	const struct recording *m = profile_recording(p);
	uint64_t now = monotonic_ns();
	int r = is_time || p->samples.len >= FLUSH_SAMPLES ? write_now(f, now) : 0;

	if (r < 0 || !f->o->rotate_ns || now - m->start_monotonic_ns < f->o->rotate_ns)
		return r;
	return rotate(f);
}

/* --- other formats ---------------------------------------------------------------------------- */

static int convert(const char *recording, const struct exporter *e, const char *to)
{
	struct export_opts o = { 0 };
	_cleanup_(load_release) struct load l = {
		.road.choice.is_trusted = true, /* it is ours */
		.road.folds_imports = exporter_folds_imports(e),
		.to = { .exporter = e, .path = to, .x.o = &o },
	};
	int r;

	o.notes = &l.notes;
	r = load_files(&l, &recording, 1);
	return r < 0 ? r : load_export(&l);
}

int record_files_convert(struct record_files *f)
{
	const struct opt_list *paths = paths_of(f->o);
	const char *page = NULL;

	for (size_t i = 0; i < paths->len; i++) {
		const struct exporter *e = exporter_for_path(paths->items[i]);
		int r = is_recording(paths->items[i]) ? 0 : convert(f->path, e, paths->items[i]);

		if (r < 0)
			return err_wrap(r,
					"the recording was saved as %s, but converting it failed",
					f->path);
		if (e == &exporter_html && !page)
			page = paths->items[i];
	}
	if (!record_files_has_recording(f))
		unlink(f->path);
	if (f->o->should_open)
		browser_open(page);
	return 0;
}

void record_files_release(struct record_files *f)
{
	for (size_t i = 0; i < f->older.len; i++)
		free(f->older.items[i]);
	vec_release(&f->older);
	free(f->path);
	writer_free(f->writer);
	load_release(&f->top);
	vec_release(&f->leaves);
}
