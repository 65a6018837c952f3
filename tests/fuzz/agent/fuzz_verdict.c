/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* What an engine, or whoever stands before it, answers. The first byte chooses the status. */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "agent/verdict.h"

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t len);

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t len)
{
	static const int statuses[] = { 0, 200, 400, 429, 500, 503 };
	char *text = malloc(len + 1);
	struct answer a = { .is_sent = true };

	if (!text)
		return 0;
	memcpy(text, bytes, len);
	text[len] = '\0';
	a.text = text;
	a.status = statuses[len ? bytes[0] % (sizeof(statuses) / sizeof(statuses[0])) : 0];
	for (enum engine e = ENGINE_PYROSCOPE; e <= ENGINE_PARCA; e++) {
		if (!verdict_of(e, UNANSWERED_RETRY, &a).outcome)
			abort();
		if (verdict_failed_series(e, &a) && (e != ENGINE_PYROSCOPE || a.status < 400))
			abort();
	}
	free(text);
	return 0;
}
