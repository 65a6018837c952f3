/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#include "agent/config_keys.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/clock.h"
#include "base/err.h"
#include "base/strbuf.h"
#include "base/units.h"
#include "collect/modes.h"

static const char *const engines[] = { [ENGINE_FILES] = "files",
				       [ENGINE_PYROSCOPE] = "pyroscope",
				       [ENGINE_OTLP] = "otlp",
				       [ENGINE_PARCA] = "parca",
				       NULL };
static const char *const unanswered[] = {
	[UNANSWERED_RETRY] = "retry", [UNANSWERED_DROP] = "drop", NULL
};

static const char *const log_formats[] = { [LOG_TEXT] = "text", [LOG_JSON] = "json", NULL };

static const char *const kubernetes_sources[] = { [KUBERNETES_NONE] = "none",
						  [KUBERNETES_KUBELET] = "kubelet",
						  [KUBERNETES_API] = "api",
						  [KUBERNETES_FILES] = "files",
						  NULL };
static const char *const yes_no[] = { [CHOICE_YES] = "yes", [CHOICE_NO] = "no", NULL };

#define ACCOUNT "/var/run/secrets/kubernetes.io/serviceaccount/" /* where pods have theirs */

/* clang-format off */
const struct key config_keys[] = {
#define KEY(key, kind, member, text, ...) \
	{ .name = key, .type = VALUE_##kind, .offset = offsetof(struct config, member), \
	  .otherwise = text, ##__VA_ARGS__ }
#define OUTPUT_KEY(key, kind, member, text, ...) \
	{ .name = "output." key, .type = VALUE_##kind, .otherwise = text, .is_output = true, \
	  .offset = offsetof(struct config_output, member), ##__VA_ARGS__ }
	KEY("mode", MODES, modes, "cpu", .parts = CONFIG_RECORDER),
	KEY("events", LIST, events, NULL, .parts = CONFIG_RECORDER),
	KEY("event_period", COUNT, event_period, "0", .min = 0, .max = UINT64_MAX, .parts = CONFIG_RECORDER),
	KEY("sample_labels", LIST, sample_labels, NULL, .parts = CONFIG_RECORDER),
	KEY("rate", HZ, rate_hz, "19", .min = 1, .max = 10000, .parts = CONFIG_RECORDER),
	KEY("rate_min", HZ, rate_min_hz, "1", .min = 1, .max = 10000, .parts = CONFIG_BUDGET),
	KEY("cpu_budget", SHARE, cpu_budget_ppm, "1%", .min = 100, .max = 1000000, .parts = CONFIG_BUDGET),
	KEY("window", TIME, window_ns, "15s", .min = NS_PER_SECOND, .max = 3600 * NS_PER_SECOND, .parts = CONFIG_WINDOW),
	KEY("jitter_percent", COUNT, jitter_percent, "20", .min = 0, .max = 50, .parts = CONFIG_WINDOW),
	KEY("cgroup", TEXT, cgroup, NULL, .parts = CONFIG_RECORDER),
	KEY("pid_namespace", TEXT, pid_namespace, NULL, .parts = CONFIG_RECORDER),
	KEY("old_kernel", CHOICE, old_kernel, "no", .choices = yes_no, .parts = CONFIG_RECORDER),
	KEY("btf", TEXT, btf, NULL, .parts = CONFIG_RECORDER),
	OUTPUT_KEY("name", TEXT, name, NULL),
	OUTPUT_KEY("engine", CHOICE, engine, NULL, .choices = engines),
	OUTPUT_KEY("url", TEXT, url, NULL),
	OUTPUT_KEY("tenant", TEXT, tenant, NULL),
	OUTPUT_KEY("token_file", TEXT, token_file, NULL),
	OUTPUT_KEY("username", TEXT, username, NULL),
	OUTPUT_KEY("password_file", TEXT, password_file, NULL),
	OUTPUT_KEY("headers", LIST, headers, NULL),
	OUTPUT_KEY("headers_file", TEXT, headers_file, NULL),
	OUTPUT_KEY("ca_file", TEXT, ca_file, NULL),
	OUTPUT_KEY("cert_file", TEXT, cert_file, NULL),
	OUTPUT_KEY("key_file", TEXT, key_file, NULL),
	OUTPUT_KEY("proxy", TEXT, proxy, NULL),
	OUTPUT_KEY("timeout", TIME, timeout_ns, "30s", .min = NS_PER_SECOND, .max = 600 * NS_PER_SECOND),
	OUTPUT_KEY("connections", COUNT, connections, "24", .min = 1, .max = 128),
	OUTPUT_KEY("unanswered", CHOICE, unanswered, "retry", .choices = unanswered),
	OUTPUT_KEY("directory", TEXT, directory, NULL),
	OUTPUT_KEY("keep", COUNT, keep, "240", .min = 0, .max = 1000000),
	OUTPUT_KEY("spool", TEXT, spool, NULL),
	KEY("spool.directory", TEXT, spool_directory, "/var/lib/pyebpf/spool"),
	KEY("spool.max_size", BYTES, spool_bytes, "256MiB", .min = 1 << 20, .max = 1ULL << 40),
	KEY("spool.max_age", TIME, spool_age_ns, "55m", .min = NS_PER_SECOND, .max = 30 * 86400 * NS_PER_SECOND),
	KEY("services.env", TEXT, service_env, "OTEL_SERVICE_NAME"),
	KEY("services.label", TEXT, service_label, "app.kubernetes.io/name"),
	KEY("services.max", COUNT, services_max, "200", .min = 1, .max = 100000),
	KEY("services.include", LIST, include, NULL),
	KEY("services.exclude", LIST, exclude, NULL),
	KEY("kubernetes.source", CHOICE, kubernetes, "none", .choices = kubernetes_sources),
	KEY("kubernetes.url", TEXT, kubernetes_url, NULL),
	KEY("kubernetes.node", TEXT, node, NULL, .parts = CONFIG_OUTPUT | CONFIG_RECORDER),
	KEY("kubernetes.token_file", TEXT, kubernetes_token_file, ACCOUNT "token"),
	KEY("kubernetes.ca_file", TEXT, kubernetes_ca_file, ACCOUNT "ca.crt"),
	KEY("kubernetes.verify", CHOICE, kubernetes_verify, "yes", .choices = yes_no),
	KEY("kubernetes.pod_logs", TEXT, pod_logs, "/var/log/pods"),
	KEY("kubernetes.downward", TEXT, downward, NULL),
	KEY("kubernetes.labels", LIST, pod_labels, NULL),
	KEY("http.address", TEXT, listen_address, "127.0.0.1", .parts = CONFIG_HTTP),
	KEY("http.port", COUNT, listen_port, "9464", .min = 0, .max = 65535, .parts = CONFIG_HTTP),
	KEY("log.format", CHOICE, log_format, "text", .choices = log_formats, .parts = CONFIG_LOG),
#undef OUTPUT_KEY
#undef KEY
};
/* clang-format on */
_Static_assert(sizeof(config_keys) / sizeof(config_keys[0]) == CONFIG_KEYS, "each is a row");

const char *engine_name(enum engine e)
{
	return engines[e];
}

void *config_member(const void *of, const struct key *k)
{
	return (char *)of + k->offset;
}

static void list_release(struct config_list *l)
{
	for (size_t i = 0; i < l->len; i++)
		free(l->items[i]);
	vec_release(l);
}

void config_release_values(void *of, bool is_output)
{
	for (size_t i = 0; i < CONFIG_KEYS; i++) {
		if (config_keys[i].is_output != is_output)
			continue;
		if (config_keys[i].type == VALUE_TEXT)
			free(*(char **)config_member(of, &config_keys[i]));
		if (config_keys[i].type == VALUE_LIST)
			list_release(config_member(of, &config_keys[i]));
	}
}

int config_set_choice(const struct key *k, const char *text, unsigned int *out)
{
	_cleanup_(strbuf_releasep) struct strbuf names = STRBUF_INIT;

	for (unsigned int i = 0; k->choices[i]; i++) {
		if (!strcmp(k->choices[i], text)) {
			*out = i;
			return 0;
		}
		strbuf_appendf(&names, "%s%s", i ? ", " : "", k->choices[i]);
	}
	return err_set(-EINVAL, "'%s' is not one of: %s", text, strbuf_str(&names));
}

static int set_modes(const char *text, uint64_t *out)
{
	unsigned int modes;
	int r = modes_parse(text, &modes);

	if (!r)
		*out = modes;
	return r;
}

static int set_number(const struct key *k, const char *text, uint64_t *out)
{
	static int (*const readers[])(const char *, uint64_t *) = {
		[VALUE_COUNT] = units_parse_count, [VALUE_HZ] = units_parse_hz,
		[VALUE_TIME] = units_parse_ns,     [VALUE_SHARE] = units_parse_share,
		[VALUE_BYTES] = units_parse_bytes,
	};
	uint64_t value;
	int r = readers[k->type](text, &value);

	if (r < 0)
		return r;
	if (value < k->min || value > k->max)
		return err_set(-EINVAL, "%s is out of range", text);
	*out = value;
	return 0;
}

int config_set_text(const char *text, char **out)
{
	char *copy;

	if (!*text)
		return err_set(-EINVAL, "empty");
	for (const char *c = text; *c; c++)
		if ((unsigned char)*c < 0x20 || *c == 0x7f)
			return err_set(-EINVAL, "holds a control character");
	copy = strdup(text);
	if (!copy)
		return -ENOMEM;
	free(*out);
	*out = copy;
	return 0;
}

int config_set(void *of, const struct key *k, const char *text)
{
	if (k->type == VALUE_TEXT)
		return config_set_text(text, config_member(of, k));
	if (k->type == VALUE_CHOICE)
		return config_set_choice(k, text, config_member(of, k));
	if (k->type == VALUE_MODES)
		return set_modes(text, config_member(of, k));
	return set_number(k, text, config_member(of, k));
}

int config_set_defaults(void *of, bool is_output)
{
	int r = 0;

	for (size_t i = 0; i < CONFIG_KEYS && !r; i++)
		if (config_keys[i].is_output == is_output && config_keys[i].otherwise)
			r = config_set(of, &config_keys[i], config_keys[i].otherwise);
	return r;
}
