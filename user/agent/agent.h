/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#ifndef AGENT_AGENT_H
#define AGENT_AGENT_H

#include "agent/metrics.h"

/*
 * Records windows for ever and hands them on: to files, or by a spool to an engine. SIGTERM and
 * SIGINT end it: the window so far is encoded, and sent if that goes at once.
 *
 * SIGHUP, and a change of its file, has the configuration read again. All that a new one needs is
 * opened before anything of the old one ends: if it is wrong, or cannot be had, that is reported,
 * and everything stays as it was. Parts that it does not concern go on as they are.
 */

/* Call before any thread is started: agent_run() takes the signals up. 0 or a negative errno. */
int agent_block_signals(void);

/*
 * Runs until it is ended: 0. A negative errno with a message where it cannot start or go on: those
 * of config_read(), and others; a disk or an engine that fails is no reason to end.
 */
int agent_run(const char *config_path, struct metrics *m);

#endif
