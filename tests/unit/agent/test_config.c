/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "agent/config.h"
#include "base/cleanup.h"
#include "base/err.h"

#define OUTPUT_WITH(more) "output: {engine: otlp, url: 'http://h', " more "}\n"
#define OUTPUT "output: {engine: otlp, url: http://h}\n"
#define A "{engine: otlp, url: http://h}"
#define B "{name: b, engine: pyroscope, url: http://p, connections: 3}"
#define OUTPUTS "output: [" A ", " B ", {engine: files, directory: /d}]\n"

static void test_config_parse_fills_every_key(void **state)
{
	static const char text[] =
		"rate: 1k\nrate_min: 5\ncpu_budget: 0.5%\nwindow: 30s\njitter_percent: 0\ncgroup: "
		"a.slice\npid_namespace: /proc/7/ns/pid\nold_kernel: yes\nbtf: /btf\n"
		"output:\n  engine: pyroscope\n  url: https://h:4040/\n"
		"  tenant: t\n  token_file: /t\n  ca_file: /ca\n  cert_file: /c\n"
		"  key_file: /k\n  proxy: http://p\n  timeout: 5s\n"
		"  unanswered: drop\n  directory: /d\n  keep: 7\n  spool: /own\n"
		"spool:\n  directory: /s\n  max_size: 2MiB\n  max_age: 1m\n"
		"services:\n  env: NAME\n  label: app\n  max: 3\n  include: [a, 'b*']\n"
		"  exclude:\n  - c\n"
		"kubernetes:\n  source: kubelet\n  url: https://n:10250\n  node: n\n"
		"  token_file: /kt\n  ca_file: /kca\n  verify: no\n  pod_logs: /logs\n"
		"  downward: /info\n  labels: [app, 'example.org/team']\n"
		"http:\n  address: '::1'\n  port: 0\n"
		"log:\n  format: json\n"
		"labels:\n  env: prod\n  zone: 'a b'\n"
		"relabel:\n  - action: drop\n    source_labels: [env, host]\n"
		"    separator: '@'\n    regex: dev.*\n"
		"  - {target_label: tier, replacement: ''}\n";
	_cleanup_(config_release) struct config c;

	(void)state;
	assert_int_equal(config_parse("x", text, strlen(text), &c), 0);
	assert_int_equal(c.rate_hz, 1000);
	assert_int_equal(c.rate_min_hz, 5);
	assert_int_equal(c.cpu_budget_ppm, 5000);
	assert_int_equal(c.window_ns, 30000000000);
	assert_int_equal(c.jitter_percent, 0);
	assert_string_equal(c.cgroup, "a.slice");
	assert_string_equal(c.pid_namespace, "/proc/7/ns/pid");
	assert_int_equal(c.old_kernel, CHOICE_YES);
	assert_string_equal(c.btf, "/btf");
	assert_int_equal(c.outputs.items[0].engine, ENGINE_PYROSCOPE);
	assert_string_equal(c.outputs.items[0].url, "https://h:4040/");
	assert_string_equal(c.outputs.items[0].tenant, "t");
	assert_string_equal(c.outputs.items[0].token_file, "/t");
	assert_string_equal(c.outputs.items[0].ca_file, "/ca");
	assert_string_equal(c.outputs.items[0].cert_file, "/c");
	assert_string_equal(c.outputs.items[0].key_file, "/k");
	assert_string_equal(c.outputs.items[0].proxy, "http://p");
	assert_int_equal(c.outputs.items[0].timeout_ns, 5000000000);
	assert_int_equal(c.outputs.items[0].unanswered, UNANSWERED_DROP);
	assert_string_equal(c.outputs.items[0].directory, "/d");
	assert_int_equal(c.outputs.items[0].keep, 7);
	assert_string_equal(c.outputs.items[0].spool, "/own");
	assert_string_equal(c.spool_directory, "/s");
	assert_int_equal(c.spool_bytes, 2 << 20);
	assert_int_equal(c.spool_age_ns, 60000000000);
	assert_string_equal(c.service_env, "NAME");
	assert_string_equal(c.service_label, "app");
	assert_int_equal(c.services_max, 3);
	assert_int_equal(c.kubernetes, KUBERNETES_KUBELET);
	assert_string_equal(c.kubernetes_url, "https://n:10250");
	assert_string_equal(c.node, "n");
	assert_string_equal(c.kubernetes_token_file, "/kt");
	assert_string_equal(c.kubernetes_ca_file, "/kca");
	assert_int_equal(c.kubernetes_verify, CHOICE_NO);
	assert_string_equal(c.pod_logs, "/logs");
	assert_string_equal(c.downward, "/info");
	assert_int_equal(c.pod_labels.len, 2);
	assert_string_equal(c.pod_labels.items[1], "example.org/team");
	assert_int_equal(c.include.len, 2);
	assert_string_equal(c.include.items[1], "b*");
	assert_int_equal(c.exclude.len, 1);
	assert_string_equal(c.exclude.items[0], "c");
	assert_string_equal(c.listen_address, "::1");
	assert_int_equal(c.listen_port, 0);
	assert_int_equal(c.log_format, LOG_JSON);
	assert_int_equal(c.labels.len, 2);
	assert_string_equal(c.labels.items[1].name, "zone");
	assert_string_equal(c.labels.items[1].value, "a b");
	assert_int_equal(c.relabel.list.len, 2);
	assert_int_equal(c.relabel.list.items[0].action, RELABEL_DROP);
	assert_string_equal(c.relabel.list.items[0].sources.items[1], "host");
	assert_string_equal(c.relabel.list.items[0].separator, "@");
	assert_string_equal(c.relabel.list.items[0].regex, "dev.*");
	assert_int_equal(c.relabel.list.items[1].action, RELABEL_REPLACE);
	assert_string_equal(c.relabel.list.items[1].separator, ";");
	assert_string_equal(c.relabel.list.items[1].regex, "(.*)");
	assert_string_equal(c.relabel.list.items[1].target, "tier");
	assert_string_equal(c.relabel.list.items[1].replacement, "");
}

static void test_config_parse_defaults(void **state)
{
	_cleanup_(config_release) struct config c;

	(void)state;
	assert_int_equal(config_parse("x", OUTPUT, strlen(OUTPUT), &c), 0);
	assert_int_equal(c.rate_hz, 19);
	assert_int_equal(c.cpu_budget_ppm, 10000);
	assert_int_equal(c.window_ns, 15000000000);
	assert_string_equal(c.listen_address, "127.0.0.1");
	assert_null(c.cgroup);
}

/* What is printed reads as the same. */
static void print_and_read_back(const char *text)
{
	_cleanup_(config_release) struct config c, again;
	char *texts[2];

	assert_int_equal(config_parse("x", text, strlen(text), &c), 0);
	for (int i = 0; i < 2; i++) {
		size_t len;
		FILE *out = open_memstream(&texts[i], &len);

		assert_non_null(out);
		config_print(i ? &again : &c, out);
		assert_int_equal(fclose(out), 0);
		if (!i)
			assert_int_equal(config_parse("x", texts[0], len, &again), 0);
	}
	assert_string_equal(texts[0], texts[1]);
	assert_int_equal(config_changes(&c, &again), 0);
	free(texts[0]);
	free(texts[1]);
}

static void test_config_print_reads_back(void **state)
{
	(void)state;
	print_and_read_back(OUTPUT
			    "services: {exclude: [\"it's\"]}\nlabels: {a: b, c: \"x: 'y' # z\"}\n"
			    "relabel: [{source_labels: [a], target_label: d, separator: '',\n"
			    "           regex: '(it''s|\\d+)', replacement: '${1}, $$'},\n"
			    "          {action: labeldrop, regex: b}]\n");
	print_and_read_back(OUTPUTS);
	print_and_read_back(OUTPUT_WITH("name: a"));
}

/* Each with its own keys, name and spool. */
static void test_config_parse_outputs(void **state)
{
	static const struct {
		const char *name, *spool;
		unsigned int engine;
		uint64_t connections;
	} want[] = { { "otlp", "/s/otlp", ENGINE_OTLP, 24 },
		     { "b", "/s/b", ENGINE_PYROSCOPE, 3 },
		     { "files", "", ENGINE_FILES, 24 } };
	static const char text[] = OUTPUTS "spool: {directory: /s}\n";
	_cleanup_(config_release) struct config c;

	(void)state;
	assert_int_equal(config_parse("x", text, strlen(text), &c), 0);
	assert_int_equal(c.outputs.len, 3);
	for (size_t i = 0; i < c.outputs.len; i++) {
		const struct config_output *o = &c.outputs.items[i];

		assert_string_equal(o->name, want[i].name);
		assert_string_equal(o->spool ?: "", want[i].spool);
		assert_int_equal(o->engine, want[i].engine);
		assert_int_equal(o->connections, want[i].connections);
	}
	assert_string_equal(c.outputs.items[1].url, "http://p");
	assert_string_equal(config_output_label(&c.outputs.items[1]).s, " of b");
}

static void test_config_parse_one_output_has_no_name(void **state)
{
	_cleanup_(config_release) struct config c;

	(void)state;
	assert_int_equal(config_parse("x", OUTPUT, strlen(OUTPUT), &c), 0);
	assert_int_equal(c.outputs.len, 1);
	assert_null(c.outputs.items[0].name);
	assert_string_equal(c.outputs.items[0].spool, "/var/lib/pyebpf/spool");
	assert_string_equal(config_output_label(&c.outputs.items[0]).s, "");
}

static void test_config_parse_names_line_and_key(void **state)
{
	static const struct {
		const char *name, *text, *want;
		int error;
	} cases[] = {
		{ "unknown", OUTPUT "rat: 1\n",
		  "x:2: rat: unknown key; valid keys: mode, events, event_period, "
		  "sample_labels, rate, rate_min, "
		  "cpu_budget, window, "
		  "jitter_percent, cgroup, pid_namespace, old_kernel, btf, output, "
		  "spool, services, kubernetes, http, log, labels, relabel",
		  -EINVAL },
		{ "unknown below", OUTPUT "http: {prt: 1}\n",
		  "x:2: http.prt: unknown key; valid keys: address, port", -EINVAL },
		{ "a way to a key", "output.url: x\n",
		  "x:1: output.url: unknown key; valid keys: mode, events, event_period, "
		  "sample_labels, rate, "
		  "rate_min, cpu_budget, "
		  "window, "
		  "jitter_percent, cgroup, pid_namespace, old_kernel, btf, output, "
		  "spool, services, kubernetes, http, log, labels, relabel",
		  -EINVAL },
		{ "twice", "rate: 1\nrate: 2\n" OUTPUT, "x:2: rate: set in line 1 already",
		  -EINVAL },
		{ "no mode", "mode: cpu,idle\n" OUTPUT,
		  "x:1: mode: 'idle' is not one of: wall, cpu, off-cpu, gil, exception, memory",
		  -EINVAL },
		{ "no word", "mode: cpu,\n" OUTPUT,
		  "x:1: mode: '' is not one of: wall, cpu, off-cpu, gil, exception, memory",
		  -EINVAL },
		{ "no event", "mode: cpu\nevents: [page-fault]\n" OUTPUT,
		  "x:2: events: no event page-fault: pyebpf doctor --events lists them", -EINVAL },
		{ "an event twice", "events: [faults, page-faults]\n" OUTPUT,
		  "x:1: events: page-faults is given twice", -EINVAL },
		{ "a period of nothing", "event_period: 10\n" OUTPUT,
		  "x:1: event_period: requires events: it sets how many events make one sample",
		  -EINVAL },
		{ "no label of samples", OUTPUT "sample_labels: [otel, route]\n",
		  "x:2: sample_labels: 'route' is no label such as route=contextvar:route, where "
		  "the program has ContextVar(\"route\"), and not otel",
		  -EINVAL },
		{ "a label of samples twice", OUTPUT "sample_labels: [otel, otel]\n",
		  "x:2: sample_labels: trace_id is given twice", -EINVAL },
		{ "ticks and some of them", "mode: wall,gil\n" OUTPUT,
		  "x:1: mode: gil and exception keep only part of the CPU time: do not combine "
		  "them "
		  "with cpu or wall",
		  -EINVAL },
		{ "too high", "rate: 11k\n" OUTPUT, "x:1: rate: 11k is out of range", -EINVAL },
		{ "too low", "window: 1ms\n" OUTPUT, "x:1: window: 1ms is out of range", -EINVAL },
		{ "lowest above the rate", "rate_min: 20\n" OUTPUT,
		  "x:1: rate_min: must not be greater than rate", -EINVAL },
		{ "a window beyond the spool's age", "window: 50m\n" OUTPUT,
		  "x:1: window: must be shorter than spool.max_age, or its first samples expire "
		  "before they are sent",
		  -EINVAL },
		{ "an age below the window's", OUTPUT "spool: {max_age: 16s}\n",
		  "x:2: window: must be shorter than spool.max_age, or its first samples expire "
		  "before they are sent",
		  -EINVAL },
		{ "a name without a password", OUTPUT_WITH("username: u"),
		  "x: output.username and output.password_file go together", -EINVAL },
		{ "a name and a token",
		  OUTPUT_WITH("username: u, password_file: /p, token_file: /t"),
		  "x:1: output.token_file: cannot be combined with output.username", -EINVAL },
		{ "a name with a colon", OUTPUT_WITH("username: 'u:v', password_file: /p"),
		  "x:1: output.username: must not contain a colon", -EINVAL },
		{ "no header", OUTPUT_WITH("headers: ['a b: c']"),
		  "x:1: output.headers: not a header, such as 'X-Team: web'", -EINVAL },
		{ "a header of ours", OUTPUT_WITH("headers: ['content-type: text/plain']"),
		  "x:1: output.headers: the agent sets Content-Type itself", -EINVAL },
		{ "a secret header", OUTPUT_WITH("headers: ['X-A: b', 'authorization: Bearer x']"),
		  "x:1: output.headers: must not contain secrets: use output.headers_file",
		  -EINVAL },
		{ "a list", "rate: [1]\n" OUTPUT, "x:1: rate: not a single value", -EINVAL },
		{ "a value for a list", "services: {include: a}\n" OUTPUT,
		  "x:1: services.include: not a list, such as [a, 'b*']", -EINVAL },
		{ "a list of lists", "services: {include: [[a]]}\n" OUTPUT,
		  "x:1: services.include: a list of single values is expected", -EINVAL },
		{ "a value for a section", "http: 1\n" OUTPUT,
		  "x:1: http: expected indented keys below this line", -EINVAL },
		{ "a list for all", "- a\n", "x:1: KEY: VALUE lines are expected", -EINVAL },
		{ "empty", "",
		  "x: output.engine: missing: set it to pyroscope, otlp, parca or files", -EINVAL },
		{ "empty text", "cgroup: ''\n" OUTPUT, "x:1: cgroup: empty", -EINVAL },
		{ "control character", "cgroup: \"a\\nb\"\n" OUTPUT,
		  "x:1: cgroup: holds a control character", -EINVAL },
		{ "NUL", "cgroup: \"a\\0b\"\n" OUTPUT, "x:1: cgroup: not a single value", -EINVAL },
		{ "our label", OUTPUT "labels: {host: a}\n",
		  "x:2: labels.host: reserved: the agent sets this label", -EINVAL },
		{ "label's name", OUTPUT "labels: {a.b: c}\n",
		  "x:2: labels.a.b: a label's name is letters, digits and _", -EINVAL },
		{ "engine's label", OUTPUT "labels: {__x: c}\n",
		  "x:2: labels.__x: labels that begin with __ are the engine's own", -EINVAL },
		{ "pods' names", OUTPUT "labels: {pod: a}\n",
		  "x:2: labels.pod: reserved: the agent sets this label", -EINVAL },
		{ "source of pods", OUTPUT "kubernetes: {source: docker}\n",
		  "x:2: kubernetes.source: 'docker' is not one of: none, kubelet, api, files",
		  -EINVAL },
		{ "URL of the kubelet", OUTPUT "kubernetes:\n  url: node:10250\n",
		  "x:3: kubernetes.url: must begin with http:// or https://", -EINVAL },
		{ "a pod's label that meets another", OUTPUT "kubernetes: {labels: [a.b, a-b]}\n",
		  "x:2: kubernetes.labels: label_a_b twice", -EINVAL },
		{ "a pod's label that meets one of ours",
		  OUTPUT "kubernetes: {labels: [a]}\nlabels: {label_a: x}\n",
		  "x:2: kubernetes.labels: label_a is in `labels` too", -EINVAL },
		{ "too many labels with those of pods",
		  OUTPUT
		  "labels: {a: 1, b: 1}\nkubernetes: {labels: [a, b, c, d, e, f, g, h, i, j, k, "
		  "l, m, n, o, p, q, r, s]}\n",
		  "x:3: kubernetes.labels: more than 18 labels, with those of `labels`", -EINVAL },
		{ "label twice", OUTPUT "labels: {a: b, a: c}\n", "x:2: labels.a: set twice",
		  -EINVAL },
		{ "no scheme", "output: {engine: otlp, url: h}\n",
		  "x:1: output.url: must begin with http:// or https://", -EINVAL },
		{ "output twice", OUTPUT OUTPUT, "x:2: output: set twice", -EINVAL },
		{ "an output that is none", "output: 3\n",
		  "x:1: output: expected indented keys below this line", -EINVAL },
		{ "one of several that is none", "output:\n- " A "\n- a\n",
		  "x:3: output: expected indented keys below this line", -EINVAL },
		{ "no outputs", "output: []\n",
		  "x: output.engine: missing: set it to pyroscope, otlp, parca or files", -EINVAL },
		{ "one of several without an engine", "output:\n- " A "\n- {name: a}\n",
		  "x:3: output.engine: missing: set it to pyroscope, otlp, parca or files",
		  -EINVAL },
		{ "a key of one of several", "output:\n- " A "\n- {engine: otlp, url: h}\n",
		  "x:3: output.url: must begin with http:// or https://", -EINVAL },
		{ "outputs without names", "output: [" A ", " A "]\n",
		  "x: output: two are called otlp: give each a name of its own", -EINVAL },
		{ "outputs of one name", "output: [" B ", " B "]\n",
		  "x: output: two are called b: give each a name of its own", -EINVAL },
		{ "outputs of one spool",
		  "output: [" A ", {name: a, engine: otlp, url: http://h, spool: /s/otlp/}]\n"
		  "spool: {directory: /s}\n",
		  "x: output: otlp and a have the same spool, /s/otlp/", -EINVAL },
		{ "outputs of one folder",
		  "output: [{engine: files, directory: /d}, "
		  "{name: a, engine: files, directory: /d}]\n",
		  "x: output: files and a have the same directory, /d", -EINVAL },
		{ "an output's name", OUTPUT_WITH("name: 'a/b'"),
		  "x:1: output.name: a name is at most 31 letters, digits, - and _", -EINVAL },
		{ "too many outputs",
		  "output: [" A "," A "," A "," A "," A "," A "," A "," A "," A "]\n",
		  "x:1: output: more than 8", -EINVAL },
		{ "files", "output: {engine: files}\n",
		  "x:1: output.engine: files need output.directory", -EINVAL },
		{ "half a certificate", "output: {engine: otlp, url: http://h, key_file: k}\n",
		  "x: output.cert_file and output.key_file go together", -EINVAL },
		{ "a name for an address", OUTPUT "http: {address: localhost}\n",
		  "x:2: http.address: localhost is no IPv4 or IPv6 address", -EINVAL },
		{ "rules that are none", OUTPUT "relabel: a\n", "x:2: relabel: not a list of rules",
		  -EINVAL },
		{ "a rule that is none", OUTPUT "relabel:\n- a\n",
		  "x:2: relabel: rule in line 3: KEY: VALUE lines are expected", -EINVAL },
		{ "rules twice",
		  OUTPUT "relabel: [{action: drop, source_labels: [a]}]\n"
			 "relabel: []\n",
		  "x:3: relabel: set twice", -EINVAL },
		{ "a rule's key", OUTPUT "relabel: [{modulos: 3}]\n",
		  "x:2: relabel: rule in line 2: modulos: unknown key; valid keys: action, "
		  "source_labels, separator, regex, target_label, replacement, modulus",
		  -EINVAL },
		{ "a rule's action", OUTPUT "relabel: [{action: hash}]\n",
		  "x:2: relabel: rule in line 2: action: 'hash' is not one of: replace, keep, "
		  "drop, labelmap, labeldrop, labelkeep, lowercase, uppercase, hashmod",
		  -EINVAL },
		{ "a rule's expression",
		  OUTPUT "relabel: [{action: keep, source_labels: [a], regex: 'a('}]\n",
		  "x:2: relabel: rule in line 2: regex: a(: missing closing parenthesis", -EINVAL },
		{ "an expression too large",
		  OUTPUT "relabel: [{action: labeldrop, regex: '(((a{999}){999}){999})'}]\n",
		  "x:2: relabel: rule in line 2: regex: (((a{999}){999}){999}): regular expression "
		  "is too large",
		  -EINVAL },
		{ "a rule's replacement",
		  OUTPUT "relabel: [{target_label: a, replacement: '${1'}]\n",
		  "x:2: relabel: rule in line 2: replacement: ${1: expected closing curly bracket "
		  "in replacement string",
		  -EINVAL },
		{ "a rule's target", OUTPUT "relabel: [{target_label: job}]\n",
		  "x:2: relabel: rule in line 2: target_label: 'job' is no name for a label",
		  -EINVAL },
		{ "no target", OUTPUT "relabel: [{source_labels: [a]}]\n",
		  "x:2: relabel: rule in line 2: target_label: replace has one", -EINVAL },
		{ "no sources", OUTPUT "relabel: [{action: drop}]\n",
		  "x:2: relabel: rule in line 2: source_labels: drop has some", -EINVAL },
		{ "sources too many", OUTPUT "relabel: [{action: labeldrop, source_labels: [a]}]\n",
		  "x:2: relabel: rule in line 2: source_labels: labeldrop has none", -EINVAL },
		{ "a hash of how many",
		  OUTPUT "relabel: [{action: hashmod, source_labels: [a], "
			 "target_label: b}]\n",
		  "x:2: relabel: rule in line 2: modulus: hashmod has one, above 0", -EINVAL },
		{ "a modulus of nothing",
		  OUTPUT "relabel: [{source_labels: [a], target_label: b, "
			 "modulus: 3}]\n",
		  "x:2: relabel: rule in line 2: modulus: replace has none", -EINVAL },
		{ "not YAML", "a: b: c\n",
		  "x:1: not YAML: mapping values are not allowed in this context", -EBADMSG },
	};

	(void)state;
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		struct config c;
		int r = config_parse("x", cases[i].text, strlen(cases[i].text), &c);

		if (r != cases[i].error || strcmp(err_message(r), cases[i].want))
			fail_msg("%s: %d %s", cases[i].name, r, err_message(r));
	}
}

static void test_config_changes_names_parts(void **state)
{
	static const struct {
		const char *name, *text;
		unsigned int want;
	} cases[] = {
		{ "nothing", OUTPUT, 0 },
		{ "what is the default", OUTPUT "rate: 19\nlog: {format: text}\n", 0 },
		{ "log", OUTPUT "log: {format: json}\n", CONFIG_LOG },
		{ "port", OUTPUT "http: {port: 1}\n", CONFIG_HTTP },
		{ "window", OUTPUT "window: 16s\n", CONFIG_WINDOW },
		{ "budget", OUTPUT "cpu_budget: 2%\n", CONFIG_BUDGET },
		{ "rate", OUTPUT "rate: 20\n", CONFIG_RECORDER },
		{ "mode", OUTPUT "mode: wall\n", CONFIG_RECORDER },
		{ "the default mode", OUTPUT "mode: cpu\n", 0 },
		{ "events", OUTPUT "events: [page-faults]\n", CONFIG_RECORDER },
		{ "labels of samples", OUTPUT "sample_labels: [otel]\n", CONFIG_RECORDER },
		{ "types of the kernel", OUTPUT "btf: /btf\n", CONFIG_RECORDER },
		{ "another output", "output: [" A "]\n", CONFIG_OUTPUT },
		{ "its engine's connections", OUTPUT_WITH("connections: 3"), CONFIG_OUTPUT },
		{ "a list", OUTPUT "services: {include: [a]}\n", CONFIG_OUTPUT },
		{ "a text", OUTPUT_WITH("tenant: a"), CONFIG_OUTPUT },
		{ "a label", OUTPUT "labels: {a: b}\n", CONFIG_OUTPUT },
		{ "a rule", OUTPUT "relabel: [{action: labeldrop, regex: a}]\n", CONFIG_OUTPUT },
		{ "two", OUTPUT "rate: 20\nlog: {format: json}\n", CONFIG_RECORDER | CONFIG_LOG },
		{ "node", OUTPUT "kubernetes: {node: a}\n", CONFIG_OUTPUT | CONFIG_RECORDER },
	};
	struct config a, b;

	(void)state;
	assert_int_equal(config_parse("x", OUTPUT, strlen(OUTPUT), &a), 0);
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		assert_int_equal(config_parse("x", cases[i].text, strlen(cases[i].text), &b), 0);
		if (config_changes(&a, &b) != cases[i].want ||
		    config_changes(&b, &a) != cases[i].want)
			fail_msg("%s: %u", cases[i].name, config_changes(&a, &b));
		config_release(&b);
	}
	config_release(&a);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_config_parse_fills_every_key),
		cmocka_unit_test(test_config_parse_defaults),
		cmocka_unit_test(test_config_parse_outputs),
		cmocka_unit_test(test_config_parse_one_output_has_no_name),
		cmocka_unit_test(test_config_print_reads_back),
		cmocka_unit_test(test_config_parse_names_line_and_key),
		cmocka_unit_test(test_config_changes_names_parts),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
