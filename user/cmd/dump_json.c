/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/json.h"
#include "base/strbuf.h"
#include "cmd/dump.h"
#include "cmd/dump_tasks.h"
#include "collect/wait_words.h"
#include "inspect/locals.h"
#include "profile/module.h"
#include "symbolize/code.h"
#include "target/offsets.h"

/* `dump --json`: the keys stand in README's and docs/dump.md's order, which programs rely on. */

static void put_bool(struct json *j, const char *key, bool value)
{
	json_key(j, key);
	json_bool(j, value);
}

void dump_json_number(struct json *j, const char *key, int value, int least)
{
	json_key(j, key);
	value < least ? json_null(j) : json_i64(j, value);
}

static struct dump_script find_script(const struct inspect_process *p)
{
	for (size_t i = 0; i < p->thread_count; i++) {
		const struct inspect_thread *t = &p->threads[i];

		for (size_t k = t->frame_count; k-- > 0;) {
			const struct inspect_frame *f = &t->frames[k];
			const char *slash = memrchr(f->file, '/', f->file_len);

			if (!strcmp(f->name, "<module>") && slash && *f->file != '<' &&
			    !module_library_root(f->file, f->file_len))
				return (struct dump_script){ f->file,
							     (size_t)(slash - f->file) + 1 };
		}
	}
	return (struct dump_script){ 0 };
}

int dump_json_module(struct json *j, const struct dump_script *script, const char *file, size_t len)
{
	_cleanup_(strbuf_releasep) struct strbuf name = STRBUF_INIT;
	size_t root = module_library_root(file, len);
	int r;

	if (!root && script->len && len > script->len && !memcmp(file, script->folder, script->len))
		root = script->len;
	r = module_put_name(file, len, root, &name);
	json_key_string(j, "module", name.len ? strbuf_str(&name) : NULL);
	return r;
}

/* Only with --locals. */
static void put_locals(struct json *j, const struct inspect_frame *f)
{
	if (!f->locals)
		return;
	json_key(j, "locals");
	json_array(j);
	for (size_t i = 0; i < f->locals->len; i++) {
		const struct inspect_local *local = &f->locals->items[i];

		json_object(j);
		json_key_string(j, "name", local->name);
		json_key_string(j, "type", local->type);
		json_key_string(j, "value", local->value);
		put_bool(j, "is_argument", local->kind == LOCAL_ARGUMENT);
		put_bool(j, "is_free", local->kind == LOCAL_FREE);
		json_end(j);
	}
	json_end(j);
}

static int put_frame(struct json *j, const struct dump_script *script,
		     const struct inspect_frame *f)
{
	int r = 0;

	json_object(j);
	json_key(j, "name");
	json_string_len(j, f->name, f->name_len);
	json_key(j, "file");
	json_string_len(j, f->file, f->file_len);
	dump_json_number(j, "line", f->at.line, 1);
	json_key_string(j, "type", f->flags & FRAME_INTERPRETER ? "marker" : "python");
	if (f->identity)
		r = dump_json_module(j, script, f->file, f->file_len);
	else
		json_key_string(j, "module", NULL);
	put_locals(j, f);
	dump_json_number(j, "end_line", f->at.end_line, 1);
	dump_json_number(j, "column", f->at.column, 0);
	dump_json_number(j, "end_column", f->at.end_column, 0);
	json_end(j);
	return r;
}

static void put_lock(struct json *j, const struct inspect_lock *lock)
{
	char address[24];

	json_key(j, "lock");
	if (!lock->address) {
		json_null(j);
		return;
	}
	snprintf(address, sizeof(address), "0x%llx", (unsigned long long)lock->address);
	json_object(j);
	json_key_string(j, "kind", dump_lock_word(lock->kind));
	json_key_string(j, "address", address);
	dump_json_number(j, "owner", lock->owner, 1);
	json_end(j);
}

static int put_thread(struct json *j, const struct dump_script *script,
		      const struct inspect_thread *t, size_t alike)
{
	int r = 0;

	json_object(j);
	json_key_u64(j, "tid", (uint64_t)t->tid);
	json_key_string(j, "name", t->name);
	json_key_string(j, "comm", t->comm);
	json_key_string(j, "state", dump_state_word(t->state));
	json_key_string(j, "wait", t->wait ? wait_text(t->wait, t->syscall).s : NULL);
	json_key_double(j, "wait_seconds", t->wait_ns < 0 ? NAN : (double)t->wait_ns / 1e9);
	put_bool(j, "holds_gil", t->holds_gil);
	put_bool(j, "waits_for_gil", t->waits_for_gil);
	put_bool(j, "in_gc", t->in_gc);
	json_key_string(j, "handles", t->handles);
	put_bool(j, "is_consistent", t->is_consistent);
	json_key(j, "frames");
	json_array(j);
	for (size_t i = t->frame_count; i-- > 0 && r >= 0;)
		r = put_frame(j, script, &t->frames[i]);
	json_end(j);
	put_bool(j, "in_python", t->tstate != 0);
	put_bool(j, "is_guess", t->is_guess);
	dump_json_number(j, "fd", t->fd, 0);
	json_key_string(j, "file", t->file);
	put_lock(j, &t->lock);
	json_key_u64(j, "alike", alike);
	json_key_double(j, "pause_seconds", t->pause_ns < 0 ? NAN : (double)t->pause_ns / 1e9);
	json_end(j);
	return r;
}

/* Of a limit: those in deadlocks, then one of each group, of the largest ones first. */
#define WEIGHS_IN_DEADLOCK (UINT64_C(1) << 62)
#define WEIGHS_FIRST (UINT64_C(1) << 32)

static void weigh_threads(const struct inspect_process *p, const struct dump_groups *groups,
			  uint64_t *weights)
{
	for (size_t i = 0; i < p->thread_count; i++) {
		const struct dump_group *g = &groups->items.items[groups->of_thread[i]];

		weights[i] = g->count + (g->first == i ? WEIGHS_FIRST : 0);
	}
	for (size_t i = 0; i < p->cycles.len; i++)
		for (size_t k = 0; k < p->cycles.items[i].threads.len; k++)
			weights[p->cycles.items[i].threads.items[k]] |= WEIGHS_IN_DEADLOCK;
}

/* kept: by thread. Where fewer than a share of all stand as one does, it is left out. */
static int keep_threads(const struct inspect_process *p, const struct largest *of,
			const struct dump_groups *groups, bool *kept, struct left_out *left)
{
	_cleanup_(freep) uint64_t *weights = calloc(p->thread_count + 1, sizeof(*weights));
	const struct largest most = { .limit = of->limit };
	double least = of->min_percent / 100 * (double)p->thread_count;
	size_t count;
	int r;

	if (!weights)
		return -ENOMEM;
	weigh_threads(p, groups, weights);
	r = largest_keep(&most, weights, p->thread_count, 0, kept, &count);
	for (size_t i = 0; i < p->thread_count && !r; i++) {
		size_t alike = groups->items.items[groups->of_thread[i]].count;

		kept[i] &= (double)alike >= least || weights[i] >= WEIGHS_IN_DEADLOCK;
		if (!kept[i])
			left_out_add(left, 1, p->thread_count);
	}
	return r;
}

static int put_threads(struct json *j, const struct inspect_process *p, const struct largest *of,
		       const struct dump_script *script, struct left_out *left)
{
	_cleanup_(freep) bool *kept = calloc(p->thread_count + 1, sizeof(*kept));
	_cleanup_(dump_groups_release) struct dump_groups groups = { 0 };
	int r = dump_find_groups(p, &groups);

	if (!kept)
		return -ENOMEM;
	if (r >= 0)
		r = keep_threads(p, of, &groups, kept, left);
	for (size_t i = 0; i < p->thread_count && r >= 0; i++)
		if (kept[i])
			r = put_thread(j, script, &p->threads[i],
				       groups.items.items[groups.of_thread[i]].count);
	return r;
}

static void put_cycle(struct json *j, const struct inspect_process *p,
		      const struct inspect_cycle *cycle)
{
	json_array(j);
	for (size_t i = 0; i < cycle->threads.len; i++)
		json_i64(j, p->threads[cycle->threads.items[i]].tid);
	json_end(j);
}

static void put_left_out(struct json *j, const struct left_out *threads,
			 const struct left_out *tasks)
{
	json_key(j, "left_out");
	json_object(j);
	json_left_out(j, "threads", threads);
	json_left_out(j, "tasks", tasks);
	json_end(j);
}

static int put_process(struct json *j, const struct dump_item *item, const struct largest *of)
{
	struct left_out threads = { 0 }, tasks = { 0 };

	const struct inspect_process *p = item->process;
	const struct dump_script script = p ? find_script(p) : (struct dump_script){ 0 };
	char version[VERSION_TEXT_BYTES];
	int r = 0;

	json_object(j);
	json_key_u64(j, "pid", (uint64_t)item->pid);
	json_key(j, "ppid");
	p ? json_i64(j, p->ppid) : json_null(j);
	json_key_string(j, "command_line", p ? p->command_line : NULL);
	if (p)
		version_format(p->runtime.version, version);
	json_key_string(j, "python", p ? version : NULL);
	if (p && p->runtime.other_version)
		version_format(p->runtime.other_version, version);
	json_key_string(j, "other_python", p && p->runtime.other_version ? version : NULL);
	json_key_string(j, "container", *item->container.id ? item->container.id : NULL);
	json_key_string(j, "error", item->error ? item->error : item->tasks_error);
	json_key(j, "threads");
	json_array(j);
	if (p)
		r = put_threads(j, p, of, &script, &threads);
	json_end(j);
	json_key(j, "tasks");
	if (r >= 0)
		r = dump_json_tasks(j, &item->tasks, of->limit, &script, &tasks);
	json_key(j, "deadlocks");
	json_array(j);
	for (size_t i = 0; p && i < p->cycles.len; i++)
		put_cycle(j, p, &p->cycles.items[i]);
	json_end(j);
	dump_json_task_cycles(j, &item->tasks);
	json_key_u64(j, "tasks_unreadable", item->tasks.unreadable);
	dump_json_number(j, "greenlets_without_frames",
			 item->tasks.are_greenlets_torn ? -1 : (int)item->tasks.frameless, 0);
	put_left_out(j, &threads, &tasks);
	json_end(j);
	return r;
}

int dump_json(FILE *out, const struct dump *d)
{
	struct json j;
	int r = 0, e;

	json_init(&j, out);
	json_object(&j);
	json_key_string(&j, "schema", "pyebpf-dump/1");
	json_key_time(&j, "time", d->time_ns);
	json_key(&j, "processes");
	json_array_lines(&j);
	for (size_t i = 0; i < d->items.len && r >= 0; i++)
		r = put_process(&j, &d->items.items[i], &d->largest);
	json_end(&j);
	json_end(&j);
	e = json_finish(&j);
	putc('\n', out);
	return r < 0 ? r : e;
}
