/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#include "agent/config.h"

#include <ctype.h>
#include <errno.h>
#include <inttypes.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>
#include <yaml.h>

#include "agent/config_check.h"
#include "base/cleanup.h"
#include "base/err.h"
#include "base/file.h"
#include "base/strbuf.h"
#include "base/units.h"

#define KEY_BYTES_MAX 64

void config_release(struct config *c)
{
	config_release_values(c, false);
	for (size_t i = 0; i < c->outputs.len; i++)
		config_release_values(&c->outputs.items[i], true);
	vec_release(&c->outputs);
	for (size_t i = 0; i < c->labels.len; i++) {
		free(c->labels.items[i].name);
		free(c->labels.items[i].value);
	}
	vec_release(&c->labels);
	relabel_rules_release(&c->relabel);
	*c = (struct config){ 0 };
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
			return err_set(-EINVAL, "reserved: the agent sets this label");
	if (!isalpha((unsigned char)*name) && *name != '_')
		return err_set(-EINVAL, "a label's name is letters, digits and _");
	for (const char *c = name; *c; c++)
		if (!isalnum((unsigned char)*c) && *c != '_')
			return err_set(-EINVAL, "a label's name is letters, digits and _");
	if (!strncmp(name, "__", 2))
		return err_set(-EINVAL, "labels that begin with __ are the engine's own");
	return 0;
}

static int add_label(struct config_parse *p, const char *name, const char *value)
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
	if ((r = config_set_text(name, &l.name)) < 0 ||
	    (r = config_set_text(value, &l.value)) < 0 || (r = vec_push(&p->c->labels, l)) < 0) {
		free(l.name);
		free(l.value);
	}
	return r;
}

static int set_list(struct config_parse *p, const yaml_node_t *node, struct config_list *out)
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
		r = config_set_text(text, &copy);
		if (!r && (r = vec_push(out, copy)) < 0)
			free(copy);
	}
	return r;
}

/* Values of a rule: what is not a list may be "". */
static int set_rule_key(struct config_parse *p, struct relabel_rule *rule, const char *name,
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
		return config_set_choice(&action, text, &rule->action);
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
	return err_set(-EINVAL, "unknown key; valid keys: action, source_labels, separator, regex, "
				"target_label, replacement, modulus");
}

static int read_rule(struct config_parse *p, const yaml_node_t *node, struct relabel_rule *rule)
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

static int read_rules(struct config_parse *p, const yaml_node_t *node)
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
			r = err_wrap(r, "rule in line %zu", config_line_of(item));
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

	for (size_t i = 0; i < CONFIG_KEYS; i++)
		if (!strncmp(config_keys[i].name, name, len) && config_keys[i].name[len] == '.')
			return true;
	return !strcmp(name, "labels");
}

static int unknown_key(const char *prefix)
{
	_cleanup_(strbuf_releasep) struct strbuf names = STRBUF_INIT;
	size_t len = strlen(prefix);
	const char *last = NULL;

	for (size_t i = 0; i < CONFIG_KEYS; i++) {
		const char *rest = config_keys[i].name + len;
		size_t rest_len;

		if (strncmp(config_keys[i].name, prefix, len))
			continue;
		rest_len = strcspn(rest, ".");
		if (last && !strncmp(last, rest, rest_len + 1))
			continue;
		strbuf_appendf(&names, "%s%.*s", last ? ", " : "", (int)rest_len, rest);
		last = rest;
	}
	return err_set(-EINVAL, "unknown key; valid keys: %s%s", strbuf_str(&names),
		       len ? "" : ", labels, relabel");
}

static int read_mapping(struct config_parse *p, const yaml_node_t *node, const char *prefix);
static int read_outputs(struct config_parse *p, const yaml_node_t *node);

static int read_key(struct config_parse *p, size_t i, const yaml_node_t *value)
{
	const char *text = scalar_text(value);
	void *of = config_keys[i].is_output ? (void *)p->output : p->c;

	if (p->line_of[i])
		return err_set(-EINVAL, "set in line %zu already", p->line_of[i]);
	p->line_of[i] = config_line_of(value);
	if (config_keys[i].type == VALUE_LIST)
		return set_list(p, value, config_member(of, &config_keys[i]));
	return text ? config_set(of, &config_keys[i], text)
		    : err_set(-EINVAL, "not a single value");
}

static int read_value(struct config_parse *p, const char *prefix, const char *full,
		      const yaml_node_t *value)
{
	const char *text = scalar_text(value);

	if (!strcmp(prefix, "labels."))
		return text ? add_label(p, full + strlen(prefix), text)
			    : err_set(-EINVAL, "not a text");
	if (!strcmp(full, "relabel"))
		return read_rules(p, value);
	if (!strcmp(full, CONFIG_OUTPUT_SECTION))
		return read_outputs(p, value);
	if (strchr(full + strlen(prefix), '.')) /* "output.url" outside of output */
		return unknown_key(prefix);
	for (size_t i = 0; i < CONFIG_KEYS; i++)
		if (!strcmp(config_keys[i].name, full))
			return read_key(p, i, value);
	if (!is_section(full))
		return unknown_key(prefix);
	if (value->type != YAML_MAPPING_NODE)
		return err_set(-EINVAL, "expected indented keys below this line");
	return read_mapping(p, value, full);
}

/* What is wrong in it has said where already. */
static bool is_nested(const char *full, const yaml_node_t *value)
{
	return !strcmp(full, CONFIG_OUTPUT_SECTION) ||
	       (is_section(full) && value->type == YAML_MAPPING_NODE);
}

static int read_mapping(struct config_parse *p, const yaml_node_t *node, const char *section)
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
			return config_at_line(p, err_set(-EINVAL, "not a name"),
					      config_line_of(key), "key");
		snprintf(prefix, sizeof(prefix), "%s%s", section, *section ? "." : "");
		snprintf(full, sizeof(full), "%s%s", prefix, name);
		r = read_value(p, prefix, full, value);
		if (r < 0 && !is_nested(full, value))
			r = config_at_line(p, r, config_line_of(key), full);
	}
	return r;
}

static int read_output(struct config_parse *p, const yaml_node_t *node, bool is_listed)
{
	int r;

	if (node->type != YAML_MAPPING_NODE)
		return config_at_line(p, err_set(-EINVAL, "expected indented keys below this line"),
				      config_line_of(node), CONFIG_OUTPUT_SECTION);
	if (p->c->outputs.len == CONFIG_OUTPUTS_MAX)
		return config_at_line(p, err_set(-EINVAL, "more than %d", CONFIG_OUTPUTS_MAX),
				      config_line_of(node), CONFIG_OUTPUT_SECTION);
	for (size_t i = 0; i < CONFIG_KEYS; i++)
		if (config_keys[i].is_output)
			p->line_of[i] = 0;
	if ((r = vec_push(&p->c->outputs, (struct config_output){ 0 })) < 0)
		return r;
	p->output = &p->c->outputs.items[p->c->outputs.len - 1];
	if ((r = config_set_defaults(p->output, true)) < 0 ||
	    (r = read_mapping(p, node, CONFIG_OUTPUT_SECTION)) < 0 ||
	    (r = config_check_output(p, node)) < 0)
		return r;
	return is_listed && !p->output->name
		       ? config_set_text(engine_name(p->output->engine), &p->output->name)
		       : 0;
}

/* One, or a list of them, which have names. */
static int read_outputs(struct config_parse *p, const yaml_node_t *node)
{
	int r = 0;

	if (p->c->outputs.len)
		return config_at_line(p, err_set(-EINVAL, "set twice"), config_line_of(node),
				      CONFIG_OUTPUT_SECTION);
	if (node->type != YAML_SEQUENCE_NODE)
		return read_output(p, node, false);
	for (const yaml_node_item_t *i = node->data.sequence.items.start;
	     i < node->data.sequence.items.top && !r; i++)
		r = read_output(p, yaml_document_get_node(p->document, *i), true);
	return r;
}

static int read_document(struct config_parse *p, yaml_document_t *document)
{
	const yaml_node_t *root = yaml_document_get_root_node(document);
	int r = config_set_defaults(p->c, false);

	p->document = document;
	if (r < 0)
		return r;
	if (root && root->type != YAML_MAPPING_NODE)
		return err_set(-EINVAL, "%s:%zu: KEY: VALUE lines are expected", p->name,
			       config_line_of(root));
	r = root ? read_mapping(p, root, "") : 0;
	return r ? r : config_check_whole(p);
}

int config_parse(const char *name, const char *text, size_t len, struct config *out)
{
	struct config c = { 0 };
	struct config_parse p = { .name = name, .c = &c };
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
	else if (c->kubernetes_verify == CHOICE_NO)
		strbuf_puts(out,
			    "kubernetes.verify is no: the token is sent to an unverified server\n");
}

static void list_output_risks(const struct config *c, const struct config_output *o,
			      struct strbuf *out)
{
	bool has_secret = o->token_file || o->password_file || o->headers_file;

	if (has_secret && !strncmp(o->url ?: "", "http://", 7))
		strbuf_appendf(out, "output.url%s is http: credentials are sent unencrypted\n",
			       config_output_label(o).s);
	if (o->engine == ENGINE_FILES &&
	    (c->include.len || c->exclude.len || c->relabel.list.len || c->kubernetes))
		strbuf_appendf(out,
			       "output.engine%s is files: services.include, services.exclude, "
			       "relabel and kubernetes do not apply to files\n",
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
