/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#include "agent/config.h"

#include <ctype.h>
#include <errno.h>
#include <inttypes.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>
#include <yaml.h>

#include "agent/headers.h"
#include "base/cleanup.h"
#include "base/clock.h"
#include "base/err.h"
#include "base/file.h"
#include "base/strbuf.h"
#include "base/units.h"

#define KEY_BYTES_MAX 64

enum value_type {
	VALUE_TEXT,
	VALUE_COUNT,
	VALUE_HZ,
	VALUE_TIME,
	VALUE_SHARE,
	VALUE_BYTES,
	VALUE_CHOICE,
	VALUE_LIST
};

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
static const char *const yes_no[] = { [VERIFY_YES] = "yes", [VERIFY_NO] = "no", NULL };

#define OUTPUT "output" /* the section that may be a list */
#define ACCOUNT "/var/run/secrets/kubernetes.io/serviceaccount/" /* where pods have theirs */

/* clang-format off */
static const struct key {
	const char *name;
	enum value_type type;
	size_t offset;
	const char *otherwise; /* as it would stand in the file; NULL: absent */
	uint64_t min, max;
	const char *const *choices;
	unsigned int parts; /* enum config_part; 0: CONFIG_OUTPUT */
	bool is_output;     /* offset: in each struct config_output */
} keys[] = {
#define KEY(key, kind, member, text, ...) \
	{ .name = key, .type = VALUE_##kind, .offset = offsetof(struct config, member), \
	  .otherwise = text, ##__VA_ARGS__ }
#define OUTPUT_KEY(key, kind, member, text, ...) \
	{ .name = "output." key, .type = VALUE_##kind, .otherwise = text, .is_output = true, \
	  .offset = offsetof(struct config_output, member), ##__VA_ARGS__ }
	KEY("rate", HZ, rate_hz, "19", .min = 1, .max = 10000, .parts = CONFIG_RECORDER),
	KEY("rate_min", HZ, rate_min_hz, "1", .min = 1, .max = 10000, .parts = CONFIG_BUDGET),
	KEY("cpu_budget", SHARE, cpu_budget_ppm, "1%", .min = 100, .max = 1000000, .parts = CONFIG_BUDGET),
	KEY("window", TIME, window_ns, "15s", .min = NS_PER_SECOND, .max = 3600 * NS_PER_SECOND, .parts = CONFIG_WINDOW),
	KEY("jitter_percent", COUNT, jitter_percent, "20", .min = 0, .max = 50, .parts = CONFIG_WINDOW),
	KEY("cgroup", TEXT, cgroup, NULL, .parts = CONFIG_RECORDER),
	KEY("pid_namespace", TEXT, pid_namespace, NULL, .parts = CONFIG_RECORDER),
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
#define KEYS (sizeof(keys) / sizeof(keys[0]))

struct parse {
	const char *name;
	yaml_document_t *document;
	struct config *c;
	struct config_output *output; /* that is read */
	size_t line_of[KEYS]; /* where it is set; 0: it is not. Of output's, the last one's */
};

const char *engine_name(enum engine e)
{
	return engines[e];
}

/* of: the struct that the key is a member of. */
static void *member(const void *of, const struct key *k)
{
	return (char *)of + k->offset;
}

static void list_release(struct config_list *l)
{
	for (size_t i = 0; i < l->len; i++)
		free(l->items[i]);
	vec_release(l);
}

static void release_values(void *of, bool is_output)
{
	for (size_t i = 0; i < KEYS; i++) {
		if (keys[i].is_output != is_output)
			continue;
		if (keys[i].type == VALUE_TEXT)
			free(*(char **)member(of, &keys[i]));
		if (keys[i].type == VALUE_LIST)
			list_release(member(of, &keys[i]));
	}
}

void config_release(struct config *c)
{
	release_values(c, false);
	for (size_t i = 0; i < c->outputs.len; i++)
		release_values(&c->outputs.items[i], true);
	vec_release(&c->outputs);
	for (size_t i = 0; i < c->labels.len; i++) {
		free(c->labels.items[i].name);
		free(c->labels.items[i].value);
	}
	vec_release(&c->labels);
	relabel_rules_release(&c->relabel);
	*c = (struct config){ 0 };
}

static int set_choice(const struct key *k, const char *text, unsigned int *out)
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

static int set_text(const char *text, char **out)
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

static int set(void *of, const struct key *k, const char *text)
{
	if (k->type == VALUE_TEXT)
		return set_text(text, member(of, k));
	if (k->type == VALUE_CHOICE)
		return set_choice(k, text, member(of, k));
	return set_number(k, text, member(of, k));
}

static int set_defaults(void *of, bool is_output)
{
	int r = 0;

	for (size_t i = 0; i < KEYS && !r; i++)
		if (keys[i].is_output == is_output && keys[i].otherwise)
			r = set(of, &keys[i], keys[i].otherwise);
	return r;
}

static int at_line(const struct parse *p, int r, size_t line, const char *key)
{
	return err_wrap(r, "%s:%zu: %s", p->name, line, key);
}

static size_t line_of(const yaml_node_t *node)
{
	return node->start_mark.line + 1;
}

/* The text of a scalar without NUL bytes, or NULL. */
static const char *scalar_text(const yaml_node_t *node)
{
	if (node->type != YAML_SCALAR_NODE ||
	    strlen((const char *)node->data.scalar.value) != node->data.scalar.length)
		return NULL;
	return (const char *)node->data.scalar.value;
}

/* Names that Prometheus takes, since all engines do; not those that we give ourselves. */
static int check_label_name(const char *name)
{
	static const char *const ours[] = { "service_name",
					    "service_version",
					    "deployment_environment",
					    "container_id",
					    "pod_uid",
					    "host",
					    "job",
					    "namespace",
					    "pod",
					    "container",
					    "workload",
					    "workload_kind",
					    NULL };

	for (const char *const *o = ours; *o; o++)
		if (!strcmp(name, *o))
			return err_set(-EINVAL, "the agent gives this label itself");
	if (!isalpha((unsigned char)*name) && *name != '_')
		return err_set(-EINVAL, "a label's name is letters, digits and _");
	for (const char *c = name; *c; c++)
		if (!isalnum((unsigned char)*c) && *c != '_')
			return err_set(-EINVAL, "a label's name is letters, digits and _");
	if (!strncmp(name, "__", 2))
		return err_set(-EINVAL, "labels that begin with __ are the engine's own");
	return 0;
}

static int add_label(struct parse *p, const char *name, const char *value)
{
	struct config_label l = { NULL, NULL };
	int r;

	for (size_t i = 0; i < p->c->labels.len; i++)
		if (!strcmp(p->c->labels.items[i].name, name))
			return err_set(-EINVAL, "set twice");
	if (p->c->labels.len == CONFIG_LABELS_MAX)
		return err_set(-EINVAL, "more than %d labels", CONFIG_LABELS_MAX);
	if ((r = check_label_name(name)) < 0)
		return r;
	if ((r = set_text(name, &l.name)) < 0 || (r = set_text(value, &l.value)) < 0 ||
	    (r = vec_push(&p->c->labels, l)) < 0) {
		free(l.name);
		free(l.value);
	}
	return r;
}

static int set_list(struct parse *p, const yaml_node_t *node, struct config_list *out)
{
	int r = 0;

	if (node->type != YAML_SEQUENCE_NODE)
		return err_set(-EINVAL, "not a list, such as [a, 'b*']");
	for (const yaml_node_item_t *i = node->data.sequence.items.start;
	     i < node->data.sequence.items.top && !r; i++) {
		const char *text = scalar_text(yaml_document_get_node(p->document, *i));
		char *copy = NULL;

		if (!text)
			return err_set(-EINVAL, "a list of single values is expected");
		r = set_text(text, &copy);
		if (!r && (r = vec_push(out, copy)) < 0)
			free(copy);
	}
	return r;
}

/* Values of a rule: what is not a list may be "". */
static int set_rule_key(struct parse *p, struct relabel_rule *rule, const char *name,
			const yaml_node_t *value)
{
	const struct {
		const char *name;
		char **text;
	} texts[] = { { "separator", &rule->separator },
		      { "regex", &rule->regex },
		      { "target_label", &rule->target },
		      { "replacement", &rule->replacement } };
	static const struct key action = { .choices = relabel_actions };
	const char *text = scalar_text(value);

	if (!strcmp(name, "source_labels"))
		return rule->sources.len ? err_set(-EINVAL, "set twice")
					 : set_list(p, value, &rule->sources);
	if (!text)
		return err_set(-EINVAL, "not a single value");
	if (!strcmp(name, "action"))
		return set_choice(&action, text, &rule->action);
	if (!strcmp(name, "modulus"))
		return units_parse_count(text, &rule->modulus);
	for (size_t i = 0; i < sizeof(texts) / sizeof(texts[0]); i++) {
		if (strcmp(texts[i].name, name))
			continue;
		if (*texts[i].text)
			return err_set(-EINVAL, "set twice");
		*texts[i].text = strdup(text);
		return *texts[i].text ? 0 : -ENOMEM;
	}
	return err_set(-EINVAL, "no such key; there are: action, source_labels, separator, regex, "
				"target_label, replacement, modulus");
}

static int read_rule(struct parse *p, const yaml_node_t *node, struct relabel_rule *rule)
{
	int r;

	if (node->type != YAML_MAPPING_NODE)
		return err_set(-EINVAL, "KEY: VALUE lines are expected");
	for (const yaml_node_pair_t *pair = node->data.mapping.pairs.start;
	     pair < node->data.mapping.pairs.top; pair++) {
		const char *name = scalar_text(yaml_document_get_node(p->document, pair->key));

		if (!name || strlen(name) > KEY_BYTES_MAX)
			return err_set(-EINVAL, "not a name");
		r = set_rule_key(p, rule, name, yaml_document_get_node(p->document, pair->value));
		if (r < 0)
			return err_wrap(r, "%s", name);
	}
	return relabel_rule_finish(rule);
}

static int read_rules(struct parse *p, const yaml_node_t *node)
{
	struct relabel_rules *rules = &p->c->relabel;
	int r = 0;

	if (node->type != YAML_SEQUENCE_NODE || rules->list.len)
		return err_set(-EINVAL, rules->list.len ? "set twice" : "not a list of rules");
	for (const yaml_node_item_t *i = node->data.sequence.items.start;
	     i < node->data.sequence.items.top && !r; i++) {
		const yaml_node_t *item = yaml_document_get_node(p->document, *i);
		struct relabel_rule rule = { 0 };

		if (rules->list.len == RELABEL_RULES_MAX)
			return err_set(-EINVAL, "more than %d rules", RELABEL_RULES_MAX);
		r = read_rule(p, item, &rule);
		if (r < 0)
			r = err_wrap(r, "rule in line %zu", line_of(item));
		else
			r = vec_push(&rules->list, rule);
		if (r < 0)
			relabel_rule_release(&rule);
	}
	return r;
}

static bool is_section(const char *name)
{
	size_t len = strlen(name);

	for (size_t i = 0; i < KEYS; i++)
		if (!strncmp(keys[i].name, name, len) && keys[i].name[len] == '.')
			return true;
	return !strcmp(name, "labels");
}

static int unknown_key(const char *prefix)
{
	_cleanup_(strbuf_releasep) struct strbuf names = STRBUF_INIT;
	size_t len = strlen(prefix);
	const char *last = NULL;

	for (size_t i = 0; i < KEYS; i++) {
		const char *rest = keys[i].name + len;
		size_t rest_len;

		if (strncmp(keys[i].name, prefix, len))
			continue;
		rest_len = strcspn(rest, ".");
		if (last && !strncmp(last, rest, rest_len + 1))
			continue;
		strbuf_appendf(&names, "%s%.*s", last ? ", " : "", (int)rest_len, rest);
		last = rest;
	}
	return err_set(-EINVAL, "no such key; there are: %s%s", strbuf_str(&names),
		       len ? "" : ", labels, relabel");
}

static int read_mapping(struct parse *p, const yaml_node_t *node, const char *prefix);
static int read_outputs(struct parse *p, const yaml_node_t *node);

static int read_key(struct parse *p, size_t i, const yaml_node_t *value)
{
	const char *text = scalar_text(value);
	void *of = keys[i].is_output ? (void *)p->output : p->c;

	if (p->line_of[i])
		return err_set(-EINVAL, "set in line %zu already", p->line_of[i]);
	p->line_of[i] = line_of(value);
	if (keys[i].type == VALUE_LIST)
		return set_list(p, value, member(of, &keys[i]));
	return text ? set(of, &keys[i], text) : err_set(-EINVAL, "not a single value");
}

static int read_value(struct parse *p, const char *prefix, const char *full,
		      const yaml_node_t *value)
{
	const char *text = scalar_text(value);

	if (!strcmp(prefix, "labels."))
		return text ? add_label(p, full + strlen(prefix), text)
			    : err_set(-EINVAL, "not a text");
	if (!strcmp(full, "relabel"))
		return read_rules(p, value);
	if (!strcmp(full, OUTPUT))
		return read_outputs(p, value);
	if (strchr(full + strlen(prefix), '.')) /* "output.url" outside of output */
		return unknown_key(prefix);
	for (size_t i = 0; i < KEYS; i++)
		if (!strcmp(keys[i].name, full))
			return read_key(p, i, value);
	if (!is_section(full))
		return unknown_key(prefix);
	if (value->type != YAML_MAPPING_NODE)
		return err_set(-EINVAL, "keys are to stand below this, indented");
	return read_mapping(p, value, full);
}

/* What is wrong in it has said where already. */
static bool is_nested(const char *full, const yaml_node_t *value)
{
	return !strcmp(full, OUTPUT) || (is_section(full) && value->type == YAML_MAPPING_NODE);
}

static int read_mapping(struct parse *p, const yaml_node_t *node, const char *section)
{
	const yaml_node_pair_t *pair;
	int r = 0;

	for (pair = node->data.mapping.pairs.start; pair < node->data.mapping.pairs.top && !r;
	     pair++) {
		const yaml_node_t *key = yaml_document_get_node(p->document, pair->key);
		const yaml_node_t *value = yaml_document_get_node(p->document, pair->value);
		char prefix[2 * KEY_BYTES_MAX], full[4 * KEY_BYTES_MAX];
		const char *name = scalar_text(key);

		if (!name || strlen(name) > KEY_BYTES_MAX)
			return at_line(p, err_set(-EINVAL, "not a name"), line_of(key), "key");
		snprintf(prefix, sizeof(prefix), "%s%s", section, *section ? "." : "");
		snprintf(full, sizeof(full), "%s%s", prefix, name);
		r = read_value(p, prefix, full, value);
		if (r < 0 && !is_nested(full, value))
			r = at_line(p, r, line_of(key), full);
	}
	return r;
}

int config_resolve_address(const struct config *c, struct addrinfo **out)
{
	const struct addrinfo hints = { .ai_flags = AI_NUMERICHOST | AI_NUMERICSERV | AI_PASSIVE,
					.ai_socktype = SOCK_STREAM };
	char port[8];

	snprintf(port, sizeof(port), "%" PRIu64, c->listen_port);
	if (getaddrinfo(c->listen_address, port, &hints, out))
		return err_set(-EINVAL, "%s is no IPv4 or IPv6 address", c->listen_address);
	return 0;
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
static size_t line_of_key(const struct parse *p, const char *name)
{
	size_t i = 0;

	while (strcmp(keys[i].name, name))
		i++;
	return p->line_of[i];
}

void config_node_name(const struct config *c, char out[CONFIG_NODE_BYTES])
{
	const char *node = c->node ?: getenv("NODE_NAME");

	memset(out, 0, CONFIG_NODE_BYTES);
	if (node && *node)
		snprintf(out, CONFIG_NODE_BYTES, "%s", node);
	else
		gethostname(out, CONFIG_NODE_BYTES - 1);
}

void config_pod_label_name(const char *key, char out[CONFIG_POD_LABEL_NAME_BYTES])
{
	snprintf(out, CONFIG_POD_LABEL_NAME_BYTES, "label_%s", key);
	for (char *c = out; *c; c++)
		if (!isalnum((unsigned char)*c))
			*c = '_';
}

/* Labels of pods become ours under another name: no two may meet. */
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

static int check_kubernetes(const struct parse *p)
{
	static const char url_key[] = "kubernetes.url", labels_key[] = "kubernetes.labels";
	const char *url = p->c->kubernetes_url;
	int r = check_pod_labels(p->c);

	if (r < 0)
		return at_line(p, r, line_of_key(p, labels_key), labels_key);
	if (!url || !strncmp(url, "https://", 8) || !strncmp(url, "http://", 7))
		return 0;
	return at_line(p, err_set(-EINVAL, "it begins with http:// or https://"),
		       line_of_key(p, url_key), url_key);
}

static bool pushes(const struct config *c)
{
	for (size_t i = 0; i < c->outputs.len; i++)
		if (c->outputs.items[i].engine != ENGINE_FILES)
			return true;
	return false;
}

/* Numbers that are each right and wrong together. */
static int check_numbers(const struct parse *p)
{
	const struct config *c = p->c;
	uint64_t longest_ns = c->window_ns / 100 * (100 + c->jitter_percent);

	if (c->rate_min_hz > c->rate_hz)
		return at_line(p, err_set(-EINVAL, "it is above rate"), line_of_key(p, "rate_min"),
			       "rate_min");
	if (pushes(c) && longest_ns >= c->spool_age_ns)
		return at_line(p,
			       err_set(-EINVAL, "what a window begins with would be older than "
						"spool.max_age at its end, and not be sent"),
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
static int check_outputs(const struct parse *p)
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

/* Things that are each right and wrong together. */
static int check_whole(const struct parse *p)
{
	int r = check_address(p->c);

	if (r < 0)
		return at_line(p, r, line_of_key(p, "http.address"), "http.address");
	if (!p->c->outputs.len)
		return err_set(-EINVAL, "%s: output.engine: missing: say where profiles go",
			       p->name);
	if ((r = check_numbers(p)) < 0 || (r = name_spools(p->c)) < 0 || (r = check_outputs(p)) < 0)
		return r;
	return pushes(p->c) ? check_kubernetes(p) : 0;
}

static int check_headers(const struct parse *p)
{
	static const char key[] = "output.headers";
	int r = 0;

	for (size_t i = 0; i < p->output->headers.len && !r; i++) {
		const char *header = p->output->headers.items[i];

		if (!strncasecmp(header, "Authorization:", 14) ||
		    !strncasecmp(header, "Cookie:", 7))
			r = err_set(-EINVAL, "no secret may stand here: use output.headers_file");
		else
			r = headers_check(header);
	}
	return r < 0 ? at_line(p, r, line_of_key(p, key), key) : 0;
}

/* How the engine is to know us. */
static int check_access(const struct parse *p)
{
	const struct config_output *o = p->output;

	if (!o->cert_file != !o->key_file)
		return err_set(-EINVAL, "%s: output.cert_file and output.key_file go together",
			       p->name);
	if (!o->username != !o->password_file)
		return err_set(-EINVAL, "%s: output.username and output.password_file go together",
			       p->name);
	if (o->username && strchr(o->username, ':'))
		return at_line(p, err_set(-EINVAL, "it may not hold a colon"),
			       line_of_key(p, "output.username"), "output.username");
	if (o->username && o->token_file)
		return at_line(p, err_set(-EINVAL, "with output.username: one or the other"),
			       line_of_key(p, "output.token_file"), "output.token_file");
	return check_headers(p);
}

/* It names a folder and a label's value. */
static int check_name(const struct parse *p)
{
	static const char key[] = "output.name";

	if (strlen(p->output->name) < CONFIG_OUTPUT_NAME_BYTES &&
	    !p->output->name[strspn(p->output->name,
				    "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ"
				    "0123456789-_")])
		return 0;
	return at_line(p,
		       err_set(-EINVAL, "a name is at most %d letters, digits, - and _",
			       CONFIG_OUTPUT_NAME_BYTES - 1),
		       line_of_key(p, key), key);
}

static int check_url(const struct parse *p)
{
	const char *url = p->output->url, *host;
	size_t line = line_of_key(p, "output.url");

	if (!url)
		return at_line(p,
			       err_set(-EINVAL, "%s needs output.url", engines[p->output->engine]),
			       line_of_key(p, "output.engine"), "output.engine");
	if (strncmp(url, "http://", 7) && strncmp(url, "https://", 8))
		return at_line(p, err_set(-EINVAL, "it begins with http:// or https://"), line,
			       "output.url");
	host = strstr(url, "//") + 2;
	if (memchr(host, '@', strcspn(host, "/?#")))
		return at_line(p,
			       err_set(-EINVAL, "no password may stand here, where logs show it: "
						"use output.password_file or token_file"),
			       line, "output.url");
	return 0;
}

static int check_output(const struct parse *p, const yaml_node_t *node)
{
	const struct config_output *o = p->output;
	size_t engine = line_of_key(p, "output.engine");
	int r;

	if (!engine)
		return at_line(p, err_set(-EINVAL, "missing: say where profiles go"), line_of(node),
			       "output.engine");
	if (o->name && (r = check_name(p)) < 0)
		return r;
	if (o->engine == ENGINE_FILES)
		return o->directory ? 0
				    : at_line(p, err_set(-EINVAL, "files need output.directory"),
					      engine, "output.engine");
	r = check_url(p);
	return r < 0 ? r : check_access(p);
}

static int read_output(struct parse *p, const yaml_node_t *node, bool is_listed)
{
	int r;

	if (node->type != YAML_MAPPING_NODE)
		return at_line(p, err_set(-EINVAL, "keys are to stand below this, indented"),
			       line_of(node), OUTPUT);
	if (p->c->outputs.len == CONFIG_OUTPUTS_MAX)
		return at_line(p, err_set(-EINVAL, "more than %d", CONFIG_OUTPUTS_MAX),
			       line_of(node), OUTPUT);
	for (size_t i = 0; i < KEYS; i++)
		if (keys[i].is_output)
			p->line_of[i] = 0;
	if ((r = vec_push(&p->c->outputs, (struct config_output){ 0 })) < 0)
		return r;
	p->output = &p->c->outputs.items[p->c->outputs.len - 1];
	if ((r = set_defaults(p->output, true)) < 0 || (r = read_mapping(p, node, OUTPUT)) < 0 ||
	    (r = check_output(p, node)) < 0)
		return r;
	return is_listed && !p->output->name
		       ? set_text(engines[p->output->engine], &p->output->name)
		       : 0;
}

/* One, or a list of them, which have names. */
static int read_outputs(struct parse *p, const yaml_node_t *node)
{
	int r = 0;

	if (p->c->outputs.len)
		return at_line(p, err_set(-EINVAL, "set twice"), line_of(node), OUTPUT);
	if (node->type != YAML_SEQUENCE_NODE)
		return read_output(p, node, false);
	for (const yaml_node_item_t *i = node->data.sequence.items.start;
	     i < node->data.sequence.items.top && !r; i++)
		r = read_output(p, yaml_document_get_node(p->document, *i), true);
	return r;
}

static int read_document(struct parse *p, yaml_document_t *document)
{
	const yaml_node_t *root = yaml_document_get_root_node(document);
	int r = set_defaults(p->c, false);

	p->document = document;
	if (r < 0)
		return r;
	if (root && root->type != YAML_MAPPING_NODE)
		return err_set(-EINVAL, "%s:%zu: KEY: VALUE lines are expected", p->name,
			       line_of(root));
	r = root ? read_mapping(p, root, "") : 0;
	return r ? r : check_whole(p);
}

int config_parse(const char *name, const char *text, size_t len, struct config *out)
{
	struct config c = { 0 };
	struct parse p = { .name = name, .c = &c };
	yaml_document_t document;
	yaml_parser_t parser;
	int r;

	if (!yaml_parser_initialize(&parser))
		return -ENOMEM;
	yaml_parser_set_input_string(&parser, (const unsigned char *)text, len);
	if (!yaml_parser_load(&parser, &document)) {
		r = err_set(-EBADMSG, "%s:%zu: not YAML: %s", name, parser.problem_mark.line + 1,
			    parser.problem ? parser.problem : "cannot be read");
		yaml_parser_delete(&parser);
		return r;
	}
	r = read_document(&p, &document);
	yaml_document_delete(&document);
	yaml_parser_delete(&parser);
	if (r < 0)
		config_release(&c);
	else
		*out = c;
	return r;
}

int config_read(const char *path, struct config *out)
{
	_cleanup_(freep) char *text = NULL;
	struct config_stamp stamp;
	size_t len;
	int r;

	config_stamp_get(path, &stamp);
	r = file_read(path, CONFIG_BYTES_MAX, &text, &len);
	if (!r)
		r = config_parse(path, text, len, out);
	if (!r)
		out->stamp = stamp;
	return r;
}

static bool are_equal_texts(const char *a, const char *b)
{
	return a && b ? !strcmp(a, b) : a == b;
}

static bool are_equal_lists(const struct config_list *a, const struct config_list *b)
{
	for (size_t i = 0; i < a->len && i < b->len; i++)
		if (strcmp(a->items[i], b->items[i]) != 0)
			return false;
	return a->len == b->len;
}

static bool is_equal_key(const void *a, const void *b, const struct key *k)
{
	switch (k->type) {
	case VALUE_TEXT:
		return are_equal_texts(*(char **)member(a, k), *(char **)member(b, k));
	case VALUE_CHOICE:
		return *(unsigned int *)member(a, k) == *(unsigned int *)member(b, k);
	case VALUE_LIST:
		return are_equal_lists(member(a, k), member(b, k));
	default:
		return *(uint64_t *)member(a, k) == *(uint64_t *)member(b, k);
	}
}

/* `labels` and `relabel`, which are no rows of the table. */
static void print_rest(const struct config *c, FILE *out);

static bool is_equal_rest(const struct config *a, const struct config *b)
{
	const struct config *const both[] = { a, b };
	char *texts[2] = { NULL, NULL };
	bool is_equal;

	for (size_t i = 0; i < 2; i++) {
		size_t len;
		FILE *out = open_memstream(&texts[i], &len);

		if (!out)
			continue;
		print_rest(both[i], out);
		fclose(out);
	}
	is_equal = texts[0] && texts[1] && !strcmp(texts[0], texts[1]);
	free(texts[0]);
	free(texts[1]);
	return is_equal;
}

static unsigned int differing_parts(const void *a, const void *b, bool is_output)
{
	unsigned int parts = 0;

	for (size_t i = 0; i < KEYS; i++)
		if (keys[i].is_output == is_output && !is_equal_key(a, b, &keys[i]))
			parts |= keys[i].parts ?: CONFIG_OUTPUT;
	return parts;
}

unsigned int config_changes(const struct config *a, const struct config *b)
{
	unsigned int parts = is_equal_rest(a, b) ? 0 : CONFIG_OUTPUT;

	parts |= differing_parts(a, b, false);
	if (a->outputs.len != b->outputs.len)
		return parts | CONFIG_OUTPUT;
	for (size_t i = 0; i < a->outputs.len; i++)
		parts |= differing_parts(&a->outputs.items[i], &b->outputs.items[i], true);
	return parts;
}

struct config_output_label config_output_label(const struct config_output *o)
{
	struct config_output_label label;

	snprintf(label.s, sizeof(label.s), "%s%s", o->name ? " of " : "", o->name ?: "");
	return label;
}

static int check_output_files(const struct config_output *o)
{
	const struct {
		const char *key, *path;
	} files[] = {
		{ "output.token_file", o->token_file },
		{ "output.password_file", o->password_file },
		{ "output.headers_file", o->headers_file },
		{ "output.ca_file", o->ca_file },
		{ "output.cert_file", o->cert_file },
		{ "output.key_file", o->key_file },
	};

	for (size_t i = 0; i < sizeof(files) / sizeof(files[0]); i++)
		if (files[i].path && access(files[i].path, R_OK))
			return err_set(-errno, "%s%s: %s: %s", files[i].key,
				       config_output_label(o).s, files[i].path, strerror(errno));
	return 0;
}

int config_check_files(const struct config *c)
{
	int r = 0;

	for (size_t i = 0; i < c->outputs.len && !r; i++)
		r = check_output_files(&c->outputs.items[i]);
	return r;
}

static void list_kubernetes_risks(const struct config *c, struct strbuf *out)
{
	if (c->kubernetes != KUBERNETES_KUBELET && c->kubernetes != KUBERNETES_API)
		return;
	if (!strncmp(c->kubernetes_url ?: "", "http://", 7))
		strbuf_puts(out, "kubernetes.url is http: the token is not sent\n");
	else if (c->kubernetes_verify == VERIFY_NO)
		strbuf_puts(out, "kubernetes.verify is no: whoever answers there gets the token\n");
}

static void list_output_risks(const struct config *c, const struct config_output *o,
			      struct strbuf *out)
{
	bool has_secret = o->token_file || o->password_file || o->headers_file;

	if (has_secret && !strncmp(o->url ?: "", "http://", 7))
		strbuf_appendf(out,
			       "output.url%s is http: the token goes over the network as it is\n",
			       config_output_label(o).s);
	if (o->engine == ENGINE_FILES &&
	    (c->include.len || c->exclude.len || c->relabel.list.len || c->kubernetes))
		strbuf_appendf(out,
			       "output.engine%s is files: they hold everything, whatever "
			       "services.include, services.exclude, relabel and kubernetes say\n",
			       config_output_label(o).s);
}

int config_list_risks(const struct config *c, struct strbuf *out)
{
	for (size_t i = 0; i < c->outputs.len; i++)
		list_output_risks(c, &c->outputs.items[i], out);
	list_kubernetes_risks(c, out);
	return strbuf_error(out);
}

void config_stamp_get(const char *path, struct config_stamp *out)
{
	struct stat st;

	*out = (struct config_stamp){ 0 };
	if (stat(path, &st) < 0 || !S_ISREG(st.st_mode))
		return;
	*out = (struct config_stamp){ .device = st.st_dev,
				      .inode = st.st_ino,
				      .size = (uint64_t)st.st_size,
				      .changed = st.st_ctim };
}

bool config_stamp_equal(const struct config_stamp *a, const struct config_stamp *b)
{
	return a->device == b->device && a->inode == b->inode && a->size == b->size &&
	       a->changed.tv_sec == b->changed.tv_sec && a->changed.tv_nsec == b->changed.tv_nsec;
}

/* In quotes, unless YAML takes it for nothing but text without them. */
static void print_text(const char *text, FILE *out)
{
	static const char plain[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ"
				    "0123456789_./";

	if (*text && !text[strspn(text, plain)]) {
		fputs(text, out);
		return;
	}
	fputc('\'', out);
	for (; *text; text++)
		fputs(*text == '\'' ? "''" : (char[]){ *text, '\0' }, out);
	fputc('\'', out);
}

static void print_list(const struct config_list *l, FILE *out)
{
	for (size_t i = 0; i < l->len; i++) {
		fputs(i ? ", " : "[", out);
		print_text(l->items[i], out);
	}
	fputc(']', out);
}

static void print_rule(const struct relabel_rule *rule, FILE *out)
{
	const struct {
		const char *name, *text;
	} texts[] = { { "separator", rule->separator },
		      { "regex", rule->regex },
		      { "target_label", rule->target },
		      { "replacement", rule->replacement } };

	fprintf(out, "  - {action: %s", relabel_actions[rule->action]);
	if (rule->sources.len) {
		fputs(", source_labels: ", out);
		print_list(&rule->sources, out);
	}
	for (size_t i = 0; i < sizeof(texts) / sizeof(texts[0]); i++) {
		if (!texts[i].text)
			continue;
		fprintf(out, ", %s: ", texts[i].name);
		print_text(texts[i].text, out);
	}
	if (rule->modulus)
		fprintf(out, ", modulus: %" PRIu64, rule->modulus);
	fputs("}\n", out);
}

static void print_value(const void *of, const struct key *k, FILE *out)
{
	const char *text = k->type == VALUE_TEXT ? *(char **)member(of, k) : NULL;
	uint64_t number = 0;

	if (k->type == VALUE_CHOICE)
		text = k->choices[*(unsigned int *)member(of, k)];
	else if (k->type != VALUE_TEXT && k->type != VALUE_LIST)
		number = *(uint64_t *)member(of, k);
	if (k->type == VALUE_LIST)
		print_list(member(of, k), out);
	else if (text)
		print_text(text, out);
	else if (k->type == VALUE_HZ)
		fputs(units_hz(number).s, out);
	else if (k->type == VALUE_TIME)
		fputs(units_ns_exact(number).s, out);
	else if (k->type == VALUE_SHARE)
		fputs(units_share(number).s, out);
	else
		fprintf(out, "%" PRIu64, number);
}

static void print_rest(const struct config *c, FILE *out)
{
	if (c->labels.len)
		fputs("labels:\n", out);
	for (size_t i = 0; i < c->labels.len; i++) {
		fprintf(out, "  %s: ", c->labels.items[i].name);
		print_text(c->labels.items[i].value, out);
		fputc('\n', out);
	}
	if (c->relabel.list.len)
		fputs("relabel:\n", out);
	for (size_t i = 0; i < c->relabel.list.len; i++)
		print_rule(&c->relabel.list.items[i], out);
}

static bool is_absent(const void *of, const struct key *k)
{
	return (k->type == VALUE_TEXT && !*(char **)member(of, k)) ||
	       (k->type == VALUE_LIST && !((struct config_list *)member(of, k))->len);
}

/* Those of one are a mapping, those that have names a list. */
static void print_output(const struct config_output *o, FILE *out)
{
	const char *indent = o->name ? "  - " : "  ";

	for (size_t i = 0; i < KEYS; i++) {
		if (!keys[i].is_output || is_absent(o, &keys[i]))
			continue;
		fprintf(out, "%s%s: ", indent, strchr(keys[i].name, '.') + 1);
		print_value(o, &keys[i], out);
		fputc('\n', out);
		indent = o->name ? "    " : "  ";
	}
}

void config_print(const struct config *c, FILE *out)
{
	const char *section = "";

	for (size_t i = 0; i < KEYS; i++) {
		const struct key *k = &keys[i];
		const char *dot = strchr(k->name, '.');
		size_t len = dot ? (size_t)(dot - k->name) : 0;
		bool begins = len && strncmp(section, k->name, len + 1);

		if (!k->is_output && is_absent(c, k))
			continue;
		if (begins)
			fprintf(out, "%.*s:\n", (int)len, k->name);
		section = k->name;
		for (size_t o = 0; k->is_output && begins && o < c->outputs.len; o++)
			print_output(&c->outputs.items[o], out);
		if (k->is_output)
			continue;
		fprintf(out, "%s%s: ", dot ? "  " : "", dot ? dot + 1 : k->name);
		print_value(c, k, out);
		fputc('\n', out);
	}
	print_rest(c, out);
}
