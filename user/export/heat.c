/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#include "export/heat.h"

#include <errno.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/hash.h"

#define NO_LINE UINT32_MAX

/* While it is found. */
struct finding {
	struct heat *h;
	const struct profile *p;
	const struct stack_entry *stacks;
	size_t stack_count;
	uint64_t *values;  /* by stack id */
	uint32_t *line_of; /* by frame id: index of lines; NO_LINE: it has none */
	uint32_t *file_of; /* by line: index of files */
	struct idmap calls;
};

static void finding_release(struct finding *f)
{
	free(f->values);
	free(f->line_of);
	free(f->file_of);
	idmap_release(&f->calls);
}

void heat_release(struct heat *h)
{
	functions_release(&h->functions);
	vec_release(&h->lines);
	vec_release(&h->files);
	free(h->def_line);
	vec_release(&h->defs);
	vec_release(&h->calls);
	vec_release(&h->callers);
}

/* --- lines and files -------------------------------------------------------------------------- */

static int compare_frames(const void *a, const void *b, void *profile)
{
	const struct profile *p = profile;
	const struct frame *x = frametab_get(p->frames, *(const uint32_t *)a),
			   *y = frametab_get(p->frames, *(const uint32_t *)b);
	uint32_t x_line = frame_told_line(x), y_line = frame_told_line(y);

	if (x->file != y->file)
		return x->file < y->file ? -1 : 1;
	return x_line < y_line ? -1 : x_line > y_line;
}

static int add_line(struct finding *f, uint32_t frame)
{
	const struct frame *from = frametab_get(f->p->frames, frame);
	struct heat *h = f->h;
	struct heat_line *last = h->lines.len ? &h->lines.items[h->lines.len - 1] : NULL;
	struct heat_file file = { .file = from->file, .first = (uint32_t)h->lines.len };
	int r = 0;

	if (!last || last->file != from->file)
		r = vec_push(&h->files, file);
	if (!r && (!last || last->file != from->file || last->line != frame_told_line(from))) {
		r = vec_push(&h->lines,
			     ((struct heat_line){ .file = from->file,
						  .line = frame_told_line(from),
						  .function = h->functions.of_frame[frame] }));
		h->files.items[h->files.len - 1].count += !r;
	}
	f->line_of[frame] = (uint32_t)h->lines.len - 1;
	return r;
}

static int compare_defs(const void *a, const void *b)
{
	const struct heat_def *x = a, *y = b;

	if (x->file != y->file)
		return x->file < y->file ? -1 : 1;
	if (x->line != y->line)
		return x->line < y->line ? -1 : 1;
	return x->function < y->function ? -1 : x->function > y->function;
}

/* Of the functions of these frames, which are in order of lines, each once. */
static int find_defs(struct finding *f, const uint32_t *frames, uint32_t count)
{
	struct functions *functions = &f->h->functions;
	_cleanup_(freep) bool *has = calloc((size_t)functions->none + 1, sizeof(*has));
	int r = 0;

	f->h->def_line = calloc((size_t)functions->none + 1, sizeof(*f->h->def_line));
	if (!has || !f->h->def_line)
		return -ENOMEM;
	for (uint32_t i = 0; i < count && !r; i++) {
		const struct frame *from = frametab_get(f->p->frames, frames[i]);
		uint32_t function = functions->of_frame[frames[i]];
		struct heat_def def = { from->file, from->first_line ?: from->line, function };

		if (has[function])
			continue;
		has[function] = true;
		f->h->def_line[function] = def.line;
		r = vec_push(&f->h->defs, def);
	}
	if (f->h->defs.len)
		qsort(f->h->defs.items, f->h->defs.len, sizeof(*f->h->defs.items), compare_defs);
	return r;
}

/* Frames that are in stacks with a value, and Python of some file. */
static int find_lines(struct finding *f)
{
	uint32_t count = frametab_count(f->p->frames), used = 0;
	_cleanup_(freep) uint32_t *frames = calloc((size_t)count + 1, sizeof(*frames));
	int r = 0;

	f->line_of = malloc(((size_t)count + 1) * sizeof(*f->line_of));
	if (!frames || !f->line_of)
		return -ENOMEM;
	for (uint32_t i = 0; i < count; i++)
		f->line_of[i] = NO_LINE;
	for (size_t i = 1; i < f->stack_count; i++) {
		uint32_t frame = f->stacks[i].frame;
		const struct frame *from = frametab_get(f->p->frames, frame);

		if (!f->values[i] || f->line_of[frame] != NO_LINE || from->kind != FRAME_PYTHON ||
		    !from->file)
			continue;
		f->line_of[frame] = 0;
		frames[used++] = frame;
	}
	qsort_r(frames, used, sizeof(*frames), compare_frames, (void *)f->p);
	for (uint32_t i = 0; i < used && !r; i++)
		r = add_line(f, frames[i]);
	return r ? r : find_defs(f, frames, used);
}

static int index_files(struct finding *f)
{
	const struct heat *h = f->h;

	f->file_of = malloc((h->lines.len + 1) * sizeof(*f->file_of));
	if (!f->file_of)
		return -ENOMEM;
	for (uint32_t i = 0; i < h->files.len; i++)
		for (uint32_t k = 0; k < h->files.items[i].count; k++)
			f->file_of[h->files.items[i].first + k] = i;
	return 0;
}

static uint32_t line_at(const struct finding *f, size_t stack)
{
	return stack ? f->line_of[f->stacks[stack].frame] : NO_LINE;
}

/* The innermost stack below that ends in a line; 0: there is none. */
static uint32_t outer_line(const struct finding *f, uint32_t stack)
{
	do {
		stack = f->stacks[stack].parent;
	} while (stack && line_at(f, stack) == NO_LINE);
	return stack;
}

/* --- sums ------------------------------------------------------------------------------------- */

/* The values of stacks are their own. */
static void add_own(struct finding *f)
{
	struct heat *h = f->h;

	for (size_t i = 0; i < f->stack_count; i++) {
		uint32_t at = (uint32_t)i, line;

		if (!f->values[i])
			continue;
		h->whole += f->values[i];
		if (line_at(f, at) == NO_LINE)
			at = at ? outer_line(f, at) : 0;
		line = line_at(f, at);
		if (line == NO_LINE) {
			h->placeless += f->values[i];
			continue;
		}
		h->lines.items[line].self += f->values[i];
		h->files.items[f->file_of[line]].self += f->values[i];
	}
}

/* They become those of all stacks that lie on each: parents have lower ids. */
static void sum_up(struct finding *f)
{
	for (size_t i = f->stack_count; i-- > 1;)
		if (f->stacks[i].parent)
			f->values[f->stacks[i].parent] += f->values[i];
}

static int add_call(struct finding *f, uint32_t line, uint32_t function, uint64_t value)
{
	uint64_t hash = hash_u64((uint64_t)line << 32 | function);
	struct heat *h = f->h;
	size_t at = IDMAP_START;
	uint32_t id;

	while ((id = idmap_next(&f->calls, hash, &at)) != IDMAP_NONE) {
		if (h->calls.items[id].line == line && h->calls.items[id].function == function) {
			h->calls.items[id].value += value;
			return 0;
		}
	}
	if (h->calls.len >= IDMAP_NONE)
		return -EOVERFLOW;
	if (idmap_reserve(&f->calls) < 0 ||
	    vec_push(&h->calls, ((struct heat_call){ line, function, value })) < 0)
		return -ENOMEM;
	idmap_insert(&f->calls, hash, (uint32_t)h->calls.len - 1);
	return 0;
}

/*
 * What stands for the stacks that lie on this one, of which it is the outermost with its line, its
 * file, or its call: else that one stands for them.
 */
static int add_totals(struct finding *f, uint32_t stack)
{
	uint32_t line = line_at(f, stack), caller = outer_line(f, stack);
	uint32_t function = f->h->functions.of_frame[f->stacks[stack].frame];
	bool is_first_line = true, is_first_file = true, is_first_call = caller != 0;
	uint64_t value = f->values[stack];

	for (uint32_t at = caller, inner = stack; at; inner = at, at = outer_line(f, at)) {
		uint32_t outer = line_at(f, at);

		is_first_line &= outer != line;
		is_first_file &= f->file_of[outer] != f->file_of[line];
		is_first_call &= inner == stack || outer != line_at(f, caller) ||
				 f->h->functions.of_frame[f->stacks[inner].frame] != function;
	}
	if (is_first_line)
		f->h->lines.items[line].total += value;
	if (is_first_file)
		f->h->files.items[f->file_of[line]].total += value;
	return is_first_call ? add_call(f, line_at(f, caller), function, value) : 0;
}

static void find_hottest(struct heat *h)
{
	for (size_t i = 0; i < h->lines.len; i++) {
		const struct heat_line *l = &h->lines.items[i];

		h->hottest_self = l->self > h->hottest_self ? l->self : h->hottest_self;
		h->hottest_total = l->total > h->hottest_total ? l->total : h->hottest_total;
	}
}

/* --- calls ------------------------------------------------------------------------------------ */

static int compare_calls(const void *a, const void *b)
{
	const struct heat_call *x = a, *y = b;

	if (x->line != y->line)
		return x->line < y->line ? -1 : 1;
	if (x->value != y->value)
		return x->value > y->value ? -1 : 1;
	return x->function < y->function ? -1 : x->function > y->function;
}

static int compare_callers(const void *a, const void *b, void *heat)
{
	const struct heat *h = heat;
	const struct heat_call *x = &h->calls.items[*(const uint32_t *)a],
			       *y = &h->calls.items[*(const uint32_t *)b];

	if (x->function != y->function)
		return x->function < y->function ? -1 : 1;
	if (x->value != y->value)
		return x->value > y->value ? -1 : 1;
	return x->line < y->line ? -1 : x->line > y->line;
}

static int order_calls(struct heat *h)
{
	int r = 0;

	if (!h->calls.len)
		return 0;
	qsort(h->calls.items, h->calls.len, sizeof(*h->calls.items), compare_calls);
	for (uint32_t i = 0; i < h->calls.len && !r; i++)
		r = vec_push(&h->callers, i);
	if (!r)
		qsort_r(h->callers.items, h->callers.len, sizeof(*h->callers.items),
			compare_callers, h);
	return r;
}

/* The first of `count` that is not below the key, by halves. */
#define FIRST_NOT_BELOW(count, key, key_at)                   \
	({                                                    \
		size_t low_ = 0, high_ = (count);             \
		while (low_ < high_) {                        \
			size_t i = low_ + (high_ - low_) / 2; \
			if ((key_at) < (key))                 \
				low_ = i + 1;                 \
			else                                  \
				high_ = i;                    \
		}                                             \
		low_;                                         \
	})

size_t heat_calls_of(const struct heat *h, uint32_t line, size_t *first)
{
	size_t end;

	*first = end = FIRST_NOT_BELOW(h->calls.len, line, h->calls.items[i].line);
	while (end < h->calls.len && h->calls.items[end].line == line)
		end++;
	return end - *first;
}

static uint32_t callee_at(const struct heat *h, size_t i)
{
	return h->calls.items[h->callers.items[i]].function;
}

size_t heat_callers_of(const struct heat *h, uint32_t function, size_t *first)
{
	size_t end;

	*first = end = FIRST_NOT_BELOW(h->callers.len, function, callee_at(h, i));
	while (end < h->callers.len && callee_at(h, end) == function)
		end++;
	return end - *first;
}

size_t heat_defs_of(const struct heat *h, uint32_t file, size_t *first)
{
	size_t end;

	*first = end = FIRST_NOT_BELOW(h->defs.len, file, h->defs.items[i].file);
	while (end < h->defs.len && h->defs.items[end].file == file)
		end++;
	return end - *first;
}

int heat_find(struct heat *h, const struct profile *p, const struct cube *c)
{
	_cleanup_(finding_release) struct finding f = {
		.h = h,
		.p = p,
		.stacks = stacktab_entries(p->stacks),
		.stack_count = stacktab_count(p->stacks),
	};
	int r = functions_find(&h->functions, p);

	f.values = calloc(f.stack_count, sizeof(*f.values));
	if (r < 0 || !f.values)
		return -ENOMEM;
	cube_sum_stacks(c, CUBE_BOTH_SIDES, KIND_TICKS, f.values);
	sum_up(&f);
	if ((r = find_lines(&f)) < 0 || (r = index_files(&f)) < 0)
		return r;
	for (uint32_t i = 1; i < f.stack_count && !r; i++)
		if (f.values[i] && line_at(&f, i) != NO_LINE)
			r = add_totals(&f, i);
	if (r < 0)
		return r;
	memset(f.values, 0, f.stack_count * sizeof(*f.values));
	cube_sum_stacks(c, CUBE_BOTH_SIDES, KIND_TICKS, f.values);
	add_own(&f);
	find_hottest(h);
	return order_calls(h);
}
