/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#include "agent/config_check.h"

#include <errno.h>
#include <netdb.h>
#include <stdio.h>
#include <string.h>

#include "agent/headers.h"
#include "base/err.h"
#include "collect/context_labels.h"
#include "collect/events.h"
#include "collect/session.h"

int config_at_line(const struct config_parse *p, int r, size_t line, const char *key)
{
	return err_wrap(r, "%s:%zu: %s", p->name, line, key);
}

static int check_address(const struct config *c)
{
	struct addrinfo *address;
	int r = config_resolve_address(c, &address);

	if (!r)
		freeaddrinfo(address);
	return r;
}

/* Where a key is set; 0: it is not. */
static size_t line_of_key(const struct config_parse *p, const char *name)
{
	size_t i = 0;

	while (strcmp(config_keys[i].name, name))
		i++;
	return p->line_of[i];
}

static int check_pod_labels(const struct config *c)
{
	char name[CONFIG_POD_LABEL_NAME_BYTES], other[CONFIG_POD_LABEL_NAME_BYTES];

	if (c->labels.len + c->pod_labels.len > CONFIG_LABELS_MAX)
		return err_set(-EINVAL, "more than %d labels, with those of `labels`",
			       CONFIG_LABELS_MAX);
	for (size_t i = 0; i < c->pod_labels.len; i++) {
		if (strlen(c->pod_labels.items[i]) >= CONFIG_POD_LABEL_BYTES)
			return err_set(-EINVAL, "no label of Kubernetes is that long");
		config_pod_label_name(c->pod_labels.items[i], name);
		for (size_t j = 0; j < c->labels.len; j++)
			if (!strcmp(c->labels.items[j].name, name))
				return err_set(-EINVAL, "%s is in `labels` too", name);
		for (size_t j = 0; j < i; j++) {
			config_pod_label_name(c->pod_labels.items[j], other);
			if (!strcmp(name, other))
				return err_set(-EINVAL, "%s twice", name);
		}
	}
	return 0;
}

static int check_kubernetes(const struct config_parse *p)
{
	static const char url_key[] = "kubernetes.url", labels_key[] = "kubernetes.labels";
	const char *url = p->c->kubernetes_url;
	int r = check_pod_labels(p->c);

	if (r < 0)
		return config_at_line(p, r, line_of_key(p, labels_key), labels_key);
	if (!url || !strncmp(url, "https://", 8) || !strncmp(url, "http://", 7))
		return 0;
	return config_at_line(p, err_set(-EINVAL, "must begin with http:// or https://"),
			      line_of_key(p, url_key), url_key);
}

static bool pushes(const struct config *c)
{
	for (size_t i = 0; i < c->outputs.len; i++)
		if (c->outputs.items[i].engine != ENGINE_FILES)
			return true;
	return false;
}

int config_list_events(const struct config *c, struct event_list *out)
{
	const struct event_rate rate = { .period = c->event_period,
					 .freq_hz = (uint32_t)c->rate_hz };
	int r = 0;

	for (size_t i = 0; i < c->events.len && r >= 0; i++) {
		r = events_add(out, c->events.items[i], &rate);
		if (r == -ENOENT)
			r = err_set(-EINVAL, "no event %s: pyebpf doctor --events lists them",
				    c->events.items[i]);
	}
	if (r >= 0 && c->modes & MODE_MEMORY)
		r = events_add_memory(out);
	return r < 0 ? r : 0;
}

/* Whether this machine has them shows when they are opened. */
static int check_events(const struct config_parse *p)
{
	static const char key[] = "events", period[] = "event_period";
	_cleanup_(events_release) struct event_list events = { 0 };
	int r = config_list_events(p->c, &events);

	if (r < 0)
		return config_at_line(p, r, line_of_key(p, key), key);
	if (p->c->event_period && !p->c->events.len)
		return config_at_line(
			p,
			err_set(-EINVAL,
				"requires events: it sets how many events make one sample"),
			line_of_key(p, period), period);
	return 0;
}

int config_list_labels(const struct config *c, struct context_label_list *out)
{
	char why[ERR_BYTES];
	int r = 0;

	for (size_t i = 0; i < c->sample_labels.len && r >= 0; i++)
		r = context_labels_add(out, c->sample_labels.items[i]);
	if (r >= 0 || r == -ENOMEM)
		return r;
	snprintf(why, sizeof(why), "%s", err_message(r));
	return err_set(-EINVAL, "%s", why);
}

static int check_sample_labels(const struct config_parse *p)
{
	static const char key[] = "sample_labels";
	struct context_label_list labels = { 0 };
	int r = config_list_labels(p->c, &labels);

	context_labels_release(&labels);
	return r < 0 ? config_at_line(p, r, line_of_key(p, key), key) : 0;
}

/* Numbers that are each right and wrong together. */
static int check_numbers(const struct config_parse *p)
{
	const struct config *c = p->c;
	uint64_t longest_ns = c->window_ns / 100 * (100 + c->jitter_percent);

	if (c->rate_min_hz > c->rate_hz)
		return config_at_line(p, err_set(-EINVAL, "must not be greater than rate"),
				      line_of_key(p, "rate_min"), "rate_min");
	if (pushes(c) && longest_ns >= c->spool_age_ns)
		return config_at_line(p,
				      err_set(-EINVAL, "must be shorter than spool.max_age, or its "
						       "first samples expire before they are sent"),
				      line_of_key(p, "window") ?: line_of_key(p, "spool.max_age"),
				      "window");
	return 0;
}

/* Folders are the same text but for slashes at the end. */
static bool is_same_folder(const char *a, const char *b)
{
	size_t len = a ? strlen(a) : 0, other = b ? strlen(b) : 0;

	while (len > 1 && a[len - 1] == '/')
		len--;
	while (other > 1 && b[other - 1] == '/')
		other--;
	return a && b && len == other && !memcmp(a, b, len);
}

static int check_two_outputs(const struct config_output *a, const struct config_output *b)
{
	if (!strcmp(a->name, b->name))
		return err_set(-EINVAL, "two are called %s: give each a name of its own", a->name);
	if (is_same_folder(a->spool, b->spool))
		return err_set(-EINVAL, "%s and %s have the same spool, %s", b->name, a->name,
			       a->spool);
	if (is_same_folder(a->directory, b->directory))
		return err_set(-EINVAL, "%s and %s have the same directory, %s", b->name, a->name,
			       a->directory);
	return 0;
}

/* Of those in a list. */
static int check_outputs(const struct config_parse *p)
{
	const struct config *c = p->c;
	int r = 0;

	for (size_t i = 0; i < c->outputs.len && !r; i++)
		for (size_t k = 0; k < i && !r; k++)
			r = check_two_outputs(&c->outputs.items[i], &c->outputs.items[k]);
	return r < 0 ? err_wrap(r, "%s: output", p->name) : 0;
}

/* Those that have a name have folders of that name in it. */
static int name_spools(struct config *c)
{
	for (size_t i = 0; i < c->outputs.len; i++) {
		struct config_output *o = &c->outputs.items[i];

		if (o->spool || o->engine == ENGINE_FILES)
			continue;
		if (asprintf(&o->spool, "%s%s%s", c->spool_directory, o->name ? "/" : "",
			     o->name ?: "") < 0) {
			o->spool = NULL;
			return -ENOMEM;
		}
	}
	return 0;
}

int config_check_whole(const struct config_parse *p)
{
	int r = check_address(p->c);

	if (r < 0)
		return config_at_line(p, r, line_of_key(p, "http.address"), "http.address");
	if ((r = check_sample_labels(p)) < 0 || (r = check_events(p)) < 0)
		return r;
	if (!p->c->outputs.len)
		return err_set(
			-EINVAL,
			"%s: output.engine: missing: set it to pyroscope, otlp, parca or files",
			p->name);
	if ((r = check_numbers(p)) < 0 || (r = name_spools(p->c)) < 0 || (r = check_outputs(p)) < 0)
		return r;
	return pushes(p->c) ? check_kubernetes(p) : 0;
}

static int check_headers(const struct config_parse *p)
{
	static const char key[] = "output.headers";
	int r = 0;

	for (size_t i = 0; i < p->output->headers.len && !r; i++) {
		const char *header = p->output->headers.items[i];

		if (!strncasecmp(header, "Authorization:", 14) ||
		    !strncasecmp(header, "Cookie:", 7))
			r = err_set(-EINVAL, "must not contain secrets: use output.headers_file");
		else
			r = headers_check(header);
	}
	return r < 0 ? config_at_line(p, r, line_of_key(p, key), key) : 0;
}

/* How the engine is to know us. */
static int check_access(const struct config_parse *p)
{
	const struct config_output *o = p->output;

	if (!o->cert_file != !o->key_file)
		return err_set(-EINVAL, "%s: output.cert_file and output.key_file go together",
			       p->name);
	if (!o->username != !o->password_file)
		return err_set(-EINVAL, "%s: output.username and output.password_file go together",
			       p->name);
	if (o->username && strchr(o->username, ':'))
		return config_at_line(p, err_set(-EINVAL, "must not contain a colon"),
				      line_of_key(p, "output.username"), "output.username");
	if (o->username && o->token_file)
		return config_at_line(p,
				      err_set(-EINVAL, "cannot be combined with output.username"),
				      line_of_key(p, "output.token_file"), "output.token_file");
	return check_headers(p);
}

/* It names a folder and a label's value. */
static int check_name(const struct config_parse *p)
{
	static const char key[] = "output.name";

	if (strlen(p->output->name) < CONFIG_OUTPUT_NAME_BYTES &&
	    !p->output->name[strspn(p->output->name,
				    "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ"
				    "0123456789-_")])
		return 0;
	return config_at_line(p,
			      err_set(-EINVAL, "a name is at most %d letters, digits, - and _",
				      CONFIG_OUTPUT_NAME_BYTES - 1),
			      line_of_key(p, key), key);
}

static int check_url(const struct config_parse *p)
{
	const char *url = p->output->url, *host;
	size_t line = line_of_key(p, "output.url");

	if (!url)
		return config_at_line(
			p, err_set(-EINVAL, "%s needs output.url", engine_name(p->output->engine)),
			line_of_key(p, "output.engine"), "output.engine");
	if (strncmp(url, "http://", 7) && strncmp(url, "https://", 8))
		return config_at_line(p, err_set(-EINVAL, "must begin with http:// or https://"),
				      line, "output.url");
	host = strstr(url, "//") + 2;
	if (memchr(host, '@', strcspn(host, "/?#")))
		return config_at_line(p,
				      err_set(-EINVAL,
					      "must not contain a password (URLs are logged): use "
					      "output.password_file or token_file"),
				      line, "output.url");
	return 0;
}

int config_check_output(const struct config_parse *p, const yaml_node_t *node)
{
	const struct config_output *o = p->output;
	size_t engine = line_of_key(p, "output.engine");
	int r;

	if (!engine)
		return config_at_line(
			p, err_set(-EINVAL, "missing: set it to pyroscope, otlp, parca or files"),
			config_line_of(node), "output.engine");
	if (o->name && (r = check_name(p)) < 0)
		return r;
	if (o->engine == ENGINE_FILES)
		return o->directory
			       ? 0
			       : config_at_line(p, err_set(-EINVAL, "files need output.directory"),
						engine, "output.engine");
	r = check_url(p);
	return r < 0 ? r : check_access(p);
}
