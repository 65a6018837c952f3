/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#ifndef AGENT_CONFIG_H
#define AGENT_CONFIG_H

#include <netdb.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <time.h>

#include "agent/relabel.h"
#include "base/strbuf.h"
#include "base/vec.h"

/*
 * agent.yaml: one mapping, of scalars, lists of scalars, and of mappings of them. Every key and its
 * default is a row of one table in config.c. No key holds a secret: tokens and keys are in files
 * that are named.
 */

#define CONFIG_BYTES_MAX (1u << 20)
#define CONFIG_OUTPUTS_MAX 8
#define CONFIG_OUTPUT_NAME_BYTES 32
#define CONFIG_LABELS_MAX 18       /* Pyroscope takes 30 with ours */
#define CONFIG_POD_LABEL_BYTES 320 /* PREFIX/NAME and NUL: what Kubernetes allows is shorter */
#define CONFIG_POD_LABEL_NAME_BYTES (CONFIG_POD_LABEL_BYTES + 6) /* "label_" */

enum engine { ENGINE_FILES, ENGINE_PYROSCOPE, ENGINE_OTLP, ENGINE_PARCA };
#define ENGINE_COUNT 4

/* "files", "pyroscope", "otlp", "parca". */
const char *engine_name(enum engine e);

/* What becomes of a profile that was sent whole but not answered: was it stored? */
enum unanswered { UNANSWERED_RETRY, UNANSWERED_DROP };

enum log_format { LOG_TEXT, LOG_JSON };

/* Who says what pods are called. */
enum kubernetes_source { KUBERNETES_NONE, KUBERNETES_KUBELET, KUBERNETES_API, KUBERNETES_FILES };

enum yes_no { CHOICE_YES, CHOICE_NO };

struct config_label {
	char *name, *value; /* owned */
};

/* Which file, written when: equal ones hold the same. All zeros: of no file. */
struct config_stamp {
	uint64_t device, inode, size;
	struct timespec changed;
};

/* Where windows go. Texts as in struct config. */
struct config_output {
	char *name;          /* letters, digits, - and _; NULL: of the only one, that has none */
	unsigned int engine; /* enum engine; so for all enums: the key table's type */
	char *url;
	char *tenant;
	char *token_file, *username, *password_file, *headers_file;
	struct config_list headers; /* "NAME: VALUE" */
	char *ca_file, *cert_file, *key_file;
	char *proxy;
	uint64_t timeout_ns;
	uint64_t connections; /* requests under way at most */
	unsigned int unanswered;
	char *directory;
	uint64_t keep; /* files; 0: all */
	char *spool;   /* a folder of its own; not of ENGINE_FILES */
};

/* Texts are owned; NULL where the key is absent and has no default. */
struct config {
	struct config_stamp stamp;        /* of the file before it was read */
	uint64_t modes;                   /* enum session_mode */
	struct config_list events;        /* as `record -e` names them, recorded besides */
	uint64_t event_period;            /* `record -c`; 0: as is usual for the event */
	struct config_list sample_labels; /* as `record --label` has them */
	uint64_t rate_hz;
	uint64_t rate_min_hz;    /* what cpu_budget leaves of it */
	uint64_t cpu_budget_ppm; /* of the time of all CPUs */
	uint64_t window_ns;
	uint64_t jitter_percent;
	char *cgroup;                      /* NULL: every process */
	char *pid_namespace;               /* a file; NULL: of all */
	unsigned int old_kernel;           /* enum yes_no: as `record --old-kernel` */
	char *btf;                         /* as `record --btf`; NULL: none */
	VEC(struct config_output) outputs; /* at least one */
	char *spool_directory;
	uint64_t spool_bytes; /* of each output */
	uint64_t spool_age_ns;
	char *service_env;   /* a variable of the target */
	char *service_label; /* of its pod */
	uint64_t services_max;
	struct config_list include, exclude; /* patterns of fnmatch(3) for services */
	unsigned int kubernetes;
	char *kubernetes_url, *node;
	char *kubernetes_token_file, *kubernetes_ca_file;
	unsigned int kubernetes_verify;
	char *pod_logs, *downward;     /* folders */
	struct config_list pod_labels; /* with `labels` at most CONFIG_LABELS_MAX */
	char *listen_address;
	uint64_t listen_port; /* 0: no metrics */
	unsigned int log_format;
	VEC(struct config_label) labels;
	struct relabel_rules relabel;
};

/*
 * 0, or a negative errno with a message "FILE:LINE: KEY: what is wrong", *out untouched: -EINVAL
 * what it says is wrong, -EBADMSG it is not YAML, else as file_read().
 */
int config_read(const char *path, struct config *out);

/* The same of a text; name is for messages. */
int config_parse(const char *name, const char *text, size_t len, struct config *out);

/* What there is now; all zeros where there is no regular file. */
void config_stamp_get(const char *path, struct config_stamp *out);
bool config_stamp_equal(const struct config_stamp *a, const struct config_stamp *b);

/*
 * http.address and http.port: of IPv4 or IPv6, "fe80::1%eth0" too, never a name. 0, with *out for
 * freeaddrinfo(), or -EINVAL with a message, as config_parse() has it.
 */
int config_resolve_address(const struct config *c, struct addrinfo **out);

void config_release(struct config *c);

/*
 * What is recorded beside ticks and waiting: `events`, and memory where it is one of the modes. 0
 * or a negative errno with a message; events_release() in any case.
 */
struct event_list;
struct context_label_list;
int config_list_events(const struct config *c, struct event_list *out);

/* What sample_labels asks for. As config_list_events(); context_labels_release() in any case. */
int config_list_labels(const struct config *c, struct context_label_list *out);

/* What of the agent another value of a key concerns. */
enum config_part {
	CONFIG_LOG = 1,
	CONFIG_HTTP = 2,
	CONFIG_WINDOW = 4, /* the next one is as it says */
	CONFIG_BUDGET = 8,
	CONFIG_OUTPUT = 16,
	CONFIG_RECORDER = 32,
};

/* The parts that differ, an enum config_part each. */
unsigned int config_changes(const struct config *a, const struct config *b);

/* For messages: "" or " of NAME". */
struct config_output_label {
	char s[CONFIG_OUTPUT_NAME_BYTES + 4];
};
struct config_output_label config_output_label(const struct config_output *o);

/* 0, or a negative errno with a message "KEY: FILE: why" where a file of `output` cannot be read.
 */
int config_check_files(const struct config *c);

/* Appends a line, at most so many, for each thing that somebody may not have meant. 0 or -ENOMEM.
 */
#define CONFIG_RISKS_MAX (2 * CONFIG_OUTPUTS_MAX + 2)
int config_list_risks(const struct config *c, struct strbuf *out);

/* kubernetes.node, else the variable NODE_NAME, else the host's own name, cut where that is longer.
 */
#define CONFIG_NODE_BYTES 256
void config_node_name(const struct config *c, char out[CONFIG_NODE_BYTES]);

/* As a label of ours: "app.kubernetes.io/name" is "label_app_kubernetes_io_name". */
void config_pod_label_name(const char *key, char out[CONFIG_POD_LABEL_NAME_BYTES]);

/* For people: every key as it is in effect, a line each, in the form config_read() reads. */
void config_print(const struct config *c, FILE *out);

#endif
