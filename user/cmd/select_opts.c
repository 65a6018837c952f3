/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#include "cmd/select_opts.h"

#include <errno.h>

#include "base/err.h"
#include "base/units.h"
#include "cmd/account.h"
#include "cmd/figures.h"

struct select_query select_opts_query(const struct select_opts *o)
{
	struct select_query q = { .kind = o->kind,
				  .merge = (enum select_merge)o->merge,
				  .collapses_stdlib = o->collapses_stdlib,
				  .leaves_idle_out = o->leaves_idle_out };

	for (size_t i = 0; i < SELECT_KEYS; i++) {
		q.patterns[i].items = o->patterns[i].items;
		q.patterns[i].len = o->patterns[i].len;
	}
	return q;
}

int select_opts_read(const struct call *call, const struct select_opts *o, struct select_query *q)
{
	int r;

	*q = select_opts_query(o);
	if (o->folds_imports && o->keeps_imports)
		return cmd_usage(call, "--fold-imports and --no-fold-imports cannot be combined");
	if (!o->time_range)
		return EXIT_OK;
	r = select_parse_range(q, o->time_range);
	if (r == -EINVAL)
		return cmd_usage(call, "--time-range: %s", err_message(r));
	return r < 0 ? cmd_fail(call, r) : EXIT_OK;
}

bool select_opts_folds_imports(const struct select_opts *o, bool by_default)
{
	return o->folds_imports || (by_default && !o->keeps_imports);
}

/* As a shell reads it. */
static void put_quoted(struct strbuf *out, const char *text)
{
	strbuf_putc(out, '\'');
	for (; *text; text++)
		if (*text == '\'')
			strbuf_puts(out, "'\\''");
		else
			strbuf_putc(out, *text);
	strbuf_putc(out, '\'');
}

int select_put_query(const struct select_query *q, struct strbuf *out)
{
	static const char *const names[SELECT_KEYS] = {
		[SELECT_FOCUS] = "focus",         [SELECT_IGNORE] = "ignore",
		[SELECT_HIDE] = "hide",           [SELECT_GROUP] = "group-by",
		[SELECT_MODULE] = "module",       [SELECT_FILE] = "file",
		[SELECT_THREAD] = "thread",       [SELECT_PROCESS] = "process",
		[SELECT_CONTAINER] = "container", [SELECT_LABEL] = "label",
	};
	const char *space = "";

	for (size_t key = 0; key < SELECT_KEYS; key++)
		for (size_t i = 0; i < q->patterns[key].len; i++) {
			strbuf_appendf(out, "%s--%s ", space, names[key]);
			put_quoted(out, q->patterns[key].items[i]);
			space = " ";
		}
	for (size_t i = 0; i < q->part.labels.len; i++) {
		strbuf_appendf(out, "%s%s%s ", space, q->part.is_rest ? "not " : "",
			       q->part.option);
		put_quoted(out, q->part.labels.items[i]);
		space = " ";
	}
	if (q->kind) {
		strbuf_appendf(out, "%s--kind ", space);
		put_quoted(out, q->kind);
		space = " ";
	}
	if (q->merge) {
		strbuf_appendf(out, "%s--merge %s", space, select_merge_names[q->merge]);
		space = " ";
	}
	if (q->collapses_stdlib) {
		strbuf_appendf(out, "%s--collapse-stdlib", space);
		space = " ";
	}
	if (q->leaves_idle_out) {
		strbuf_appendf(out, "%s--no-idle", space);
		space = " ";
	}
	if (!q->has_range)
		return strbuf_error(out);
	strbuf_appendf(out, "%s--time-range ", space);
	if (q->from_ns)
		strbuf_puts(out, units_ns_exact(q->from_ns).s);
	strbuf_puts(out, "..");
	if (q->to_ns != UINT64_MAX)
		strbuf_puts(out, units_ns_exact(q->to_ns).s);
	return strbuf_error(out);
}

int select_put_sum(const struct select_query *q, const struct select_sum *sum, struct value_unit of,
		   struct strbuf *out)
{
	bool is_counted = !q->kind && value_is_tick(of);
	struct value_unit told = is_counted ? (struct value_unit){ 1, UNIT_COUNT } : of;

	strbuf_puts(out, value_text(sum->kept, told).s);
	strbuf_appendf(out, " of %s%s", value_text(sum->all, told).s, is_counted ? " samples" : "");
	if (sum->all)
		strbuf_appendf(out, " (%s)", share_text(sum->kept, sum->all).s);
	strbuf_puts(out, ": ");
	if (sum->idle_ns) {
		select_put_query(q, out);
		return strbuf_appendf(out, ", excluding %s of idle time", units_ns(sum->idle_ns).s);
	}
	return select_put_query(q, out);
}

int select_put_others(const struct select *s, const struct profile *p, struct strbuf *out)
{
	strbuf_appendf(out, "%s samples of other kinds; select one with --kind: ",
		       units_count(s->others).s);
	return kinds_put_others(&s->kinds, p, out);
}

static void sums_release(struct idle_sums *sums)
{
	vec_release(sums);
}

int select_put_idle(const struct select *s, struct strbuf *out)
{
	_cleanup_(sums_release) struct idle_sums sums = VEC_INIT;
	uint64_t all = 0;
	int r = idle_sum(&s->idle, &sums);

	for (size_t i = 0; i < sums.len; i++)
		all += sums.items[i].ns;
	strbuf_puts(out, units_ns(all).s);
	for (size_t i = 0; i < sums.len; i++)
		strbuf_appendf(out, "%s%s %s", i ? ", " : ": ", sums.items[i].what,
			       units_ns(sums.items[i].ns).s);
	return r ? r : strbuf_error(out);
}

void select_opts_release(struct select_opts *o)
{
	for (size_t i = 0; i < SELECT_KEYS; i++)
		vec_release(&o->patterns[i]);
}
