/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Text of /proc/PID/status: the kernel writes it, with the name of the target in it. */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "target/rights.h"

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t len);

static void require(bool fact)
{
	if (!fact)
		abort();
}

/* Nobody may do with fewer groups what all groups together may not. */
static void check_allowed(const struct rights *who)
{
	struct stat theirs = { .st_uid = who->uid, .st_mode = 0077 };
	struct stat of_root = { .st_mode = 0700 };

	require(!rights_allow(who, &theirs, false, 4));
	require(!who->uid || !rights_allow(who, &of_root, false, 4));
	for (uint32_t i = 0; i < who->group_count; i++) {
		struct stat st = { .st_uid = ~who->uid, .st_gid = who->groups[i], .st_mode = 0007 };

		require(!rights_allow(who, &st, false, 4));
	}
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t len)
{
	char *text = malloc(len ? len : 1); /* exactly as long, so that a sanitizer sees the end */
	struct rights who, again;

	if (!text)
		return 0;
	memcpy(text, bytes, len);
	if (!rights_parse(text, len, &who)) {
		require(who.group_count <= RIGHTS_GROUPS_MAX && !who.reads_all);
		require(!who.may_have_more || who.group_count == RIGHTS_GROUPS_MAX);
		require(!rights_parse(text, len, &again) && rights_are_equal(&who, &again));
		check_allowed(&who);
	}
	free(text);
	return 0;
}
