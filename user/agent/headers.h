/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#ifndef AGENT_HEADERS_H
#define AGENT_HEADERS_H

#include <curl/curl.h>

/* Headers of a request, some of them secret: ends in _cleanup_(headers_release), which wipes them.
 */
int headers_add(struct curl_slist **headers, const char *text);

/*
 * "Authorization: Bearer ..." of what a file holds now. key is its name in the configuration, for
 * messages; these never hold the token.
 */
int headers_add_token(struct curl_slist **headers, const char *key, const char *path);

void headers_release(struct curl_slist **headers);

#endif
