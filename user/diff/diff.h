/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#ifndef DIFF_DIFF_H
#define DIFF_DIFF_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/cleanup.h"
#include "diff/input.h"
#include "diff/noise.h"
#include "diff/rename.h"

/*
 * Two sides to one call tree with changes, and how sure each of them is. Ticks are summed over the
 * runs of a side. What compares the sides is in ticks of current: base ticks x scale.
 */

/* How the sides are made comparable. */
enum diff_normalize {
	DIFF_AUTO,     /* share of samples of unknown length; work if known of all runs, absolute
			* for whole runs, else second */
	DIFF_ABSOLUTE, /* a run against a run */
	DIFF_SECOND,   /* each observed second */
	DIFF_SHARE,    /* of all samples */
	DIFF_WORK,     /* each unit of work */
};
extern const char *const diff_normalize_names[]; /* by enum; NULL for DIFF_AUTO */

/* Grey are the first three. */
enum diff_class {
	DIFF_UNCHANGED,    /* its interval lies between the first marks */
	DIFF_UNDETERMINED, /* the data cannot tell */
	DIFF_RARE,         /* on one side only, but so seldom that it may have been missed */
	DIFF_SLOWER_1,     /* surely changed, and beyond the mark of that number */
	DIFF_SLOWER_2,
	DIFF_SLOWER_3,
	DIFF_SLOWER_4,
	DIFF_FASTER_1,
	DIFF_FASTER_2,
	DIFF_FASTER_3,
	DIFF_FASTER_4,
	DIFF_NEW,     /* not in base at all */
	DIFF_REMOVED, /* not in current */
};
#define DIFF_CLASS_COUNT (DIFF_REMOVED + 1)
extern const char *const diff_class_names[DIFF_CLASS_COUNT]; /* "slower1" */

static inline bool diff_class_is_grey(uint8_t c)
{
	return c <= DIFF_RARE;
}

static inline bool diff_class_is_slower(uint8_t c)
{
	return c >= DIFF_SLOWER_1 && c <= DIFF_SLOWER_4;
}

static inline bool diff_class_is_faster(uint8_t c)
{
	return c >= DIFF_FASTER_1 && c <= DIFF_FASTER_4;
}

/* How a path found its counterpart. */
enum diff_match {
	DIFF_MATCH_NONE,     /* on one side only */
	DIFF_MATCH_EXACT,    /* also where only its files' root has moved */
	DIFF_MATCH_RENAMED,  /* by a rename the user gave */
	DIFF_MATCH_INSERTED, /* a frame of current only, between frames that match */
	DIFF_MATCH_DELETED,  /* a frame of base only, the same */
};
#define DIFF_MATCH_COUNT (DIFF_MATCH_DELETED + 1)
extern const char *const diff_match_names[DIFF_MATCH_COUNT]; /* NULL for DIFF_MATCH_NONE */

/* What the counts' scatter was measured by. */
enum diff_dispersion {
	DIFF_BY_POISSON, /* nothing: text files, one a side; certainty is then overstated */
	DIFF_BY_BLOCKS,  /* time blocks of one run a side */
	DIFF_BY_RUNS,
	DIFF_BY_PRESUMPTION, /* nothing, but nothing is left to chance either: counts.h */
};
#define DIFF_PRESUMED .03 /* by which share things are off from run to run, then */
#define DIFF_DISPERSION_COUNT (DIFF_BY_PRESUMPTION + 1)
extern const char *const diff_dispersion_names[DIFF_DISPERSION_COUNT];

/*
 * How one thing changed. ratio is current over base, half a tick added to each, over the robust
 * centre; low .. high is its 95 % interval, for this one thing alone; q the share of false
 * findings among all as sure as this one (Benjamini-Hochberg, among all above DIFF_FLOOR or below
 * it), NAN below DIFF_TICKS_MIN. All are NAN where both sides are 0.
 */
struct diff_measure {
	float ratio, low, high, q;
};
#define DIFF_TICKS_MIN 8 /* of both sides together, in units, to be tested */
#define DIFF_Q_MAX 0.01  /* at most: is significant */
#define DIFF_FLOOR 0.005 /* of a side: what takes more of either is told apart from the rest */

/*
 * A call path of the union of both sides. Preorder: the subtree of node i is i .. end - 1, its
 * first child i + 1 (if below end), the next sibling of c is nodes[c].end. Siblings: largest first
 * (the larger of both sides), then by function. On both sides children and self add up to total:
 * an inserted or deleted frame's total on the side that lacks it is that of what is beneath.
 */
struct diff_node {
	uint32_t parent;    /* index; of the root (node 0): 0 */
	uint32_t end;       /* index after the subtree */
	uint32_t function;  /* index; of the root: UINT32_MAX */
	uint8_t match;      /* enum diff_match */
	uint8_t class;      /* enum diff_class, of the totals */
	uint8_t self_class; /* where all time is its own, the same */
	bool is_top;        /* the topmost of its kind: its parent is not new (removed) as well */
	uint64_t base_self, base_total; /* ticks of base, unscaled */
	uint64_t self, total;           /* ticks of current */
	struct diff_measure measure;    /* of the totals */
};

/*
 * All frames with one key. Sums are over the union tree: a path counts once in the totals, however
 * often it holds the function.
 */
struct diff_function {
	uint32_t name;     /* string ids: as in current, or in base if it is only there */
	uint32_t file;     /* path as recorded */
	uint32_t root_len; /* bytes of file that are its root: keys compare the rest */
	uint32_t frame;    /* a frame of it: def line, flags */
	uint32_t
		renamed_from; /* string id of its name in base, where a rename matched it; else 0 */
	uint32_t renamed_from_file; /* the same */
	uint8_t kind;               /* enum frame_type */
	uint8_t class;
	uint8_t self_class;
	bool is_unsampled; /* PROFILE_NOT_SAMPLED: no code, undetermined, never a finding */
	uint64_t base_self, base_total; /* ticks of base, unscaled */
	uint64_t self, total;           /* ticks of current */
	struct diff_measure measure;    /* of the totals */
	struct diff_measure self_measure;
	float detectable; /* the smallest ratio above 1 that would be found nine times in ten */
};

/* The whole of both sides. Never relative to the centre. */
struct diff_total {
	double baseline; /* ticks of current: base x scale */
	double value;
	struct diff_measure measure; /* q: its own p, there is but one */
	uint8_t class;
};

/* Things that are counted. */
enum counted {
	COUNTED_NODE,
	COUNTED_NODE_SELF,
	COUNTED_FUNCTION, /* totals: of the outermost nodes of each path */
	COUNTED_FUNCTION_SELF,
};
#define COUNTED_KINDS (COUNTED_FUNCTION_SELF + 1)

/* What counts as one sample of a thing. */
struct diff_unit {
	float ticks; /* > 0 */
	float drawn; /* 0 .. 1: the share of its variance that is chance of the sampler */
};

struct diff_options {
	enum diff_normalize normalize;
	const struct diff_renames *renames; /* NULL: none */
	const struct texts *notes;          /* NULL: none; copied in front of diff->notes */
	float marks[4];                     /* ratios > 1, rising; all 0: DIFF_MARKS */
};
#define DIFF_MARKS                       \
	{                                \
		1.10f, 1.25f, 1.5f, 2.0f \
	}

struct diff {
	const struct diff_input *input; /* borrowed */
	enum diff_normalize normalize;  /* never DIFF_AUTO */
	enum diff_dispersion dispersion;
	struct noise node_noise, function_noise; /* the laws by which their counts scatter */
	struct diff_side_sum side[DIFF_SIDES];
	double scale;        /* one base tick in ticks of current */
	double centre;       /* taken off ratios in share and second; else 1 */
	double centre_error; /* standard, of its logarithm */
	float marks[4];
	struct diff_total total;
	struct diff_node *nodes; /* node 0 is the root, its self the ticks of empty stacks */
	size_t node_count;       /* >= 1 */
	struct diff_function *functions; /* largest change of the total first */
	size_t function_count;
	uint64_t counts[DIFF_CLASS_COUNT]; /* nodes by class of the total, the root left out */
	double coloured;       /* share of the area (larger of both sides) that is not grey */
	uint64_t elided_count; /* nodes that diff_is_elided() */
	struct texts notes;
	uint32_t *node_of[DIFF_SIDES]; /* by stack id; 0 also for stacks the side does not have */
	size_t stack_count;
	struct diff_unit *unit[COUNTED_KINDS]; /* see counts.h; NULL: all are ticks */
};

/*
 * Keeps input. 0; -EINVAL with a message: the normalisation needs what a run does not say (length,
 * units of work, time of a tick); -EOVERFLOW (4 G paths), -ENOMEM. Empty sides are no error.
 */
int diff_new(const struct diff_input *input, const struct diff_options *o, struct diff **out);
void diff_free(struct diff *d);
DEFINE_CLEANUP(struct diff *, diff_free)

/* A path that base has and current lacks, with samples of its own: the elided view draws these. */
static inline bool diff_is_elided(const struct diff_node *n)
{
	return !n->total && n->base_self;
}

/* In ticks of current; centre left in. */
static inline double diff_baseline(const struct diff *d, uint64_t base_ticks)
{
	return (double)base_ticks * d->scale;
}

/* Upstream's rule: 100 x (self - baseline) / baseline, else 100 where self > 0, else 0. */
double diff_percent(double self, double baseline);

/* Milliseconds of one tick of current; 0: unknown. */
static inline double diff_ms_per_tick(const struct diff *d)
{
	return d->side[DIFF_CURRENT].interval_ns / 1e6;
}

#endif
