/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#include "agent/agent.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "agent/config.h"
#include "agent/metrics.h"
#include "agent/portable.h"
#include "base/err.h"
#include "base/file.h"
#include "base/log.h"
#include "base/strbuf.h"
#include "cmd/cmd.h"
#include "collect/privilege.h"
#include "collect/tracefs.h"

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
}

/* Shows the configuration in effect, and whether the files it names can be read. */
static int check(struct call *call, const struct config *c)
{
	_cleanup_(strbuf_releasep) struct strbuf risks = STRBUF_INIT;
	int r = config_check_files(c);

	config_print(c, stdout);
	if (r < 0)
		cmd_fail(call, r);
	config_list_risks(c, &risks);
	log_lines(LOG_LEVEL_WARNING, strbuf_str(&risks), CONFIG_RISKS_MAX);
	check_kubernetes(c);
	return r < 0 ? EXIT_RUNTIME : EXIT_OK;
}

static int run_for_ever(struct call *call, const char *path)
{
	const struct privilege_needs needs = { 0 };
	_cleanup_(metrics_freep) struct metrics *m = NULL;
	int r;

	tracefs_hold(); /* the configuration may ask for tracepoints at any time */
	if ((r = agent_block_signals()) < 0 || (r = privilege_shed(&needs)) < 0 ||
	    (r = metrics_new(&m)) < 0)
		return cmd_fail(call, r);
	if ((r = privilege_confine()) < 0)
		log_warning("%s: the agent goes on without", err_message(r));
	file_keep_private(0600); /* files and spool hold command lines of all users */
	r = agent_run(path, m);
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
	struct config config;
	int status, r;

	if (!cmd_options(call, opts, &status))
		return status;
	if (!o.config || call->operands.len)
		return cmd_usage(call, "expected --config FILE and no other arguments");
	portable_init();
	if ((r = config_read(o.config, &config)) < 0) {
		cmd_fail(call, r);
		return r == -EINVAL || r == -EBADMSG ? EXIT_USAGE : EXIT_RUNTIME;
	}
	status = o.check ? check(call, &config) : EXIT_OK;
	config_release(&config);
	return o.check ? status : run_for_ever(call, o.config);
}

const struct command command_agent = {
	.name = "agent",
	.summary = "profile continuously and send profiles to a backend",
	.usage = "--config FILE [OPTION]...",
	.about =
		"Records continuously and sends each window of some seconds to Grafana Pyroscope, "
		"an OpenTelemetry Collector or Parca, to several of them at once, or writes files. "
		"Keeps unsent profiles in a spool on disk, limited in size and age.\n\nReloads its "
		"configuration when the file changes and at SIGHUP. SIGTERM sends what is left and "
		"exits. /metrics, /healthz and /readyz are served on 127.0.0.1:9464.",
	.examples = "pyebpf agent --check --config agent.yaml\tsee what a configuration means\n"
		    "pyebpf agent -v --config agent.yaml\trun, and say what happens",
	.operands = "",
	.run = run,
};
