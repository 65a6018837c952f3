/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#include "foreign.h"

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t len);

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t len)
{
	read_foreign(&importer_mojo, bytes, len);
	return 0;
}
