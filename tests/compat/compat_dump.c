/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */

/*
 * compat_dump 3.15|3.15.0a8 BASE CURRENT: what user/diff/compat.h computes of two recordings of
 * profiling.sampling, a line each, fields apart by tabs:
 *
 *	scale elided_count value
 *	main|elided  parent  file  line  name  self value self_time baseline baseline_total diff
 *diff_pct
 */
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "base/err.h"
#include "diff/compat.h"
#include "import/import.h"

static int load(struct diff_input *in, enum diff_side side, const char *path)
{
	_cleanup_(import_freep) struct import *import = NULL;
	uint32_t run;
	int r = import_open(path, (struct import_choice){ 0 }, &import), n;

	if (r <= 0)
		return r ? r : err_set(-EINVAL, "%s: of no known format", path);
	n = import_next(import, in->profile);
	r = diff_input_add_run(in, side, path, import_facts(import)->index, 0, &run);
	if (!r)
		in->cube.runs.items[run].has_times = false;
	while (!r) {
		r = n < 0 ? n : diff_input_take_samples(in, true);
		if (n <= 0)
			break;
		n = import_next(import, in->profile);
	}
	return r;
}

static void print_nodes(const struct profile *p, const char *view, const struct compat_node *nodes,
			size_t count)
{
	for (size_t i = 0; i < count; i++) {
		const struct compat_node *n = &nodes[i];
		const struct frame *f = frametab_get(p->frames, n->frame);

		const char *file = f->kind == FRAME_MARKER ? "~" : strtab_get(p->strings, f->file);

		printf("%s\t%" PRId64 "\t%s\t%" PRIu32 "\t%s", view,
		       n->parent == COMPAT_ROOT ? -1 : (int64_t)n->parent, file, f->line,
		       strtab_get(p->strings, f->name));
		printf("\t%.17g\t%.17g\t%.17g\t%.17g\t%.17g\t%.17g\t%.17g\n", n->self, n->value,
		       n->self_time, n->baseline, n->baseline_total, n->diff, n->diff_pct);
	}
}

static int dump(enum compat_version version, const char *const paths[DIFF_SIDES])
{
	_cleanup_(diff_input_freep) struct diff_input *in = NULL;
	_cleanup_(compat_freep) struct compat *c = NULL;
	int r = diff_input_new(true, &in);

	for (int s = 0; s < DIFF_SIDES && !r; s++)
		r = load(in, s, paths[s]);
	if (!r)
		r = diff_input_finish(in);
	if (!r)
		r = compat_new(in, version, &c);
	if (r < 0)
		return r;
	printf("%.17g\t%" PRIu64 "\t%" PRIu64 "\n", c->scale, c->elided_count, c->value);
	print_nodes(in->profile, "main", c->nodes, c->node_count);
	print_nodes(in->profile, "elided", c->elided, c->elided_node_count);
	return 0;
}

int main(int argc, char **argv)
{
	int r = -EINVAL;

	for (int v = 0; argc == 4 && v < COMPAT_COUNT; v++) {
		if (strcmp(argv[1], compat_names[v]) != 0)
			continue;
		r = dump((enum compat_version)v, (const char *const[]){ argv[2], argv[3] });
		if (r < 0)
			fprintf(stderr, "compat_dump: %s\n", err_message(r));
		return r < 0;
	}
	fprintf(stderr, "usage: compat_dump 3.15|3.15.0a8 BASE CURRENT\n");
	return 2;
}
