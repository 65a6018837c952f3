/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/err.h"
#include "cmd/account.h"
#include "cmd/browser.h"
#include "cmd/cmd.h"
#include "cmd/input.h"
#include "cmd/load.h"
#include "cmd/report_by.h"
#include "cmd/report_gil.h"
#include "cmd/report_summary.h"
#include "cmd/report_view.h"
#include "cmd/select_opts.h"
#include "cmd/terminal.h"
#include "export/export.h"

#define ROWS_DEFAULT 20
#define PERCENT_DEFAULT 0.5
#define AS_USUAL UINT32_MAX /* of the limit: rows as the output has them by default */

struct report_opts {
	struct import_choice choice;
	uint64_t max_memory_bytes;
	struct report_view view;
	struct export_opts file; /* what an output other than the terminal leaves out */
	bool json;
	bool tree;
	bool threads;
	bool gil; /* the table of contention instead of one of functions */
	bool no_summary;
	const char *output; /* NULL: the terminal */
	bool should_open;
	const char *by_word;
	struct select_opts select;
	struct select_query query;
};

/* app.pyebpf -> app.html; in the folder we are in. */
static char *page_beside(const struct call *call)
{
	const char *given = call->operands.len ? call->operands.items[0] : "profile.pyebpf";
	const char *first = strcmp(given, "-") ? given : "stdin";
	const char *slash = strrchr(first, '/'), *base = slash ? slash + 1 : first;
	const char *dot = strrchr(base, '.');
	char *path;

	if (asprintf(&path, "%.*s.html", (int)(dot > base ? dot - base : (ptrdiff_t)strlen(base)),
		     base) < 0)
		return NULL;
	return path;
}

/* A table has few rows; a file, which may be asked for all, what its reader asks for. */
static void choose_limits(struct report_opts *o)
{
	bool is_given = o->view.limit != AS_USUAL, has_percent = o->view.min_percent >= 0;

	if (!has_percent)
		o->view.min_percent = PERCENT_DEFAULT;
	o->file.limit = is_given ? o->view.limit : 0;
	o->file.min_percent = has_percent || o->json ? o->view.min_percent : 0;
	if (!is_given)
		o->view.limit = ROWS_DEFAULT;
}

/* What writes the output; NULL: it is the terminal. */
static int choose_output(const struct call *call, const struct report_opts *o,
			 const struct exporter **e)
{
	*e = o->json ? &exporter_json : o->output ? exporter_for_path(o->output) : NULL;
	if (o->json && (o->tree || o->gil || o->by_word || o->threads || o->should_open))
		return cmd_usage(call, "--json already includes paths, functions, threads and GIL "
				       "waits: omit --tree, --gil, --by, --threads, --open");
	if (o->output && !*e)
		return cmd_usage(call,
				 "--output %s: report writes .html only; for other formats use "
				 "pyebpf export",
				 o->output);
	if (o->gil && *e)
		return cmd_usage(call,
				 "--gil prints to the terminal; HTML pages always include it");
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
		r = report_summary_put(loaded, t);
	if (!r && o->gil)
		return report_gil_put(loaded, o->view.limit, &t);
	if (!loaded->ticks)
		return r;
	if (o->threads && !r)
		r = report_by_put(loaded, BY_THREAD, NULL, o->view.limit, &t);
	if (r < 0)
		return r;
	if (o->view.by && o->view.by != BY_MODULE && o->view.by != BY_FILE && !o->tree)
		return report_by_put(loaded, o->view.by, o->by_word, o->view.limit, &t);
	return o->tree ? report_tree_put(loaded, &o->view, &t)
		       : report_table_put(loaded, &o->view, &t);
}

static int write_report(struct load *loaded, const struct report_opts *o)
{
	int r = load_export(loaded);

	if (!r && o->should_open)
		browser_open(o->output);
	else if (!r && o->output)
		browser_tell_how(o->output);
	return r;
}

/* What there is, where nothing is of the kind that is looked at by default. */
static int fail_kind(const struct call *call, const struct load *loaded)
{
	_cleanup_(strbuf_releasep) struct strbuf others = STRBUF_INIT;
	const struct select *s = &loaded->road.select;

	if (select_put_others(s, loaded->profile, &others) < 0)
		return cmd_fail(call, -ENOMEM);
	cmd_fail(call,
		 err_set(-ENODATA, "no samples of %s; %s", s->kinds.name, strbuf_str(&others)));
	return EXIT_NOTHING;
}

static int report(struct call *call, const struct report_opts *o, const struct exporter *e)
{
	struct export_opts eo = o->file;
	_cleanup_(load_release) struct load loaded = {
		.cube.axes = report_by_axes(o->view.by),
		.road.choice = o->choice,
		.road.folds_imports = select_opts_folds_imports(&o->select, true),
		.road.select.query = o->query,
		.tells_waits = !e,
		.tells_gil = !e,
		.to = { .exporter = e, .path = o->output ? o->output : "-", .x.o = &eo },
	};
	_cleanup_(strbuf_releasep) struct strbuf why = STRBUF_INIT;
	const char *next;
	int r;

	eo.notes = &loaded.notes;
	r = load_operands(&loaded, call, o->max_memory_bytes);
	if (!r)
		r = e ? write_report(&loaded, o) : put_report(&loaded, o);
	if (r < 0)
		return cmd_fail(call, r);
	if (loaded.ticks || (o->gil && loaded.gil.rows.len))
		return EXIT_OK;
	if (load_lacks_selected(&loaded))
		return load_fail_selection(call, &loaded);
	if (select_has_others(&loaded.road.select))
		return fail_kind(call, &loaded);
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
	struct report_opts o = { .view = { .limit = AS_USUAL, .min_percent = -1 } };
	const struct opt opts[] = {
		OPT_GROUP("Functions"),
		OPT_ENUM(0, "sort", &o.view.sort, "KEY", keys,
			 "sort by self or total time (default: self)"),
		OPT_U32('n', "limit", &o.view.limit, "N",
			"print at most N rows; 0 for all (default: 20; JSON: all)"),
		OPT_FLAG(0, "lines", &o.view.by_line, "show source lines instead of functions"),
		OPT_STR(0, "by", &o.by_word, "KEY",
			"group by thread, process, interpreter, module, file, label, label:NAME, "
			"or by functions with everything they call, e.g. 'test_*'"),
		OPT_GROUP("Waiting"),
		OPT_FLAG(0, "gil", &o.gil, "show who waited for the GIL and who held it"),
		OPT_GROUP("Call paths"),
		OPT_FLAG(0, "tree", &o.tree, "show the call tree"),
		OPT_PERCENT(
			0, "min-percent", &o.view.min_percent,
			"hide call paths (JSON: rows) below PERCENT of the total (default: 0.5)"),
		OPT_GROUP("Input"),
		INPUT_OPTIONS(&o.choice, &o.max_memory_bytes),
		SELECT_OPTIONS(&o.select),
		OPT_GROUP("More"),
		OPT_FLAG(0, "threads", &o.threads, "also show time per thread"),
		OPT_FLAG(0, "no-summary", &o.no_summary, "omit the summary"),
		OPT_FLAG(0, "json", &o.json, "print JSON (docs/json.md); omits rows below 0.5 %"),
		OPT_GROUP("Page"),
		OPT_STR('o', "output", &o.output, "FILE",
			"write an HTML page with flame graph, table and timeline (default: print "
			"to the terminal)"),
		OPT_SOURCE_ROOT(&o.file.source_root),
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
	choose_limits(&o);
	status = select_opts_read(call, &o.select, &o.query);
	if (!status) {
		o.view.by = o.by_word ? report_by_read(&o.by_word, &o.query) : BY_FUNCTION;
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
		"Shows what was recorded, what was lost, and the functions by time. Merges several "
		"recordings. FILE defaults to profile.pyebpf.\n\nSelf time is spent in the "
		"function's own lines. Total time includes the functions it calls. Recursive calls "
		"count once. In the tree a callee is printed below its caller, and is indented "
		"only where a caller has several callees.\n\nRecordings with waits show wall time: "
		"CPU time plus waiting, summed over all threads. --kind shows one kind, --no-idle "
		"leaves out idle threads, --threads shows time per thread (docs/waiting.md).",
	.examples = "pyebpf report\tthe 20 functions with the most self time\npyebpf report --tree "
		    "--min-percent 2 app.pyebpf\tthe call tree, without small branches\npyebpf "
		    "report -o app.html --open app.pyebpf\tan HTML page with a flame graph\npyebpf "
		    "report --lines --sort total\tsource lines, by total time\npyebpf report --by "
		    "'test_*' tests.pyebpf\thow long each test takes\npyebpf report --json "
		    "--min-percent 2 app.pyebpf\tshort JSON, for a program\npyebpf report --gil "
		    "wall.pyebpf\twho waited for the GIL, and who held it",
	.run = run,
};
