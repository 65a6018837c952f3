/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Names in a spool's folder, which others may write to: the only ones taken are those we give. */
#include "agent/spool.c" /* how it reads a name is its own affair */

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t len);

static void require(int fact)
{
	if (!fact)
		abort();
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t len)
{
	struct entry x;
	char *name = malloc(len + 1), again[NAME_BYTES];

	require(name != NULL);
	memcpy(name, bytes, len);
	name[len] = '\0';
	if (parse_name(name, &x)) {
		name_of(&x, again);
		require(!strcmp(name, again) &&
			strspn(name, "0123456789abcdef-") + 1 + strlen(x.engine) == strlen(name));
	}
	if (is_partial(name))
		require(len > strlen(PARTIAL) && memmem(name, len, PARTIAL, strlen(PARTIAL)));
	free(name);
	return 0;
}
