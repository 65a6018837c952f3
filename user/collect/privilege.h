/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#ifndef COLLECT_PRIVILEGE_H
#define COLLECT_PRIVILEGE_H

#include <stdbool.h>

/* clang-format off */ /* a table */
/*
 * The capabilities of a recorder, of which it uses
 *
 * CAP_BPF, CAP_PERFMON     to start a session and to follow CPUs that come; CAP_SYS_ADMIN where one of
 *                          them is missing, or privilege_is_admin_wanted()
 * CAP_SYS_PTRACE           all the time: memory, maps and environment of new processes
 * CAP_DAC_READ_SEARCH      files of interpreters in private folders; CAP_DAC_OVERRIDE where it is missing
 * CAP_CHECKPOINT_RESTORE   files of interpreters that were deleted
 * CAP_SYS_NICE             the priority of threads that would be late: base/priority.h
 * CAP_DAC_OVERRIDE, CAP_CHOWN, CAP_FOWNER, CAP_KILL
 *                          of `record`: its files are in the caller's folders and the caller's, and
 *                          signals go on to the COMMAND
 * CAP_SYS_ADMIN            of a `record -e`, which may open probes
 *
 * Those it has not been given are missing still. All functions return 0 or a negative errno with a
 * message. A thread has what the one that starts it has at that time.
 */
/* clang-format on */

struct privilege_needs {
	bool for_record;      /* the row of it; and what is for a session stays in effect */
	bool has_events;      /* -e */
	bool starts_programs; /* later, with the caller's rights: no_new_privs is not set */
};

/*
 * Gives up all others for good, and what is for a session until privilege_raise(). No exec brings
 * any back. Call before there are threads.
 */
int privilege_shed(const struct privilege_needs *needs);

/*
 * Whether kernel.perf_event_paranoid is above 2, which only kernels of Debian and Ubuntu know:
 * those want CAP_SYS_ADMIN for perf events then, CAP_PERFMON or not (seen on Debian's 6.1 to 6.16).
 */
bool privilege_is_admin_wanted(void);

/* What a session needs, from here to privilege_lower(). Not for a `record`. */
int privilege_raise(void);
int privilege_lower(void);

/*
 * From now on no thread of this process may execute a program, write to other processes or trace
 * them, load modules, mount, change namespaces or the clock, whatever a hostile file or target made
 * it do: such calls fail with EPERM. -ENOSYS: a kernel without seccomp filters, which changes
 * nothing.
 */
int privilege_confine(void);

#endif
