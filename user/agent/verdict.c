/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#include "agent/verdict.h"

#include <stddef.h>

#define SECOND_NS 1000000000ULL
#define PAUSE_FIRST_NS SECOND_NS
#define PAUSE_MAX_NS (300 * SECOND_NS)
#define RETRY_AFTER_MAX_S 3600

#define OUTCOMES(X)                                                             \
	X(STORED, "stored")                                                     \
	X(REFUSED, "refused") /* the profile is not to its liking */            \
	X(TOO_LARGE, "too_large")                                               \
	X(REJECTED, "rejected")   /* taken in, but not all of it */             \
	X(DENIED, "denied")       /* token or tenant */                         \
	X(WRONG_URL, "wrong_url") /* something answers, but no engine */        \
	X(THROTTLED, "throttled")                                               \
	X(UNAVAILABLE, "unavailable") /* it says so, or who stands before it */ \
	X(FAILED, "failed")           /* its own error */                       \
	X(UNREACHABLE, "unreachable") /* the request did not get there */       \
	X(UNANSWERED, "unanswered")   /* it did, and nothing came back: stored or not? */

enum outcome {
#define X(id, name) OUTCOME_##id,
	OUTCOMES(X)
#undef X
};

const char *const verdict_outcomes[] = {
#define X(id, name) [OUTCOME_##id] = name,
	OUTCOMES(X)
#undef X
		NULL
};

/* The first row that fits. Statuses from..to. */
static const struct rule {
	int from, to;
	enum action action;
	enum outcome outcome;
} rules[] = {
	/* clang-format off */
	{ 200, 299, ACTION_STORED, OUTCOME_STORED },
	{ 400, 400, ACTION_DROP, OUTCOME_REFUSED }, /* too old, too many labels, garbage */
	{ 401, 401, ACTION_RETRY, OUTCOME_DENIED }, /* the token's file may change */
	{ 403, 403, ACTION_RETRY, OUTCOME_DENIED },
	{ 404, 405, ACTION_RETRY, OUTCOME_WRONG_URL },
	{ 407, 407, ACTION_RETRY, OUTCOME_DENIED }, /* by the proxy */
	{ 408, 408, ACTION_RETRY, OUTCOME_UNAVAILABLE },
	{ 413, 413, ACTION_DROP, OUTCOME_TOO_LARGE },
	{ 415, 415, ACTION_RETRY, OUTCOME_WRONG_URL }, /* our type is right for an engine */
	{ 429, 429, ACTION_RETRY, OUTCOME_THROTTLED },
	{ 502, 504, ACTION_RETRY, OUTCOME_UNAVAILABLE },
	{ 500, 599, ACTION_RETRY_A_FEW, OUTCOME_FAILED }, /* Pyroscope: an empty profile */
	{ 300, 399, ACTION_RETRY, OUTCOME_WRONG_URL },
	{ 100, 999, ACTION_RETRY_A_FEW, OUTCOME_REFUSED },
	/* clang-format on */
};

static struct verdict make(enum action action, enum outcome outcome)
{
	return (struct verdict){ action, verdict_outcomes[outcome] };
}

/* What the status alone does not tell. */
static struct verdict exception(enum engine engine, const struct answer *a, struct verdict v)
{
	if (v.action == ACTION_STORED && a->is_html) /* Parca: 200 and its page, for any path */
		return make(ACTION_RETRY, OUTCOME_WRONG_URL);
	if (v.action == ACTION_STORED && a->has_rejected)
		return make(ACTION_DROP, OUTCOME_REJECTED);
	if (engine == ENGINE_PARCA && a->status == 429 && a->is_too_large)
		return make(ACTION_DROP, OUTCOME_TOO_LARGE); /* no waiting cures that */
	return v;
}

struct verdict verdict_of(enum engine engine, enum unanswered unanswered, const struct answer *a)
{
	if (!a->status && !a->is_sent)
		return make(ACTION_RETRY, OUTCOME_UNREACHABLE);
	if (!a->status)
		return make(unanswered == UNANSWERED_DROP ? ACTION_DROP : ACTION_RETRY,
			    OUTCOME_UNANSWERED);
	for (size_t i = 0; i < sizeof(rules) / sizeof(rules[0]); i++)
		if (a->status >= rules[i].from && a->status <= rules[i].to)
			return exception(engine, a, make(rules[i].action, rules[i].outcome));
	return make(ACTION_RETRY_A_FEW, OUTCOME_FAILED);
}

uint64_t verdict_pause_ns(uint32_t failures, uint64_t retry_after_s, uint64_t random)
{
	uint32_t doublings = failures > 1 ? failures - 1 : 0;
	uint64_t pause = doublings < 9 ? PAUSE_FIRST_NS << doublings : PAUSE_MAX_NS;
	uint64_t asked;

	if (pause > PAUSE_MAX_NS)
		pause = PAUSE_MAX_NS;
	pause -= random % (pause / 2);
	if (retry_after_s > RETRY_AFTER_MAX_S)
		retry_after_s = RETRY_AFTER_MAX_S;
	asked = retry_after_s * SECOND_NS;
	return asked > pause ? asked : pause;
}
