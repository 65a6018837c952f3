/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#include "agent/headers.h"

#include <errno.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/err.h"
#include "base/file.h"
#include "base/strbuf.h"

#define TOKEN_BYTES_MAX 65536

int headers_add(struct curl_slist **headers, const char *text)
{
	struct curl_slist *longer = curl_slist_append(*headers, text);

	if (!longer)
		return -ENOMEM;
	*headers = longer;
	return 0;
}

static void wipe(struct strbuf *secret)
{
	if (secret->bytes)
		explicit_bzero(secret->bytes, secret->cap);
	strbuf_release(secret);
}

int headers_add_token(struct curl_slist **headers, const char *key, const char *path)
{
	_cleanup_(wipe) struct strbuf header = STRBUF_INIT;
	_cleanup_(freep) char *token = NULL;
	size_t len;
	int r = file_read(path, TOKEN_BYTES_MAX, &token, &len);

	if (r < 0)
		return err_wrap(r, "%s", key);
	while (len && strchr(" \t\r\n", token[len - 1]))
		token[--len] = '\0';
	if (!len || strpbrk(token, "\r\n"))
		r = err_set(-EINVAL, "%s: %s: not one line", key, path);
	else
		r = strbuf_appendf(&header, "Authorization: Bearer %s", token);
	explicit_bzero(token, len);
	return r < 0 ? r : headers_add(headers, strbuf_str(&header));
}

void headers_release(struct curl_slist **headers)
{
	for (struct curl_slist *h = *headers; h; h = h->next)
		explicit_bzero(h->data, strlen(h->data));
	curl_slist_free_all(*headers);
	*headers = NULL;
}
