/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#include "diff/input.h"

#include <errno.h>
#include <inttypes.h>
#include <math.h>
#include <string.h>

#include "profile/merge.h"

#define RATE_TOLERANCE 0.1        /* intervals further apart are another rate */
#define EXPECTED_SLACK_NS 1000000 /* an index rounds down; a block more would be next to empty */
#define PREFETCH 16               /* samples ahead: of many stacks, few are in the cache */
#define TAG_STRIDE 2654435761u    /* spreads tags over the slots: 2^32 / golden ratio, odd */

/* --- runs ------------------------------------------------------------------------------------- */

static void run_free(struct diff_run *run)
{
	free(run->file);
	for (size_t i = 0; i < DIFF_BLOCKS_MAX; i++) {
		vec_release(&run->blocks[i].cells);
		vec_release(&run->blocks[i].tags);
	}
	vec_release(&run->process_ticks);
	free(run);
}

DEFINE_CLEANUP(struct diff_run *, run_free)

int diff_input_new(bool by_thread, struct diff_input **out)
{
	_cleanup_(diff_input_freep) struct diff_input *in = calloc(1, sizeof(*in));
	int r;

	if (!in)
		return -ENOMEM;
	in->by_thread = by_thread;
	r = profile_new(&in->profile);
	if (r < 0)
		return r;
	*out = take_ptr(in);
	return 0;
}

void diff_input_free(struct diff_input *in)
{
	if (!in)
		return;
	profile_free(in->profile);
	for (size_t i = 0; i < in->runs.len; i++)
		run_free(in->runs.items[i]);
	vec_release(&in->runs);
	vec_release(&in->slots);
	free(in);
}

static uint64_t block_length(uint64_t last_ns)
{
	return last_ns / DIFF_BLOCKS + 1;
}

int diff_input_add_run(struct diff_input *in, enum diff_side side, const char *file,
		       uint32_t recording, uint64_t expected_ns, uint32_t *out)
{
	_cleanup_(run_freep) struct diff_run *run = calloc(1, sizeof(*run));

	if (!run)
		return -ENOMEM;
	run->side = side;
	run->recording = recording;
	run->has_times = !in->profile->recordings.items[recording].is_summed;
	run->file = strdup(file);
	if (run->has_times && expected_ns)
		run->block_ns = block_length(expected_ns + EXPECTED_SLACK_NS);
	if (!run->file || vec_push(&in->runs, run) < 0)
		return -ENOMEM;
	run = NULL;
	*out = (uint32_t)in->runs.len - 1;
	return 0;
}

/* --- blocks ----------------------------------------------------------------------------------- */

/* Moves what is in `from` to the end of `to`. */
static int merge_blocks(struct diff_block *to, struct diff_block *from)
{
	if (vec_append(&to->cells, from->cells.items, from->cells.len) < 0 ||
	    vec_append(&to->tags, from->tags.items, from->tags.len) < 0)
		return -ENOMEM;
	to->ticks += from->ticks;
	vec_release(&from->cells);
	vec_release(&from->tags);
	from->ticks = 0;
	return 0;
}

/* Half as many blocks, twice as long. */
static int double_blocks(struct diff_run *run)
{
	for (size_t i = 0; i < DIFF_BLOCKS; i++) {
		struct diff_block *to = &run->blocks[i], *from = &run->blocks[2 * i];

		if (i) {
			struct diff_block moved = *from;

			*from = *to;
			*to = moved;
		}
		if (merge_blocks(to, &run->blocks[2 * i + 1]) < 0)
			return -ENOMEM;
	}
	run->block_ns *= 2;
	run->block_count = (run->block_count + 1) / 2;
	return 0;
}

static int find_block(struct diff_run *run, uint64_t time_ns, struct diff_block **out)
{
	uint64_t at = 0;

	if (run->block_ns) {
		while ((at = time_ns / run->block_ns) >= DIFF_BLOCKS_MAX)
			if (double_blocks(run) < 0)
				return -ENOMEM;
	}
	if (run->block_count <= at)
		run->block_count = (uint32_t)at + 1;
	*out = &run->blocks[at];
	return 0;
}

/*
 * The slots are a lossy map from stack (and tag) to a cell: what stands there is checked against
 * the cell, so a wrong one only makes a second cell. Hence one table does for all blocks and runs.
 */
static int reserve_slots(struct diff_input *in)
{
	size_t want = in->slots.len ? in->slots.len : 1024,
	       count = stacktab_count(in->profile->stacks);

	while (want < count)
		want *= 2;
	if (want == in->slots.len)
		return 0;
	if (vec_reserve(&in->slots, want - in->slots.len) < 0)
		return -ENOMEM;
	memset(in->slots.items + in->slots.len, 0, (want - in->slots.len) * sizeof(uint32_t));
	in->slots.len = want;
	return 0;
}

/* As it is shown: not of two recordings. */
static uint32_t thread_of(const struct diff_input *in, const struct sample *s)
{
	return in->profile->threads.items[s->thread].same;
}

static uint32_t *slot_of(struct diff_input *in, const struct sample *s)
{
	uint32_t tag = in->by_thread ? s->thread + s->opcode * TAG_STRIDE : 0;

	return &in->slots.items[(s->stack + tag * TAG_STRIDE) & (in->slots.len - 1)];
}

static bool has_tag(const struct diff_input *in, const struct diff_block *b, uint32_t cell,
		    const struct sample *s)
{
	return !in->by_thread || (b->tags.items[cell].thread == thread_of(in, s) &&
				  b->tags.items[cell].opcode == s->opcode);
}

/* Where the cell of a sample to come probably is; NULL: it will be a new one. */
static const struct diff_cell *cell_ahead(struct diff_input *in, const struct diff_block *b,
					  const struct sample *s)
{
	uint32_t at = *slot_of(in, s);

	return at < b->cells.len ? &b->cells.items[at] : NULL;
}

static int add_to_block(struct diff_input *in, struct diff_block *b, const struct sample *s)
{
	uint32_t *slot = slot_of(in, s);
	struct diff_cell *cell = *slot < b->cells.len ? &b->cells.items[*slot] : NULL;

	b->ticks += s->value;
	if (cell && cell->stack == s->stack && has_tag(in, b, *slot, s) &&
	    cell->ticks <= UINT32_MAX - s->value) {
		cell->ticks += s->value;
		return 0;
	}
	if (b->cells.len == UINT32_MAX ||
	    (in->by_thread &&
	     vec_push(&b->tags, ((struct diff_tag){ thread_of(in, s), s->opcode })) < 0) ||
	    vec_push(&b->cells, ((struct diff_cell){ s->stack, s->value })) < 0)
		return -ENOMEM;
	*slot = (uint32_t)b->cells.len - 1;
	return 0;
}

static int reserve_processes(struct diff_run *run, size_t count)
{
	size_t more = count > run->process_ticks.len ? count - run->process_ticks.len : 0;

	if (vec_reserve(&run->process_ticks, more) < 0)
		return -ENOMEM;
	memset(run->process_ticks.items + run->process_ticks.len, 0, more * sizeof(uint64_t));
	run->process_ticks.len += more;
	return 0;
}

static uint64_t last_time(const struct profile *p)
{
	uint64_t last = 0;

	for (size_t i = 0; i < p->samples.len; i++)
		if (p->samples.items[i].time_ns > last)
			last = p->samples.items[i].time_ns;
	return last;
}

int diff_input_take_samples(struct diff_input *in, uint32_t index)
{
	struct diff_run *run = in->runs.items[index];
	struct profile *p = in->profile;
	struct diff_block *block = NULL;
	uint64_t start_ns = 0;

	if (reserve_slots(in) < 0 || reserve_processes(run, p->processes.len) < 0)
		return -ENOMEM;
	if (run->has_times && !run->block_ns && p->samples.len)
		run->block_ns = block_length(last_time(p));
	for (size_t i = 0; i < p->samples.len; i++) {
		const struct sample *s = &p->samples.items[i];

		if (block && i + 2 * PREFETCH < p->samples.len) {
			__builtin_prefetch(slot_of(in, s + 2 * PREFETCH));
			__builtin_prefetch(cell_ahead(in, block, s + PREFETCH));
		}
		if (!block || s->time_ns - start_ns >= run->block_ns) {
			if (find_block(run, s->time_ns, &block) < 0)
				return -ENOMEM;
			start_ns = (uint64_t)(block - run->blocks) * run->block_ns;
		}
		if (add_to_block(in, block, s) < 0)
			return -ENOMEM;
		run->process_ticks.items[p->threads.items[s->thread].process] += s->value;
		run->ticks += s->value;
	}
	profile_clear_samples(p);
	return 0;
}

/* --- joining inputs --------------------------------------------------------------------------- */

static void renumber(struct diff_run *run, const struct profile *p, const struct profile_ids *ids)
{
	for (uint32_t i = 0; i < run->block_count; i++) {
		struct diff_block *b = &run->blocks[i];

		for (size_t c = 0; c < b->cells.len; c++)
			b->cells.items[c].stack = ids->stacks[b->cells.items[c].stack];
		for (size_t t = 0; t < b->tags.len; t++) {
			uint32_t thread = ids->threads[b->tags.items[t].thread];

			b->tags.items[t].thread = p->threads.items[thread].same;
			b->tags.items[t].opcode = ids->strings[b->tags.items[t].opcode];
		}
	}
}

static int renumber_processes(struct diff_run *run, const struct profile *p,
			      const struct profile_ids *ids)
{
	size_t count = p->processes.len;
	uint64_t *ticks = calloc(count + 1, sizeof(*ticks));

	if (!ticks)
		return -ENOMEM;
	for (size_t i = 0; i < run->process_ticks.len; i++)
		ticks[ids->processes[i]] += run->process_ticks.items[i];
	free(run->process_ticks.items);
	run->process_ticks.items = ticks;
	run->process_ticks.len = count;
	run->process_ticks.cap = count + 1;
	return 0;
}

int diff_input_join(struct diff_input *to, struct diff_input *from)
{
	_cleanup_(profile_ids_release) struct profile_ids ids = { 0 };
	struct diff_input empty = *to;
	int r;

	if (!to->runs.len) {
		*to = *from;
		*from = empty;
		return 0;
	}
	r = profile_merge(to->profile, from->profile, &ids);
	if (!r)
		r = vec_reserve(&to->runs, from->runs.len);
	for (size_t i = 0; i < from->runs.len && !r; i++) {
		from->runs.items[i]->recording = ids.recordings[from->runs.items[i]->recording];
		renumber(from->runs.items[i], to->profile, &ids);
		r = renumber_processes(from->runs.items[i], to->profile, &ids);
	}
	if (r < 0)
		return r;
	for (size_t i = 0; i < from->runs.len; i++)
		to->runs.items[to->runs.len++] = from->runs.items[i];
	from->runs.len = 0;
	return 0;
}

/* --- what is known ---------------------------------------------------------------------------- */

const struct process *diff_run_process(const struct diff_input *in, const struct diff_run *run)
{
	const struct process *found = NULL;
	uint64_t most = 0;

	for (size_t i = 0; i < run->process_ticks.len; i++) {
		const struct process *process = &in->profile->processes.items[i];

		if (process->python_version && run->process_ticks.items[i] > most) {
			most = run->process_ticks.items[i];
			found = process;
		}
	}
	return found;
}

const char *diff_run_python(const struct diff_input *in, const struct diff_run *run)
{
	const struct process *process = diff_run_process(in, run);

	return process ? strtab_get(in->profile->strings, process->python_version) : NULL;
}

void diff_input_sum(const struct diff_input *in, enum diff_side side, struct diff_side_sum *out)
{
	struct diff_side_sum sum = { .has_times = true, .is_whole = true, .has_unit = true };
	bool has_seconds = true, has_work = true, has_interval = true;
	double interval_ns = 0, time_ns = 0;

	for (size_t i = 0; i < in->runs.len; i++) {
		const struct diff_run *run = in->runs.items[i];
		const struct recording *r = diff_run_recording(in, run);

		if (run->side != side)
			continue;
		sum.runs++;
		sum.ticks += run->ticks;
		sum.lost += run->lost;
		sum.seconds += (double)r->duration_ns / 1e9;
		sum.work += r->work;
		interval_ns += (double)r->interval_ns;
		time_ns += (double)run->ticks * (double)r->interval_ns;
		has_interval = has_interval && r->interval_ns;
		has_seconds = has_seconds && r->duration_ns;
		has_work = has_work && r->work > 0;
		sum.has_times = sum.has_times && run->has_times;
		sum.is_whole = sum.is_whole && r->is_whole;
		sum.has_unit = sum.has_unit && diff_run_has_unit(in, run);
	}
	if (!has_seconds)
		sum.seconds = 0;
	if (!has_work)
		sum.work = 0;
	if (has_interval && sum.runs)
		sum.interval_ns =
			sum.ticks ? time_ns / (double)sum.ticks : interval_ns / (double)sum.runs;
	*out = sum;
}

/* --- reasons not to compare ------------------------------------------------------------------- */

static bool differ(const char *a, const char *b)
{
	return a && b && strcmp(a, b) != 0;
}

/* Of versions 3.12.4 and 3.12.5 no. */
static bool versions_differ(const char *a, const char *b)
{
	size_t len;

	if (!a || !b)
		return false;
	len = strcspn(a, ".");
	if (a[len])
		len += 1 + strcspn(a + len + 1, ".");
	return strncmp(a, b, len) != 0 || (b[len] && b[len] != '.');
}

bool diff_input_versions_differ(const struct diff_input *in)
{
	for (size_t i = 0; i < in->runs.len; i++)
		for (size_t k = 0; k < i; k++) {
			const struct diff_run *a = in->runs.items[i], *b = in->runs.items[k];

			if (a->side != b->side &&
			    versions_differ(diff_run_python(in, a), diff_run_python(in, b)))
				return true;
		}
	return false;
}

static bool intervals_differ(uint64_t a, uint64_t b)
{
	double low = (double)(a < b ? a : b), high = (double)(a < b ? b : a);

	return low > 0 && high > low * (1 + RATE_TOLERANCE);
}

static double lost_share(const struct diff_side_sum *s)
{
	uint64_t all = s->ticks + s->lost;

	return all ? (double)s->lost / (double)all : 0;
}

static int check_runs(const struct diff_input *in, const struct diff_run *a,
		      const struct diff_run *b, struct texts *reasons)
{
	const struct recording *x = diff_run_recording(in, a), *y = diff_run_recording(in, b);
	const char *python[] = { diff_run_python(in, a), diff_run_python(in, b) };
	int r = 0;

	if (differ(x->mode, y->mode))
		r = texts_addf(reasons, "%s was recorded in mode %s, %s in mode %s", a->file,
			       x->mode, b->file, y->mode);
	if (!r && differ(x->event, y->event))
		r = texts_addf(reasons, "%s was recorded by the event %s, %s by %s", a->file,
			       x->event, b->file, y->event);
	if (!r && intervals_differ(x->interval_ns, y->interval_ns))
		r = texts_addf(reasons, "%s has a sample each %g us, %s each %g us", a->file,
			       (double)x->interval_ns / 1e3, b->file, (double)y->interval_ns / 1e3);
	if (!r && versions_differ(python[0], python[1]))
		r = texts_addf(reasons, "%s is of Python %s, %s of Python %s", a->file, python[0],
			       b->file, python[1]);
	return r;
}

static int check_lost(const struct diff_input *in, struct texts *reasons)
{
	struct diff_side_sum side[DIFF_SIDES];
	double share[DIFF_SIDES];

	for (int s = 0; s < DIFF_SIDES; s++) {
		diff_input_sum(in, s, &side[s]);
		share[s] = lost_share(&side[s]);
	}
	if (fabs(share[DIFF_BASE] - share[DIFF_CURRENT]) <= DIFF_LOST_MAX)
		return 0;
	return texts_addf(reasons, "base lost %.1f%% of its samples, current %.1f%%",
			  100 * share[DIFF_BASE], 100 * share[DIFF_CURRENT]);
}

/* All are compared with the first run: what differs between two others differs from it as well. */
int diff_input_check(const struct diff_input *in, struct texts *reasons)
{
	int r = 0;

	for (size_t i = 1; i < in->runs.len && !r; i++)
		r = check_runs(in, in->runs.items[0], in->runs.items[i], reasons);
	return r ? r : check_lost(in, reasons);
}
