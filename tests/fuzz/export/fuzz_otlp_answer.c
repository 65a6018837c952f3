/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* What comes back from an OTLP endpoint, or from whatever answers there. */
#include <stdint.h>

#include "export/otlp.h"

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t len);

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t len)
{
	otlp_answer_rejects(bytes, len);
	return 0;
}
