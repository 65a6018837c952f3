/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#include "diff/replicates.h"

/* Of a run, up to twice as many less one: bursts reach over the ends of blocks, so that 40 would
 * show too little scatter (docs/findings.md). */
#define REPLICATES 20

/* From the start of the recording to the end of a block; the last one ends with the recording. */
static double block_end(const struct diff_input *in, const struct cube_run *run, uint32_t block)
{
	double length = cube_block_ns(&in->cube, run), end = ((double)block + 1) * length;
	double last = (double)diff_run_recording(in, run)->duration_ns;

	if (block + 1 == run->block_count && last > end - length && last < end)
		end = last;
	return end;
}

static double run_exposure(const struct diff_input *in, const struct cube_run *run,
			   enum exposure exposure)
{
	switch (exposure) {
	case EXPOSURE_TIME:
		return (double)diff_run_recording(in, run)->duration_ns;
	case EXPOSURE_TICKS:
		return (double)run->value;
	case EXPOSURE_WORK:
		return diff_run_recording(in, run)->work;
	case EXPOSURE_EQUAL:
		break;
	}
	return 1;
}

static int add_run(struct replicates *s, const struct diff_input *in, const struct cube_run *run,
		   enum exposure exposure)
{
	struct replicate r = {
		.run = run,
		.blocks = run->blocks,
		.block_count = run->block_count,
		.exposure = run_exposure(in, run, exposure),
	};

	return r.exposure > 0 ? vec_push(s, r) : 0;
}

/* Where the replicate ends that begins with a block: a short rest of the run goes with it. */
static uint32_t replicate_end(const struct diff_input *in, const struct cube_run *run,
			      uint32_t first, uint32_t size)
{
	uint32_t end = first + size;
	double last;

	if (end >= run->block_count)
		return run->block_count;
	last = block_end(in, run, run->block_count - 1);
	return last - block_end(in, run, end - 1) < size * cube_block_ns(&in->cube, run) / 2
		       ? run->block_count
		       : end;
}

static double blocks_exposure(const struct diff_input *in, const struct replicate *r,
			      enum exposure exposure)
{
	uint32_t first = (uint32_t)(r->blocks - r->run->blocks), end = first + r->block_count;
	uint64_t ticks = 0;

	if (exposure != EXPOSURE_TICKS)
		return block_end(in, r->run, end - 1) -
		       (double)first * cube_block_ns(&in->cube, r->run);
	for (uint32_t b = 0; b < r->block_count; b++)
		ticks += r->blocks[b].value;
	return (double)ticks;
}

static int add_blocks(struct replicates *s, const struct diff_input *in, const struct cube_run *run,
		      enum exposure exposure, uint32_t times)
{
	uint32_t size = run->block_count < 2 * REPLICATES ? 1 : run->block_count / REPLICATES;
	int r = 0;

	for (uint32_t b = 0, end; b < run->block_count && !r; b = end) {
		struct replicate one = { .run = run, .blocks = &run->blocks[b] };

		end = replicate_end(in, run, b, size * times);
		one.block_count = end - b;
		one.exposure = blocks_exposure(in, &one, exposure);
		if (one.exposure > 0)
			r = vec_push(s, one);
	}
	return r;
}

int replicates_find(struct replicates *out, const struct diff *d, enum diff_side side,
		    enum diff_dispersion by, enum exposure exposure, uint32_t times)
{
	double sum = 0;
	int r = 0;

	for (size_t i = 0; i < d->input->cube.runs.len && !r; i++) {
		const struct cube_run *run = &d->input->cube.runs.items[i];

		if (run->side != side)
			continue;
		r = by == DIFF_BY_RUNS ? add_run(out, d->input, run, exposure)
				       : add_blocks(out, d->input, run, exposure, times);
	}
	for (size_t i = 0; i < out->len; i++)
		sum += out->items[i].exposure;
	for (size_t i = 0; i < out->len; i++)
		out->items[i].share = out->items[i].exposure / sum;
	return r;
}

double replicates_block_ns(const struct diff *d)
{
	double least = 0;

	for (size_t i = 0; i < d->input->cube.runs.len; i++) {
		const struct cube_run *run = &d->input->cube.runs.items[i];
		double length;

		if (run->block_count < 2)
			continue;
		length = block_end(d->input, run, run->block_count - 1) / REPLICATES;
		if (!(least > 0) || length < least)
			least = length;
	}
	return least;
}

void replicates_release(struct replicates *r)
{
	vec_release(r);
}
