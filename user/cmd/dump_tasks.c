/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#include "cmd/dump_tasks.h"

#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "base/hash.h"

static const char *const states[] = {
	[TASK_WAITING] = "waiting",
	[TASK_READY] = "waiting",
	[TASK_RUNNING] = "running",
};

/* --- JSON ------------------------------------------------------------------------------------- */

struct address_text {
	char s[20];
};

static struct address_text address_text(uint64_t address)
{
	struct address_text text;

	snprintf(text.s, sizeof(text.s), "0x%" PRIx64, address);
	return text;
}

static int json_frames(struct json *j, const struct inspect_tasks *t, uint32_t first, uint32_t len,
		       const struct dump_script *script)
{
	int r = 0;

	json_array(j);
	for (uint32_t i = first; i < first + len && !r; i++) {
		const struct task_frame *f = &t->frames.items[i];

		json_object(j);
		json_key_string(j, "name", f->name);
		json_key_string(j, "file", f->file);
		dump_json_number(j, "line", f->line, 1);
		json_key_string(j, "type", "python");
		r = dump_json_module(j, script, f->file, strlen(f->file));
		json_end(j);
	}
	json_end(j);
	return r;
}

static int json_task(struct json *j, const struct inspect_tasks *t, const struct inspect_task *task,
		     const struct dump_script *script)
{
	const struct inspect_loop *loop = &t->loops.items[task->loop];
	int r;

	json_object(j);
	json_key_string(j, "id", address_text(task->id).s);
	json_key_string(j, "name", task->name);
	json_key_string(j, "loop", address_text(loop->id).s);
	json_key_string(j, "state", states[task->state]);
	json_key_string(j, "coroutine", task->coroutine);
	json_key(j, "frames");
	r = json_frames(j, t, task->frames, task->frames_len, script);
	json_key_string(j, "waits_for", task->waits_for);
	json_key(j, "awaited_by");
	json_array(j);
	for (uint32_t i = 0; i < task->awaited_by_len; i++)
		json_string(
			j, address_text(t->tasks.items[t->links.items[task->awaited_by + i]].id).s);
	json_end(j);
	json_key(j, "created");
	if (!task->created_len)
		json_null(j);
	else if (!r)
		r = json_frames(j, t, task->created, task->created_len, script);
	json_key(j, "tid");
	loop->tid ? json_i64(j, loop->tid) : json_null(j);
	json_key(j, "is_consistent");
	json_bool(j, loop->is_consistent);
	json_end(j);
	return r;
}

int dump_json_tasks(struct json *j, const struct inspect_tasks *t, uint32_t limit,
		    const struct dump_script *script, struct left_out *left)
{
	int r = 0;

	json_array(j);
	for (size_t i = 0; i < t->tasks.len && !r; i++)
		if (!limit || i < limit)
			r = json_task(j, t, &t->tasks.items[i], script);
		else
			left_out_add(left, 1, t->tasks.len);
	json_end(j);
	return r;
}

void dump_json_task_cycles(struct json *j, const struct inspect_tasks *t)
{
	json_key(j, "task_cycles");
	json_array(j);
	for (size_t i = 0; i < t->cycles.len; i++) {
		json_array(j);
		for (uint32_t k = 0; k < t->cycles.items[i].len; k++) {
			uint32_t task = t->links.items[t->cycles.items[i].first + k];

			json_string(j, address_text(t->tasks.items[task].id).s);
		}
		json_end(j);
	}
	json_end(j);
}

/* --- trees ------------------------------------------------------------------------------------ */

#define FOLDED_NAMES 3     /* of leaves that are alike, that are named */
#define TREE_DEPTH_MAX 100 /* of tasks below each other; deeper: not drawn */
#define CYCLE_NAMES_MAX 100

#define TEXTS_KNOWN 64 /* a power of two */

/* A place in the tree: what stands in front of each line there. */
struct place {
	const struct place *above; /* NULL: at the root */
	bool is_last;              /* of those above */
};

struct tree {
	const struct inspect_tasks *tasks;
	const struct terminal *terminal;
	uint32_t *children; /* places of tasks: those of each task, by name */
	uint32_t *first;    /* of each task, in these; one more at the end */
	uint64_t *look;     /* a hash of what a leaf looks like; 0: it is not one to be folded */
	bool *is_shown;
	bool *is_found;           /* below one of the roots */
	uint32_t *path;           /* room for the search */
	uint32_t *rank;           /* of siblings */
	struct address_map ranks; /* by look */
	struct {
		const char *text;
		uint64_t hash;
	} known[TEXTS_KNOWN]; /* of frames: thousands have the same few */
};

static const struct inspect_task *task_at(const struct tree *t, uint32_t i)
{
	return &t->tasks->tasks.items[i];
}

/* Who runs first; then by name, numbers in them as people count. */
static int compare_tasks(const void *a, const void *b, void *arg)
{
	const struct tree *t = arg;
	const struct inspect_task *x = task_at(t, *(const uint32_t *)a);
	const struct inspect_task *y = task_at(t, *(const uint32_t *)b);
	int order = (y->state == TASK_RUNNING) - (x->state == TASK_RUNNING);

	if (!order)
		order = strverscmp(x->name, y->name);
	return order ? order : x->id < y->id ? -1 : x->id > y->id;
}

/* The links, turned round. */
static void find_children(struct tree *t)
{
	const struct inspect_tasks *tasks = t->tasks;
	uint32_t sum = 0, n;

	for (uint32_t i = 0; i < tasks->tasks.len; i++)
		for (uint32_t k = 0; k < task_at(t, i)->awaited_by_len; k++)
			t->first[tasks->links.items[task_at(t, i)->awaited_by + k]]++;
	for (uint32_t i = 0; i <= tasks->tasks.len; i++) {
		n = t->first[i];
		t->first[i] = sum;
		sum += n;
	}
	for (uint32_t i = 0; i < tasks->tasks.len; i++)
		for (uint32_t k = 0; k < task_at(t, i)->awaited_by_len; k++)
			t->children[t->first[tasks->links.items[task_at(t, i)->awaited_by + k]]++] =
				i;
	for (uint32_t i = tasks->tasks.len; i > 0; i--)
		t->first[i] = t->first[i - 1];
	t->first[0] = 0;
}

static uint64_t text_hash(struct tree *t, const char *text)
{
	size_t i = hash_u64((uintptr_t)text) % TEXTS_KNOWN;

	if (t->known[i].text != text) {
		t->known[i].text = text;
		t->known[i].hash = hash_string(text, 0);
	}
	return t->known[i].hash;
}

static uint64_t look_of_frames(struct tree *t, uint32_t first, uint32_t len, uint64_t seed)
{
	for (uint32_t i = first; i < first + len; i++) {
		const struct task_frame *f = &t->tasks->frames.items[i];

		seed = hash_combine(hash_combine(seed, text_hash(t, f->name)),
				    hash_combine(text_hash(t, f->file), f->line));
	}
	return hash_combine(seed, len);
}

static uint64_t look_of(struct tree *t, uint32_t i)
{
	const struct inspect_task *task = task_at(t, i);
	uint64_t h = hash_combine(task->loop, task->state);

	if (t->first[i] != t->first[i + 1] || task->awaited_by_len > 1)
		return 0;
	h = look_of_frames(t, task->frames, task->frames_len, h);
	h = look_of_frames(t, task->created, task->created_len, h);
	return hash_string(task->waits_for ? task->waits_for : "", h) | 1;
}

static void tree_release(struct tree *t)
{
	free(t->children);
	free(t->first);
	free(t->look);
	free(t->is_shown);
	free(t->is_found);
	free(t->path);
	free(t->rank);
	address_map_release(&t->ranks);
}

static int tree_init(struct tree *t, const struct terminal *terminal,
		     const struct inspect_tasks *tasks)
{
	size_t count = tasks->tasks.len;

	*t = (struct tree){ .tasks = tasks,
			    .terminal = terminal,
			    .children = calloc(tasks->links.len + 1, sizeof(uint32_t)),
			    .first = calloc(count + 1, sizeof(uint32_t)),
			    .look = calloc(count + 1, sizeof(uint64_t)),
			    .is_shown = calloc(count + 1, sizeof(bool)),
			    .is_found = calloc(count + 1, sizeof(bool)),
			    .path = calloc(count + 1, sizeof(uint32_t)),
			    .rank = calloc(count + 1, sizeof(uint32_t)) };
	if (!t->children || !t->first || !t->look || !t->is_shown || !t->is_found || !t->path ||
	    !t->rank)
		return -ENOMEM;
	find_children(t);
	for (uint32_t i = 0; i < count; i++)
		t->look[i] = look_of(t, i);
	return 0;
}

/* The vertical lines of the places above. */
static void put_lines(struct line *l, const struct tree *t, const struct place *place)
{
	if (!place)
		return;
	put_lines(l, t, place->above);
	line_put(l, STYLE_DIM,
		 place->is_last             ? "    "
		 : t->terminal->has_unicode ? "\u2502   "
					    : "|   ");
}

static void put_branch(struct line *l, const struct tree *t, const struct place *place)
{
	put_lines(l, t, place->above);
	if (t->terminal->has_unicode)
		line_put(l, STYLE_DIM,
			 place->is_last ? "\u2514\u2500\u2500 " : "\u251c\u2500\u2500 ");
	else
		line_put(l, STYLE_DIM, place->is_last ? "`-- " : "|-- ");
}

static void put_foreign(struct line *l, enum style style, const char *text)
{
	line_put_foreign(l, style, text, strlen(text));
}

static int print_frames(const struct tree *t, const struct place *place, bool has_children,
			const char *words, uint32_t first, uint32_t len)
{
	const struct place below = { .above = place, .is_last = !has_children };
	int r = 0;

	for (uint32_t i = first; i < first + len && !r; i++) {
		const struct task_frame *f = &t->tasks->frames.items[i];
		struct line l = LINE_INIT(t->terminal);

		put_lines(&l, t, &below);
		line_put(&l, STYLE_DIM, words);
		put_foreign(&l, STYLE_PLAIN, f->name);
		line_put(&l, STYLE_DIM, " (");
		put_foreign(&l, STYLE_DIM, f->file);
		line_putf(&l, STYLE_DIM, f->line ? ":%d)" : ":~%d)", f->line ?: f->first_line);
		r = line_end(&l);
		line_release(&l);
	}
	return r;
}

static bool is_of_asyncio(const struct inspect_tasks *t, uint32_t frame)
{
	return strstr(t->frames.items[frame].file, "/asyncio/") != NULL;
}

/* Where a task was made, without the loop below and what of asyncio was called for it above. */
static int print_created(const struct tree *t, const struct place *place, bool has_children,
			 const struct inspect_task *task)
{
	uint32_t first, end = task->created + task->created_len;

	while (end > task->created && is_of_asyncio(t->tasks, end - 1))
		end--;
	first = end;
	while (first > task->created && !is_of_asyncio(t->tasks, first - 1))
		first--;
	if (first == end) { /* made by asyncio itself */
		first = task->created;
		end = first + task->created_len;
	}
	return print_frames(t, place, has_children, "made in ", first, end - first);
}

/* Names of so many tasks that are alike; then what it does. */
static int print_head(const struct tree *t, const struct place *place, const uint32_t *tasks,
		      uint32_t len)
{
	const struct inspect_task *task = task_at(t, tasks[0]);
	struct line l = LINE_INIT(t->terminal);
	int r;

	put_branch(&l, t, place);
	for (uint32_t i = 0; i < len && i < FOLDED_NAMES; i++) {
		line_put(&l, STYLE_PLAIN, i ? ", " : "");
		put_foreign(&l, STYLE_BOLD, task_at(t, tasks[i])->name);
	}
	if (len > FOLDED_NAMES)
		line_putf(&l, STYLE_PLAIN, " and %u more alike", len - FOLDED_NAMES);
	if (task->state == TASK_RUNNING)
		line_put(&l, STYLE_HOT, ": running");
	else if (task->waits_for)
		line_put(&l, STYLE_PLAIN, ": waits for ");
	put_foreign(&l, STYLE_COOL, task->waits_for ? task->waits_for : "");
	if (len == 1 && t->is_shown[tasks[0]])
		line_put(&l, STYLE_DIM, " (see above)");
	else if (task->awaited_by_len > 1)
		line_putf(&l, STYLE_PLAIN, " (%u tasks wait for this one)", task->awaited_by_len);
	r = line_end(&l);
	line_release(&l);
	return r;
}

static int print_note(const struct tree *t, const struct place *above, const char *words)
{
	struct line l = LINE_INIT(t->terminal);
	int r;

	put_branch(&l, t, &(struct place){ .above = above, .is_last = true });
	line_put(&l, STYLE_DIM, words);
	r = line_end(&l);
	line_release(&l);
	return r;
}

/* --- siblings: those that look alike stand together ----------------------------------------------
 */

static int compare_ranks(const void *a, const void *b, void *arg)
{
	const struct tree *t = arg;
	uint32_t x = t->rank[*(const uint32_t *)a], y = t->rank[*(const uint32_t *)b];

	return x != y ? (x < y ? -1 : 1) : compare_tasks(a, b, arg);
}

/* By name, and each behind the first that looks like it. */
static int order_siblings(struct tree *t, uint32_t *tasks, uint32_t len)
{
	int r = 0;

	qsort_r(tasks, len, sizeof(*tasks), compare_tasks, t);
	address_map_clear(&t->ranks);
	for (uint32_t i = 0; i < len && !r; i++) {
		uint64_t look = t->look[tasks[i]];
		uint32_t rank = address_map_get(&t->ranks, look);

		t->rank[tasks[i]] = rank == ADDRESS_NONE ? i : rank;
		if (look && rank == ADDRESS_NONE)
			r = address_map_put(&t->ranks, look, i);
	}
	if (!r)
		qsort_r(tasks, len, sizeof(*tasks), compare_ranks, t);
	return r;
}

static int print_siblings(struct tree *t, const struct place *above, uint32_t *tasks, uint32_t len,
			  unsigned int depth);

/* Some tasks that are alike. */
static int print_tasks(struct tree *t, const struct place *place, const uint32_t *tasks,
		       uint32_t len, unsigned int depth)
{
	const struct inspect_task *task = task_at(t, tasks[0]);
	uint32_t *children = t->children + t->first[tasks[0]];
	uint32_t children_len = t->first[tasks[0] + 1] - t->first[tasks[0]];
	int r = print_head(t, place, tasks, len);

	if (r < 0 || t->is_shown[tasks[0]])
		return r;
	for (uint32_t i = 0; i < len; i++)
		t->is_shown[tasks[i]] = true;
	r = print_frames(t, place, children_len, "", task->frames, task->frames_len);
	if (!r)
		r = print_created(t, place, children_len, task);
	return r < 0 ? r : print_siblings(t, place, children, children_len, depth + 1);
}

static int print_siblings(struct tree *t, const struct place *above, uint32_t *tasks, uint32_t len,
			  unsigned int depth)
{
	int r = depth < TREE_DEPTH_MAX ? order_siblings(t, tasks, len) : 0;

	if (len && depth == TREE_DEPTH_MAX)
		return print_note(t, above, "tasks below this one: see --json");
	for (uint32_t i = 0, n; i < len && !r; i += n) {
		struct place place = { .above = above };

		for (n = 1; i + n < len && t->look[tasks[i]] == t->look[tasks[i + n]] &&
			    t->look[tasks[i]];)
			n++;
		place.is_last = i + n == len;
		r = print_tasks(t, &place, tasks + i, n, depth);
	}
	return r;
}

/* --- loops -------------------------------------------------------------------------------------
 */

static int print_loop(const struct tree *t, const struct inspect_loop *loop, uint32_t count)
{
	struct line l = LINE_INIT(t->terminal);
	int r;

	put_foreign(&l, STYLE_BOLD, loop->type);
	line_putf(&l, STYLE_PLAIN, " 0x%" PRIx64, loop->id);
	if (loop->tid)
		line_putf(&l, STYLE_PLAIN, " of thread %d", loop->tid);
	line_putf(&l, STYLE_PLAIN, ": %u task%s", count, count == 1 ? "" : "s");
	if (!loop->is_consistent)
		line_put(&l, STYLE_WARM, " (was running while it was read: may be inconsistent)");
	r = line_end(&l);
	line_release(&l);
	return r;
}

/* Adds a root, and takes all below it for found. */
static uint32_t add_root(struct tree *t, uint32_t task, uint32_t *roots, uint32_t n)
{
	uint32_t depth = 0;

	roots[n] = task;
	t->is_found[task] = true;
	t->path[depth++] = task;
	while (depth) {
		uint32_t at = t->path[--depth];

		for (uint32_t i = t->first[at]; i < t->first[at + 1]; i++) {
			if (t->is_found[t->children[i]])
				continue;
			t->is_found[t->children[i]] = true;
			t->path[depth++] = t->children[i];
		}
	}
	return n + 1;
}

/* The roots of a loop: tasks that nobody waits for, then one of each cycle that is below none. */
static uint32_t find_roots(struct tree *t, uint32_t loop, uint32_t *roots)
{
	uint32_t n = 0;

	for (uint32_t i = 0; i < t->tasks->tasks.len; i++)
		if (task_at(t, i)->loop == loop && !task_at(t, i)->awaited_by_len)
			n = add_root(t, i, roots, n);
	for (uint32_t i = 0; i < t->tasks->tasks.len; i++)
		if (task_at(t, i)->loop == loop && !t->is_found[i])
			n = add_root(t, i, roots, n);
	return n;
}

static int print_trees(struct tree *t, uint32_t loop, uint32_t *roots)
{
	uint32_t count = 0;
	int r;

	for (uint32_t i = 0; i < t->tasks->tasks.len; i++)
		count += task_at(t, i)->loop == loop;
	r = print_loop(t, &t->tasks->loops.items[loop], count);
	return r < 0 ? r : print_siblings(t, NULL, roots, find_roots(t, loop, roots), 0);
}

static int print_cycle(const struct tree *t, const struct task_cycle *cycle)
{
	struct line l = LINE_INIT(t->terminal);
	int r;

	line_put(&l, STYLE_HOT, "cycle: ");
	for (uint32_t i = 0; i <= cycle->len; i++) {
		uint32_t task = t->tasks->links.items[cycle->first + i % cycle->len];

		line_put(&l, STYLE_PLAIN, i ? " waits for " : "");
		put_foreign(&l, STYLE_BOLD, task_at(t, task)->name);
		if (i == CYCLE_NAMES_MAX) {
			line_putf(&l, STYLE_PLAIN, " and so on, %u tasks", cycle->len);
			break;
		}
	}
	r = line_end(&l);
	line_release(&l);
	return r;
}

static int print_all(struct tree *t, uint32_t *roots)
{
	const struct inspect_tasks *tasks = t->tasks;
	int r = 0;

	for (uint32_t i = 0; i < tasks->loops.len && !r; i++)
		r = print_trees(t, i, roots);
	for (size_t i = 0; i < tasks->cycles.len && !r; i++)
		r = print_cycle(t, &tasks->cycles.items[i]);
	return r;
}

static int print_counts(const struct terminal *terminal, const struct inspect_tasks *tasks)
{
	struct line l = LINE_INIT(terminal);
	int r = 0;

	if (tasks->unreadable) {
		line_putf(&l, STYLE_WARM, "%u task%s could not be read%s", tasks->unreadable,
			  tasks->unreadable == 1 ? "" : "s",
			  tasks->loops.len ? "" : ": their event loop was running");
		r = line_end(&l);
	}
	if (tasks->frameless && !r) {
		line_putf(&l, STYLE_PLAIN, "%u greenlet%s without a Python frame: not shown",
			  tasks->frameless, tasks->frameless == 1 ? "" : "s");
		r = line_end(&l);
	}
	if (tasks->are_greenlets_torn && !r) {
		line_put(&l, STYLE_WARM, "there may be more greenlets: the process ran meanwhile");
		r = line_end(&l);
	}
	if (tasks->is_cut && !r) {
		line_put(&l, STYLE_WARM, "there are more tasks than are read");
		r = line_end(&l);
	}
	line_release(&l);
	return r;
}

int dump_tasks_print(const struct terminal *terminal, const struct inspect_tasks *tasks)
{
	_cleanup_(freep) uint32_t *roots = calloc(tasks->tasks.len + 1, sizeof(*roots));
	struct tree t;
	int r = tree_init(&t, terminal, tasks);

	if (!r)
		r = roots ? print_all(&t, roots) : -ENOMEM;
	tree_release(&t);
	return r < 0 ? r : print_counts(terminal, tasks);
}
