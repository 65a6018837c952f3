/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#ifndef AGENT_FILES_H
#define AGENT_FILES_H

#include "agent/config.h"
#include "profile/profile.h"

/*
 * Writes one window as a recording of its own to output.directory (made if it is not there), named
 * pyebpf-START.pyebpf by its start in UTC, and removes the oldest of our own files of such names
 * beyond output.keep. Files of other users stay; it looks at 100,000 names at most and warns of
 * more. 0 or a negative errno with a message; -EEXIST: the names of a minute are taken.
 */
int files_write(const struct config_output *config, const struct profile *p);

#endif
