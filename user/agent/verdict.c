/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#include "agent/verdict.h"

#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"

#define PAUSE_FIRST_NS NS_PER_SECOND
#define PAUSE_MAX_NS (300 * NS_PER_SECOND)
#define ASKED_MAX_NS (3600 * NS_PER_SECOND)

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

/*
 * Pyroscope passes on in the text of a 500 what its writers say by a code of gRPC. As in
 * google.golang.org/grpc/codes and connectrpc.com/connect.
 */
static bool says_unavailable(const char *text)
{
	static const char *const words[] = { "Unavailable", "unavailable", "DeadlineExceeded",
					     "deadline exceeded", "deadline_exceeded" };

	for (size_t i = 0; text && i < sizeof(words) / sizeof(words[0]); i++)
		if (strstr(text, words[i]))
			return true;
	return false;
}

/* What the status alone does not tell. */
static struct verdict exception(enum engine engine, const struct answer *a, struct verdict v)
{
	if (v.action == ACTION_STORED && a->is_html) /* Parca: 200 and its page, for any path */
		return make(ACTION_RETRY, OUTCOME_WRONG_URL);
	if (v.action == ACTION_STORED && a->has_rejected)
		return make(ACTION_DROP, OUTCOME_REJECTED);
	if (v.action == ACTION_RETRY_A_FEW && a->status >= 500 && says_unavailable(a->text))
		return make(ACTION_RETRY, OUTCOME_UNAVAILABLE);
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

/* "push series with index 3 and id ... failed: ..." in Pyroscope's pkg/distributor/distributor.go
 */
uint64_t verdict_failed_series(enum engine engine, const struct answer *a)
{
	static const char words[] = "push series with index ";
	uint64_t failed = 0;
	const char *at = a->text;

	if (engine != ENGINE_PYROSCOPE || a->status < 400 || !at)
		return 0;
	while ((at = strstr(at, words))) {
		unsigned long i;

		at += strlen(words);
		i = strtoul(at, NULL, 10);
		if (i < 64)
			failed |= UINT64_C(1) << i;
	}
	return failed;
}

uint64_t verdict_asked_ns(uint64_t retry_after_s, uint64_t age_max_ns)
{
	uint64_t max_ns = age_max_ns / 4 < ASKED_MAX_NS ? age_max_ns / 4 : ASKED_MAX_NS;

	return retry_after_s < max_ns / NS_PER_SECOND ? retry_after_s * NS_PER_SECOND
	       : retry_after_s                        ? max_ns
						      : 0;
}

uint64_t verdict_pause_ns(uint32_t failures, uint64_t asked_ns, uint64_t random)
{
	uint32_t doublings = failures > 1 ? failures - 1 : 0;
	uint64_t pause = doublings < 9 ? PAUSE_FIRST_NS << doublings : PAUSE_MAX_NS;

	if (pause > PAUSE_MAX_NS)
		pause = PAUSE_MAX_NS;
	pause -= random % (pause / 2);
	return asked_ns > pause ? asked_ns : pause;
}
