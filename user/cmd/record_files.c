/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#include "cmd/record_files.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/err.h"
#include "cmd/browser.h"
#include "cmd/load.h"
#include "export/export.h"

#define SUFFIX ".pyebpf"

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
	return cmd_usage(call,
			 "%s: no format known by this suffix: a recording has %s or none, others%s",
			 path, SUFFIX, strbuf_str(&known) + 1);
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
			return cmd_usage(call, "%s and %s: one recording is written, copy it",
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
		return cmd_usage(call, "--open shows pages: give -o FILE.html");
	if (o->rotate_keep && !o->rotate_ns)
		return cmd_usage(call, "--rotate-keep goes with --rotate");
	if (o->rotate_ns && paths->len > 1)
		return cmd_usage(call, "--rotate writes recordings: give one --output");
	if (o->rotate_ns && (!strcmp(paths->items[0], "-") || !is_recording(paths->items[0])))
		return cmd_usage(call, "--rotate writes recordings: --output cannot be %s",
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

int record_files_next(struct record_files *f, uint64_t start_realtime_ns)
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

int record_files_keep(struct record_files *f)
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

/* --- other formats ---------------------------------------------------------------------------- */

static int convert(const char *recording, const struct exporter *e, const char *to)
{
	struct export_opts o = { 0 };
	_cleanup_(load_release) struct load l = {
		.road.folds_imports = e == &exporter_html,
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
			return err_wrap(r, "%s is kept; convert it", f->path);
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
}
