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
 * diff->normalize is work, a run where it is absolute, else the side's own CPU time, and then all
 * is relative to what most functions did (centre.h).
 *
 * Order of what is said: noise unknown or an empty side: inconclusive; a regression; inconclusive
 * where the total, or all that looks slower or new, could have grown beyond the threshold by more
 * than the floor, or where the comparison could hardly have seen anything: functions in which even
 * a change of GATE_BLIND_TIMES the threshold would not have been found hold more than
 * GATE_BLIND_SHARE of the own time of those above the floor.
 */
enum gate_result { GATE_PASS, GATE_REGRESSION, GATE_INCONCLUSIVE };
#define GATE_RESULT_COUNT (GATE_INCONCLUSIVE + 1)
extern const char *const gate_result_names[GATE_RESULT_COUNT]; /* "pass" */
extern const uint8_t gate_exit_codes[GATE_RESULT_COUNT];       /* 0, 5, 6 */

#define GATE_BLIND_TIMES 3
#define GATE_BLIND_SHARE 0.5

struct gate_options {
	double threshold; /* a share, > 0 */
	double floor;     /* of base's total, >= 0 */
	/*
	 * What the cost of a function is off by from run to run, a share. With one run a side that
	 * cannot be measured, and this is taken for it in the lower ends of intervals.
	 */
	double run_noise;
};
#define GATE_OPTIONS_DEFAULT                                               \
	{                                                                  \
		.threshold = 0.10, .floor = DIFF_FLOOR, .run_noise = 0.05, \
	}

enum gate_verdict {
	GATE_FINE,
	GATE_SLOWER,       /* surely, beyond the threshold and the floor */
	GATE_UNDETERMINED, /* could be beyond the threshold and the floor */
	GATE_MOVED, /* slower or new, but its callers' own time and calls that are gone pay for it
		     */
};

/* One function above the floor. */
struct gate_row {
	uint32_t function; /* index in diff->functions */
	uint8_t verdict;   /* enum gate_verdict */
	float ratio;       /* of the totals by exposure */
	float low, high;   /* simultaneous interval of it; low: run_noise as well */
	float cost;        /* added, as a share of base's total */
	float own;         /* of that, what it added itself; of a new one what did not move to it */
	double paid;       /* ticks of current that moved to it; 0: none above the floor */
	float detectable;  /* the smallest ratio that would be failed nine times in ten */
};

struct gate {
	enum gate_result result;
	bool is_elsewhere; /* the sides ran in different environments: see gate_set_environment() */
	bool is_blind; /* a uniform slowdown cannot be seen: the exposure is the side's own time */
	double threshold, floor; /* of the options */
	double run_noise;        /* that was presumed; 0: of several runs it was measured */
	double centre;           /* the ratio that means no change; 1: none is taken off */
	double blind_share; /* of own time above the floor: where not even that would be found */
	double could;       /* the total may have grown by this share (upper end); NAN: unknown */
	uint8_t total;      /* enum gate_verdict of the total; GATE_FINE where is_blind */
	const char *reason; /* of an inconclusive result, a sentence; else NULL. Static. */
	struct gate_row *rows; /* largest own cost first: callers come after the cause */
	size_t row_count;
};

/* Keeps nothing of d but indices. 0 or -ENOMEM. */
int gate_new(const struct diff *d, const struct gate_options *o, struct gate **out);

/* The sides ran in different environments. is_strict: which is inconclusive, whatever was found. */
void gate_set_elsewhere(struct gate *g, bool is_strict);

void gate_free(struct gate *g);
DEFINE_CLEANUP(struct gate *, gate_free)

#endif
