/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#include <stdlib.h>
#include <string.h>

#include "base/hash.h"
#include "base/units.h"
#include "cmd/carets.h"
#include "cmd/dump.h"
#include "cmd/dump_tasks.h"
#include "cmd/stopped.h"
#include "collect/wait_words.h"
#include "inspect/stack_locals.h"
#include "profile/idmap.h"
#include "symbolize/code.h"
#include "target/offsets.h"

/* `dump` for people. */

#define REPEATS_SHOWN 3 /* frames alike in a row: _RECURSIVE_CUTOFF of Lib/traceback.py */
/* The start of a process is known to a tick, and what is started is often just written. */
#define CHANGE_SLACK_NS INT64_C(1000000000)
#define ALIKE_SHOWN 8 /* threads alike whose names are told */

struct printer {
	struct line line;
	const struct dump *dump;
	const struct inspect_process *process;
};

/* --- Frames ----------------------------------------------------------------------------------- */

static bool is_changed(const struct printer *p, const char *file)
{
	int64_t changed_ns = sources_changed_ns(p->dump->sources, p->process, file);

	return changed_ns && p->process->start_ns &&
	       changed_ns > p->process->start_ns + CHANGE_SLACK_NS;
}

/* The marks of Python's tracebacks, under the line without its indent. */
static int put_carets(struct printer *p, const struct source_line *source, size_t indent,
		      const struct code_position *at)
{
	struct line *l = &p->line;
	size_t from, before, hot, after;
	struct carets c;

	if (!carets_find(source->text, source->len, at, &c) || c.start < indent)
		return 0;
	from = foreign_columns(source->text + indent, c.start - indent);
	before = foreign_columns(source->text + c.start, c.hot_start - c.start);
	hot = foreign_columns(source->text + c.hot_start, c.hot_end - c.hot_start);
	after = foreign_columns(source->text + c.hot_end, c.end - c.hot_end);
	line_pad(l, 4 + from);
	while (before--)
		line_put(l, STYLE_HOT, "~");
	while (hot--)
		line_put(l, STYLE_HOT, "^");
	while (after--)
		line_put(l, STYLE_HOT, "~");
	return line_end(l);
}

static int put_source(struct printer *p, const struct inspect_frame *f)
{
	struct source_line source;
	size_t indent = 0;
	int r;

	if (!sources_line(p->dump->sources, p->process, f->file, f->at.line, &source))
		return 0;
	while (indent < source.len && strchr(" \t\f", source.text[indent]))
		indent++;
	if (indent == source.len)
		return 0;
	line_put(&p->line, STYLE_PLAIN, "    ");
	line_put_foreign(&p->line, STYLE_PLAIN, source.text + indent, source.len - indent);
	if ((r = line_end(&p->line)) < 0)
		return r;
	return put_carets(p, &source, indent, &f->at);
}

static int put_local(struct printer *p, const struct inspect_local *local)
{
	struct line *l = &p->line;

	line_put(l, STYLE_PLAIN, "      ");
	line_put_foreign(l, local->kind == LOCAL_ARGUMENT ? STYLE_BOLD : STYLE_DIM, local->name,
			 strlen(local->name));
	line_put(l, STYLE_DIM, " = ");
	line_put_foreign(l, STYLE_PLAIN, local->value, strlen(local->value));
	return line_end(l);
}

/* Of those that have a value: arguments first. */
static int put_locals(struct printer *p, const struct inspect_frame *f)
{
	int r = 0;

	if (!p->dump->locals)
		return 0;
	if (!f->locals) {
		line_put(&p->line, STYLE_DIM,
			 f->flags & FRAME_COMPILED
				 ? "      [local variables: not readable in compiled code]"
				 : "      [local variables not read: unreadable or out of time]");
		return line_end(&p->line);
	}
	for (size_t i = 0; i < f->locals->len && r >= 0; i++)
		if (f->locals->items[i].value)
			r = put_local(p, &f->locals->items[i]);
	if (r >= 0 && f->locals->left_out) {
		line_putf(&p->line, STYLE_DIM, "      [%zu more variables]", f->locals->left_out);
		r = line_end(&p->line);
	}
	return r;
}

static int put_frame(struct printer *p, const struct inspect_frame *f)
{
	struct line *l = &p->line;
	int r;

	if (f->flags & FRAME_INTERPRETER) {
		line_putf(l, STYLE_DIM, "  %s", f->name);
		return line_end(l);
	}
	if (!f->identity) {
		line_put(l, STYLE_DIM, "  [frame with unreadable code object]");
		return line_end(l);
	}
	line_put(l, STYLE_PLAIN, "  File \"");
	line_put_foreign(l, STYLE_PLAIN, f->file, f->file_len);
	if (f->at.line)
		line_putf(l, STYLE_PLAIN, "\", line %d, in ", f->at.line);
	else
		line_putf(l, STYLE_PLAIN, "\", line ~%d, in ", f->first_line);
	line_put_foreign(l, STYLE_BOLD, f->name, f->name_len);
	if (is_changed(p, f->file))
		line_put(l, STYLE_WARM, " (source changed since the process started)");
	if ((r = line_end(l)) < 0 || (r = put_source(p, f)) < 0)
		return r;
	return put_locals(p, f);
}

static bool is_same_place(const struct inspect_frame *a, const struct inspect_frame *b)
{
	return a->identity == b->identity && a->at.line == b->at.line && stack_locals_same(a, b);
}

/* The end at which a walk that was cut had to stop: the outermost calls. */
static const char *cut_of(const struct inspect_thread *t)
{
	switch (t->status) {
	case UNWIND_COMPLETE:
	case UNWIND_OUTSIDE:
	case UNWIND_UNIDENTIFIED:
		return NULL;
	case UNWIND_TRUNCATED:
		return "outer frames omitted: stack too deep";
	case UNWIND_LATE:
		return "outer calls are left out: it took too long";
	case UNWIND_FAULT:
		return "outer frames missing: memory not readable";
	case UNWIND_CUT:
	case UNWIND_INVALID:
		break;
	}
	return "outer frames missing: broken frame chain";
}

static int put_note(struct printer *p, const char *text)
{
	line_putf(&p->line, STYLE_DIM, "  [%s]", text);
	return line_end(&p->line);
}

static int put_repeats(struct printer *p, size_t repeats)
{
	if (repeats <= REPEATS_SHOWN)
		return 0;
	repeats -= REPEATS_SHOWN;
	line_putf(&p->line, STYLE_DIM, "  [Previous line repeated %zu more time%s]", repeats,
		  repeats == 1 ? "" : "s");
	return line_end(&p->line);
}

static int put_stack(struct printer *p, const struct inspect_thread *t)
{
	const bool recent_first = p->dump->recent_first;
	const char *cut = cut_of(t);
	const struct inspect_frame *last = NULL;
	size_t repeats = 0;
	int r = 0;

	if (cut && !recent_first)
		r = put_note(p, cut);
	for (size_t i = 0; i < t->frame_count && r >= 0; i++) {
		const struct inspect_frame *f =
			&t->frames[recent_first ? i : t->frame_count - 1 - i];

		if (!last || !is_same_place(last, f)) {
			r = put_repeats(p, repeats);
			repeats = 0;
		}
		last = f;
		if (r >= 0 && ++repeats <= REPEATS_SHOWN)
			r = put_frame(p, f);
	}
	if (r >= 0)
		r = put_repeats(p, repeats);
	if (r >= 0 && cut && recent_first)
		r = put_note(p, cut);
	return r;
}

/* --- What a thread does -------------------------------------------------------------------------
 */

static const struct inspect_thread *find_thread(const struct inspect_process *p, pid_t tid)
{
	for (size_t i = 0; i < p->thread_count; i++)
		if (p->threads[i].tid == tid)
			return &p->threads[i];
	return NULL;
}

static void put_name(struct line *l, const struct inspect_thread *t)
{
	const char *name = t->name ? t->name : t->comm;

	line_put(l, STYLE_PLAIN, " \"");
	line_put_foreign(l, STYLE_BOLD, name, strlen(name));
	line_put(l, STYLE_PLAIN, "\"");
}

/* "thread 412 "Worker"". */
static void put_thread_of(struct printer *p, pid_t tid)
{
	const struct inspect_thread *t = find_thread(p->process, tid);

	line_putf(&p->line, STYLE_PLAIN, "thread %d", tid);
	if (t)
		put_name(&p->line, t);
}

static void put_lock(struct printer *p, const struct inspect_thread *t)
{
	const struct inspect_lock *lock = &t->lock;

	if (lock->kind == LOCK_NONE)
		return;
	if (lock->kind != LOCK_GIL)
		line_putf(&p->line, STYLE_PLAIN, ", %s at 0x%llx", dump_lock_word(lock->kind),
			  (unsigned long long)lock->address);
	if (!lock->owner)
		return;
	line_put(&p->line, STYLE_PLAIN, lock->kind == LOCK_GIL ? ", held by " : " held by ");
	put_thread_of(p, lock->owner);
}

static void put_state(struct printer *p, const struct inspect_thread *t, int64_t longest_ns)
{
	struct line *l = &p->line;
	const bool tells_wait = t->state == THREAD_BLOCKED && t->wait != WAIT_NONE;

	line_put(l, t->state == THREAD_RUNNING ? STYLE_HOT : STYLE_PLAIN,
		 t->state == THREAD_RUNNING ? "on CPU" : dump_state_word(t->state));
	if (t->wait_ns >= 0) {
		line_putf(l, STYLE_PLAIN, " %s", units_ns((uint64_t)t->wait_ns).s);
		if (longest_ns > t->wait_ns &&
		    strcmp(units_ns((uint64_t)longest_ns).s, units_ns((uint64_t)t->wait_ns).s))
			line_putf(l, STYLE_PLAIN, " to %s", units_ns((uint64_t)longest_ns).s);
	}
	if (tells_wait)
		line_putf(l, STYLE_WARM, ": %s", wait_text(t->wait, t->syscall).s);
	if (tells_wait && t->fd >= 0)
		line_putf(l, STYLE_PLAIN, ", fd %d", t->fd);
	if (tells_wait && t->file) {
		line_put(l, STYLE_PLAIN, " (");
		line_put_foreign(l, STYLE_PLAIN, t->file, strlen(t->file));
		line_put(l, STYLE_PLAIN, ")");
	}
	put_lock(p, t);
	if (t->holds_gil)
		line_put(l, STYLE_WARM, ", holds the GIL");
	if (t->in_gc)
		line_put(l, STYLE_WARM, ", collects garbage");
	if (t->handles) {
		line_put(l, STYLE_PLAIN, ", handles ");
		line_put_foreign(l, STYLE_WARM, t->handles, strlen(t->handles));
	}
}

/* --- Threads alike ---------------------------------------------------------------------------- */

static bool is_same_text(const char *a, const char *b)
{
	return a && b ? !strcmp(a, b) : a == b;
}

static bool is_alike(const struct inspect_thread *a, const struct inspect_thread *b)
{
	if (a->state != b->state || a->wait != b->wait || a->syscall != b->syscall ||
	    a->holds_gil != b->holds_gil || a->in_gc != b->in_gc ||
	    a->is_consistent != b->is_consistent || a->is_guess != b->is_guess ||
	    a->status != b->status || a->lock.address != b->lock.address ||
	    a->lock.owner != b->lock.owner || !a->tstate != !b->tstate ||
	    !is_same_text(a->handles, b->handles) || a->frame_count != b->frame_count)
		return false;
	if (!a->tstate)
		return !strcmp(a->comm, b->comm);
	for (size_t i = 0; i < a->frame_count; i++)
		if (!is_same_place(&a->frames[i], &b->frames[i]))
			return false;
	return true;
}

/* Of what is_alike() compares, what threads differ in. */
static uint64_t hash_thread(const struct inspect_thread *t)
{
	uint64_t h = hash_combine(t->lock.address, t->frame_count);

	for (size_t i = 0; i < t->frame_count; i++) {
		h = hash_combine(h, t->frames[i].identity);
		h = hash_combine(h, (uint64_t)t->frames[i].at.line);
		h = stack_locals_hash(&t->frames[i], h);
	}
	return h;
}

void dump_groups_release(struct dump_groups *groups)
{
	vec_release(&groups->items);
	free(groups->of_thread);
}

/* Returns the index of the group of thread i, a new one if none is alike, or -ENOMEM. */
static int64_t find_group(const struct inspect_process *p, size_t i, struct idmap *by_hash,
			  struct dump_groups *groups)
{
	const struct inspect_thread *t = &p->threads[i];
	const struct dump_group made = { i, 0, t->wait_ns, t->wait_ns, true };
	const uint64_t hash = hash_thread(t);
	size_t at = IDMAP_START;
	uint32_t k;

	while ((k = idmap_next(by_hash, hash, &at)) != IDMAP_NONE)
		if (is_alike(&p->threads[groups->items.items[k].first], t))
			return k;
	k = (uint32_t)groups->items.len;
	if (idmap_reserve(by_hash) < 0 || vec_push(&groups->items, made) < 0)
		return -ENOMEM;
	idmap_insert(by_hash, hash, k);
	return k;
}

static int find_groups(const struct inspect_process *p, struct idmap *by_hash,
		       struct dump_groups *out)
{
	for (size_t i = 0; i < p->thread_count; i++) {
		const struct inspect_thread *t = &p->threads[i];
		int64_t k = find_group(p, i, by_hash, out);
		struct dump_group *g;

		if (k < 0)
			return -ENOMEM;
		g = &out->items.items[k];
		g->count++;
		g->is_one_file &= t->fd == p->threads[g->first].fd;
		if (t->wait_ns < g->shortest_ns)
			g->shortest_ns = t->wait_ns;
		if (t->wait_ns > g->longest_ns)
			g->longest_ns = t->wait_ns;
		out->of_thread[i] = (size_t)k;
	}
	return 0;
}

int dump_find_groups(const struct inspect_process *p, struct dump_groups *out)
{
	struct idmap by_hash = { 0 };
	int r;

	out->of_thread = calloc(p->thread_count ? p->thread_count : 1, sizeof(*out->of_thread));
	if (!out->of_thread)
		return -ENOMEM;
	r = find_groups(p, &by_hash, out);
	idmap_release(&by_hash);
	return r;
}

/* The others of a group. */
static int put_others(struct printer *p, const struct dump_groups *groups, size_t group)
{
	const struct dump_group *g = &groups->items.items[group];
	struct line *l = &p->line;
	size_t shown = 0;

	if (g->count < 2)
		return 0;
	line_put(l, STYLE_DIM, "  also");
	for (size_t i = g->first + 1; i < p->process->thread_count && shown < ALIKE_SHOWN; i++) {
		const struct inspect_thread *t = &p->process->threads[i];

		if (groups->of_thread[i] != group)
			continue;
		line_putf(l, STYLE_DIM, "%s %d", shown++ ? "," : "", t->tid);
		if (t->name)
			put_name(l, t);
	}
	if (shown < g->count - 1)
		line_putf(l, STYLE_DIM, " and %zu more", g->count - 1 - shown);
	return line_end(l);
}

static int put_group(struct printer *p, const struct dump_groups *groups, size_t group)
{
	const struct dump_group *g = &groups->items.items[group];
	struct inspect_thread t = p->process->threads[g->first];
	struct line *l = &p->line;
	int r;

	t.wait_ns = g->shortest_ns;
	if (!g->is_one_file) {
		t.fd = -1;
		t.file = NULL;
	}
	line_putf(l, STYLE_PLAIN, "Thread %d", t.tid);
	put_name(l, &t);
	if (t.name && strncmp(t.name, t.comm, COMM_BYTES - 1) != 0) {
		line_put(l, STYLE_DIM, " (");
		line_put_foreign(l, STYLE_DIM, t.comm, strlen(t.comm));
		line_put(l, STYLE_DIM, ")");
	}
	if (g->count > 1)
		line_putf(l, STYLE_BOLD, " x %zu", g->count);
	line_put(l, STYLE_PLAIN, ": ");
	put_state(p, &t, g->longest_ns);
	if ((r = line_end(l)) < 0 || (r = put_others(p, groups, group)) < 0)
		return r;
	if (!t.is_consistent && t.tstate && t.state != THREAD_DEAD &&
	    (r = put_note(
		     p,
		     "the thread was running while it was read: this stack may be inconsistent")) <
		    0)
		return r;
	if (t.is_guess && t.frame_count &&
	    (r = put_note(p, "a guess: of several thread states, the likeliest one")) < 0)
		return r;
	if (!t.frame_count && t.state != THREAD_DEAD)
		return put_note(p, t.tstate ? "runs no Python code" : "not a Python thread");
	return put_stack(p, &t);
}

/* --- Processes -------------------------------------------------------------------------------- */

static int put_cycle(struct printer *p, const struct inspect_cycle *cycle)
{
	struct line *l = &p->line;
	int r;

	line_put(l, STYLE_HOT, "Deadlock:");
	r = line_end(l);
	for (size_t i = 0; i < cycle->threads.len && r >= 0; i++) {
		const struct inspect_thread *t = &p->process->threads[cycle->threads.items[i]];

		line_put(l, STYLE_PLAIN, "  ");
		put_thread_of(p, t->tid);
		line_putf(l, STYLE_PLAIN, " waits for %s at 0x%llx, held by ",
			  dump_lock_word(t->lock.kind), (unsigned long long)t->lock.address);
		put_thread_of(p, t->lock.owner);
		r = line_end(l);
	}
	return r;
}

/* All threads, as a signal does it, and not a tracer or freezer one or the other. */
static int put_stopped(struct printer *p)
{
	struct line *l = &p->line;

	if (!stopped_is(p->process->pid))
		return 0;
	line_putf(l, STYLE_WARM,
		  "stopped by a signal (SIGSTOP, Ctrl-Z): it runs nothing until kill -CONT %d",
		  p->process->pid);
	return line_end(l);
}

static int put_other_python(struct printer *p)
{
	char text[RUNTIME_TWO_BYTES];

	if (!p->process->runtime.other_version)
		return 0;
	runtime_format_two(&p->process->runtime, text);
	line_put(&p->line, STYLE_WARM, "two Pythons: ");
	line_put_foreign(&p->line, STYLE_WARM, text, strlen(text));
	return line_end(&p->line);
}

static int put_process(struct printer *p, const struct dump_item *item)
{
	const struct inspect_process *process = p->process;
	struct line *l = &p->line;
	char version[VERSION_TEXT_BYTES];
	int r;

	version_format(process->runtime.version, version);
	line_putf(l, STYLE_BOLD, "pid %d", process->pid);
	line_putf(l, STYLE_PLAIN, ", CPython %s%s, %zu thread%s%s: ", version,
		  process->runtime.offsets.is_free_threaded ? " free-threaded" : "",
		  process->thread_count, process->thread_count == 1 ? "" : "s",
		  process->is_frozen ? ", frozen" : "");
	line_put_foreign(l, STYLE_PLAIN, process->command_line, strlen(process->command_line));
	if (*item->container.id)
		line_putf(l, STYLE_DIM, " (container %.12s)", item->container.id);
	if ((r = line_end(l)) < 0 || (r = put_stopped(p)) < 0 || (r = put_other_python(p)) < 0)
		return r;
	for (size_t i = 0; i < process->cycles.len && r >= 0; i++)
		r = put_cycle(p, &process->cycles.items[i]);
	return r;
}

/* What it cost the process. */
static int put_pauses(struct printer *p)
{
	int64_t longest_ns = -1;
	size_t count = 0;
	int r;

	for (size_t i = 0; i < p->process->thread_count; i++) {
		int64_t ns = p->process->threads[i].pause_ns;

		count += ns >= 0;
		longest_ns = ns > longest_ns ? ns : longest_ns;
	}
	if (!count || (r = line_end(&p->line)) < 0)
		return count ? r : 0;
	line_putf(&p->line, STYLE_DIM,
		  "%zu running thread%s %s paused to unwind %s: for %s at most", count,
		  count == 1 ? "" : "s", count == 1 ? "was" : "were",
		  count == 1 ? "itself" : "themselves", units_ns((uint64_t)longest_ns).s);
	return line_end(&p->line);
}

static int put_tasks(struct printer *p, const struct dump_item *item)
{
	struct line *l = &p->line;
	int r = put_process(p, item);

	if (r < 0 || (r = line_end(l)) < 0)
		return r;
	if (item->tasks_error) {
		line_put(l, STYLE_WARM, item->tasks_error);
		return line_end(l);
	}
	if (!item->tasks.loops.len && !item->tasks.unreadable && !item->tasks.frameless &&
	    !item->tasks.are_greenlets_torn) {
		line_put(l, STYLE_PLAIN,
			 "no tasks: no loop of asyncio or trio has one, and no greenlet waits");
		return line_end(l);
	}
	return dump_tasks_print(l->t, &item->tasks);
}

int dump_text(const struct terminal *t, const struct dump *d, const struct dump_item *item)
{
	struct printer p = { .line = LINE_INIT(t), .dump = d, .process = item->process };
	struct dump_groups groups = { 0 };
	int r;

	if (d->has_tasks) {
		r = put_tasks(&p, item);
		line_release(&p.line);
		return r;
	}
	r = dump_find_groups(p.process, &groups);

	if (r >= 0)
		r = put_process(&p, item);
	for (size_t i = 0; i < groups.items.len && r >= 0; i++)
		r = (r = line_end(&p.line)) < 0 ? r : put_group(&p, &groups, i);
	if (r >= 0)
		r = put_pauses(&p);
	dump_groups_release(&groups);
	line_release(&p.line);
	return r;
}
