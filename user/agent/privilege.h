/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#ifndef AGENT_PRIVILEGE_H
#define AGENT_PRIVILEGE_H

/*
 * The capabilities of the agent, of which it uses
 *
 * CAP_BPF, CAP_PERFMON        to start a session and to follow CPUs that come; CAP_SYS_ADMIN where
 * one of them is missing CAP_SYS_PTRACE              all the time: memory, maps and environment of
 * new processes CAP_DAC_READ_SEARCH         files of interpreters in private folders;
 * CAP_DAC_OVERRIDE where it is missing CAP_CHECKPOINT_RESTORE      files of interpreters that were
 * deleted
 *
 * Those it has not been given are missing still. All functions return 0 or a negative errno with a
 * message. A thread has what the one that starts it has at that time.
 */

/*
 * Gives up all others for good, and what is for a session until privilege_raise(). No exec brings
 * any back. Call before there are threads.
 */
int privilege_shed(void);

/* What a session needs, from here to privilege_lower(). */
int privilege_raise(void);
int privilege_lower(void);

#endif
