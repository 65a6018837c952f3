/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#ifndef BASE_PARTIAL_H
#define BASE_PARTIAL_H

#include <signal.h>

/*
 * Outputs that have a name of their own until they are whole, NAME.XXXXXXXX.partial: a SIGINT,
 * SIGTERM or SIGHUP that ends the program removes them. Where these signals are blocked, ignored or
 * handled otherwise nothing changes.
 */

/*
 * Around making one: the signals wait, so that there is none that nobody knows of. name: of the
 * file, or of a folder that holds files; NULL: it was not made.
 */
void partial_begin(sigset_t *before);
void partial_made(const char *name, const sigset_t *before);

/* The output is removed, or has its last name. */
void partial_forget(const char *name);

#endif
