/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */

/*
 * Collapsed stacks, as flamegraph.pl, inferno and speedscope read them: one line a stack, root
 * first, frames joined by `;`, a space, the ticks. Lines are in order of their bytes and no two
 * have the same stack. The text is UTF-8 whatever the names were, and every name can be read back
 * exactly: what escape_append() writes as \xHH, and beyond that
 *
 *	`;` and `\` everywhere
 *	a `#` that a frame begins with, so that its line is no comment; the first byte of what
 *	begins like another tool's tag
 *	the `(` of each ` (` in file names, so that a frame splits at its last ` (`; also in frames
 *	that have no "(file:line)", so that they do not split at all
 *	without lines, one byte of a file name that ends in `:DIGITS` or is all digits, so that it
 *	is not read as having a line and no frame as a thread or process
 *
 * No header unless it is asked for: other readers warn of a line that is no stack (flamegraph.pl:
 * "Ignored 1 lines with invalid format"). It says the interval and the work where they are known,
 * and of what is no CPU time what it is, in which unit.
 */
#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "base/err.h"
#include "base/strbuf.h"
#include "base/vec.h"
#include "base/escape.h"
#include "export/export.h"

#define SPECIAL ";\\"
#define TEXT_BYTES_MAX (UINT64_C(1) << 30) /* of all frames; real programs take a few MiB */

/* A frame or tag as it stands in a line. */
struct text {
	size_t offset; /* in the arena, NUL-terminated */
	size_t len;
	uint32_t same; /* the first text with these bytes */
};

/* What a line continues with behind a common prefix: a last frame and its ticks, or a caller. */
struct item {
	const char *text;
	size_t len;
	char tail[24]; /* " 123" or ";" */
	uint32_t path;
};

/* One open caller: its callees' items, of which those before next are done. */
struct level {
	size_t start, next;
	size_t prefix_len;
};

struct collapsed {
	const struct profile *p;
	const struct cube *cube;
	const struct export_opts *o;
	FILE *out;
	struct strbuf arena;
	VEC(struct text) texts; /* frames by id, then processes, threads, and PROFILE_NO_FRAMES */
	struct stacktab *paths; /* stacks of texts: what differs only where texts do not is one */
	uint32_t *path_of;      /* by stack id, of one thread */
	uint32_t *mapped_for;   /* by stack id: which thread path_of is of, counted from 1 */
	VEC(uint32_t) pending;
	VEC(uint64_t) ticks; /* by path id */
	uint32_t *start;     /* by path id: where its children are in order */
	uint32_t *order;     /* path ids grouped by parent */
	VEC(struct item) items;
	VEC(struct level) levels;
	struct strbuf line;
};

static void collapsed_release(struct collapsed *c)
{
	strbuf_release(&c->arena);
	vec_release(&c->texts);
	stacktab_free(c->paths);
	free(c->path_of);
	free(c->mapped_for);
	vec_release(&c->pending);
	vec_release(&c->ticks);
	free(c->start);
	free(c->order);
	vec_release(&c->items);
	vec_release(&c->levels);
	strbuf_release(&c->line);
}

/* Escapes the `(` of each ` (` as well. */
static int append_unsplit(struct strbuf *out, const char *bytes, size_t len)
{
	size_t done = 0;

	for (size_t i = 1; i < len; i++) {
		if (bytes[i - 1] != ' ' || bytes[i] != '(')
			continue;
		escape_append(out, bytes + done, i - done, SPECIAL);
		escape_byte(out, '(');
		done = i + 1;
	}
	return escape_append(out, bytes + done, len - done, SPECIAL);
}

/* A file name without a line behind it. */
static int append_file_alone(struct strbuf *out, const char *bytes, size_t len)
{
	size_t digits = 0, at;

	while (digits < len && bytes[len - digits - 1] >= '0' && bytes[len - digits - 1] <= '9')
		digits++;
	at = len - digits;
	if (!digits || (at && bytes[at - 1] != ':'))
		return append_unsplit(out, bytes, len);
	at -= at > 0;
	append_unsplit(out, bytes, at);
	escape_byte(out, (unsigned char)bytes[at]);
	return append_unsplit(out, bytes + at + 1, len - at - 1);
}

/* As other tools' tags do, which importers know. */
static bool begins_like_a_tag(const char *name)
{
	return !strncmp(name, "tid:", 4) || !strncmp(name, "process ", 8);
}

static int append_frame(const struct collapsed *c, const struct frame *f, struct strbuf *out)
{
	const char *name = strtab_get(c->p->strings, f->name);
	const char *file = strtab_get(c->p->strings, f->file);
	size_t name_len = strtab_len(c->p->strings, f->name);
	size_t file_len = strtab_len(c->p->strings, f->file);
	bool is_bare; /* no "(file:line)" behind the name */

	is_bare = f->kind != FRAME_PYTHON ||
		  (!file_len && !f->line && (f->flags & FRAME_NAME_UNKNOWN));
	if (name_len && (name[0] == '#' || (is_bare && begins_like_a_tag(name)))) {
		escape_byte(out, (unsigned char)name[0]);
		name++;
		name_len--;
	}
	if (is_bare && f->kind != FRAME_NATIVE && f->kind != FRAME_KERNEL)
		return append_unsplit(out, name, name_len);
	if (f->kind == FRAME_NATIVE || f->kind == FRAME_KERNEL) {
		append_unsplit(out, name, name_len);
		strbuf_puts(out, " [");
		append_unsplit(out, file, file_len);
		return strbuf_putc(out, ']');
	}
	escape_append(out, name, name_len, SPECIAL);
	strbuf_puts(out, " (");
	if (c->o->no_lines) {
		append_file_alone(out, file, file_len);
		return strbuf_putc(out, ')');
	}
	append_unsplit(out, file, file_len);
	return strbuf_appendf(out, ":%s%" PRIu32 ")", f->flags & FRAME_LINE_APPROXIMATE ? "~" : "",
			      f->line);
}

static int append_tag(const struct collapsed *c, const char *kind, uint32_t name, uint32_t id,
		      struct strbuf *out)
{
	strbuf_appendf(out, "%s ", kind);
	escape_append(out, strtab_get(c->p->strings, name), strtab_len(c->p->strings, name),
		      SPECIAL);
	return strbuf_appendf(out, " (%" PRIu32 ")", id);
}

/* What was appended to the arena since offset is the next text. */
static int end_text(struct collapsed *c, size_t offset)
{
	struct text t = { .offset = offset, .len = c->arena.len - offset };
	int r = strbuf_append(&c->arena, "", 1);

	if (r < 0)
		return r;
	if (c->arena.len > TEXT_BYTES_MAX || c->texts.len == UINT32_MAX)
		return err_set(-E2BIG, "the names of this recording take more than 1 GiB");
	return vec_push(&c->texts, t);
}

static int make_texts(struct collapsed *c)
{
	uint32_t frames = frametab_count(c->p->frames);
	size_t offset;
	int r = 0;

	for (uint32_t i = 0; i < frames && !r; i++) {
		offset = c->arena.len;
		append_frame(c, frametab_get(c->p->frames, i), &c->arena);
		r = end_text(c, offset);
	}
	for (size_t i = 0; i < c->p->processes.len && !r; i++) {
		const struct process *process = &c->p->processes.items[i];

		offset = c->arena.len;
		append_tag(c, "process", process->name, process->pid, &c->arena);
		r = end_text(c, offset);
	}
	for (size_t i = 0; i < c->p->threads.len && !r; i++) {
		const struct thread *thread = &c->p->threads.items[i];

		offset = c->arena.len;
		append_tag(c, "thread", thread->name, thread->tid, &c->arena);
		r = end_text(c, offset);
	}
	if (r < 0)
		return r;
	offset = c->arena.len;
	strbuf_puts(&c->arena, PROFILE_NO_FRAMES);
	return end_text(c, offset);
}

static const char *text_get(const struct collapsed *c, uint32_t id)
{
	return strbuf_str(&c->arena) + c->texts.items[id].offset;
}

static int compare_texts(const void *a, const void *b, void *context)
{
	const struct collapsed *c = context;
	uint32_t x = *(const uint32_t *)a, y = *(const uint32_t *)b;
	int d = strcmp(text_get(c, x), text_get(c, y));

	return d ? d : x < y ? -1 : x > y;
}

/* Finds equal texts: frames that differ in what is not written, threads that had one name. */
static int merge_texts(struct collapsed *c)
{
	uint32_t count = (uint32_t)c->texts.len;
	_cleanup_(freep) uint32_t *sorted = malloc(count * sizeof(*sorted));

	if (!sorted)
		return -ENOMEM;
	for (uint32_t i = 0; i < count; i++)
		sorted[i] = i;
	qsort_r(sorted, count, sizeof(*sorted), compare_texts, c);
	for (uint32_t i = 0; i < count; i++) {
		bool is_same = i && !strcmp(text_get(c, sorted[i]), text_get(c, sorted[i - 1]));

		c->texts.items[sorted[i]].same =
			is_same ? c->texts.items[sorted[i - 1]].same : sorted[i];
	}
	return 0;
}

/* path plus one inner text. */
static int extend(struct collapsed *c, uint32_t *path, size_t text)
{
	return stacktab_intern(c->paths, *path, c->texts.items[text].same, path);
}

/* The path of one stack below the thread's tags. */
static int map_stack(struct collapsed *c, uint32_t stack, uint32_t turn, uint32_t *path)
{
	const struct stack_entry *entries = stacktab_entries(c->p->stacks);
	int r = 0;

	c->pending.len = 0;
	for (; c->mapped_for[stack] != turn && !r; stack = entries[stack].parent)
		r = vec_push(&c->pending, stack);
	*path = c->path_of[stack];
	while (c->pending.len && !r) {
		stack = c->pending.items[--c->pending.len];
		r = extend(c, path, entries[stack].frame);
		c->path_of[stack] = *path;
		c->mapped_for[stack] = turn;
	}
	return r;
}

static int map_tags(struct collapsed *c, uint32_t thread, uint32_t *path)
{
	size_t processes_at = frametab_count(c->p->frames);
	size_t threads_at = processes_at + c->p->processes.len;
	int r = 0;

	*path = 0;
	if (c->o->processes)
		r = extend(c, path, processes_at + c->p->threads.items[thread].process);
	if (c->o->threads && !r)
		r = extend(c, path, threads_at + thread);
	return r;
}

static int add_ticks(struct collapsed *c, uint32_t path, uint64_t ticks)
{
	while (c->ticks.len <= path)
		if (vec_push(&c->ticks, 0) < 0)
			return -ENOMEM;
	c->ticks.items[path] += ticks;
	return 0;
}

static int map_rows(struct collapsed *c)
{
	uint32_t stacks = stacktab_count(c->p->stacks), turn = 0, path;
	int r;

	c->path_of = calloc(stacks, sizeof(*c->path_of));
	c->mapped_for = calloc(stacks, sizeof(*c->mapped_for));
	if (!c->path_of || !c->mapped_for)
		return -ENOMEM;
	r = stacktab_new(&c->paths);
	for (size_t i = 0; i < c->cube->all.cells.len && !r; i++) {
		const struct cube_cell *row = &c->cube->all.cells.items[i];
		uint32_t thread = c->cube->tags.items[row->tag].thread;

		if (!i || thread != c->cube->tags.items[row[-1].tag].thread) {
			c->mapped_for[0] = ++turn;
			r = map_tags(c, thread, &c->path_of[0]);
		}
		if (!r)
			r = map_stack(c, row->stack, turn, &path);
		if (!r && !row->stack)
			r = extend(c, &path, c->texts.len - 1);
		if (!r)
			r = add_ticks(c, path, row->value);
	}
	return r ? r : add_ticks(c, stacktab_count(c->paths) - 1, 0);
}

/* Counting sort of the paths by parent. */
static int group_by_parent(struct collapsed *c)
{
	const struct stack_entry *entries = stacktab_entries(c->paths);
	uint32_t count = stacktab_count(c->paths);

	c->start = calloc((size_t)count + 1, sizeof(*c->start));
	c->order = calloc(count, sizeof(*c->order));
	if (!c->start || !c->order)
		return -ENOMEM;
	for (uint32_t i = 1; i < count; i++)
		c->start[entries[i].parent]++;
	for (uint32_t i = 0, sum = 0; i <= count; i++) {
		sum += c->start[i];
		c->start[i] = sum; /* the end; each entry placed moves it down to the start */
	}
	for (uint32_t i = count - 1; i > 0; i--)
		c->order[--c->start[entries[i].parent]] = i;
	return 0;
}

/* tail behind a text, against what goes on behind the same bytes in a longer one. */
static int compare_tail(const char *tail, const char *rest, const char *rest_tail)
{
	for (; *rest; tail++, rest++)
		if (*tail != *rest)
			return (unsigned char)*tail < (unsigned char)*rest ? -1 : 1;
	return strcmp(tail, rest_tail);
}

/* Order of the lines' bytes: texts hold no NUL. */
static int compare_items(const void *a, const void *b)
{
	const struct item *x = a, *y = b;
	size_t len = x->len < y->len ? x->len : y->len;
	int d = memcmp(x->text, y->text, len);

	if (d)
		return d;
	if (x->len <= y->len)
		return compare_tail(x->tail, y->text + len, y->tail);
	return -compare_tail(y->tail, x->text + len, x->tail);
}

static int push_item(struct collapsed *c, uint32_t path, bool is_caller)
{
	uint32_t text = stacktab_entries(c->paths)[path].frame;
	struct item item = { .text = text_get(c, text),
			     .len = c->texts.items[text].len,
			     .path = path };

	if (is_caller)
		item.tail[0] = ';';
	else
		snprintf(item.tail, sizeof(item.tail), " %" PRIu64, c->ticks.items[path]);
	return vec_push(&c->items, item);
}

/* Goes into a caller whose line so far is c->line. */
static int open_level(struct collapsed *c, uint32_t path)
{
	struct level level = { .start = c->items.len,
			       .next = c->items.len,
			       .prefix_len = c->line.len };
	int r = vec_push(&c->levels, level);

	for (uint32_t i = c->start[path]; i < c->start[path + 1] && !r; i++) {
		uint32_t child = c->order[i];

		if (c->ticks.items[child])
			r = push_item(c, child, false);
		if (!r && c->start[child] < c->start[child + 1])
			r = push_item(c, child, true);
	}
	if (!r && c->items.len > level.start)
		qsort(c->items.items + level.start, c->items.len - level.start,
		      sizeof(*c->items.items), compare_items);
	return r;
}

/* Depth first; no recursion, since a file may hold stacks of any depth. */
static int write_lines(struct collapsed *c)
{
	int r = open_level(c, 0);

	while (c->levels.len && !r) {
		struct level *level = &c->levels.items[c->levels.len - 1];
		struct item item;

		strbuf_truncate(&c->line, level->prefix_len);
		if (level->next == c->items.len) {
			c->items.len = level->start;
			c->levels.len--;
			continue;
		}
		item = c->items.items[level->next++];
		strbuf_append(&c->line, item.text, item.len);
		r = strbuf_puts(&c->line, item.tail);
		if (!r && item.tail[0] == ';')
			r = open_level(c, item.path);
		else if (!r && !(r = strbuf_putc(&c->line, '\n')) &&
			 fwrite(c->line.bytes, 1, c->line.len, c->out) != c->line.len)
			break;
	}
	return r;
}

/* Names of a file, which need not be words. */
static void append_kind(struct strbuf *line, const struct profile *p)
{
	struct value_type v;
	const char *name;

	value_type_of(p, KIND_TICKS, VALUE_NAMES_COMMON, &v);
	if (v.is_ticks)
		return;
	name = profile_recording(p)->mode ?: value_name(&v);
	strbuf_puts(line, " kind=");
	escape_append(line, name, strlen(name), " ");
	strbuf_puts(line, " unit=");
	escape_append(line, v.unit, strlen(v.unit), " ");
}

static int write_header(struct collapsed *c)
{
	const struct recording facts = profile_facts(c->p), *m = &facts;
	struct strbuf *line = &c->line;
	int r;

	strbuf_puts(line, "# pyebpf-collapsed");
	if (m->interval_ns)
		strbuf_appendf(line, " interval_us=%.15g", (double)m->interval_ns / 1000);
	append_kind(line, c->p);
	if (m->work > 0) {
		char text[32];

		snprintf(text, sizeof(text), "%.15g", m->work);
		if (strtod(text, NULL) != m->work)
			snprintf(text, sizeof(text), "%.17g", m->work);
		strbuf_appendf(line, " work=%s", text);
	}
	if ((r = strbuf_putc(line, '\n')) < 0)
		return r;
	fwrite(line->bytes, 1, line->len, c->out);
	strbuf_truncate(line, 0);
	return 0;
}

static int write_collapsed(struct exporting *x)
{
	_cleanup_(collapsed_release) struct collapsed c = {
		.p = x->p,
		.cube = x->cube,
		.o = x->o,
		.out = x->out,
		.arena = STRBUF_INIT,
		.line = STRBUF_INIT,
	};
	int r;

	if ((r = make_texts(&c)) < 0 || (r = merge_texts(&c)) < 0 || (r = map_rows(&c)) < 0 ||
	    (r = group_by_parent(&c)) < 0)
		return r;
	if (x->o->header && (r = write_header(&c)) < 0)
		return r;
	return write_lines(&c);
}

static const char *const suffixes[] = { ".collapsed", ".folded", ".txt", NULL };

const struct exporter exporter_collapsed = {
	.name = "collapsed",
	.suffixes = suffixes,
	.help = "one line a stack and its samples, for flamegraph.pl, inferno, speedscope",
	.finish = write_collapsed,
};
