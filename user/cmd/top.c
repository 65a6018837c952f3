/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#include "cmd/top.h"

#include <errno.h>
#include <poll.h>
#include <signal.h>

#include "base/clock.h"
#include "base/err.h"
#include "collect/modes.h"

#define FREQ_HZ 99
#define FREQ_MAX_HZ 100000
#define WINDOW_NS (10 * NS_PER_SECOND)
#define COMMAND_END_MS 2000 /* a command that takes longer to end is left alone */

static const char *const table_words[] = { "processes", "threads", "functions", "tasks", NULL };
static const char *const column_words[] = { "self", "total", "wait", "gil", NULL };

enum mode_choice { CHOSEN_WALL, CHOSEN_CPU, CHOSEN_NONE };
static const char *const mode_choices[] = { "wall", "cpu", NULL };

static void set_modes(struct record_opts *o, unsigned int choice)
{
	o->modes = choice == CHOSEN_CPU ? MODE_CPU : MODE_WALL;
	o->can_do_without_waits = choice == CHOSEN_NONE;
}

static int fail_terminal(const struct call *call, int r)
{
	cmd_fail(call, r);
	cmd_try("pyebpf record -d 10s, then pyebpf report");
	return EXIT_USAGE;
}

/* Of a filter on the command line the words are those of the prompt. */
static int read_filter(struct top *t, const struct select_opts *o)
{
	const struct select_query q = select_opts_query(o);
	int r = select_put_query(&q, &t->view.filter);

	if (r >= 0)
		r = top_filter_read(&t->filter, strbuf_str(&t->view.filter));
	if (r >= 0)
		top_model_select(t->model, &t->filter.query);
	return r;
}

/* It was started to be looked at, and nobody sees what it writes. */
static int end_command(struct launch *l)
{
	uint64_t until_ns = monotonic_ns() + COMMAND_END_MS * 1000000ULL;

	if (!l->pid)
		return EXIT_OK;
	launch_reap(l, false);
	if (l->has_ended)
		return launch_exit_code(l);
	kill(l->pid, SIGTERM);
	kill(l->pid, SIGCONT);
	while (!l->has_ended && monotonic_ns() < until_ns) {
		poll(NULL, 0, 10);
		launch_reap(l, false);
	}
	return EXIT_OK;
}

static int watch(const struct call *call, struct top *t)
{
	int r = top_start(t);

	if (r >= 0)
		r = top_loop(t);
	if (t->terminal)
		top_terminal_close(t->terminal);
	if (r < 0)
		return record_run_fail(call, &t->run, r);
	return end_command(&t->run.targets.launch);
}

static int run(struct call *call)
{
	struct record_opts o = { .ring_bytes = 8 << 20, .freq_hz = FREQ_HZ };
	struct select_opts selection = { 0 };
	uint64_t window_ns = WINDOW_NS;
	unsigned int mode = CHOSEN_NONE, table = TOP_FUNCTIONS, column = TOP_SELF;
	bool has_async = false;
	const struct opt opts[] = {
		OPT_GROUP("What to watch"),
		RECORD_TARGET_OPTIONS(&o),
		OPT_FREQ('F', "freq", &o.freq_hz, "samples per second of CPU time (default: 99)",
			 .min = 1, .max = FREQ_MAX_HZ),
		OPT_ALIAS('r', "rate"),
		OPT_ENUM(0, "mode", &mode, "MODE", mode_choices,
			 "record CPU time and waits, or CPU time only (default: wall, where the "
			 "kernel supports it)"),
		OPT_FLAG(0, "async", &has_async,
			 "also show tasks of event loops: key 4, --view tasks"),
		OPT_FLAG('n', "native", &o.has_native,
			 "show <native> where Python calls C, or C calls Python"),
		OPT_FLAG(0, "no-gc", &o.no_gc, "do not show <GC> frames"),
		OPT_GROUP("What to show (keys change it: ? lists them)"),
		OPT_ENUM(0, "view", &table, "VIEW", table_words,
			 "what each row shows (default: functions)"),
		OPT_ENUM(0, "sort", &column, "COLUMN", column_words,
			 "sort rows by this column (default: self)"),
		OPT_TIME(0, "window", &window_ns, "show the last TIME (default: 10s)",
			 .min = NS_PER_SECOND, .max = 3600 * NS_PER_SECOND),
		OPT_GROUP("Selection (GLOBs; each may repeat)"),
		SELECT_PATTERNS(&selection),
		SELECT_LABELS(&selection),
		OPT_GROUP("Tuning"),
		KERNEL_OPTIONS(&o.kernel),
		OPT_END,
	};
	struct top t = { .run = { .o = &o,
				  .targets = { .o = &o,
					       .command = &call->operands,
					       .launch = LAUNCH_INIT,
					       .cgroup = CGROUP_INIT },
				  .files.o = &o.outputs,
				  .signal_fd = -1 } };
	int status, r;

	if (!cmd_options(call, opts, &status))
		return status;
	t.run.targets.launch.leaves_terminal = true;
	top_view_init(&t.view);
	t.view.table = (enum top_table)table;
	t.view.sort = (enum top_column)column;
	t.view.has_tasks = has_async || table == TOP_TASKS;
	o.async = t.view.has_tasks ? ASYNC_TASKS : ASYNC_NONE;
	set_modes(&o, mode);
	status = record_targets_check(call, &o);
	if (!status && (r = top_terminal_check()) < 0)
		status = fail_terminal(call, r);
	if (!status &&
	    ((r = top_model_new(window_ns, &t.model)) < 0 || (r = read_filter(&t, &selection)) < 0))
		status = cmd_fail(call, r);
	if (!status)
		status = watch(call, &t);
	top_release(&t);
	select_opts_release(&selection);
	vec_release(&o.pids);
	return status;
}

const struct command command_top = {
	.name = "top",
	.summary = "watch Python processes live",
	.usage = "-p PID[,PID...] [OPTION]...\n-a [OPTION]...\n--cgroup PATH [OPTION]...\n"
		 "--container ID [OPTION]...\n[OPTION]... -- COMMAND [ARG]...",
	.about = "Shows live which functions, threads and processes use CPU time, wait, and wait "
		 "for the GIL, for the last seconds or since the start. The processes are not "
		 "stopped, not written to and not traced. Requires the same permissions as "
		 "record.\n\nKeys: ? lists them, q quits, s saves everything since the start as a "
		 "recording for report, diff and export. COMMAND runs without the terminal, and is "
		 "ended at q.",
	.examples = "pyebpf top -p 412\ta running process and its children\n"
		    "pyebpf top -a --view processes\tall of the machine\n"
		    "pyebpf top -p 412 --thread 'worker*' --sort wait\twhere workers wait\n"
		    "pyebpf top -- python3 app.py\ta program from its start",
	.operands = "*",
	.run = run,
};
