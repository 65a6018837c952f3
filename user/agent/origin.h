/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#ifndef AGENT_ORIGIN_H
#define AGENT_ORIGIN_H

#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>

#include "target/cgroup.h"
#include "target/container.h"
#include "target/owner.h"

/* Where a process belongs, as engines label it. NUL-terminated, valid UTF-8; "": none. */
struct origin {
	char service[128];
	char version[64], environment[64];  /* service.version, deployment.environment */
	char container[CONTAINER_ID_BYTES]; /* the innermost one's id */
	char pod[POD_UID_BYTES];
	struct owner owner; /* whose process it is; id 0: it has ended */
	bool is_named;      /* the process itself says what service it is */
};

/* What is known of a process that may have ended. */
struct origin_process {
	pid_t pid;
	const char *name;         /* of its first thread */
	const char *command_line; /* arguments joined by spaces; "": unknown */
	const char *container;    /* id; "": none or unknown, as with the next */
	const char *pod;          /* UID */
};

/*
 * The service is, first that is there: the value of the variable `env` (NULL: none) that the
 * process was started with; service.name in its OTEL_RESOURCE_ATTRIBUTES (not with NULL), or among
 * the attributes that it publishes (OTEP 4719); the script or module of its command line; its name.
 * Nothing else is looked at but service.version and deployment.environment of the same attributes.
 * What cannot be read is left out: the process may have ended.
 */
void origin_find(const struct origin_process *p, const char *env,
		 const struct cgroup_namespace *ours, struct origin *out);

/* As cgroup_path_of_text() has it, cut to whole characters; "" where it cannot be read. */
#define ORIGIN_CGROUP_BYTES 513
void origin_read_cgroup(pid_t pid, const struct cgroup_namespace *ours,
			char out[ORIGIN_CGROUP_BYTES]);

/* The parts that do not ask the system. */
void origin_of_command(const char *command_line, char *service, size_t size);
void origin_of_attributes(const char *text, char *service, size_t size);

/*
 * The value of a variable, the last of that name; untouched if there is none. bytes: len of them as
 * /proc/PID/environ has it, NAME=VALUE and NUL one after the other, which whoever runs there may
 * have written over; and one NUL behind them.
 */
void origin_of_environment(const char *bytes, size_t len, const char *name, char *value,
			   size_t size);

/* The value of one attribute of them; "": it is not there. */
void origin_attribute(const char *text, const char *key, char *value, size_t size);

#endif
