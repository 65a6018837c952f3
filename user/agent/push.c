/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#include "agent/push.h"

#include <curl/curl.h>
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

#include "agent/headers.h"
#include "base/err.h"
#include "base/strbuf.h"
#include "export/otlp.h"

#define ANSWER_BYTES_MAX 65536 /* read of an answer; the rest is let go */

/* How each engine is spoken to. */
static const struct dialect {
	const char *path;
	const char *content_type;
	bool is_gzip; /* the bodies that window.h makes */
} dialects[ENGINE_COUNT] = {
	[ENGINE_PYROSCOPE] = { "/push.v1.PusherService/Push", "application/json", true },
	[ENGINE_OTLP] = { "/v1development/profiles", "application/x-protobuf", true },
	[ENGINE_PARCA] = { "/api/profiles/writeraw", "application/json", false },
};

struct pusher {
	const struct config *config;
	CURL *curl;
	char *url;
	struct strbuf answer; /* as much as is of use */
};

static size_t take_answer(char *bytes, size_t size, size_t count, void *arg)
{
	struct pusher *p = arg;
	size_t len = size * count, room = ANSWER_BYTES_MAX - p->answer.len;

	strbuf_append(&p->answer, bytes, len < room ? len : room);
	return len;
}

static int build_url(struct pusher *p)
{
	_cleanup_(strbuf_releasep) struct strbuf url = STRBUF_INIT;
	size_t len = strlen(p->config->url);

	while (len && p->config->url[len - 1] == '/')
		len--;
	strbuf_append(&url, p->config->url, len);
	strbuf_puts(&url, dialects[p->config->engine].path);
	p->url = strbuf_take(&url);
	return p->url ? 0 : -ENOMEM;
}

/*
 * A connection for each request: of one that was kept, libcurl sends a request again by itself when
 * it finds it dead, and what an engine gets twice it counts twice.
 */
static int set_options(struct pusher *p)
{
	const struct config *c = p->config;
	CURLcode bad = CURLE_OK;

#define SET(option, value) bad = bad ?: curl_easy_setopt(p->curl, option, value)
	SET(CURLOPT_URL, p->url);
	SET(CURLOPT_PROTOCOLS_STR, "http,https");
	SET(CURLOPT_HTTP_VERSION, (long)CURL_HTTP_VERSION_1_1);
	SET(CURLOPT_FRESH_CONNECT, 1L);
	SET(CURLOPT_FORBID_REUSE, 1L);
	SET(CURLOPT_NOSIGNAL, 1L);
	SET(CURLOPT_POST, 1L);
	SET(CURLOPT_USERAGENT, "pyebpf/" PYEBPF_VERSION);
	SET(CURLOPT_TIMEOUT_MS, (long)(c->timeout_ns / 1000000));
	SET(CURLOPT_WRITEFUNCTION, take_answer);
	SET(CURLOPT_WRITEDATA, p);
	if (c->proxy)
		SET(CURLOPT_PROXY, c->proxy);
	if (c->ca_file)
		SET(CURLOPT_CAINFO, c->ca_file);
	if (c->cert_file)
		SET(CURLOPT_SSLCERT, c->cert_file);
	if (c->key_file)
		SET(CURLOPT_SSLKEY, c->key_file);
#undef SET
	return bad ? err_set(-EINVAL, "%s", curl_easy_strerror(bad)) : 0;
}

int pusher_new(const struct config *config, struct pusher **out)
{
	_cleanup_(pusher_freep) struct pusher *p = calloc(1, sizeof(*p));
	int r;

	if (!p)
		return -ENOMEM;
	p->config = config;
	p->curl = curl_easy_init();
	if (!p->curl)
		return -ENOMEM;
	if ((r = build_url(p)) < 0 || (r = set_options(p)) < 0)
		return r;
	*out = take_ptr(p);
	return 0;
}

void pusher_free(struct pusher *p)
{
	if (!p)
		return;
	curl_easy_cleanup(p->curl);
	strbuf_release(&p->answer);
	free(p->url);
	free(p);
}

static int make_headers(const struct pusher *p, struct curl_slist **headers)
{
	const struct dialect *d = &dialects[p->config->engine];
	_cleanup_(strbuf_releasep) struct strbuf type = STRBUF_INIT, tenant = STRBUF_INIT;
	int r;

	if ((r = strbuf_appendf(&type, "Content-Type: %s", d->content_type)) < 0 ||
	    (r = headers_add(headers, strbuf_str(&type))) < 0 ||
	    (r = headers_add(headers, "Expect:")) < 0)
		return r;
	if (d->is_gzip && (r = headers_add(headers, "Content-Encoding: gzip")) < 0)
		return r;
	if (p->config->tenant &&
	    ((r = strbuf_appendf(&tenant, "X-Scope-OrgID: %s", p->config->tenant)) < 0 ||
	     (r = headers_add(headers, strbuf_str(&tenant))) < 0))
		return r;
	return p->config->token_file
		       ? headers_add_token(headers, "output.token_file", p->config->token_file)
		       : 0;
}

/* The first line of what the engine says, or curl's words. */
static void describe(const struct pusher *p, CURLcode code, struct push_result *out)
{
	const char *text = strbuf_str(&p->answer);

	out->message[0] = '\0';
	if (out->verdict.action == ACTION_STORED)
		return;
	if (code != CURLE_OK)
		snprintf(out->message, sizeof(out->message), "%s", curl_easy_strerror(code));
	else
		snprintf(out->message, sizeof(out->message), "%.*s", (int)strcspn(text, "\r\n"),
			 text);
}

static bool is_html(CURL *curl)
{
	char *type = NULL;

	return curl_easy_getinfo(curl, CURLINFO_CONTENT_TYPE, &type) == CURLE_OK && type &&
	       !strncasecmp(type, "text/html", strlen("text/html"));
}

static void judge(struct pusher *p, CURLcode code, size_t len, struct push_result *out)
{
	struct answer a = { .is_too_large = len > PUSH_PARCA_MAX };
	curl_off_t sent = 0, retry_after = 0;
	long status = 0;

	curl_easy_getinfo(p->curl, CURLINFO_RESPONSE_CODE, &status);
	curl_easy_getinfo(p->curl, CURLINFO_SIZE_UPLOAD_T, &sent);
	curl_easy_getinfo(p->curl, CURLINFO_RETRY_AFTER, &retry_after);
	a.status = (int)status;
	a.is_sent = (size_t)sent >= len;
	a.is_html = is_html(p->curl);
	a.has_rejected = p->config->engine == ENGINE_OTLP && p->answer.len &&
			 otlp_answer_rejects((const uint8_t *)p->answer.bytes, p->answer.len);
	out->status = a.status;
	out->retry_after_s = retry_after > 0 ? (uint64_t)retry_after : 0;
	out->verdict = verdict_of(p->config->engine, p->config->unanswered, &a);
	describe(p, code, out);
}

int pusher_send(struct pusher *p, const void *body, size_t len, struct push_result *out)
{
	_cleanup_(headers_release) struct curl_slist *headers = NULL;
	struct timespec start, end;
	CURLcode code;
	int r = make_headers(p, &headers);

	if (r < 0)
		return r;
	strbuf_truncate(&p->answer, 0);
	curl_easy_setopt(p->curl, CURLOPT_HTTPHEADER, headers);
	curl_easy_setopt(p->curl, CURLOPT_POSTFIELDS, body);
	curl_easy_setopt(p->curl, CURLOPT_POSTFIELDSIZE_LARGE, (curl_off_t)len);
	clock_gettime(CLOCK_MONOTONIC, &start);
	code = curl_easy_perform(p->curl);
	clock_gettime(CLOCK_MONOTONIC, &end);
	*out = (struct push_result){ .took_ns = (end.tv_sec - start.tv_sec) * 1000000000ULL +
						end.tv_nsec - start.tv_nsec };
	judge(p, code, len, out);
	curl_easy_setopt(p->curl, CURLOPT_HTTPHEADER, NULL);
	return 0;
}
