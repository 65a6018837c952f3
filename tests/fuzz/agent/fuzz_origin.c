/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Command lines and environments are whatever a process made of them. */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "agent/origin.h"

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t len);

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t len)
{
	char *text = malloc(len + 1), service[16];

	if (!text)
		return 0;
	memcpy(text, bytes, len);
	text[len] = '\0';
	origin_of_command(text, service, sizeof(service));
	if (!memchr(service, '\0', sizeof(service)))
		abort();
	origin_of_attributes(text, service, sizeof(service));
	if (!memchr(service, '\0', sizeof(service)))
		abort();
	free(text);
	return 0;
}
