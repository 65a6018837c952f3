/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#ifndef BASE_PROCESS_LIMIT_H
#define BASE_PROCESS_LIMIT_H

/* Limits on the number of processes and threads, which the kernel counts alike. */
enum process_limit_kind {
	PROCESS_LIMIT_NONE,
	PROCESS_LIMIT_CGROUP,  /* pids.max of a cgroup: a container's, or systemd's TasksMax= */
	PROCESS_LIMIT_USER,    /* RLIMIT_NPROC: ulimit -u */
	PROCESS_LIMIT_MACHINE, /* kernel.threads-max, kernel.pid_max */
};

/*
 * Why a thread could not be started, of what the kernel said to clone(): -EUSERS: a limit on their
 * number was met; -ENOMEM: too little memory.
 */
int process_limit_probe(void);

/*
 * Sets the message of a thread or process that was not started: `what` and which limit was met.
 * r: -EUSERS of process_limit_probe(), or else of memory. Returns -ENOMEM.
 */
int process_limit_say(int r, const char *what);

/* The one that process_limit_say() named last. */
enum process_limit_kind process_limit_met(void);

#endif
