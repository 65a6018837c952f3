/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#include "cmd/dump.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "base/clock.h"
#include "base/err.h"
#include "base/log.h"
#include "base/workers.h"
#include "cmd/cmd.h"
#include "collect/own_walks.h"
#include "inspect/process_tasks.h"
#include "inspect/stack_locals.h"
#include "target/cgroup.h"
#include "target/container_cgroup.h"

#define READ_NS 10000000000ULL /* for the memory and files of a process, on a busy machine too */
#define READ_NEXT_NS 1000000000ULL /* where those of another one do not answer */

struct dump_opts {
	struct opt_u32_list pids;
	const char *container;
	bool all, children, json, tasks;
	unsigned int order;
	unsigned int locals;
	bool has_self, has_secrets;
	struct largest largest;
};

static const char *const order_words[] = { "recent-last", "recent-first", NULL };
enum { RECENT_LAST, RECENT_FIRST };

static const char *const locals_words[] = { "none", "short", "full", NULL };
enum { LOCALS_NONE, LOCALS_SHORT, LOCALS_FULL };

const char *dump_state_word(enum thread_state state)
{
	static const char *const words[] = {
		[THREAD_RUNNING] = "running", [THREAD_RUNNABLE] = "runnable",
		[THREAD_BLOCKED] = "blocked", [THREAD_STOPPED] = "stopped",
		[THREAD_DEAD] = "dead",
	};

	return words[state];
}

const char *dump_lock_word(enum lock_kind kind)
{
	static const char *const words[] = {
		[LOCK_NONE] = "lock",
		[LOCK_LOCK] = "Lock",
		[LOCK_RLOCK] = "RLock",
		[LOCK_GIL] = "GIL",
	};

	return words[kind];
}

/* --- Whom ------------------------------------------------------------------------------------- */

/* What was found by itself may not be Python, or have ended: that is no error. */
struct dump_targets {
	struct pids pids;
	size_t named; /* the first so many were named by the user */
};

static int add_children(struct dump_targets *t)
{
	for (size_t i = 0; i < t->named; i++) {
		struct pids found = VEC_INIT;
		int r = proc_descendants(t->pids.items[i], &found);

		if (r == -ENOMEM)
			return r;
		err_clear(); /* it is gone: said when it is read */
		for (size_t j = 0; j < found.len && r >= 0; j++) {
			bool is_known = false;

			for (size_t k = 0; k < t->pids.len; k++)
				is_known |= t->pids.items[k] == found.items[j];
			if (!is_known && vec_push(&t->pids, found.items[j]) < 0)
				r = -ENOMEM;
		}
		pids_releasep(&found);
		if (r == -ENOMEM)
			return r;
	}
	return 0;
}

static int list_container(const char *id, struct pids *out)
{
	struct cgroup cgroup = CGROUP_INIT;
	int r = cgroup_open_container(id, &cgroup);

	if (r >= 0)
		r = cgroup_list(&cgroup, out);
	cgroup_release(&cgroup);
	return r;
}

static int find_targets(const struct dump_opts *o, struct dump_targets *t)
{
	if (o->all)
		return proc_list(&t->pids);
	if (o->container)
		return list_container(o->container, &t->pids);
	for (size_t i = 0; i < o->pids.len; i++)
		if (vec_push(&t->pids, (pid_t)o->pids.items[i]) < 0)
			return -ENOMEM;
	t->named = t->pids.len;
	return o->children ? add_children(t) : 0;
}

/* --- Reading ---------------------------------------------------------------------------------- */

/* What reads processes. Where one does not answer, its inspector is lost with it. */
struct readers {
	struct inspector *in;
	struct own_walks *own; /* NULL: no BPF */
	struct locals_visitor locals;
	bool has_tasks, is_late;
};

/* One process, read apart: its memory and files may never answer. */
struct reading {
	struct inspector *in;
	bool has_tasks;
	struct dump_item item;
	int r;
	char text[ERR_BYTES]; /* the message of r */
};

/* What stands in the way of them is part of the output. */
static int read_tasks(struct reading *g)
{
	int r = process_tasks_read(g->in, g->item.process, &g->item.tasks);

	if (r >= 0 || r == -ENOMEM)
		return r;
	g->item.tasks_error = strdup(err_message(r));
	return g->item.tasks_error ? 0 : -ENOMEM;
}

static void read_apart(void *arg)
{
	struct reading *g = arg;

	g->r = inspect_process_open(g->in, g->item.pid, &g->item.process);
	if (g->r >= 0)
		g->r = inspect_process_read(g->in, g->item.process);
	if (g->r >= 0 && g->has_tasks)
		g->r = read_tasks(g);
	if (g->r < 0)
		snprintf(g->text, sizeof(g->text), "%s", err_message(g->r));
}

static int new_inspector(struct readers *by, bool has_locals)
{
	static const struct inspect_kernel kernel = { .run = own_walks_run,
						      .look = own_walks_look };
	int r = inspector_new(&by->in);

	if (r < 0)
		return r;
	if (by->own) {
		by->in->kernel = &kernel;
		by->in->kernel_arg = by->own;
	}
	if (has_locals) {
		by->in->visit = locals_visit;
		by->in->visit_arg = &by->locals;
	}
	return 0;
}

/* It belongs to the process that hangs now. */
static int give_up(struct readers *by, pid_t pid)
{
	bool has_locals = by->in->visit;
	char text[ERR_BYTES];
	int r;

	snprintf(text, sizeof(text), "%s", err_message(-ETIMEDOUT));
	by->own = NULL;
	by->is_late = true;
	r = new_inspector(by, has_locals);
	return r < 0 ? r : err_set(-ETIMEDOUT, "pid %d: %s", pid, text);
}

static void release_item(struct dump_item *item)
{
	inspect_process_free(item->process);
	inspect_tasks_release(&item->tasks);
	free(item->error);
	free(item->tasks_error);
}

static int read_process(struct readers *by, struct dump_item *item)
{
	struct reading *g = calloc(1, sizeof(*g));
	int r;

	if (!g)
		return -ENOMEM;
	*g = (struct reading){ .in = by->in, .has_tasks = by->has_tasks, .item.pid = item->pid };
	r = workers_call(read_apart, g, by->is_late ? READ_NEXT_NS : READ_NS);
	if (r == -ETIMEDOUT)
		return give_up(by, item->pid);
	if (r >= 0)
		r = g->r < 0 ? err_set(g->r, "%s", g->text) : 0;
	if (r >= 0)
		*item = g->item;
	else
		release_item(&g->item);
	free(g);
	return r == -EAGAIN || r == -EUSERS ? workers_say(r) : r;
}

static bool is_denied(int r)
{
	return r == -EPERM || r == -EACCES;
}

static int code_of(int r)
{
	return r == -ENOMEM ? EXIT_RUNTIME : is_denied(r) ? EXIT_DENIED : EXIT_NOTHING;
}

/* One of those that were named: its error is part of the output. *code: what that makes the exit
 * code. */
static int take_named(const struct call *call, struct readers *by, struct dump *d, pid_t pid,
		      int *code)
{
	struct dump_item item = { .pid = pid };
	int r = read_process(by, &item);

	if (r == -ENOMEM)
		return r;
	if (r < 0) {
		item.error = strdup(err_message(r));
		cmd_fail(call, r);
		if (r != -ESRCH)
			cmd_try("pyebpf doctor -p %d", pid);
		*code = *code ? *code : code_of(r);
		if (!item.error)
			return -ENOMEM;
	}
	if (vec_push(&d->items, item) == 0)
		return 0;
	release_item(&item);
	return -ENOMEM;
}

static int take_found(struct readers *by, struct dump *d, pid_t pid, size_t *denied)
{
	struct dump_item item = { .pid = pid };
	int r = read_process(by, &item);

	if (r == -ENOMEM)
		return r;
	if (r < 0) {
		*denied += is_denied(r);
		if (r == -ETIMEDOUT) /* it may be the one that is looked for */
			log_warning("%s", err_message(r));
		err_clear();
		return 0;
	}
	if (vec_push(&d->items, item) == 0)
		return 0;
	release_item(&item);
	return -ENOMEM;
}

static void find_containers(struct dump *d)
{
	struct cgroup_namespace ours = { 0 };

	if (cgroup_namespace_find(&ours) < 0)
		err_clear(); /* then it is told by what is seen from here */
	for (size_t i = 0; i < d->items.len; i++)
		container_find(d->items.items[i].pid, &ours, &d->items.items[i].container);
	cgroup_namespace_release(&ours);
	err_clear();
}

/* Returns the exit code, or a negative errno. */
static int read_all(const struct call *call, const struct dump_targets *t, struct dump *d)
{
	_cleanup_(own_walks_freep) struct own_walks *own = NULL;
	struct readers *by = calloc(1, sizeof(*by)); /* lives on where a process hangs */
	size_t denied = 0;
	int code = EXIT_OK, r;

	if (!by)
		return -ENOMEM;
	if (own_walks_new(&own) < 0)
		err_clear(); /* without BPF */
	*by = (struct readers){ .own = own,
				.locals.options = d->locals,
				.has_tasks = d->has_tasks };
	r = new_inspector(by, d->locals);
	for (size_t i = 0; i < t->pids.len && r >= 0; i++)
		r = i < t->named ? take_named(call, by, d, t->pids.items[i], &code)
				 : take_found(by, d, t->pids.items[i], &denied);
	inspector_free(by->in);
	if (by->is_late)
		take_ptr(own);
	else
		free(by);
	if (r < 0)
		return r;
	find_containers(d);
	if (denied)
		log_warning(
			"%zu process%s skipped: permission denied (needs root or CAP_SYS_PTRACE)",
			denied, denied == 1 ? "" : "es");
	if (d->items.len)
		return code;
	err_set(-ENOENT, "none of %zu processes runs Python", t->pids.len);
	cmd_fail(call, -ENOENT);
	return denied ? EXIT_DENIED : EXIT_NOTHING;
}

/* --- Printing --------------------------------------------------------------------------------- */

static int print_text(const struct dump *d)
{
	struct terminal t;
	bool is_first = true;
	int r = 0;

	terminal_init(&t, stdout);
	t.width = 0; /* a traceback is not cut */
	for (size_t i = 0; i < d->items.len && r >= 0; i++) {
		if (!d->items.items[i].process)
			continue; /* was said on stderr */
		if (!is_first)
			putchar('\n');
		is_first = false;
		r = dump_text(&t, d, &d->items.items[i]);
	}
	sources_say_missing(d->sources);
	return r;
}

static void release(struct dump *d)
{
	for (size_t i = 0; i < d->items.len; i++)
		release_item(&d->items.items[i]);
	vec_release(&d->items);
	sources_free(d->sources);
}

static int dump(const struct call *call, const struct dump_opts *o)
{
	struct dump_targets targets = { 0 };
	const struct locals_options locals = {
		.render = { .limits = o->locals == LOCALS_FULL ? &render_full : &render_short,
			    .has_secrets = o->has_secrets },
		.has_self = o->has_self,
	};
	struct dump d = { .time_ns = clock_ns(CLOCK_REALTIME),
			  .recent_first = o->order == RECENT_FIRST,
			  .has_tasks = o->tasks,
			  .largest = o->largest,
			  .locals = o->locals == LOCALS_NONE ? NULL : &locals };
	int r = find_targets(o, &targets), code = EXIT_RUNTIME;

	if (r < 0) {
		code = cmd_fail(call, r);
		if (o->container && r != -ENOMEM)
			code = r == -EINVAL   ? EXIT_USAGE
			       : r == -EACCES ? EXIT_DENIED
					      : EXIT_NOTHING;
	} else if ((r = sources_new(&d.sources)) >= 0 && (r = read_all(call, &targets, &d)) >= 0) {
		code = r;
		r = !d.items.len && !o->json ? 0 : o->json ? dump_json(stdout, &d) : print_text(&d);
		if (r < 0)
			code = cmd_fail(call, r);
	} else {
		code = cmd_fail(call, r);
	}
	release(&d);
	pids_releasep(&targets.pids);
	return code;
}

static int run(struct call *call)
{
	struct dump_opts o = { 0 };
	const struct opt opts[] = {
		OPT_GROUP("What to show"),
		OPT_U32_LIST('p', "pid", &o.pids, "PID", "show these processes", .min = 1,
			     .max = 1 << 22),
		OPT_FLAG('a', "all", &o.all, "show all Python processes of the machine"),
		OPT_STR(0, "container", &o.container, "ID",
			"show this container (id, first 12 digits or more)"),
		OPT_FLAG(0, "children", &o.children,
			 "also show the children of -p that run Python"),
		OPT_FLAG(0, "async", &o.tasks,
			 "show tasks of event loops (asyncio, uvloop, anyio, trio) and greenlets, "
			 "as trees"),
		OPT_GROUP("Local variables"),
		OPT_ENUM(0, "locals", &o.locals, "HOW", locals_words,
			 "show arguments and local variables (short or full values)",
			 .bare = LOCALS_SHORT),
		OPT_FLAG(0, "self", &o.has_self, "with --locals: also show attributes of self"),
		OPT_FLAG(0, "show-secrets", &o.has_secrets,
			 "do not mask passwords, tokens, cookies"),
		OPT_GROUP("Output"),
		OPT_ENUM(0, "order", &o.order, "ORDER", order_words,
			 "order of the calls in a stack (default: recent-last, as in Python's own "
			 "tracebacks)"),
		OPT_FLAG(0, "json", &o.json, "print one JSON object (docs/json.md)"),
		OPT_U32('n', "limit", &o.largest.limit, "N",
			"JSON: at most N threads and tasks per process, the most different ones "
			"(default: 0, all)"),
		OPT_PERCENT(0, "min-percent", &o.largest.min_percent,
			    "JSON: omit stacks shared by fewer than PERCENT of the threads "
			    "(default: 0)"),
		OPT_END,
	};
	int status, given;

	if (!cmd_options(call, opts, &status))
		return status;
	given = (o.pids.len > 0) + o.all + !!o.container;
	if (call->operands.len)
		status = cmd_usage(call, "unexpected argument %s: to examine a process, use -p PID",
				   call->operands.items[0]);
	else if (!given)
		status = cmd_usage(call, "no target: use -p PID, -a or --container ID");
	else if (given > 1)
		status = cmd_usage(call, "choose one of -p, -a and --container");
	else if ((o.has_self || o.has_secrets) && !o.locals)
		status = cmd_usage(call, "--self and --show-secrets require --locals");
	else if ((o.largest.limit || o.largest.min_percent > 0) && !o.json)
		status = cmd_usage(call, "--limit and --min-percent go with --json");
	else if (o.children && !o.pids.len)
		status = cmd_usage(call, "--children goes with -p");
	else
		status = dump(call, &o);
	vec_release(&o.pids);
	return status;
}

const struct command command_dump = {
	.name = "dump",
	.summary = "show what every thread is doing right now",
	.usage = "-p PID[,PID...] [OPTION]...\n-a [OPTION]...\n--container ID [OPTION]...",
	.about = "Prints the stack of each thread with its source, what the thread waits for and "
		 "since when, and who holds the lock. Also shows whether the thread holds the GIL, "
		 "collects garbage or handles an exception. Groups threads with the same stack. "
		 "Reports deadlocks.\n\nDoes not stop, signal or trace the process, and does not "
		 "need BPF. Requires root, CAP_SYS_PTRACE, or the same user. A running thread is "
		 "interrupted for some microseconds to unwind itself (Linux 6.18). Without BPF its "
		 "stack may be inconsistent, and dump says so.",
	.examples = "pyebpf dump -p 412\twhere does it hang?\n"
		    "pyebpf dump -p 412 --children\tand the processes that it has started?\n"
		    "pyebpf dump -p 412 --locals\tand with which arguments?\n"
		    "pyebpf dump --async -p 412\twhich task waits for which?\n"
		    "pyebpf dump -a --json\tall Pythons of this machine, for programs",
	.operands = "",
	.run = run,
};
