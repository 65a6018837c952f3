/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#include "cmd/load.h"

#include <errno.h>
#include <inttypes.h>
#include <string.h>

#include "base/err.h"
#include "base/log.h"
#include "base/units.h"
#include "cmd/account.h"
#include "cmd/input.h"

#define DEFAULT_FILE "profile.pyebpf"

/* Takes the samples p holds now into the sums. */
static int sum_samples(struct load *l)
{
	struct profile *p = l->profile;
	size_t more = p->threads.len - l->thread_ticks.len;
	int r = l->folds_imports ? import_fold_samples(&l->imports, p) : 0;

	if (r < 0)
		return r;
	if (vec_reserve(&l->thread_ticks, more) < 0 || tally_add(&l->tally, p) < 0)
		return -ENOMEM;
	memset(l->thread_ticks.items + l->thread_ticks.len, 0, more * sizeof(uint64_t));
	l->thread_ticks.len += more;
	for (size_t i = 0; i < p->samples.len; i++) {
		l->thread_ticks.items[p->samples.items[i].thread] += p->samples.items[i].weight;
		l->ticks += p->samples.items[i].weight;
	}
	l->records += p->samples.len;
	profile_clear_samples(p);
	return 0;
}

/* The file gave n in the end, and `found` samples: is it of use? 0 or an error. */
static int judge_end(struct load *l, const struct input *in, const char *path, int n,
		     uint64_t found)
{
	uint64_t offset;

	if (!n && !input_is_truncated(in, &offset))
		return 0;
	l->is_cut = true;
	if (n < 0 && !found)
		return n;
	if (!found)
		return err_set(-EBADMSG, "%s: cut off before its first sample", path);
	if (n < 0)
		n = texts_addf(&l->notes, "%s; the %s samples before that are used", err_message(n),
			       units_count(found).s);
	else
		n = texts_addf(&l->notes,
			       "%s: ends early at byte %" PRIu64
			       ": its recorder was killed or still runs",
			       path, offset);
	if (n < 0)
		return n;
	log_warning("%s", l->notes.items[l->notes.len - 1]);
	err_clear();
	return 0;
}

static int begin_run(struct load *l, struct input *in, const char *path)
{
	if (!l->tally.by_time)
		return 0;
	return slots_begin_run(&l->tally.slots, SLOT_CURRENT, path,
			       input_is_text(in) ? SLOTS_NO_TIMES : input_last_ns(in));
}

/* lost, busy: before the run. */
static int end_run(struct load *l, const struct input *in, uint64_t lost, uint64_t busy)
{
	uint64_t now = account_due(l->profile, l->ticks);

	if (!l->tally.by_time)
		return 0;
	return slots_describe_run(&l->tally.slots, input_metadata(in),
				  account_sum(l->profile, account_lost) - lost,
				  now > busy ? now - busy : 0);
}

/* Batch by batch until it gives no more: 0 or what input_next() says; else -ENOMEM in *r. */
static int sum_batches(struct load *l, struct input *in, int *r)
{
	int n;

	do {
		n = input_next(in, l->profile);
		*r = sum_samples(l);
	} while (n > 0 && !*r);
	return n;
}

static int load_file(struct load *l, const char *path)
{
	_cleanup_(input_freep) struct input *in = NULL;
	uint64_t records = l->records, ticks = l->ticks;
	uint64_t lost = account_sum(l->profile, account_lost);
	uint64_t busy = account_due(l->profile, l->ticks);
	int n, r = input_open(path, &in);

	if (r < 0)
		return r;
	if ((r = input_compare_intervals(in, l->profile, path, &l->notes)) < 0 ||
	    (r = begin_run(l, in, path)) < 0)
		return r;
	n = sum_batches(l, in, &r);
	if (!r)
		r = end_run(l, in, lost, busy);
	if (r < 0 || (n < 0 && n != -EBADMSG))
		return r < 0 ? r : n;
	if (input_is_text(in)) {
		l->records = records + l->ticks - ticks; /* a line is a sum, not a record */
		if (n < 0)
			return n; /* one wrong line: it may be another format altogether */
	}
	if (input_skipped(in))
		log_note("%s: lines skipped, without samples: %s", path,
			 units_count(input_skipped(in)).s);
	return judge_end(l, in, path, n, l->records - records);
}

int load_files(struct load *l, const char *const *paths, size_t count)
{
	int r = profile_new(&l->profile);

	for (size_t i = 0; i < count && !r; i++)
		r = load_file(l, paths[i]);
	if (!r)
		r = account_note(l->profile, l->ticks, "", &l->notes);
	return r ? r : tally_finish(&l->tally);
}

/* The stack of l->profile that is just this frame's function. */
static int leaf_stack(struct load *l, const struct profile *p, uint32_t frame, uint32_t *stack)
{
	const struct frame *from = frametab_get(p->frames, frame);
	const char *name = strtab_get(p->strings, from->name);
	const char *file = strtab_get(p->strings, from->file);
	struct frame f = { .first_line = from->first_line, .kind = from->kind };
	uint32_t id;
	int r;

	if ((r = strtab_intern(l->profile->strings, name, strtab_len(p->strings, from->name),
			       &f.name)) < 0 ||
	    (r = strtab_intern(l->profile->strings, file, strtab_len(p->strings, from->file),
			       &f.file)) < 0 ||
	    (r = frametab_intern(l->profile->frames, &f, &id)) < 0)
		return r;
	return stacktab_intern(l->profile->stacks, 0, id, stack);
}

int load_add_leaves(struct load *l, const struct profile *p, struct leaf_map *functions)
{
	const struct stack_entry *stacks = stacktab_entries(p->stacks);
	size_t frames = frametab_count(p->frames);
	int r = 0;

	if (functions->len < frames) {
		if (vec_reserve(functions, frames - functions->len) < 0)
			return -ENOMEM;
		memset(functions->items + functions->len, 0,
		       (frames - functions->len) * sizeof(functions->items[0]));
		functions->len = frames;
	}
	for (size_t i = 0; i < p->samples.len && !r; i++) {
		struct sample s = p->samples.items[i];
		uint32_t *stack = s.stack ? &functions->items[stacks[s.stack].frame] : NULL;

		if (stack && !*stack)
			r = leaf_stack(l, p, stacks[s.stack].frame, stack);
		s.stack = stack ? *stack : 0;
		s.thread = 0;
		s.opcode = 0;
		l->ticks += s.weight;
		if (!r)
			r = profile_add_sample(l->profile, &s);
	}
	l->records += p->samples.len;
	if (!r)
		r = tally_add(&l->tally, l->profile);
	profile_clear_samples(l->profile);
	return r;
}

int load_operands(struct load *l, const struct call *call)
{
	static const char *const otherwise[] = { DEFAULT_FILE };

	if (!call->operands.len)
		return load_files(l, otherwise, 1);
	return load_files(l, (const char *const *)call->operands.items, (size_t)call->operands.len);
}

void load_release(struct load *l)
{
	profile_free(l->profile);
	tally_release(&l->tally);
	vec_release(&l->thread_ticks);
	import_fold_release(&l->imports);
	texts_release(&l->notes);
}
