/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#include "cmd/load.h"

#include <errno.h>
#include <inttypes.h>
#include <string.h>

#include "base/err.h"
#include "base/log.h"
#include "base/units.h"
#include "import/import.h"
#include "store/reader.h"

#define DEFAULT_FILE "profile.pyebpf"

/* Takes the samples p holds now into the sums. */
static int sum_samples(struct load *l)
{
	struct profile *p = l->profile;
	size_t more = p->threads.len - l->thread_ticks.len;

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
static int judge_end(struct load *l, const struct reader *reader, const char *path, int n,
		     uint64_t found)
{
	uint64_t offset;

	if (!n && !reader_is_truncated(reader, &offset))
		return 0;
	l->is_cut = true;
	if (n < 0 && !found)
		return n;
	if (!found)
		return err_set(-EBADMSG, "%s: cut off before its first sample", path);
	if (n < 0)
		log_warning("%s; the %s samples before that are used", err_message(n),
			    units_count(found).s);
	else
		log_warning("%s: ends early at byte %" PRIu64
			    ": its recorder was killed or still runs",
			    path, offset);
	err_clear();
	return 0;
}

/* A file of another format: 1; 0 if it is none; a negative errno. */
static int load_foreign(struct load *l, const char *path)
{
	uint64_t records = l->records, ticks = l->ticks;
	struct import_facts facts;
	int n, r;

	n = import_file(path, l->profile, &facts);
	if (n <= 0)
		return n;
	if (facts.skipped)
		log_note("%s: lines skipped, without samples: %s", path,
			 units_count(facts.skipped).s);
	if (l->profile->meta.interval_ns != facts.interval_ns)
		log_warning("%s: its samples are of %s each, and counted as those of the first "
			    "file, of %s",
			    path, units_ns(facts.interval_ns).s,
			    units_ns(l->profile->meta.interval_ns).s);
	r = sum_samples(l);
	l->records = records + l->ticks - ticks; /* a line is a sum, not a record */
	return r < 0 ? r : 1;
}

static int load_file(struct load *l, const char *path)
{
	_cleanup_(reader_freep) struct reader *reader = NULL;
	uint64_t before = l->records;
	int n, r;

	n = load_foreign(l, path);
	if (n)
		return n < 0 ? n : 0;
	n = reader_open(path, &reader);
	if (n < 0)
		return n;
	do {
		n = reader_next(reader, l->profile);
		r = sum_samples(l);
		if (r < 0)
			return r;
	} while (n > 0);
	if (n < 0 && n != -EBADMSG)
		return n;
	return judge_end(l, reader, path, n, l->records - before);
}

int load_files(struct load *l, const char *const *paths, size_t count)
{
	int r = profile_new(&l->profile);

	for (size_t i = 0; i < count && !r; i++)
		r = load_file(l, paths[i]);
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
}
