/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#ifndef AGENT_HEADERS_H
#define AGENT_HEADERS_H

#include "agent/libraries.h"

/* Headers of a request, some of them secret: ends in _cleanup_(headers_release), which wipes them.
 */
int headers_add(struct curl_slist **headers, const char *text);

/*
 * "Authorization: Bearer ..." of what a file holds now, or "Authorization: Basic ..." of a name and
 * what the file holds; or each line of it, but for empty ones and those that begin with #, as a
 * header. key is its name in the configuration, for messages; these never hold what is in the file.
 */
int headers_add_token(struct curl_slist **headers, const char *key, const char *path);
int headers_add_basic(struct curl_slist **headers, const char *user, const char *key,
		      const char *path);
int headers_add_file(struct curl_slist **headers, const char *key, const char *path);

/*
 * 0, or -EINVAL with a message: a header to be added is "NAME: VALUE", and none of those that say
 * what a request holds.
 */
int headers_check(const char *text);

void headers_release(struct curl_slist **headers);

#endif
