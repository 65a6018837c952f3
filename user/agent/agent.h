/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#ifndef AGENT_AGENT_H
#define AGENT_AGENT_H

#include "agent/config.h"
#include "agent/metrics.h"

/*
 * Records windows for ever and hands them on: to files, or by a spool to an engine. SIGTERM and
 * SIGINT end it: the window so far is encoded, and sent if that goes at once. SIGHUP, and a change
 * of its file, has the configuration read again; one that is wrong is reported, and the old one
 * stays.
 */
enum agent_end { AGENT_STOPPED, AGENT_RELOAD };

/* Call before any thread is started: agent_run() takes the signals up. 0 or a negative errno. */
int agent_block_signals(void);

/*
 * Runs with *config until something ends it. AGENT_RELOAD: *config is now the one to go on with.
 * A negative errno with a message where it cannot start or go on; a disk or an engine that fails is
 * no reason to end.
 */
int agent_run(const char *config_path, struct config *config, struct metrics *m);

#endif
