/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#ifndef DIFF_COMPAT_H
#define DIFF_COMPAT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/cleanup.h"
#include "diff/input.h"

/*
 * The numbers of CPython's differential flame graph, as its profiling.sampling computes them from
 * the same samples (Lib/profiling/sampling/stack_collector.py, class DiffFlamegraphCollector): its
 * own rules, without identity, significance or normalisation of ours. Nodes are lines of code,
 * baselines are matched by path of (file, function).
 */
enum compat_version {
	COMPAT_3_15_0A8, /* as first merged */
	COMPAT_3_15,     /* as in 3.15.2 */
};
#define COMPAT_COUNT (COMPAT_3_15 + 1)
extern const char *const compat_names[COMPAT_COUNT]; /* "3.15.0a8", "3.15" */

#define COMPAT_ROOT UINT32_MAX
#define COMPAT_MARKER_FILE "~" /* upstream's name for the file of what is no code */

/* Fields have upstream's names and units: samples of current. */
struct compat_node {
	uint32_t parent; /* an earlier index, or COMPAT_ROOT */
	uint32_t frame;  /* id */
	bool is_elided;  /* its path is in the elided set; only in `elided` */
	double self, value, self_time;
	double baseline, baseline_total;
	double diff, diff_pct;
};

struct compat {
	enum compat_version version;
	double scale;          /* upstream's baseline_scale */
	uint64_t value;        /* of the root: all samples of current */
	uint64_t base_samples; /* all samples of base */
	uint64_t elided_count;
	bool has_promoted_root;    /* upstream draws the first node as the root */
	struct compat_node *nodes; /* preorder; only those upstream draws */
	size_t node_count;
	struct compat_node *elided; /* preorder: the elided view, matched ancestors included */
	size_t elided_node_count;
};

/* in is by thread. Keeps nothing of it but ids. 0; -EOVERFLOW, -ENOMEM. */
int compat_new(const struct diff_input *in, enum compat_version version, struct compat **out);
void compat_free(struct compat *c);
DEFINE_CLEANUP(struct compat *, compat_free)

#endif
