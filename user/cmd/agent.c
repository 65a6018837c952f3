/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#include "agent/agent.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "agent/config.h"
#include "agent/metrics.h"
#include "agent/privilege.h"
#include "base/log.h"
#include "cmd/cmd.h"

struct agent_opts {
	const char *config;
	bool check;
};

/* Of the service account's files only a pod can say whether they are there. */
static void check_kubernetes(const struct config *c)
{
	const char *const files[] = { c->kubernetes_token_file, c->kubernetes_ca_file };

	if (c->kubernetes != KUBERNETES_KUBELET && c->kubernetes != KUBERNETES_API)
		return;
	for (size_t i = 0; i < sizeof(files) / sizeof(files[0]); i++)
		if (access(files[i], R_OK))
			log_warning("%s: cannot be read here: %s", files[i], strerror(errno));
	if (!strncmp(c->kubernetes_url ?: "", "http://", 7))
		log_warning("kubernetes.url is http: the token is not sent");
	else if (c->kubernetes_verify == VERIFY_NO)
		log_warning("kubernetes.verify is no: whoever answers there gets the token");
}

/* Shows the configuration in effect, and whether the files it names can be read. */
static int check(const struct config *c)
{
	const char *const files[] = { c->token_file, c->ca_file, c->cert_file, c->key_file };
	int status = EXIT_OK;

	config_print(c, stdout);
	for (size_t i = 0; i < sizeof(files) / sizeof(files[0]); i++) {
		if (!files[i] || !access(files[i], R_OK))
			continue;
		log_warning("%s: cannot be read: %s", files[i], strerror(errno));
		status = EXIT_RUNTIME;
	}
	if (c->token_file && !strncmp(c->url ?: "", "http://", 7))
		log_warning("output.url is http: the token goes over the network as it is");
	if (c->engine == ENGINE_FILES &&
	    (c->include.len || c->exclude.len || c->relabel.list.len || c->kubernetes))
		log_warning(
			"output.engine is files: they hold everything, whatever services.include, "
			"services.exclude, relabel and kubernetes say");
	check_kubernetes(c);
	return status;
}

/* With the configuration of the moment, until it ends for good. */
static int run_for_ever(struct call *call, const char *path, struct config *config,
			struct metrics *m)
{
	int r = agent_block_signals();

	if (r < 0 || (r = privilege_shed()) < 0)
		return cmd_fail(call, r);
	do {
		_cleanup_(metrics_closep) struct metrics_server *server = NULL;

		log_set_json(config->log_format == LOG_JSON);
		if (config->listen_port && (r = metrics_serve(m, config, &server)) < 0)
			return cmd_fail(call, r);
		r = agent_run(path, config, m);
	} while (r == AGENT_RELOAD);
	if (r >= 0)
		return EXIT_OK;
	cmd_fail(call, r);
	if (r == -EPERM || r == -EOPNOTSUPP) {
		cmd_try("pyebpf doctor");
		return EXIT_DENIED;
	}
	return EXIT_RUNTIME;
}

static int run(struct call *call)
{
	struct agent_opts o = { .config = NULL };
	const struct opt opts[] = {
		OPT_GROUP("Configuration"),
		OPT_STR(0, "config", &o.config, "FILE", "what to record, and where it goes (YAML)"),
		OPT_FLAG(0, "check", &o.check, "show it as it would be in effect, and end"),
		OPT_END,
	};
	_cleanup_(metrics_freep) struct metrics *m = NULL;
	struct config config = { 0 };
	int status, r;

	if (!cmd_options(call, opts, &status))
		return status;
	if (!o.config || call->operands.len)
		return cmd_usage(call, "give --config FILE, and nothing else");
	if ((r = config_read(o.config, &config)) < 0) {
		cmd_fail(call, r);
		return r == -EINVAL || r == -EBADMSG ? EXIT_USAGE : EXIT_RUNTIME;
	}
	if (o.check)
		status = check(&config);
	else if ((r = metrics_new(&m)) < 0)
		status = cmd_fail(call, r);
	else
		status = run_for_ever(call, o.config, &config, m);
	config_release(&config);
	return status;
}

const struct command command_agent = {
	.name = "agent",
	.summary = "record all the time and push the profiles to an engine",
	.usage = "--config FILE [OPTION]...",
	.about =
		"Records windows of some seconds for ever and pushes each to Grafana Pyroscope, to "
		"an OpenTelemetry Collector or to Parca, or keeps them as files. What cannot be "
		"sent waits in a spool on disk, bounded in size and age.\n\n"
		"The configuration is read again when its file changes, and at SIGHUP; SIGTERM "
		"ends it after sending what it has. "
		"/metrics, /healthz and /readyz are served on 127.0.0.1:9464.",
	.examples = "pyebpf agent --check --config agent.yaml\tsee what a configuration means\n"
		    "pyebpf agent -v --config agent.yaml\trun, and say what happens",
	.operands = "",
	.run = run,
};
