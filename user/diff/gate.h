/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#ifndef DIFF_GATE_H
#define DIFF_GATE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/cleanup.h"
#include "diff/diff.h"

/*
 * May this change go in? A function fails if it surely became slower by more than the threshold
 * and costs more than the floor. Intervals are simultaneous over all functions that cost more than
 * the floor: the chance that the lower end of any is too high is 5 %. The exposure is work where
 * diff->normalize is work, a run where it is absolute, else the side's own CPU time.
 */
enum gate_result { GATE_PASS, GATE_REGRESSION, GATE_INCONCLUSIVE };
#define GATE_RESULT_COUNT (GATE_INCONCLUSIVE + 1)
extern const char *const gate_result_names[GATE_RESULT_COUNT]; /* "pass" */
extern const uint8_t gate_exit_codes[GATE_RESULT_COUNT];       /* 0, 5, 6 */

#define GATE_THRESHOLD 0.10 /* by default */
#define GATE_FLOOR 0.005

enum gate_verdict {
	GATE_FINE,
	GATE_SLOWER,       /* surely, beyond the threshold and the floor */
	GATE_UNDETERMINED, /* could be beyond the threshold and the floor */
	GATE_MOVED, /* slower or new, but its caller is not: cost moved from the caller's own */
};

/* One function above the floor. */
struct gate_row {
	uint32_t function; /* index in diff->functions */
	uint8_t verdict;   /* enum gate_verdict */
	float ratio;       /* of the totals by exposure */
	float low, high;   /* simultaneous interval of it */
	float cost;        /* added, as a share of base's total */
	float detectable;  /* the smallest ratio that would be failed nine times in ten */
};

struct gate {
	enum gate_result result;
	bool is_blind; /* a uniform slowdown cannot be seen: the exposure is the side's own time */
	double threshold;   /* a share: 0.10 */
	double floor;       /* of base's total */
	double could;       /* the total may have grown by this share (upper end); NAN: unknown */
	uint8_t total;      /* enum gate_verdict of the total; GATE_FINE where is_blind */
	const char *reason; /* of an inconclusive result, a sentence; else NULL. Static. */
	struct gate_row *rows; /* largest cost first */
	size_t row_count;
};

/* Keeps nothing of d but indices. threshold > 0, floor >= 0. 0 or -ENOMEM. */
int gate_new(const struct diff *d, double threshold, double floor, struct gate **out);
void gate_free(struct gate *g);
DEFINE_CLEANUP(struct gate *, gate_free)

#endif
