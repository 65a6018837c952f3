/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* First lines of scripts. */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "target/command.h"

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t len);

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t len)
{
	char *text = malloc(len + 1);
	const char *name;

	if (!text)
		return 0;
	memcpy(text, bytes, len);
	text[len] = '\0';
	name = command_of_script(text);
	if (name && (!*name || strpbrk(name, " \t\n") || name < text || name > text + len))
		abort();
	free(text);
	return 0;
}
