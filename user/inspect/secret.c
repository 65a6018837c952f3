/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#include "inspect/secret.h"

#include <ctype.h>
#include <string.h>

#define NAME_BYTES 128 /* of a name that are looked at: its end */

/* In names without separators, in lower case. */
static const char *const inside[] = {
	"password",      "passwd",     "passphrase", "secret", "authorization",
	"credential",    "privatekey", "accesskey",  "apikey", "signingkey",
	"encryptionkey", "cookie",     "sessionid",  "bearer",
};

/* Only at their end: a tokenizer is none. */
static const char *const at_end[] = { "token", "tokens", "pwd", "jwt", "passcode" };

bool secret_is_name(const char *name, size_t len)
{
	char plain[NAME_BYTES + 1];
	size_t n = 0;

	if (len > NAME_BYTES) {
		name += len - NAME_BYTES;
		len = NAME_BYTES;
	}
	for (size_t i = 0; i < len; i++)
		if (isalnum((unsigned char)name[i]))
			plain[n++] = (char)tolower((unsigned char)name[i]);
	plain[n] = '\0';
	for (size_t i = 0; i < sizeof(inside) / sizeof(*inside); i++)
		if (strstr(plain, inside[i]))
			return true;
	for (size_t i = 0; i < sizeof(at_end) / sizeof(*at_end); i++) {
		size_t end = strlen(at_end[i]);

		if (n >= end && !strcmp(plain + n - end, at_end[i]))
			return true;
	}
	return false;
}
