/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <string.h>

#include "agent/verdict.h"

static void test_verdict_of_answers(void **state)
{
	/* clang-format off */
	static const struct {
		const char *name;
		enum engine engine;
		struct answer answer;
		enum action action;
		const char *outcome;
	} cases[] = {
		{ "stored", ENGINE_PYROSCOPE, { .status = 200, .is_sent = true }, ACTION_STORED, "stored" },
		{ "OTLP 202", ENGINE_OTLP, { .status = 202, .is_sent = true }, ACTION_STORED, "stored" },
		{ "Parca's web page", ENGINE_PARCA, { .status = 200, .is_html = true }, ACTION_RETRY, "wrong_url" },
		{ "OTLP takes a part", ENGINE_OTLP, { .status = 200, .has_rejected = true }, ACTION_DROP, "rejected" },
		{ "too old, too many labels", ENGINE_PYROSCOPE, { .status = 400 }, ACTION_DROP, "refused" },
		{ "OTLP garbage", ENGINE_OTLP, { .status = 400 }, ACTION_DROP, "refused" },
		{ "token", ENGINE_PYROSCOPE, { .status = 401 }, ACTION_RETRY, "denied" },
		{ "tenant", ENGINE_PYROSCOPE, { .status = 403 }, ACTION_RETRY, "denied" },
		{ "OTLP /v1/profiles", ENGINE_OTLP, { .status = 404 }, ACTION_RETRY, "wrong_url" },
		{ "method", ENGINE_OTLP, { .status = 405 }, ACTION_RETRY, "wrong_url" },
		{ "proxy", ENGINE_OTLP, { .status = 407 }, ACTION_RETRY, "denied" },
		{ "slow request", ENGINE_OTLP, { .status = 408 }, ACTION_RETRY, "unavailable" },
		{ "too large", ENGINE_OTLP, { .status = 413 }, ACTION_DROP, "too_large" },
		{ "OTLP without type", ENGINE_OTLP, { .status = 415 }, ACTION_RETRY, "wrong_url" },
		{ "4 MiB/s of a tenant", ENGINE_PYROSCOPE, { .status = 429 }, ACTION_RETRY, "throttled" },
		{ "Parca busy", ENGINE_PARCA, { .status = 429 }, ACTION_RETRY, "throttled" },
		{ "Parca beyond 64 MiB", ENGINE_PARCA, { .status = 429, .is_too_large = true }, ACTION_DROP, "too_large" },
		{ "Pyroscope, empty profile", ENGINE_PYROSCOPE, { .status = 500 }, ACTION_RETRY_A_FEW, "failed" },
		{ "Pyroscope, a writer is away", ENGINE_PYROSCOPE, { .status = 500, .text = "{\"code\":\"unknown\",\"message\":\"rpc error: code = Unavailable desc = service is unavailable\"}" }, ACTION_RETRY, "unavailable" },
		{ "Pyroscope, a writer is slow", ENGINE_PYROSCOPE, { .status = 500, .text = "context deadline exceeded" }, ACTION_RETRY, "unavailable" },
		{ "its refusal may name a service", ENGINE_PYROSCOPE, { .status = 400, .text = "unavailable" }, ACTION_DROP, "refused" },
		{ "501", ENGINE_OTLP, { .status = 501 }, ACTION_RETRY_A_FEW, "failed" },
		{ "502", ENGINE_OTLP, { .status = 502 }, ACTION_RETRY, "unavailable" },
		{ "queue off, backend dead", ENGINE_OTLP, { .status = 503 }, ACTION_RETRY, "unavailable" },
		{ "504", ENGINE_OTLP, { .status = 504 }, ACTION_RETRY, "unavailable" },
		{ "redirect", ENGINE_PARCA, { .status = 302 }, ACTION_RETRY, "wrong_url" },
		{ "418", ENGINE_PARCA, { .status = 418 }, ACTION_RETRY_A_FEW, "refused" },
		{ "no HTTP status", ENGINE_PARCA, { .status = 12 }, ACTION_RETRY_A_FEW, "failed" },
		{ "connection refused", ENGINE_OTLP, { .status = 0 }, ACTION_RETRY, "unreachable" },
		{ "half-closed", ENGINE_OTLP, { .is_sent = true }, ACTION_RETRY, "unanswered" },
	};
	/* clang-format on */

	(void)state;
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		struct verdict v = verdict_of(cases[i].engine, UNANSWERED_RETRY, &cases[i].answer);

		if (v.action != cases[i].action || strcmp(v.outcome, cases[i].outcome))
			fail_msg("%s: %d %s", cases[i].name, v.action, v.outcome);
	}
}

static void test_verdict_of_unanswered_may_be_drop(void **state)
{
	struct answer a = { .is_sent = true };

	(void)state;
	assert_int_equal(verdict_of(ENGINE_PYROSCOPE, UNANSWERED_DROP, &a).action, ACTION_DROP);
	a.is_sent = false; /* nobody can have stored that */
	assert_int_equal(verdict_of(ENGINE_PYROSCOPE, UNANSWERED_DROP, &a).action, ACTION_RETRY);
}

#define S 1000000000ULL

static void test_verdict_pause_ns_bounds(void **state)
{
	static const struct {
		const char *name;
		uint32_t failures;
		uint64_t asked_ns;
		uint64_t least, most;
	} cases[] = {
		{ "first", 1, 0, S / 2, S },
		{ "second", 2, 0, S, 2 * S },
		{ "ninth", 9, 0, 128 * S, 256 * S },
		{ "tenth", 10, 0, 150 * S, 300 * S },
		{ "for ever", UINT32_MAX, 0, 150 * S, 300 * S },
		{ "longer by Retry-After", 1, 120 * S, 120 * S, 120 * S },
		{ "not shorter by it", 10, S, 150 * S, 300 * S },
	};

	(void)state;
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		for (uint64_t random = 0; random < 50; random++) {
			uint64_t ns = verdict_pause_ns(cases[i].failures, cases[i].asked_ns,
						       random * 0x9e3779b97f4a7c15u);

			if (ns < cases[i].least || ns > cases[i].most)
				fail_msg("%s: %llu ns", cases[i].name, (unsigned long long)ns);
		}
	}
}

static void test_verdict_asked_ns_leaves_time_to_send(void **state)
{
	static const struct {
		const char *name;
		uint64_t retry_after_s, age_max_ns, want;
	} cases[] = {
		{ "it does not say", 0, 3300 * S, 0 },
		{ "a minute", 60, 3300 * S, 60 * S },
		{ "a day, and nothing is kept for an hour", 99999, 3300 * S, 825 * S },
		{ "a day, and what waits is kept for weeks", 99999, 30 * 86400 * S, 3600 * S },
		{ "a century", UINT64_MAX, 3300 * S, 825 * S },
	};

	(void)state;
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++)
		if (verdict_asked_ns(cases[i].retry_after_s, cases[i].age_max_ns) != cases[i].want)
			fail_msg("%s", cases[i].name);
}

static void test_verdict_failed_series_of_a_text(void **state)
{
	static const struct {
		const char *name;
		enum engine engine;
		struct answer answer;
		uint64_t want;
	} cases[] = {
		{ "two of them",
		  ENGINE_PYROSCOPE,
		  { .status = 400,
		    .text = "2 errors: push series with index 0 and id a failed: invalid; push "
			    "series with index 31 and id  failed: invalid" },
		  1 | UINT64_C(1) << 31 },
		{ "none is named", ENGINE_PYROSCOPE, { .status = 503, .text = "no healthy" }, 0 },
		{ "no answer", ENGINE_PYROSCOPE, { .status = 0 }, 0 },
		{ "none that there could be",
		  ENGINE_PYROSCOPE,
		  { .status = 500,
		    .text = "push series with index 64 and push series with index " },
		  1 },
		{ "another engine",
		  ENGINE_PARCA,
		  { .status = 500, .text = "push series with index 1 " },
		  0 },
	};

	(void)state;
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++)
		if (verdict_failed_series(cases[i].engine, &cases[i].answer) != cases[i].want)
			fail_msg("%s", cases[i].name);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_verdict_of_answers),
		cmocka_unit_test(test_verdict_of_unanswered_may_be_drop),
		cmocka_unit_test(test_verdict_pause_ns_bounds),
		cmocka_unit_test(test_verdict_asked_ns_leaves_time_to_send),
		cmocka_unit_test(test_verdict_failed_series_of_a_text),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
