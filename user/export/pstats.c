/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */

/*
 * What Python's cProfile saves, for pstats, snakeviz, gprof2dot: a marshalled dict
 *
 *	{ (file, line, name): (cc, nc, tt, ct, { caller: (cc, nc, tt, ct) }) }
 *
 * There are no calls: cc and nc are the samples that a function is in, tt and ct its own time and
 * that with what it calls, in seconds (of other kinds what they count), each sample once, however
 * often the function, or the call, is in it. Lines are those of defs. What has no file is of "~",
 *as built-in functions are there.
 *
 * Marshal's version 2, without references, as every Python since 2.5 reads it.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/escape.h"
#include "base/hash.h"
#include "base/strbuf.h"
#include "base/vec.h"
#include "export/export.h"
#include "export/json_parts.h"
#include "profile/idmap.h"

#define DIGIT_BITS 15 /* of a digit of a long */

/* What there is of a function, of a call, or of a stack and those above it. */
struct sums {
	uint64_t samples, self, total;
};

/* One function that calls another: a row of the callee's callers. */
struct call {
	uint32_t caller, callee; /* function ids */
	uint32_t on_path;        /* how often it is on the stack at hand */
	struct sums sums;
};

/* A stack whose subtree is being walked. */
struct step {
	uint32_t stack, function, call; /* call: NO_CALL at the root */
};

#define NO_CALL UINT32_MAX

struct pstats {
	VEC(struct sums) of_stack; /* by stack id; self alone, until the tree is summed */

	/* while it is written */
	FILE *out;
	const struct profile *p;
	struct strtab *texts;       /* as they are written */
	struct frametab *functions; /* of those: what is one there is one here */
	VEC(uint32_t) function_of;  /* by frame id, the last of stacks without frames */
	struct sums *sums;          /* by function id */
	uint32_t *on_path;          /* the same: how often it is on the stack at hand */
	VEC(struct step) path;      /* from the root to the stack at hand */
	uint32_t *first_above;      /* by stack id: a stack of one frame more; 0: none */
	uint32_t *next_above;       /* by stack id: the next one above the same; 0: none */
	VEC(struct call) calls;
	struct idmap call_of;
	uint32_t *first_call; /* by callee: in `order`, one more for the end */
	uint32_t *order;      /* calls by callee */
};

static int begin(struct exporting *x)
{
	x->state = calloc(1, sizeof(struct pstats));
	return x->state ? 0 : -ENOMEM;
}

static void release(struct exporting *x)
{
	struct pstats *s = x->state;

	if (s) {
		vec_release(&s->of_stack);
		strtab_free(s->texts);
		frametab_free(s->functions);
		vec_release(&s->function_of);
		free(s->sums);
		free(s->on_path);
		vec_release(&s->path);
		free(s->first_above);
		free(s->next_above);
		vec_release(&s->calls);
		idmap_release(&s->call_of);
		free(s->first_call);
		free(s->order);
	}
	free(s);
}

static int reserve_stacks(struct pstats *s, const struct profile *p)
{
	size_t wanted = stacktab_count(p->stacks), len = s->of_stack.len;

	if (len >= wanted)
		return 0;
	if (vec_reserve(&s->of_stack, wanted - len) < 0)
		return -ENOMEM;
	memset(s->of_stack.items + len, 0, (wanted - len) * sizeof(*s->of_stack.items));
	s->of_stack.len = wanted;
	return 0;
}

static int take(struct exporting *x)
{
	struct pstats *s = x->state;

	if (reserve_stacks(s, x->p) < 0)
		return -ENOMEM;
	for (size_t i = 0; i < x->p->samples.len; i++) {
		const struct sample *sample = &x->p->samples.items[i];
		struct sums *sums = &s->of_stack.items[sample->stack];

		sums->samples++;
		sums->self += sample->value;
	}
	return 0;
}

/* Values become ns, bytes or counts; of ticks they are how many samples there are. */
static void scale(struct pstats *s, struct value_unit of)
{
	for (size_t i = 0; i < s->of_stack.len; i++) {
		struct sums *sums = &s->of_stack.items[i];

		if (of.period > 1 || of.unit == UNIT_COUNT)
			sums->samples = sums->self;
		sums->self = json_scaled(sums->self, of.period);
	}
}

/* --- functions -------------------------------------------------------------------------------- */

static void append_text(struct strbuf *out, const struct strtab *strings, uint32_t string)
{
	escape_append(out, strtab_get(strings, string), strtab_len(strings, string), "");
}

static int intern_text(struct pstats *s, const struct strbuf *text, uint32_t *id)
{
	int r = strbuf_error(text);

	return r ? r : strtab_intern(s->texts, strbuf_str(text), text->len, id);
}

/* Native code is "symbol [module]". f: NULL: of stacks without frames. */
static int make_function(struct pstats *s, const struct frame *f)
{
	_cleanup_(strbuf_releasep) struct strbuf file = STRBUF_INIT, name = STRBUF_INIT;
	bool is_python = f && f->kind == FRAME_PYTHON && f->file;
	struct frame key = { .first_line = is_python ? f->first_line : 0 };
	uint32_t id = 0;
	int r;

	if (is_python)
		append_text(&file, s->p->strings, f->file);
	else
		strbuf_puts(&file, "~");
	if (f)
		append_text(&name, s->p->strings, f->name);
	else
		strbuf_puts(&name, PROFILE_NO_FRAMES);
	if (f && (f->kind == FRAME_NATIVE || f->kind == FRAME_KERNEL)) {
		strbuf_puts(&name, " [");
		append_text(&name, s->p->strings, f->file);
		strbuf_putc(&name, ']');
	}
	r = intern_text(s, &file, &key.file) ?: intern_text(s, &name, &key.name);
	if (!r)
		r = frametab_intern(s->functions, &key, &id);
	return r ? r : vec_push(&s->function_of, id);
}

static int make_functions(struct pstats *s)
{
	uint32_t count = frametab_count(s->p->frames);
	int r = strtab_new(&s->texts) ?: frametab_new(&s->functions);

	for (uint32_t i = 0; i < count && !r; i++)
		r = make_function(s, frametab_get(s->p->frames, i));
	return r ? r : make_function(s, NULL);
}

/* --- sums ------------------------------------------------------------------------------------- */

/* is_first: it is not on the stack below: what is above it counts once for each. */
static void add(struct sums *to, const struct sums *of, bool is_first)
{
	to->self += of->self;
	if (!is_first)
		return;
	to->samples += of->samples;
	to->total += of->total;
}

static int find_call(struct pstats *s, uint32_t caller, uint32_t callee, uint32_t *id)
{
	uint64_t hash = hash_combine(hash_u64(caller), callee);
	struct call new = { .caller = caller, .callee = callee };
	size_t at = IDMAP_START;

	while ((*id = idmap_next(&s->call_of, hash, &at)) != IDMAP_NONE)
		if (s->calls.items[*id].caller == caller && s->calls.items[*id].callee == callee)
			return 0;
	*id = (uint32_t)s->calls.len;
	if (idmap_reserve(&s->call_of) < 0 || vec_push(&s->calls, new) < 0)
		return -ENOMEM;
	idmap_insert(&s->call_of, hash, *id);
	return 0;
}

/*
 * Stacks are a tree, whose parents have lower ids: each gets the sum of those above it, and lists
 * of these, in time that grows with the rows and not with their depth.
 */
static int sum_tree(struct pstats *s)
{
	const struct stack_entry *e = stacktab_entries(s->p->stacks);
	struct sums *of = s->of_stack.items;

	s->first_above = calloc(s->of_stack.len + 1, sizeof(*s->first_above));
	s->next_above = calloc(s->of_stack.len + 1, sizeof(*s->next_above));
	if (!s->first_above || !s->next_above)
		return -ENOMEM;
	for (size_t i = 0; i < s->of_stack.len; i++)
		of[i].total = of[i].self;
	for (size_t i = s->of_stack.len; i-- > 1;) {
		uint32_t parent = e[i].parent;

		s->next_above[i] = s->first_above[parent];
		s->first_above[parent] = (uint32_t)i;
		if (!parent)
			continue; /* the stack without frames is nobody's caller */
		of[parent].samples += of[i].samples;
		of[parent].total += of[i].total;
	}
	return 0;
}

static int enter(struct pstats *s, uint32_t stack)
{
	const struct sums *of = &s->of_stack.items[stack];
	uint32_t frame = stacktab_entries(s->p->stacks)[stack].frame;
	struct step step = { stack, s->function_of.items[frame], NO_CALL };
	int r = 0;

	add(&s->sums[step.function], of, !s->on_path[step.function]++);
	if (s->path.len) {
		r = find_call(s, s->path.items[s->path.len - 1].function, step.function,
			      &step.call);
		if (r < 0)
			return r;
		add(&s->calls.items[step.call].sums, of, !s->calls.items[step.call].on_path++);
	}
	return vec_push(&s->path, step);
}

static void leave(struct pstats *s)
{
	struct step step = s->path.items[--s->path.len];

	s->on_path[step.function]--;
	if (step.call != NO_CALL)
		s->calls.items[step.call].on_path--;
}

/* Each function and each call of a stack once; of stacks with samples in them or above. */
static int walk_tree(struct pstats *s)
{
	uint32_t next = s->first_above[0];
	int r = 0;

	while (!r && (next || s->path.len)) {
		if (!next) {
			next = s->next_above[s->path.items[s->path.len - 1].stack];
			leave(s);
		} else if (!s->of_stack.items[next].samples) {
			next = s->next_above[next];
		} else {
			r = enter(s, next);
			next = s->first_above[next];
		}
	}
	return r;
}

/* Counting sort of the calls by callee. */
static int order_calls(struct pstats *s)
{
	size_t functions = frametab_count(s->functions);

	s->first_call = calloc(functions + 1, sizeof(*s->first_call));
	s->order = calloc(s->calls.len + 1, sizeof(*s->order));
	if (!s->first_call || !s->order)
		return -ENOMEM;
	for (size_t i = 0; i < s->calls.len; i++)
		s->first_call[s->calls.items[i].callee]++;
	for (size_t i = 0, sum = 0; i <= functions; i++) {
		sum += s->first_call[i];
		s->first_call[i] = (uint32_t)sum; /* the end, until each call moved it down */
	}
	for (size_t i = s->calls.len; i-- > 0;)
		s->order[--s->first_call[s->calls.items[i].callee]] = (uint32_t)i;
	return 0;
}

static int make_sums(struct pstats *s)
{
	size_t count;
	int r = make_functions(s);

	if (r < 0)
		return r;
	count = frametab_count(s->functions);
	s->sums = calloc(count, sizeof(*s->sums));
	s->on_path = calloc(count, sizeof(*s->on_path));
	if (!s->sums || !s->on_path)
		return -ENOMEM;
	r = sum_tree(s);
	if (!r && s->of_stack.len)
		add(&s->sums[s->function_of.items[s->function_of.len - 1]], &s->of_stack.items[0],
		    true);
	if (!r)
		r = walk_tree(s);
	return r ? r : order_calls(s);
}

/* --- marshal ---------------------------------------------------------------------------------- */

static void put_u32(FILE *out, uint32_t v)
{
	for (int i = 0; i < 4; i++, v >>= 8)
		fputc((int)(v & 0xff), out);
}

static void put_int(FILE *out, uint64_t v)
{
	uint32_t digits = 0;

	if (v <= INT32_MAX) {
		fputc('i', out);
		put_u32(out, (uint32_t)v);
		return;
	}
	for (uint64_t rest = v; rest; rest >>= DIGIT_BITS)
		digits++;
	fputc('l', out);
	put_u32(out, digits);
	for (; v; v >>= DIGIT_BITS) {
		fputc((int)(v & 0xff), out);
		fputc((int)(v >> 8 & ((1 << (DIGIT_BITS - 8)) - 1)), out);
	}
}

static void put_float(FILE *out, double v)
{
	uint64_t bits;

	memcpy(&bits, &v, sizeof(bits));
	fputc('g', out);
	put_u32(out, (uint32_t)bits);
	put_u32(out, (uint32_t)(bits >> 32));
}

static void put_text(struct pstats *s, uint32_t text)
{
	uint32_t len = (uint32_t)strtab_len(s->texts, text);

	fputc('u', s->out);
	put_u32(s->out, len);
	fwrite(strtab_get(s->texts, text), 1, len, s->out);
}

static void put_tuple(FILE *out, uint32_t count)
{
	fputc('(', out);
	put_u32(out, count);
}

static void put_function(struct pstats *s, uint32_t function)
{
	const struct frame *f = frametab_get(s->functions, function);

	put_tuple(s->out, 3);
	put_text(s, f->file);
	put_int(s->out, f->first_line);
	put_text(s, f->name);
}

static void put_sums(struct pstats *s, const struct sums *sums, bool is_time)
{
	double unit = is_time ? 1e9 : 1;

	put_int(s->out, sums->samples);
	put_int(s->out, sums->samples);
	put_float(s->out, (double)sums->self / unit);
	put_float(s->out, (double)sums->total / unit);
}

static void put_callers(struct pstats *s, uint32_t function, bool is_time)
{
	fputc('{', s->out);
	for (uint32_t i = s->first_call[function]; i < s->first_call[function + 1]; i++) {
		const struct call *c = &s->calls.items[s->order[i]];

		put_function(s, c->caller);
		put_tuple(s->out, 4);
		put_sums(s, &c->sums, is_time);
	}
	fputc('0', s->out);
}

static int finish(struct exporting *x)
{
	struct pstats *s = x->state;
	struct recording facts = profile_facts(x->p);
	struct value_unit of = recording_value_unit(&facts);
	bool is_time = of.unit == UNIT_NS;
	int r;

	s->p = x->p;
	s->out = x->out;
	scale(s, of);
	if ((r = reserve_stacks(s, x->p)) < 0 || (r = make_sums(s)) < 0)
		return r;
	fputc('{', s->out);
	for (uint32_t i = 0; i < frametab_count(s->functions); i++) {
		if (!s->sums[i].samples)
			continue;
		put_function(s, i);
		put_tuple(s->out, 5);
		put_sums(s, &s->sums[i], is_time);
		put_callers(s, i, is_time);
	}
	fputc('0', s->out);
	return 0;
}

static const char *const suffixes[] = { ".pstats", ".prof", NULL };

const struct exporter exporter_pstats = {
	.name = "pstats",
	.suffixes = suffixes,
	.help = "what cProfile saves, for pstats, snakeviz, gprof2dot",
	.needs = EXPORT_NEEDS_SAMPLES | EXPORT_OF_ONE_KIND,
	.begin = begin,
	.take = take,
	.release = release,
	.finish = finish,
};
