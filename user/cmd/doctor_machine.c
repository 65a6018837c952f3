/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "base/err.h"
#include "base/vec.h"
#include "cmd/doctor.h"
#include "cmd/doctor_text.h"
#include "inspect/process.h"
#include "target/offsets.h"
#include "target/proc.h"

/* The whole machine: the table of features, and the Pythons that run. */

#define CANNOT_BE_TOLD "cannot be told with these permissions"
#define NAME_COLUMN 9
#define TEXT_COLUMN 33

/* A row as both outputs want it. Texts are borrowed, "" for none. */
struct row {
	const char *name;
	enum feature_state state;
	bool is_required;
	const char *found, *problem, *remedy;
};

/* --- Pythons ---------------------------------------------------------------------------------- */

/* Processes of one kind. */
struct python_count {
	char text[96]; /* "CPython 3.12.1", or why it cannot be recorded */
	bool is_good;
	size_t processes;
	pid_t first; /* one of them */
};

struct pythons {
	VEC(struct python_count) counts;
	size_t processes; /* that were looked at */
	size_t unread;    /* that were not ours to look at */
};

static int count_python(struct pythons *all, const struct python_count *one)
{
	for (size_t i = 0; i < all->counts.len; i++) {
		struct python_count *c = &all->counts.items[i];

		if (c->is_good == one->is_good && !strcmp(c->text, one->text)) {
			c->processes++;
			return 0;
		}
	}
	return vec_push(&all->counts, *one);
}

static int look_at_one(struct inspector *in, pid_t pid, struct pythons *all)
{
	struct python_count one = { .processes = 1, .first = pid };
	char version[VERSION_TEXT_BYTES];
	struct py_runtime rt;
	int r = inspector_find_runtime(in, pid, &rt);

	if (r == -ENOMEM)
		return r;
	all->processes++;
	if (r == -EPERM)
		all->unread++;
	if (r == -ENOTSUP || r == -EBADMSG) {
		snprintf(one.text, sizeof(one.text), "%s", err_message(r));
		err_clear(); /* it is a row now */
		return count_python(all, &one);
	}
	if (r < 0) {
		err_clear(); /* no Python, or none that we may see */
		return 0;
	}
	version_format(rt.version, version);
	snprintf(one.text, sizeof(one.text), "CPython %s%s%s", version,
		 rt.offsets.is_free_threaded ? " free-threaded" : "",
		 rt.offsets.is_best_effort ? " (best effort: not a tested version)" : "");
	one.is_good = true;
	return count_python(all, &one);
}

static int find_pythons(struct pythons *out)
{
	_cleanup_(inspector_freep) struct inspector *in = NULL;
	_cleanup_(pids_releasep) struct pids pids = VEC_INIT;
	int r;

	if ((r = inspector_new(&in)) < 0 || (r = proc_list(&pids)) < 0)
		return r;
	for (size_t i = 0; i < pids.len && r >= 0; i++)
		r = look_at_one(in, pids.items[i], out);
	return r;
}

static void pythons_release(struct pythons *p)
{
	vec_release(&p->counts);
}

/* Names how many processes of each kind there are. may_read: we have the right to look. */
static int describe_pythons(const struct pythons *all, bool may_read, struct strbuf *found,
			    struct row *row)
{
	bool has_other = false;
	int r = 0;

	for (size_t i = 0; i < all->counts.len; i++) {
		const struct python_count *c = &all->counts.items[i];

		has_other |= !c->is_good;
		r = strbuf_appendf(found, "%s%s: %zu process%s (pid %d%s)", i ? ", " : "", c->text,
				   c->processes, c->processes == 1 ? "" : "es", c->first,
				   c->processes == 1 ? "" : "...");
	}
	if (!all->counts.len)
		r = strbuf_puts(found, "none");
	if (all->unread)
		r = strbuf_appendf(found, "; no permission to read %zu of %zu processes",
				   all->unread, all->processes);
	*row = (struct row){ .name = "Pythons that run", .problem = "", .remedy = "" };
	if (has_other) {
		row->state = FEATURE_LIMITED;
		row->problem = "not all of them can be recorded";
		row->remedy = "pyebpf doctor -p PID (says why)";
	} else if (all->unread && !may_read) {
		row->state = FEATURE_UNKNOWN;
		row->problem = CANNOT_BE_TOLD;
	}
	row->found = strbuf_str(found);
	return r;
}

/* Hands every row to put(). Returns 1 if recording is possible, 0 if not. */
static int each_row(struct feature_probe *probe, int (*put)(void *context, const struct row *row),
		    void *context)
{
	_cleanup_(pythons_release) struct pythons pythons = { 0 };
	_cleanup_(strbuf_releasep) struct strbuf found = STRBUF_INIT;
	bool is_possible = true;
	struct row row;
	int r = 0;

	for (int i = 0; i < features_count && r >= 0; i++) {
		const struct feature *f = &features[i];

		row = (struct row){ .name = f->name, .is_required = f->refusal };
		row.state = feature_run(f, probe);
		row.found = probe->found;
		row.problem = row.remedy = "";
		if (row.state == FEATURE_UNKNOWN) {
			row.problem = CANNOT_BE_TOLD;
		} else if (row.state != FEATURE_OK) {
			row.problem = f->problem;
			row.remedy = f->remedy;
		}
		is_possible &= !f->refusal || row.state != FEATURE_MISSING;
		r = put(context, &row);
	}
	if (r < 0 || (r = find_pythons(&pythons)) < 0 ||
	    (r = describe_pythons(&pythons, is_possible, &found, &row)) < 0 ||
	    (r = put(context, &row)) < 0)
		return r;
	return is_possible;
}

struct text_output {
	const struct terminal *t;
	const char *last_remedy; /* rows that follow one another may have the same */
};

static int put_text(void *context, const struct row *row)
{
	static const enum style styles[] = {
		[FEATURE_OK] = STYLE_DIM,
		[FEATURE_LIMITED] = STYLE_WARM,
		[FEATURE_MISSING] = STYLE_HOT,
		[FEATURE_UNKNOWN] = STYLE_WARM,
	};
	struct text_output *out = context;
	const struct terminal *t = out->t;
	/* What is to be typed is not cut or broken: it may be copied. */
	struct terminal endless = *t;
	struct line l = LINE_INIT(t), remedy = LINE_INIT(&endless);
	int r;

	endless.width = 0;
	line_put(&l, styles[row->state], feature_state_name(row->state));
	line_pad(&l, NAME_COLUMN);
	line_put(&l, row->state == FEATURE_MISSING ? STYLE_BOLD : STYLE_PLAIN, row->name);
	line_pad(&l, TEXT_COLUMN);
	r = doctor_wrap(&l, TEXT_COLUMN, STYLE_PLAIN, row->found);
	if (r >= 0 && *row->problem) {
		line_put(&l, STYLE_PLAIN, *row->found ? ": " : "");
		r = doctor_wrap(&l, TEXT_COLUMN, STYLE_PLAIN, row->problem);
	}
	if (r >= 0)
		r = line_end(&l);
	if (r >= 0 && *row->remedy) {
		line_pad(&remedy, NAME_COLUMN);
		line_put(&remedy, STYLE_BOLD, "-> ");
		line_put(&remedy, STYLE_PLAIN,
			 row->remedy == out->last_remedy ? "the same" : row->remedy);
		r = line_end(&remedy);
		out->last_remedy = row->remedy;
	}
	line_release(&l);
	line_release(&remedy);
	return r;
}

int doctor_machine(const struct terminal *t, struct feature_probe *probe)
{
	struct text_output out = { .t = t };

	return each_row(probe, put_text, &out);
}

static int put_json(void *context, const struct row *row)
{
	struct json *j = context;

	json_object(j);
	json_key(j, "name");
	json_string(j, row->name);
	json_key(j, "state");
	json_string(j, feature_state_name(row->state));
	json_key(j, "required");
	json_bool(j, row->is_required);
	json_key(j, "found");
	json_string(j, row->found);
	json_key(j, "problem");
	json_string(j, row->problem);
	json_key(j, "remedy");
	json_string(j, row->remedy);
	json_end(j);
	return 0;
}

int doctor_machine_json(struct json *j, struct feature_probe *probe)
{
	int r;

	json_key(j, "rows");
	json_array_lines(j);
	r = each_row(probe, put_json, j);
	json_end(j);
	if (r < 0)
		return r;
	json_key(j, "can_record");
	json_bool(j, r);
	return r;
}
