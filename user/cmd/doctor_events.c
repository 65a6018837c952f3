/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#include <stdio.h>

#include "base/cleanup.h"
#include "base/err.h"
#include "cmd/doctor.h"
#include "collect/event_links.h"
#include "collect/tracefs.h"

/* What `record -e` can name here: perf's own events, and all tracepoints. */

#define WORDS_COLUMN 28

static int put_event(const struct terminal *t, const struct event_row *row)
{
	struct line l = LINE_INIT(t);
	bool is_there = events_probe(row) == 0;
	int r;

	err_clear(); /* why not is told of all of them below */
	line_put(&l, is_there ? STYLE_PLAIN : STYLE_DIM, row->name);
	line_pad(&l, WORDS_COLUMN);
	line_put(&l, is_there ? STYLE_PLAIN : STYLE_DIM, is_there ? row->words : "not here");
	r = line_end(&l);
	line_release(&l);
	return r;
}

static int put_tracepoint(void *arg, const char *group, const char *name)
{
	struct line l = LINE_INIT(arg);
	int r;

	line_putf(&l, STYLE_PLAIN, "%s:%s", group, name);
	r = line_end(&l);
	line_release(&l);
	return r;
}

static int put_text(const struct terminal *t, enum style style, const char *text)
{
	struct line l = LINE_INIT(t);
	int r;

	line_put(&l, style, text);
	r = line_end(&l);
	line_release(&l);
	return r;
}

static int list_tracepoints(int (*fn)(void *arg, const char *group, const char *name), void *arg)
{
	_cleanup_(closep) int fd = -1;
	int r = tracefs_open(&fd);

	return r < 0 ? r : tracefs_list(fd, fn, arg);
}

int doctor_events(const struct terminal *t)
{
	int r = put_text(t, STYLE_BOLD, "events");

	for (size_t i = 0; i < event_rows_count && r >= 0; i++)
		r = put_event(t, &event_rows[i]);
	if (r < 0 || (r = put_text(t, STYLE_BOLD, "probes")) < 0 ||
	    (r = put_text(t, STYLE_PLAIN,
			  "uprobe:FILE:FUNCTION[:argN]   usdt:FILE:PROVIDER:NAME[:argN]")) < 0 ||
	    (r = put_text(t, STYLE_BOLD, "tracepoints, each also with :FIELD")) < 0)
		return r;
	return list_tracepoints(put_tracepoint, (void *)t);
}

static int put_tracepoint_json(void *arg, const char *group, const char *name)
{
	char both[512];

	snprintf(both, sizeof(both), "%s:%s", group, name);
	json_string(arg, both);
	return 0;
}

int doctor_events_json(struct json *j)
{
	int r;

	json_key(j, "events");
	json_array_lines(j);
	for (size_t i = 0; i < event_rows_count; i++) {
		json_object(j);
		json_key_string(j, "name", event_rows[i].name);
		json_key(j, "available");
		json_bool(j, events_probe(&event_rows[i]) == 0);
		json_key_string(j, "words", event_rows[i].words);
		json_end(j);
	}
	json_end(j);
	json_key(j, "tracepoints");
	json_array_lines(j);
	r = list_tracepoints(put_tracepoint_json, j);
	json_end(j);
	return r;
}
