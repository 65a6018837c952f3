/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "base/err.h"
#include "base/units.h"
#include "cmd/account.h"
#include "cmd/browser.h"
#include "cmd/cmd.h"
#include "cmd/figures.h"
#include "cmd/load.h"
#include "cmd/ranking.h"
#include "cmd/report_by.h"
#include "cmd/select_opts.h"
#include "cmd/terminal.h"
#include "export/export.h"
#include "profile/calltree.h"

#define LABEL_COLUMN 11
#define NAME_COLUMNS_MIN 8
#define NAME_COLUMNS_MAX 50 /* longer names push what follows to the right */
#define VERSIONS_SHOWN 4
#define PLACES_SHOWN 4

#define TABLE_NAME_COLUMN 29

struct report_opts {
	enum ranking_key sort;
	uint32_t limit; /* 0: none */
	bool by_line;
	bool tree;
	bool threads;
	bool no_summary;
	double min_percent;
	const char *output; /* NULL: the terminal */
	bool should_open;
	const char *by_word;
	enum report_by by;
	struct select_opts select;
	struct select_query query;
};

/* --- what was recorded ------------------------------------------------------------------------ */

static void put_label(struct line *l, const char *label)
{
	line_put(l, STYLE_DIM, label);
	line_pad(l, LABEL_COLUMN);
}

static void put_text(struct line *l, const char *before, const char *text)
{
	if (!text || !*text)
		return;
	line_put(l, STYLE_PLAIN, before);
	line_put_foreign(l, STYLE_PLAIN, text, strlen(text));
}

static void put_target(struct line *l, const struct profile *p)
{
	const char *target = profile_recording(p)->target;

	put_label(l, "target");
	put_text(l, "", target ? target : "unknown");
	if (target && !strncmp(target, "pid ", 4) && p->processes.len == 1)
		put_text(l, ": ", strtab_get(p->strings, p->processes.items[0].command_line));
	if (p->recordings.len > 1)
		line_putf(l, STYLE_PLAIN, " (the first of %zu recordings, merged)",
			  p->recordings.len);
}

static void put_origin(struct line *l, const struct recording *m)
{
	time_t seconds = (time_t)(m->start_realtime_ns / 1000000000);
	char text[64] = "at an unknown time";
	struct tm tm;

	if (m->start_realtime_ns && gmtime_r(&seconds, &tm))
		strftime(text, sizeof(text), "%Y-%m-%d %H:%M:%S UTC", &tm);
	put_label(l, "recorded");
	line_put(l, STYLE_PLAIN, text);
	put_text(l, " on ", m->host);
	put_text(l, ", Linux ", m->kernel);
	put_text(l, " ", m->machine);
	put_text(l, ", by pyebpf ", m->version);
	put_text(l, ", imported from ", m->source);
}

/* "CPython 3.12.4": what versions are told apart by. */
static bool same_version(const struct process *a, const struct process *b)
{
	return a->python_version == b->python_version && a->implementation == b->implementation;
}

static bool is_first_of_version(const struct profile *p, size_t process)
{
	for (size_t i = 0; i < process; i++)
		if (same_version(&p->processes.items[i], &p->processes.items[process]))
			return false;
	return true;
}

static void put_version(struct line *l, const struct profile *p, const struct process *process)
{
	const char *implementation = strtab_get(p->strings, process->implementation);
	const char *version = strtab_get(p->strings, process->python_version);

	put_text(l, "", *implementation ? implementation : "Python");
	put_text(l, " ", *version ? version : "of unknown version");
}

static void put_python(struct line *l, const struct profile *p)
{
	size_t shown = 0, further = 0, processes = 0, threads = 0;

	put_label(l, "python");
	for (size_t i = 0; i < p->threads.len; i++)
		threads += p->threads.items[i].same == i;
	for (size_t i = 0; i < p->processes.len; i++) {
		processes += p->processes.items[i].same == i;
		if (!is_first_of_version(p, i))
			continue;
		if (shown == VERSIONS_SHOWN) {
			further++;
			continue;
		}
		line_put(l, STYLE_PLAIN, shown++ ? ", " : "");
		put_version(l, p, &p->processes.items[i]);
	}
	if (further)
		line_putf(l, STYLE_PLAIN, " and %zu more", further);
	line_putf(l, STYLE_PLAIN, "%s%s process%s, %s thread%s", shown ? "; " : "",
		  units_count(processes).s, processes == 1 ? "" : "es", units_count(threads).s,
		  threads == 1 ? "" : "s");
}

/* Containers of one pod are one place. */
static bool same_place(const struct process *a, const struct process *b)
{
	return a->pod_uid == b->pod_uid && (a->pod_uid || a->container == b->container);
}

static bool is_first_of_place(const struct profile *p, size_t process)
{
	for (size_t i = 0; i < process; i++)
		if (same_place(&p->processes.items[i], &p->processes.items[process]))
			return false;
	return true;
}

/* Pods and containers; nothing where no process is in any. */
static void put_places(struct line *l, const struct profile *p)
{
	size_t shown = 0, further = 0;

	for (size_t i = 0; i < p->processes.len; i++) {
		if (!process_has_place(&p->processes.items[i]) || !is_first_of_place(p, i))
			continue;
		if (shown == PLACES_SHOWN) {
			further++;
			continue;
		}
		if (!shown)
			put_label(l, "runs in");
		line_put(l, STYLE_PLAIN, shown++ ? ", " : "");
		put_place(l, STYLE_PLAIN, p, &p->processes.items[i]);
	}
	if (further)
		line_putf(l, STYLE_PLAIN, " and %zu more", further);
	if (shown)
		line_end(l);
}

static void put_mode(struct line *l, const struct recording *m)
{
	put_label(l, "mode");
	put_text(l, "", m->mode ? m->mode : "unknown");
	put_text(l, ", ", m->event);
	if (m->rate_hz)
		line_putf(l, STYLE_PLAIN, " at %s Hz", units_hz(m->rate_hz).s);
	if (m->duration_ns)
		line_putf(l, STYLE_PLAIN, ", for %s", units_ns(m->duration_ns).s);
}

static void put_samples(struct line *l, const struct load *loaded)
{
	const struct recording facts = profile_facts(loaded->profile), *m = &facts;

	put_label(l, "samples");
	if (loaded->road.select.query.kind) {
		line_put(l, STYLE_PLAIN, units_count(loaded->road.select.sum.count).s);
		if (m->interval_ns)
			line_putf(l, STYLE_PLAIN, ": %s",
				  time_text(loaded->all_ticks, m->interval_ns).s);
		return;
	}
	line_put(l, STYLE_PLAIN, units_count(loaded->all_ticks).s);
	if (m->interval_ns)
		line_putf(l, STYLE_PLAIN, " of %s each: %s", units_ns(m->interval_ns).s,
			  time_text(loaded->all_ticks, m->interval_ns).s);
	if (loaded->records != loaded->all_ticks)
		line_putf(l, STYLE_PLAIN, " (%s records: skipped ticks weigh on the next one)",
			  units_count(loaded->records).s);
}

static void put_others(struct line *l, const struct load *loaded)
{
	_cleanup_(strbuf_releasep) struct strbuf text = STRBUF_INIT;

	put_label(l, "besides");
	if (select_put_others(&loaded->road.select, loaded->profile, &text) == 0)
		line_put_foreign(l, STYLE_PLAIN, strbuf_str(&text), text.len);
	line_end(l);
}

static void put_selected(struct line *l, const struct load *loaded)
{
	_cleanup_(strbuf_releasep) struct strbuf text = STRBUF_INIT;

	put_label(l, "selected");
	if (select_put_sum(&loaded->road.select.query, &loaded->road.select.sum,
			   profile_recording(loaded->profile)->interval_ns, &text) == 0)
		line_put_foreign(l, STYLE_PLAIN, strbuf_str(&text), text.len);
	line_end(l);
}

static void put_cpu(struct line *l, const struct load *loaded)
{
	const struct profile *p = loaded->profile;

	if (!account_cpu_ns(p, loaded->all_ticks) || loaded->road.select.query.has_range ||
	    loaded->road.select.query.kind)
		return;
	put_label(l, "time");
	account_put_cpu(l, p, loaded->all_ticks, profile_facts(p).duration_ns);
	line_end(l);
}

static void put_work(struct line *l, const struct load *loaded)
{
	const struct recording facts = profile_facts(loaded->profile), *m = &facts;
	double each_ns = (double)loaded->all_ticks * (double)m->interval_ns / m->work;

	put_label(l, "work");
	line_putf(l, STYLE_PLAIN, "%.15g units", m->work);
	if (each_ns >= 1 && each_ns < 1e18)
		line_putf(l, STYLE_PLAIN, " of %s each", units_ns((uint64_t)each_ns).s);
}

static void put_account(struct line *l, const struct load *loaded)
{
	const struct profile *p = loaded->profile;

	put_label(l, "lost");
	if (loss_sum(p, loss_ticks))
		account_put_lost(l, p, loaded->all_ticks);
	else
		line_put(l, STYLE_PLAIN, loss_is_known(p, loss_ticks) ? "nothing" : "unknown");
	line_end(l);
	if (profile_counter(p, "outside")) {
		put_label(l, "outside");
		line_putf(l, STYLE_PLAIN,
			  "Python: %s samples: threads without Python code, an interpreter's start "
			  "and end",
			  units_count(profile_counter(p, "outside")).s);
		line_end(l);
	}
	if (loss_sum(p, loss_quality)) {
		put_label(l, "quality");
		line_put(l, STYLE_PLAIN, "samples ");
		account_put_rows(l, p, loss_quality);
		line_end(l);
	}
	if (loaded->is_cut) {
		put_label(l, "note");
		line_put(l, STYLE_PLAIN,
			 "a file ends early or is damaged: what was good of it is shown");
		line_end(l);
	}
}

/* Ends in an empty line. Failures stick to the line: the last call tells. */
static int put_summary(const struct load *loaded, struct terminal t)
{
	_cleanup_(line_release) struct line l = LINE_INIT(&t);
	const struct recording facts = profile_facts(loaded->profile);

	t.width = 0; /* better wrapped than cut */
	put_target(&l, loaded->profile);
	line_end(&l);
	put_origin(&l, &facts);
	line_end(&l);
	put_python(&l, loaded->profile);
	line_end(&l);
	put_places(&l, loaded->profile);
	put_mode(&l, &facts);
	line_end(&l);
	put_samples(&l, loaded);
	line_end(&l);
	if (select_has_others(&loaded->road.select))
		put_others(&l, loaded);
	if (select_is_active(&loaded->road.select.query))
		put_selected(&l, loaded);
	put_cpu(&l, loaded);
	if (facts.work > 0) {
		put_work(&l, loaded);
		line_end(&l);
	}
	put_account(&l, loaded);
	return line_end(&l);
}

/* --- tables ----------------------------------------------------------------------------------- */

static size_t name_columns(const struct terminal *t, const struct profile *p,
			   const struct ranking *ranking, size_t count)
{
	size_t room = TABLE_NAME_COLUMN + PLACE_COLUMNS_MIN, most = NAME_COLUMNS_MIN;

	for (size_t i = 0; i < count; i++) {
		const struct frame *f = frametab_get(p->frames, ranking->items[i].frame);
		size_t columns = foreign_columns(strtab_get(p->strings, f->name),
						 strtab_len(p->strings, f->name));

		if (columns > most)
			most = columns;
	}
	room = !t->width ? NAME_COLUMNS_MAX : t->width > room ? t->width - room : NAME_COLUMNS_MIN;
	if (room > NAME_COLUMNS_MAX)
		room = NAME_COLUMNS_MAX;
	return most < room ? most : room;
}

/* What a row of the table is. */
static const char *row_name(const struct report_opts *o)
{
	if (o->by == BY_MODULE || o->by == BY_FILE)
		return o->by == BY_MODULE ? "module" : "file";
	return o->by_line ? "line" : "function";
}

static int put_rest(struct line *l, const struct report_opts *o, const struct ranking *ranking,
		    size_t shown, uint64_t ticks)
{
	uint64_t self = 0;

	if (shown == ranking->len)
		return 0;
	for (size_t i = shown; i < ranking->len; i++)
		self += ranking->items[i].self;
	put_percent(l, self, ticks);
	line_pad(l, TABLE_NAME_COLUMN);
	line_putf(l, STYLE_DIM, "%s more %s%s", units_count(ranking->len - shown).s, row_name(o),
		  ranking->len - shown == 1 ? "" : "s");
	return line_end(l);
}

static int put_table(const struct load *loaded, const struct report_opts *o,
		     const struct terminal *t)
{
	_cleanup_(line_release) struct line l = LINE_INIT(t);
	const struct profile *p = loaded->profile;
	struct ranking ranking = VEC_INIT;
	size_t shown, place_column;
	int r = ranking_make(loaded, o->by_line, o->sort, &ranking);

	if (r < 0)
		return r;
	shown = o->limit && o->limit < ranking.len ? o->limit : ranking.len;
	place_column = TABLE_NAME_COLUMN + name_columns(t, p, &ranking, shown) + 2;
	line_putf(&l, STYLE_BOLD, "  self   total  %11s  %s",
		  profile_recording(p)->interval_ns ? "self time" : "samples",
		  o->by_line ? "function" : row_name(o));
	line_pad(&l, place_column);
	line_put(&l, STYLE_BOLD, o->by_line ? "line" : "defined in");
	r = line_end(&l);
	for (size_t i = 0; i < shown && !r; i++) {
		const struct ranked *row = &ranking.items[i];

		put_percent(&l, row->self, loaded->ticks);
		line_put(&l, STYLE_PLAIN, "  ");
		put_percent(&l, row->total, loaded->ticks);
		line_put(&l, STYLE_PLAIN, "  ");
		put_time(&l, row->self, profile_recording(p)->interval_ns);
		line_pad(&l, TABLE_NAME_COLUMN);
		line_put_name(&l, STYLE_PLAIN, p, row->frame);
		line_put(&l, STYLE_PLAIN, "  ");
		line_pad(&l, place_column);
		line_put_place(&l, STYLE_DIM, p, row->frame, o->by_line);
		r = line_end(&l);
	}
	if (!r)
		r = put_rest(&l, o, &ranking, shown, loaded->ticks);
	vec_release(&ranking);
	return r;
}

/* --- the tree --------------------------------------------------------------------------------- */

/* A node whose children are being drawn. */
struct level {
	uint32_t end;  /* of its subtree */
	uint32_t left; /* visible children to come */
	bool is_branching;
	size_t prefix_len;
};

struct tree_view {
	const struct load *loaded;
	const struct report_opts *o;
	const struct calltree *tree;
	struct line line;
	struct strbuf prefix;
	VEC(struct level) levels;
};

static void tree_view_release(struct tree_view *v)
{
	line_release(&v->line);
	strbuf_release(&v->prefix);
	vec_release(&v->levels);
}

static bool is_visible(const struct tree_view *v, uint32_t node)
{
	return 100 * (double)v->tree->nodes[node].total >=
	       v->o->min_percent * (double)v->loaded->ticks;
}

static int open_node(struct tree_view *v, uint32_t node)
{
	struct level level = { .end = v->tree->nodes[node].end, .prefix_len = v->prefix.len };

	for (uint32_t c = node + 1; c < level.end && is_visible(v, c); c = v->tree->nodes[c].end)
		level.left++;
	level.is_branching = level.left > 1;
	return vec_push(&v->levels, level);
}

static int put_node(struct tree_view *v, uint32_t node, const char *branch)
{
	const struct calltree_node *n = &v->tree->nodes[node];
	struct line *l = &v->line;

	put_percent(l, n->total, v->loaded->ticks);
	line_put(l, STYLE_PLAIN, "  ");
	put_percent(l, n->self, v->loaded->ticks);
	line_put(l, STYLE_PLAIN, "  ");
	line_put(l, STYLE_DIM, strbuf_str(&v->prefix));
	line_put(l, STYLE_DIM, branch);
	line_put_name(l, STYLE_PLAIN, v->loaded->profile, n->frame);
	line_put(l, STYLE_PLAIN, "  ");
	line_put_place(l, STYLE_DIM, v->loaded->profile, n->frame, v->o->by_line);
	return line_end(l);
}

/*
 * Callees are below their caller; where it has only one, without a branch and not further in, so
 * that deep stacks stay readable. No recursion: a file may hold stacks of any depth.
 */
static int put_nodes(struct tree_view *v)
{
	static const char *const ascii[] = { "|- ", "`- ", "|  ", "   " };
	static const char *const unicode[] = { "├─ ", "└─ ", "│  ", "   " };
	const char *const *drawn = v->line.t->has_unicode ? unicode : ascii;
	int r = open_node(v, 0);

	for (uint32_t node = 1; !r && v->levels.len;) {
		struct level *level = &v->levels.items[v->levels.len - 1];
		bool is_last;

		strbuf_truncate(&v->prefix, level->prefix_len);
		if (!level->left) {
			node = level->end;
			v->levels.len--;
			continue;
		}
		is_last = --level->left == 0;
		r = put_node(v, node, level->is_branching ? drawn[is_last] : "");
		if (!r && level->is_branching)
			r = strbuf_puts(&v->prefix, drawn[2 + is_last]);
		if (!r)
			r = open_node(v, node++);
	}
	return r;
}

static int put_tree(const struct load *loaded, const struct report_opts *o,
		    const struct terminal *t)
{
	_cleanup_(calltree_freep) struct calltree *tree = NULL;
	_cleanup_(tree_view_release) struct tree_view v = {
		.loaded = loaded, .o = o, .line = LINE_INIT(t), .prefix = STRBUF_INIT
	};
	int r = calltree_new(loaded->profile, &loaded->cube, KIND_TICKS,
			     o->by_line ? CALLTREE_BY_LINE : CALLTREE_BY_FUNCTION, &tree);

	if (r < 0)
		return r;
	v.tree = tree;
	line_put(&v.line, STYLE_BOLD, " total    self  function");
	r = line_end(&v.line);
	return r ? r : put_nodes(&v);
}

/* --- the command ------------------------------------------------------------------------------ */

/* app.pyebpf -> app.html; in the folder we are in. */
static char *page_beside(const struct call *call)
{
	const char *first = call->operands.len ? call->operands.items[0] : "profile.pyebpf";
	const char *slash = strrchr(first, '/'), *base = slash ? slash + 1 : first;
	const char *dot = strrchr(base, '.');
	char *path;

	if (asprintf(&path, "%.*s.html", (int)(dot > base ? dot - base : (ptrdiff_t)strlen(base)),
		     base) < 0)
		return NULL;
	return path;
}

/* What writes the output; NULL: it is the terminal. */
static int choose_output(const struct call *call, const struct report_opts *o,
			 const struct exporter **e)
{
	*e = o->output ? exporter_for_path(o->output) : NULL;
	if (o->output && !*e)
		return cmd_usage(call,
				 "--output: %s: reports are written as .html; other formats: "
				 "pyebpf export",
				 o->output);
	if (o->should_open && *e != &exporter_html)
		return cmd_usage(call, "--open shows pages: --output cannot be %s", o->output);
	return EXIT_OK;
}

static int put_report(const struct load *loaded, const struct report_opts *o)
{
	struct terminal t;
	int r = 0;

	terminal_init(&t, stdout);
	if (!o->no_summary)
		r = put_summary(loaded, t);
	if (!loaded->ticks)
		return r;
	if (o->threads && !r)
		r = report_by_put(loaded, BY_THREAD, o->limit, &t);
	if (r < 0)
		return r;
	if (o->by && o->by != BY_MODULE && o->by != BY_FILE && !o->tree)
		return report_by_put(loaded, o->by, o->limit, &t);
	return o->tree ? put_tree(loaded, o, &t) : put_table(loaded, o, &t);
}

static int write_report(struct load *loaded, const struct report_opts *o)
{
	int r = load_export(loaded);

	if (!r && o->should_open)
		browser_open(o->output);
	return r;
}

static int report(struct call *call, const struct report_opts *o, const struct exporter *e)
{
	struct export_opts eo = { 0 };
	_cleanup_(load_release) struct load loaded = {
		.cube.axes = report_by_axes(o->by),
		.road.folds_imports = select_opts_folds_imports(&o->select, true),
		.road.select.query = o->query,
		.to = { .exporter = e, .path = o->output, .x.o = &eo },
	};
	_cleanup_(strbuf_releasep) struct strbuf why = STRBUF_INIT;
	const char *next;
	int r;

	eo.notes = &loaded.notes;
	r = load_operands(&loaded, call);
	if (!r)
		r = e ? write_report(&loaded, o) : put_report(&loaded, o);
	if (r < 0)
		return cmd_fail(call, r);
	if (loaded.ticks)
		return EXIT_OK;
	if (load_lacks_selected(&loaded))
		return load_fail_selection(call, &loaded);
	r = account_put_nothing(&why, loaded.profile, &next);
	if (r < 0)
		return cmd_fail(call, r);
	cmd_fail(call, err_set(-ENODATA, "no samples of Python code: %s", strbuf_str(&why)));
	cmd_try("%s", next);
	return EXIT_NOTHING;
}

static int run(struct call *call)
{
	static const char *const keys[] = { "self", "total", NULL };
	struct report_opts o = { .limit = 20, .min_percent = 0.5 };
	const struct opt opts[] = {
		OPT_GROUP("Functions"),
		OPT_ENUM(0, "sort", &o.sort, "KEY", keys, "order of the table (self)"),
		OPT_U32('n', "limit", &o.limit, "N", "rows of tables; 0: all (20)"),
		OPT_FLAG(0, "lines", &o.by_line, "lines of code instead of functions"),
		OPT_STR(0, "by", &o.by_word, "KEY",
			"thread, process, module, file, label, or functions of a pattern, with "
			"all they call: 'test_*'"),
		OPT_GROUP("Call paths"),
		OPT_FLAG(0, "tree", &o.tree, "the call tree instead of the table"),
		OPT_PERCENT(0, "min-percent", &o.min_percent,
			    "leave paths with less of the total out of the tree (0.5)"),
		SELECT_OPTIONS(&o.select),
		OPT_GROUP("Around it"),
		OPT_FLAG(0, "threads", &o.threads, "also the share of each thread"),
		OPT_FLAG(0, "no-summary", &o.no_summary, "not what was recorded and lost"),
		OPT_GROUP("Page"),
		OPT_STR('o', "output", &o.output, "FILE",
			"an .html page with flame graph, table and timeline (the terminal)"),
		OPT_FLAG(0, "open", &o.should_open, BROWSER_OPEN_HELP),
		OPT_END,
	};
	_cleanup_(freep) char *beside = NULL;
	const struct exporter *exporter = NULL;
	int status;

	if (!cmd_options(call, opts, &status))
		return status;
	if (o.should_open && !o.output) {
		o.output = beside = page_beside(call);
		if (!beside)
			return cmd_fail(call, -ENOMEM);
	}
	status = select_opts_read(call, &o.select, &o.query);
	if (!status) {
		o.by = o.by_word ? report_by_read(&o.by_word, &o.query) : BY_FUNCTION;
		status = choose_output(call, &o, &exporter);
	}
	if (!status)
		status = report(call, &o, exporter);
	select_opts_release(&o.select);
	return status;
}

const struct command command_report = {
	.name = "report",
	.summary = "show where the time went",
	.usage = "[OPTION]... [FILE]...",
	.about =
		"Shows what was recorded, what of it was lost, and the functions by the time spent "
		"in them. Several recordings are merged. FILE is profile.pyebpf if left out.\n\n"
		"self is time in the function's own lines, total includes what it called; a "
		"function that calls itself counts once. In the tree a callee stands below its "
		"caller, and further in only where there are several.",
	.examples = "pyebpf report\tthe 20 functions with most time of their own\n"
		    "pyebpf report --tree --min-percent 2 app.pyebpf\tthe call tree, without its "
		    "twigs\n"
		    "pyebpf report -o app.html --open app.pyebpf\ta page with its flame graph\n"
		    "pyebpf report --lines --sort total\tlines, with all that they call\n"
		    "pyebpf report --by 'test_*' tests.pyebpf\twhich test takes how long",
	.run = run,
};
