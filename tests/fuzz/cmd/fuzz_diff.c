/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Two sides that somebody else recorded, up to some runs each: whatever the names and numbers are,
 * the comparison is a sound tree, JSON can be parsed, and nothing drives the terminal.
 */
#include <cjson/cJSON.h>
#include <errno.h>
#include <math.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/err.h"
#include "base/utf8.h"
#include "cmd/diff_terminal.h"
#include "diff/diff.h"
#include "export/diff_export.h"
#include "tests/fuzz/hostile_profile.h"

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t len);

static void add_hostile_run(struct hostile *h, struct diff_input *in, enum diff_side side)
{
	uint8_t bits = (uint8_t)hostile_number(h, 1);
	const struct recording facts = {
		.mode = bits & 1 ? (char[]){ "cpu" } : NULL,
		.host = bits & 2 ? (char[]){ "</script>\xff" } : NULL,
		.cpu_model =
			side == DIFF_BASE ? (char[]){ "Xeon" } : (char[]){ "</script>\xff\x1b[2J" },
		.hash_seed = bits & 2 ? (char[]){ "0" } : NULL,
		.is_summed = bits & 4,
		.is_whole = bits & 8,
		.interval_ns = hostile_number(h, bits & 16 ? 8 : 3),
		.duration_ns = hostile_number(h, bits & 32 ? 8 : 5),
		.work = hostile_work(h),
	};
	uint64_t lost = hostile_number(h, bits & 64 ? 8 : 2), expected_ns = hostile_number(h, 5);
	uint32_t recording, run;

	require(profile_begin_recording(in->profile, &recording) == 0);
	require(recording_copy(&in->profile->recordings.items[recording], &facts) == 0);
	require(diff_input_add_run(in, side, side == DIFF_BASE ? "base.pyebpf" : "\x1b[2J\n.pyebpf",
				   recording, expected_ns, &run) == 0);
	in->cube.runs.items[run].lost = lost;
}

static struct diff_input *read_sides(struct hostile *h, bool by_thread)
{
	struct diff_input *in;
	bool is_more = true;

	require(diff_input_new(by_thread, &in) == 0);
	for (uint32_t i = 0; i < DIFF_SIDES || (is_more && i < 6); i++) {
		enum diff_side side = i < DIFF_SIDES ? (enum diff_side)i
						     : (enum diff_side)hostile_pick(h, DIFF_SIDES);

		add_hostile_run(h, in, side);
		is_more = hostile_fill(h, in->profile);
		require(diff_input_take_samples(in, hostile_pick(h, 2)) == 0);
	}
	require(diff_input_finish(in) == 0);
	return in;
}

static void check_measure(const struct diff_measure *m)
{
	require(isnan(m->ratio) || (m->ratio >= 0 && m->low <= m->ratio && m->ratio <= m->high));
	require(isnan(m->q) || (m->q >= 0 && m->q <= 1));
}

/* Preorder, and on both sides self and children are the total. */
static void check_tree(const struct diff *d)
{
	require(d->node_count >= 1 && d->nodes[0].end == d->node_count);
	for (uint32_t i = 0; i < d->node_count; i++) {
		const struct diff_node *n = &d->nodes[i];
		uint64_t base = n->base_self, current = n->self;

		require(n->end > i && n->class < DIFF_CLASS_COUNT && n->match < DIFF_MATCH_COUNT);
		require(i ? n->parent < i && n->function < d->function_count
			  : n->function == UINT32_MAX);
		for (uint32_t c = i + 1; c < n->end; c = d->nodes[c].end) {
			require(d->nodes[c].parent == i);
			base += d->nodes[c].base_total;
			current += d->nodes[c].total;
		}
		require(base == n->base_total && current == n->total);
		check_measure(&n->measure);
	}
	for (size_t i = 0; i < d->function_count; i++) {
		require(d->functions[i].name < strtab_count(d->input->profile->strings));
		check_measure(&d->functions[i].measure);
		check_measure(&d->functions[i].self_measure);
	}
}

/* In it are line ends, and else nothing that a terminal would act on. */
static void check_plain(const char *text, size_t len)
{
	bool is_plain;

	for (size_t i = 0; i < len;) {
		size_t n = utf8_next_plain(text + i, len - i, &is_plain);

		require(is_plain || text[i] == '\n');
		i += n;
	}
}

static void check_json(const char *text, size_t len)
{
	cJSON *json = cJSON_ParseWithLength(text, len);

	require(json != NULL);
	cJSON_Delete(json);
}

/* e NULL: for people. */
static void write_report(const struct diff_exporter *e, const struct diff_report *r)
{
	char *text = NULL;
	size_t len = 0;
	FILE *out = open_memstream(&text, &len);

	require(out != NULL);
	require((e ? e->write(r, out) : diff_terminal_print(out, r, DIFF_KEY_SELF)) == 0);
	require(fclose(out) == 0);
	if (!e)
		check_plain(text, len);
	else if (e == &diff_exporter_json)
		check_json(text, len);
	free(text);
}

static void compare(const struct diff_input *in, enum diff_normalize normalize)
{
	static const struct gate_options gate_options = GATE_OPTIONS_DEFAULT;
	struct diff_options o = { .normalize = normalize };
	_cleanup_(diff_freep) struct diff *d = NULL;
	_cleanup_(gate_freep) struct gate *g = NULL;
	_cleanup_(differences_release) struct differences environment = { 0 };
	struct diff_report r = { .input = in, .environment = &environment, .limit = 10 };
	struct texts losses = { 0 };
	int status = diff_new(in, &o, &d);

	if (status == -EINVAL) { /* a side does not say what that needs */
		err_clear();
		return;
	}
	require(status == 0);
	check_tree(d);
	require(gate_new(d, &gate_options, &g) == 0);
	require(environment_compare(in, &environment) == 0);
	r.diff = d;
	r.gate = g;
	r.notes = &d->notes;
	r.losses = &losses;
	write_report(NULL, &r);
	for (const struct diff_exporter *const *e = diff_exporters; *e; e++)
		if (in->cube.axes & CUBE_THREADS || !(*e)->needs_threads)
			write_report(*e, &r);
}

static void compare_as_cpython(const struct diff_input *in, enum compat_version version)
{
	_cleanup_(compat_freep) struct compat *c = NULL;
	const struct differences environment = { 0 };
	struct texts notes = { 0 };
	struct diff_report r = {
		.input = in, .notes = &notes, .losses = &notes, .environment = &environment
	};

	require(compat_new(in, version, &c) == 0);
	r.compat = c;
	write_report(&diff_exporter_json, &r);
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t len)
{
	struct hostile h = { bytes, bytes + len };
	uint8_t how = (uint8_t)hostile_number(&h, 1);
	struct diff_input *in = read_sides(&h, how & 1);
	struct texts reasons = { 0 };

	require(diff_input_check(in, &reasons) == 0);
	texts_release(&reasons);
	compare(in, (enum diff_normalize)(how >> 1 & 7) % (DIFF_WORK + 1));
	if (in->cube.axes & CUBE_THREADS)
		compare_as_cpython(in, (enum compat_version)(how >> 4 & 1));
	diff_input_free(in);
	return 0;
}
