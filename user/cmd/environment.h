/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#ifndef CMD_ENVIRONMENT_H
#define CMD_ENVIRONMENT_H

#include <sys/types.h>

#include "profile/profile.h"

/*
 * What a recording says of the environment it was made in, for comparisons: target/environment.h.
 *
 * Call it at the start. target: the one process that is recorded, which may not have
 * executed its program yet, 0: there are several. 0 or -ENOMEM.
 */
int environment_describe(struct recording *m, pid_t target);

#endif
