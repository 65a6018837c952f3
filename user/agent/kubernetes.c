/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#include "agent/kubernetes.h"

#include "agent/libraries.h"
#include <errno.h>
#include <inttypes.h>
#include <pthread.h>
#include <stdio.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "agent/headers.h"
#include "agent/metrics.h"
#include "agent/verdict.h"
#include "base/chance.h"
#include "base/clock.h"
#include "base/err.h"
#include "base/log.h"
#include "base/strbuf.h"
#include "base/thread.h"
#include "base/units.h"

#define REFRESH_NS 300000000000ULL /* labels of a pod may change */
#define REQUEST_MS 10000L
#define CONNECT_MS 3000L
#define PAGE_PODS 500
#define PAGES_MAX 100
#define STATUS_GONE 410 /* the next page's name is too old: the list begins anew */

struct kubernetes {
	const struct config *config;
	struct metrics *metrics;
	CURL *curl; /* NULL: files */
	char *url;
	pthread_t thread;
	pthread_mutex_t lock;
	pthread_cond_t changed;
	/* With the lock held: */
	struct pods pods;
	/* The last pod that was not known, or not its container; "": none, or not which. */
	char wanted[POD_UID_BYTES], wanted_container[CONTAINER_ID_BYTES];
	bool should_stop;
	/* Of the thread: */
	uint32_t fruitless; /* rounds in a row that failed, or did not bring what was wanted */
	bool has_failed;    /* the last time: that was said */
};

/* --- Questions -------------------------------------------------------------------------------- */

/* A host that is an IPv6 address stands in brackets. */
static int put_host(struct strbuf *url, const char *host)
{
	return strbuf_appendf(url, strchr(host, ':') ? "https://[%s]" : "https://%s", host);
}

static int put_base(const struct kubernetes *k, const char *node, struct strbuf *url)
{
	const struct config *c = k->config;
	const char *host = getenv("KUBERNETES_SERVICE_HOST");
	const char *port = getenv("KUBERNETES_SERVICE_PORT");
	size_t len = c->kubernetes_url ? strlen(c->kubernetes_url) : 0;

	while (len && c->kubernetes_url[len - 1] == '/')
		len--;
	if (len)
		return strbuf_append(url, c->kubernetes_url, len);
	if (c->kubernetes == KUBERNETES_KUBELET) {
		put_host(url, node);
		return strbuf_puts(url, ":10250");
	}
	if (!host || !port)
		return err_set(-EINVAL, "kubernetes.url: missing: not in a pod, where variables "
					"name the API server");
	put_host(url, host);
	return strbuf_appendf(url, ":%s", port);
}

static int put_escaped(const struct kubernetes *k, const char *text, struct strbuf *url)
{
	char *escaped = libcurl.easy_escape(k->curl, text, 0);
	int r = escaped ? strbuf_puts(url, escaped) : -ENOMEM;

	libcurl.free(escaped);
	return r;
}

static int build_url(struct kubernetes *k)
{
	_cleanup_(strbuf_releasep) struct strbuf url = STRBUF_INIT;
	char node[CONFIG_NODE_BYTES];
	int r;

	config_node_name(k->config, node);
	if ((r = put_base(k, node, &url)) < 0)
		return r;
	if (k->config->kubernetes == KUBERNETES_KUBELET)
		r = strbuf_puts(&url, "/pods");
	else if (!(r = strbuf_puts(&url, "/api/v1/pods?fieldSelector=spec.nodeName%3D")))
		r = put_escaped(k, node, &url);
	if (r < 0)
		return r;
	k->url = strbuf_take(&url);
	return k->url ? 0 : -ENOMEM;
}

/*
 * The first page is asked of the API server's cache (resourceVersion=0), which knows the pods of a
 * node without reading those of all others, and which answers with all of them. One that has no
 * such cache sends pages, each of which names the next.
 */
static int page_url(const struct kubernetes *k, const char *next, struct strbuf *url)
{
	int r = strbuf_puts(url, k->url);

	if (r < 0 || k->config->kubernetes == KUBERNETES_KUBELET)
		return r;
	r = strbuf_appendf(url, "&limit=%d&%s", PAGE_PODS,
			   *next ? "continue=" : "resourceVersion=0");
	return r < 0 || !*next ? r : put_escaped(k, next, url);
}

/* What arrives goes to the reader; other answers than 200 are not looked at. */
struct answer_reader {
	struct kubernetes *k;
	struct pods_reader pods;
	int error;
};

static size_t take_answer(char *bytes, size_t size, size_t count, void *arg)
{
	struct answer_reader *a = arg;
	long status = 0;

	libcurl.easy_getinfo(a->k->curl, CURLINFO_RESPONSE_CODE, &status);
	if (status == 200)
		a->error = pods_reader_feed(&a->pods, bytes, size * count);
	return a->error ? 0 : size * count;
}

static int is_over(void *arg, curl_off_t a, curl_off_t b, curl_off_t c, curl_off_t d)
{
	struct kubernetes *k = arg;
	bool is_over;

	(void)a, (void)b, (void)c, (void)d;
	pthread_mutex_lock(&k->lock);
	is_over = k->should_stop;
	pthread_mutex_unlock(&k->lock);
	return is_over;
}

static int set_options(struct kubernetes *k)
{
	const struct config *c = k->config;
	CURLcode bad = CURLE_OK;

#define SET(option, value) bad = bad ?: libcurl.easy_setopt(k->curl, option, value)
	SET(CURLOPT_PROTOCOLS_STR, "http,https");
	SET(CURLOPT_NOSIGNAL, 1L);
	SET(CURLOPT_PROXY, ""); /* a node's own services are not behind one */
	SET(CURLOPT_USERAGENT, "pyebpf/" PYEBPF_VERSION);
	SET(CURLOPT_TIMEOUT_MS, REQUEST_MS);
	SET(CURLOPT_CONNECTTIMEOUT_MS, CONNECT_MS);
	SET(CURLOPT_FORBID_REUSE, 1L); /* minutes pass until the next */
	SET(CURLOPT_NOPROGRESS, 0L);
	SET(CURLOPT_XFERINFOFUNCTION, is_over);
	SET(CURLOPT_XFERINFODATA, k);
	SET(CURLOPT_WRITEFUNCTION, take_answer);
	SET(CURLOPT_SSL_VERIFYPEER, (long)(c->kubernetes_verify == CHOICE_YES));
	SET(CURLOPT_SSL_VERIFYHOST, c->kubernetes_verify == CHOICE_YES ? 2L : 0L);
	if (!access(c->kubernetes_ca_file, R_OK))
		SET(CURLOPT_CAINFO, c->kubernetes_ca_file);
#undef SET
	return bad ? err_set(-EINVAL, "kubernetes: %s", libcurl.easy_strerror(bad)) : 0;
}

/* A token does not go over the network as it is. */
static int make_headers(const struct kubernetes *k, struct curl_slist **headers)
{
	int r = headers_add(headers, "Accept: application/json");

	if (r < 0 || strncmp(k->url, "https://", 8))
		return r;
	return headers_add_token(headers, "kubernetes.token_file",
				 k->config->kubernetes_token_file);
}

static int explain(long status)
{
	static const struct {
		long status;
		const char *text;
	} known[] = {
		{ 401, "the token is not accepted: see kubernetes.token_file" },
		{ 403,
		  "not allowed: the service account needs nodes/pods or nodes/proxy (kubelet), or "
		  "pods list (api)" },
		{ 404, "no list of pods there: see kubernetes.url" },
	};

	for (size_t i = 0; i < sizeof(known) / sizeof(known[0]); i++)
		if (known[i].status == status)
			return err_set(-EPROTO, "status %ld: %s", status, known[i].text);
	return err_set(-EPROTO, "status %ld", status);
}

/* Options are set for each request: the CA's file may be there only later. */
static int ask_page(struct kubernetes *k, struct answer_reader *a, long *status)
{
	_cleanup_(headers_release) struct curl_slist *headers = NULL;
	_cleanup_(strbuf_releasep) struct strbuf url = STRBUF_INIT;
	CURLcode code;
	int r;

	if ((r = set_options(k)) < 0 || (r = make_headers(k, &headers)) < 0 ||
	    (r = page_url(k, a->pods.next, &url)) < 0)
		return r;
	pods_reader_next(&a->pods);
	libcurl.easy_setopt(k->curl, CURLOPT_URL, strbuf_str(&url));
	libcurl.easy_setopt(k->curl, CURLOPT_HTTPHEADER, headers);
	libcurl.easy_setopt(k->curl, CURLOPT_WRITEDATA, a);
	code = libcurl.easy_perform(k->curl);
	libcurl.easy_getinfo(k->curl, CURLINFO_RESPONSE_CODE, status);
	libcurl.easy_setopt(k->curl, CURLOPT_HTTPHEADER, NULL);
	if (a->error)
		return a->error;
	if (code != CURLE_OK)
		return err_set(-EIO, "%s", libcurl.easy_strerror(code));
	return *status == 200 ? pods_reader_finish(&a->pods) : explain(*status);
}

/* Page by page. A list whose next page is too old is begun anew, once. */
static int ask_pages(struct kubernetes *k, struct answer_reader *a)
{
	bool has_begun_anew = false;
	int r;

	for (int page = 0; page < PAGES_MAX; page++) {
		long status = 0;

		r = ask_page(k, a, &status);
		if (status == STATUS_GONE && !has_begun_anew) {
			err_clear();
			has_begun_anew = true;
			pods_reader_release(&a->pods);
			a->pods = (struct pods_reader){ .config = k->config };
		} else if (r < 0 || !*a->pods.next) {
			return r;
		}
	}
	return err_set(-EFBIG, "more than %d pages", PAGES_MAX);
}

static int ask(struct kubernetes *k, struct pods *out)
{
	struct answer_reader a = { .k = k, .pods = { .config = k->config } };
	int r = ask_pages(k, &a);

	if (!r) {
		*out = a.pods.pods;
		a.pods.pods = (struct pods){ NULL, 0, 0 };
	}
	pods_reader_release(&a.pods);
	return r < 0 ? err_wrap(r, "%s", k->url) : 0;
}

static int read_files(const struct config *c, struct pods *out)
{
	int r = 0;

	if (c->downward)
		r = pods_read_downward(c, c->downward, out);
	return r < 0 || access(c->pod_logs, F_OK) ? r : pods_read_logs(c->pod_logs, out);
}

/* --- The thread ------------------------------------------------------------------------------- */

/* Its name; NULL: it is not known, or "" is asked for. */
static const char *find_container(const struct pod *pod, const char *id)
{
	for (size_t i = 0; i < pod->containers.len; i++)
		if (!strcmp(pod->containers.items[i].id, id))
			return pod->containers.items[i].name;
	return NULL;
}

/* Files name no containers: there is no use in asking again. */
static bool is_whole(const struct kubernetes *k, const struct pod *pod, const char *container)
{
	return pod && (!k->curl || !*container || find_container(pod, container));
}

/* Takes over what was found; of what only files name nothing is lost while the others are away. */
static void put(struct kubernetes *k, struct pods *found)
{
	struct pods old;

	pthread_mutex_lock(&k->lock);
	k->fruitless = *k->wanted && !is_whole(k, pods_find(found, k->wanted), k->wanted_container)
			       ? k->fruitless + 1
			       : 0;
	*k->wanted = '\0';
	old = k->pods;
	k->pods = *found;
	pthread_mutex_unlock(&k->lock);
	metrics_set_pods(k->metrics, found->len);
	pods_release(&old);
}

static void refresh(struct kubernetes *k)
{
	struct pods found = { NULL, 0, 0 };
	int r = k->curl ? ask(k, &found) : read_files(k->config, &found);

	metrics_add_refresh(k->metrics, r >= 0);
	if (r >= 0) {
		if (k->has_failed)
			log_note("kubernetes: %zu pods are known again", found.len);
		k->has_failed = false;
		put(k, &found);
		return;
	}
	pods_release(&found);
	if (!k->has_failed && !is_over(k, 0, 0, 0, 0))
		log_warning(
			"kubernetes: %s; profiles go without names of pods until that is mended",
			err_message(r));
	k->has_failed = true;
	k->fruitless++;
}

/* Until there is reason to ask again, not before `earliest`. False: it is to end. */
static bool wait_for_reason(struct kubernetes *k, uint64_t earliest, uint64_t latest)
{
	bool is_due = false, goes_on;

	pthread_mutex_lock(&k->lock);
	while (!k->should_stop && !is_due) {
		bool has_reason = k->has_failed || *k->wanted;
		uint64_t until = has_reason ? earliest : latest;
		struct timespec t = deadline_of(until);

		is_due = monotonic_ns() >= until;
		if (!is_due)
			pthread_cond_timedwait(&k->changed, &k->lock, &t);
	}
	goes_on = !k->should_stop;
	pthread_mutex_unlock(&k->lock);
	return goes_on;
}

static void *run(void *arg)
{
	struct kubernetes *k = arg;
	uint64_t now;

	do {
		refresh(k);
		now = monotonic_ns();
	} while (wait_for_reason(k, now + verdict_pause_ns(k->fruitless + 1, 0, chance_u64()),
				 now + REFRESH_NS));
	return NULL;
}

static void release(struct kubernetes *k)
{
	pthread_mutex_destroy(&k->lock);
	pthread_cond_destroy(&k->changed);
	pods_release(&k->pods);
	if (k->curl)
		libcurl.easy_cleanup(k->curl);
	free(k->url);
	free(k);
}

static int start(struct kubernetes *k)
{
	int r;

	if (k->config->kubernetes != KUBERNETES_FILES) {
		if ((r = libcurl_load()) < 0)
			return r;
		k->curl = libcurl.easy_init();
		if (!k->curl)
			return -ENOMEM;
		if ((r = build_url(k)) < 0)
			return r;
	}
	return thread_start_or_say(run, k, &k->thread);
}

int kubernetes_new(const struct config *c, struct metrics *m, struct kubernetes **out)
{
	struct kubernetes *k;
	int r;

	*out = NULL;
	if (c->kubernetes == KUBERNETES_NONE)
		return 0;
	k = calloc(1, sizeof(*k));
	if (!k)
		return -ENOMEM;
	k->config = c;
	k->metrics = m;
	pthread_mutex_init(&k->lock, NULL);
	cond_init_monotonic(&k->changed);
	r = start(k);
	if (r < 0)
		release(k);
	else
		*out = k;
	return r;
}

void kubernetes_free(struct kubernetes *k)
{
	if (!k)
		return;
	pthread_mutex_lock(&k->lock);
	k->should_stop = true;
	pthread_cond_signal(&k->changed);
	pthread_mutex_unlock(&k->lock);
	pthread_join(k->thread, NULL);
	release(k);
}

static void copy_names(const struct pod *pod, const char *container, struct pod_names *out)
{
	*out = (struct pod_names){ 0 };
	memcpy(out->space, pod->names.space, sizeof(out->space));
	memcpy(out->pod, pod->names.name, sizeof(out->pod));
	memcpy(out->workload, pod->workload, sizeof(out->workload));
	memcpy(out->kind, pod->kind, sizeof(out->kind));
	memcpy(out->service, pod->service, sizeof(out->service));
	memcpy(out->labels, pod->labels, sizeof(out->labels));
	snprintf(out->container, sizeof(out->container), "%s",
		 find_container(pod, container) ?: "");
}

/* With the lock held. One at a time: the list that comes has the others too. */
static void want(struct kubernetes *k, const char *uid, const char *container)
{
	if (*k->wanted)
		return;
	snprintf(k->wanted, sizeof(k->wanted), "%s", uid);
	snprintf(k->wanted_container, sizeof(k->wanted_container), "%s", container);
	pthread_cond_signal(&k->changed);
}

bool kubernetes_find(struct kubernetes *k, const char *uid, const char *container,
		     struct pod_names *out)
{
	const struct pod *pod;

	if (!k || !*uid)
		return false;
	pthread_mutex_lock(&k->lock);
	pod = pods_find(&k->pods, uid);
	if (pod)
		copy_names(pod, container, out);
	if (!is_whole(k, pod, container))
		want(k, uid, container);
	pthread_mutex_unlock(&k->lock);
	return pod != NULL;
}
