/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#include "agent/headers.h"

#include <errno.h>
#include <string.h>

#include "base/base64.h"
#include "base/cleanup.h"
#include "base/err.h"
#include "base/file.h"
#include "base/strbuf.h"

#define SECRET_BYTES_MAX 65536

int headers_add(struct curl_slist **headers, const char *text)
{
	struct curl_slist *longer = libcurl.slist_append(*headers, text);

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

/* A file of one line, to be wiped. */
static int read_secret(const char *key, const char *path, char **secret, size_t *len)
{
	int r = file_read(path, SECRET_BYTES_MAX, secret, len);

	if (r < 0)
		return err_wrap(r, "%s", key);
	while (*len && strchr(" \t\r\n", (*secret)[*len - 1]))
		(*secret)[--*len] = '\0';
	if (!*len || strpbrk(*secret, "\r\n") || strlen(*secret) != *len)
		return err_set(-EINVAL, "%s: %s: not one line", key, path);
	return 0;
}

static void wipe_text(char **text)
{
	if (*text)
		explicit_bzero(*text, strlen(*text));
	free(*text);
}

int headers_add_token(struct curl_slist **headers, const char *key, const char *path)
{
	_cleanup_(wipe) struct strbuf header = STRBUF_INIT;
	_cleanup_(wipe_text) char *token = NULL;
	size_t len;
	int r = read_secret(key, path, &token, &len);

	if (!r)
		r = strbuf_appendf(&header, "Authorization: Bearer %s", token);
	return r < 0 ? r : headers_add(headers, strbuf_str(&header));
}

int headers_add_basic(struct curl_slist **headers, const char *user, const char *key,
		      const char *path)
{
	_cleanup_(wipe) struct strbuf header = STRBUF_INIT, both = STRBUF_INIT;
	_cleanup_(wipe_text) char *password = NULL;
	size_t len;
	int r = read_secret(key, path, &password, &len);

	if (r < 0 || (r = strbuf_appendf(&both, "%s:%s", user, password)) < 0 ||
	    (r = strbuf_puts(&header, "Authorization: Basic ")) < 0 ||
	    (r = base64_append(&header, both.bytes, both.len)) < 0)
		return r;
	return headers_add(headers, strbuf_str(&header));
}

int headers_check(const char *text)
{
	static const char token[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ"
				    "0123456789!#$%&'*+-.^_`|~"; /* RFC 9110, 5.6.2 */
	static const char *const ours[] = { "Content-Type",   "Content-Encoding",
					    "Content-Length", "Transfer-Encoding",
					    "Connection",     "Expect",
					    "Host",           NULL };
	size_t len = strspn(text, token);

	if (!len || text[len] != ':')
		return err_set(-EINVAL, "not a header, such as 'X-Team: web'");
	for (const char *c = text; *c; c++)
		if ((unsigned char)*c < 0x20 || *c == 0x7f)
			return err_set(-EINVAL, "holds a control character");
	for (const char *const *o = ours; *o; o++)
		if (strlen(*o) == len && !strncasecmp(text, *o, len))
			return err_set(-EINVAL, "the agent sets %s itself", *o);
	return 0;
}

int headers_add_file(struct curl_slist **headers, const char *key, const char *path)
{
	_cleanup_(wipe_text) char *text = NULL;
	size_t len, number = 0;
	char *rest, *line;
	int r = file_read(path, SECRET_BYTES_MAX, &text, &len);

	if (r < 0)
		return err_wrap(r, "%s", key);
	rest = text;
	while (!r && (line = strsep(&rest, "\n"))) {
		size_t used = strlen(line);

		number++;
		if (used && line[used - 1] == '\r')
			line[--used] = '\0';
		if (!used || *line == '#')
			continue;
		r = headers_check(line);
		r = r < 0 ? err_wrap(r, "%s: %s:%zu", key, path, number)
			  : headers_add(headers, line);
	}
	explicit_bzero(text, len);
	return r;
}

void headers_release(struct curl_slist **headers)
{
	for (struct curl_slist *h = *headers; h; h = h->next)
		explicit_bzero(h->data, strlen(h->data));
	if (*headers)
		libcurl.slist_free_all(*headers);
	*headers = NULL;
}
