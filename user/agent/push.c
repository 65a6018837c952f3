/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#include "agent/push.h"

#include "agent/libraries.h"
#include <errno.h>
#include <pthread.h>
#include <stdio.h>
#include <string.h>

#include "agent/headers.h"
#include "agent/portable.h"
#include "base/clock.h"
#include "base/err.h"
#include "base/strbuf.h"
#include "export/otlp.h"

/* Read of an answer; the rest is let go. Pyroscope names each series that it did not take. */
#define ANSWER_BYTES_MAX (256u << 10)

/* Proxies and load balancers close what is idle for a minute or more; a window's length is kept. */
#define IDLE_S_MAX 30L

static const struct dialect dialects[ENGINE_COUNT] = {
	[ENGINE_PYROSCOPE] = { "/push.v1.PusherService/Push", "application/json", true, true },
	[ENGINE_OTLP] = { "/v1development/profiles", "application/x-protobuf", true, false },
	[ENGINE_PARCA] = { "/api/profiles/writeraw", "application/json", false, true },
};

const struct dialect *push_dialect(enum engine engine)
{
	return &dialects[engine];
}

/* A request, and what is kept for the next one. */
struct request {
	CURL *curl;
	struct curl_slist *headers;
	const char *body;
	size_t len, sent;
	struct strbuf answer; /* as much as is of use */
	uint64_t start_ns;
	void *owner; /* NULL: it is free */
	bool is_over;
	CURLcode code;
};

struct pusher {
	const struct config_output *config;
	pthread_mutex_t lock; /* of `multi` as such: pusher_wake() comes from other threads */
	CURLM *multi;         /* its connections are of certificates as they were then: */
	struct config_stamp ca, cert, key;
	char *url;
	size_t count;
	VEC(struct request *) requests; /* output.connections at most */
};

static size_t take_answer(char *bytes, size_t size, size_t count, void *arg)
{
	struct request *q = arg;
	size_t len = size * count, room = ANSWER_BYTES_MAX - q->answer.len;

	strbuf_append(&q->answer, bytes, len < room ? len : room);
	return len;
}

static size_t give_body(char *to, size_t size, size_t count, void *arg)
{
	struct request *q = arg;
	size_t len = size * count, left = q->len - q->sent;

	if (len > left)
		len = left;
	memcpy(to, q->body + q->sent, len);
	q->sent += len;
	return len;
}

/*
 * Of a connection that was kept and that it finds dead, libcurl sends the request again by itself,
 * and what an engine gets twice it counts twice. Not here: the body is given once.
 */
static int refuse_to_rewind(void *arg, curl_off_t offset, int origin)
{
	(void)arg, (void)offset, (void)origin;
	return CURL_SEEKFUNC_FAIL;
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

static int set_options(const struct pusher *p, struct request *q)
{
	const struct config_output *c = p->config;
	const char *authorities = c->ca_file ?: portable_ca_file();
	CURLcode bad = CURLE_OK;

#define SET(option, value) bad = bad ?: libcurl.easy_setopt(q->curl, option, value)
	SET(CURLOPT_URL, p->url);
	SET(CURLOPT_PROTOCOLS_STR, "http,https");
	SET(CURLOPT_HTTP_VERSION, (long)CURL_HTTP_VERSION_1_1);
	SET(CURLOPT_FORBID_REUSE, (long)(c->unanswered == UNANSWERED_DROP));
	SET(CURLOPT_MAXAGE_CONN, IDLE_S_MAX);
	SET(CURLOPT_NOSIGNAL, 1L);
	SET(CURLOPT_POST, 1L);
	SET(CURLOPT_USERAGENT, "pyebpf/" PYEBPF_VERSION);
	SET(CURLOPT_TIMEOUT_MS, (long)(c->timeout_ns / 1000000));
	SET(CURLOPT_WRITEFUNCTION, take_answer);
	SET(CURLOPT_WRITEDATA, q);
	SET(CURLOPT_READFUNCTION, give_body);
	SET(CURLOPT_READDATA, q);
	SET(CURLOPT_SEEKFUNCTION, refuse_to_rewind);
	SET(CURLOPT_PRIVATE, q);
#if LIBCURL_VERSION_NUM >= 0x075700
	SET(CURLOPT_CA_CACHE_TIMEOUT, 0L); /* a file that changes is read again */
#endif
	if (c->proxy)
		SET(CURLOPT_PROXY, c->proxy);
	if (authorities)
		SET(CURLOPT_CAINFO, authorities);
	if (c->cert_file)
		SET(CURLOPT_SSLCERT, c->cert_file);
	if (c->key_file)
		SET(CURLOPT_SSLKEY, c->key_file);
#undef SET
	return bad ? err_set(-EINVAL, "%s", libcurl.easy_strerror(bad)) : 0;
}

static void request_free(struct request *q)
{
	if (!q)
		return;
	libcurl.easy_cleanup(q->curl);
	headers_release(&q->headers);
	strbuf_release(&q->answer);
	free(q);
}
DEFINE_CLEANUP(struct request *, request_free)

static void stamp_files(const struct config_output *c, struct config_stamp stamps[3])
{
	const char *const files[] = { c->ca_file, c->cert_file, c->key_file };

	for (size_t i = 0; i < 3; i++) {
		stamps[i] = (struct config_stamp){ 0 };
		if (files[i])
			config_stamp_get(files[i], &stamps[i]);
	}
}

static bool have_files_changed(const struct pusher *p)
{
	struct config_stamp now[3];

	stamp_files(p->config, now);
	return !config_stamp_equal(&now[0], &p->ca) || !config_stamp_equal(&now[1], &p->cert) ||
	       !config_stamp_equal(&now[2], &p->key);
}

static void close_connections(struct pusher *p)
{
	for (size_t i = 0; i < p->requests.len; i++)
		request_free(p->requests.items[i]);
	vec_release(&p->requests);
	pthread_mutex_lock(&p->lock);
	libcurl.multi_cleanup(p->multi);
	p->multi = NULL;
	pthread_mutex_unlock(&p->lock);
}

static int open_connections(struct pusher *p)
{
	struct config_stamp now[3];

	stamp_files(p->config, now);
	p->ca = now[0];
	p->cert = now[1];
	p->key = now[2];
	pthread_mutex_lock(&p->lock);
	p->multi = libcurl.multi_init();
	pthread_mutex_unlock(&p->lock);
	return p->multi ? 0 : -ENOMEM;
}

int pusher_new(const struct config_output *config, struct pusher **out)
{
	_cleanup_(pusher_freep) struct pusher *p = NULL;
	int r = libcurl_load();

	if (r < 0)
		return r;
	p = calloc(1, sizeof(*p));
	if (!p)
		return -ENOMEM;
	pthread_mutex_init(&p->lock, NULL);
	p->config = config;
	if ((r = build_url(p)) < 0 || (r = open_connections(p)) < 0)
		return r;
	*out = take_ptr(p);
	return 0;
}

void pusher_free(struct pusher *p)
{
	if (!p)
		return;
	close_connections(p);
	pthread_mutex_destroy(&p->lock);
	free(p->url);
	free(p);
}

/* From their files, as these are now. */
static int add_secrets(const struct config_output *c, struct curl_slist **headers)
{
	int r = 0;

	for (size_t i = 0; i < c->headers.len && !r; i++)
		r = headers_add(headers, c->headers.items[i]);
	if (!r && c->headers_file)
		r = headers_add_file(headers, "output.headers_file", c->headers_file);
	if (!r && c->token_file)
		r = headers_add_token(headers, "output.token_file", c->token_file);
	if (!r && c->username)
		r = headers_add_basic(headers, c->username, "output.password_file",
				      c->password_file);
	return r;
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
	if (d->is_packed && (r = headers_add(headers, "Content-Encoding: gzip")) < 0)
		return r;
	if (p->config->tenant &&
	    ((r = strbuf_appendf(&tenant, "X-Scope-OrgID: %s", p->config->tenant)) < 0 ||
	     (r = headers_add(headers, strbuf_str(&tenant))) < 0))
		return r;
	return add_secrets(p->config, headers);
}

bool pusher_has_room(struct pusher *p)
{
	if (p->count && have_files_changed(p))
		return false; /* until all connections can be closed */
	return p->count < p->config->connections;
}

static int new_request(struct pusher *p, struct request **out)
{
	_cleanup_(request_freep) struct request *q = calloc(1, sizeof(*q));
	int r;

	if (!q)
		return -ENOMEM;
	q->curl = libcurl.easy_init();
	if (!q->curl)
		return -ENOMEM;
	if ((r = set_options(p, q)) < 0 || (r = vec_push(&p->requests, q)) < 0)
		return r;
	*out = take_ptr(q);
	return 0;
}

static int get_request(struct pusher *p, struct request **out)
{
	for (size_t i = 0; i < p->requests.len; i++) {
		if (p->requests.items[i]->owner)
			continue;
		*out = p->requests.items[i];
		return 0;
	}
	return new_request(p, out);
}

static int start(struct pusher *p, struct request *q, const void *body, size_t len)
{
	int r = make_headers(p, &q->headers);

	if (r < 0)
		return r;
	q->body = body;
	q->len = len;
	q->sent = 0;
	q->is_over = false;
	q->start_ns = monotonic_ns();
	strbuf_truncate(&q->answer, 0);
	libcurl.easy_setopt(q->curl, CURLOPT_HTTPHEADER, q->headers);
	libcurl.easy_setopt(q->curl, CURLOPT_POSTFIELDSIZE_LARGE, (curl_off_t)len);
	return libcurl.multi_add_handle(p->multi, q->curl) ? -ENOMEM : 0;
}

int pusher_begin(struct pusher *p, const void *body, size_t len, void *owner)
{
	struct request *q;
	int r;

	if (!p->count && (!p->multi || have_files_changed(p))) {
		close_connections(p);
		if ((r = open_connections(p)) < 0)
			return r;
	}
	if ((r = get_request(p, &q)) < 0)
		return r;
	r = start(p, q, body, len);
	if (r < 0) {
		headers_release(&q->headers);
		return r;
	}
	q->owner = owner;
	p->count++;
	return 0;
}

size_t pusher_count(const struct pusher *p)
{
	return p->count;
}

static void finish(struct request *q, CURLcode code)
{
	q->is_over = true;
	q->code = code;
}

void pusher_wait(struct pusher *p, int timeout_ms)
{
	int running, left;
	CURLMsg *m;

	if (!p->multi)
		return; /* no memory for it: whoever begins a request is told */
	libcurl.multi_perform(p->multi, &running);
	if ((size_t)running == p->count)
		libcurl.multi_poll(p->multi, NULL, 0, timeout_ms, NULL);
	libcurl.multi_perform(p->multi, &running);
	while ((m = libcurl.multi_info_read(p->multi, &left))) {
		struct request *q = NULL;

		if (m->msg != CURLMSG_DONE)
			continue;
		libcurl.easy_getinfo(m->easy_handle, CURLINFO_PRIVATE, &q);
		finish(q, m->data.result);
	}
}

void pusher_wake(struct pusher *p)
{
	pthread_mutex_lock(&p->lock);
	if (p->multi)
		libcurl.multi_wakeup(p->multi);
	pthread_mutex_unlock(&p->lock);
}

void pusher_abort(struct pusher *p)
{
	for (size_t i = 0; i < p->requests.len; i++)
		if (p->requests.items[i]->owner && !p->requests.items[i]->is_over)
			finish(p->requests.items[i], CURLE_ABORTED_BY_CALLBACK);
}

/* The first line of what the engine says, or curl's words. */
static void describe(const struct request *q, struct push_result *out)
{
	const char *text = strbuf_str(&q->answer);

	out->message[0] = '\0';
	if (out->verdict.action == ACTION_STORED)
		return;
	if (q->code != CURLE_OK)
		snprintf(out->message, sizeof(out->message), "%s", libcurl.easy_strerror(q->code));
	else
		snprintf(out->message, sizeof(out->message), "%.*s", (int)strcspn(text, "\r\n"),
			 text);
}

static bool is_html(CURL *curl)
{
	char *type = NULL;

	return libcurl.easy_getinfo(curl, CURLINFO_CONTENT_TYPE, &type) == CURLE_OK && type &&
	       !strncasecmp(type, "text/html", strlen("text/html"));
}

/* A list of what was not stored that is cut would pass for a shorter one. */
static bool is_answer_whole(const struct request *q)
{
	return q->code == CURLE_OK && q->answer.len < ANSWER_BYTES_MAX && !strbuf_error(&q->answer);
}

static void judge(const struct pusher *p, struct request *q, struct push_result *out)
{
	struct answer a = { .is_too_large = q->len > PUSH_PARCA_MAX,
			    .text = strbuf_str(&q->answer) };
	curl_off_t retry_after = 0;
	long status = 0;

	libcurl.easy_getinfo(q->curl, CURLINFO_RESPONSE_CODE, &status);
	libcurl.easy_getinfo(q->curl, CURLINFO_RETRY_AFTER, &retry_after);
	a.status = (int)status;
	a.is_sent = q->sent >= q->len; /* libcurl has it all, and forgets how much it sent */
	a.is_html = is_html(q->curl);
	a.has_rejected = p->config->engine == ENGINE_OTLP && q->answer.len &&
			 otlp_answer_rejects((const uint8_t *)q->answer.bytes, q->answer.len);
	*out = (struct push_result){ .took_ns = monotonic_ns() - q->start_ns, .status = a.status };
	out->retry_after_s = retry_after > 0 ? (uint64_t)retry_after : 0;
	out->verdict = verdict_of(p->config->engine, p->config->unanswered, &a);
	if (is_answer_whole(q))
		out->failed_series = verdict_failed_series(p->config->engine, &a);
	describe(q, out);
}

void *pusher_next(struct pusher *p, struct push_result *out)
{
	for (size_t i = 0; i < p->requests.len; i++) {
		struct request *q = p->requests.items[i];

		if (!q->owner || !q->is_over)
			continue;
		judge(p, q, out);
		libcurl.multi_remove_handle(p->multi, q->curl);
		libcurl.easy_setopt(q->curl, CURLOPT_HTTPHEADER, NULL);
		headers_release(&q->headers);
		p->count--;
		return take_ptr(q->owner);
	}
	return NULL;
}
