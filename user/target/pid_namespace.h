/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#ifndef TARGET_PID_NAMESPACE_H
#define TARGET_PID_NAMESPACE_H

#include <stdint.h>

/* A PID namespace that is ours or inside ours. */
struct pid_namespace {
	int fd; /* it stays the same one while this is open */
	uint32_t inode;
	uint32_t depth; /* levels below ours */
};

#define PID_NAMESPACE_INIT \
	{                  \
		.fd = -1,  \
	}

/*
 * The inode of our own, 0 if that is the machine's first. /proc is taken to be ours. 0, or a
 * negative errno with a message.
 */
int pid_namespace_own(uint32_t *inode);

/*
 * By a file that stands for it: /proc/PID/ns/pid. 0, or a negative errno with a message: -EINVAL it
 * is none, -EACCES it is not inside ours, else why it cannot be opened.
 */
int pid_namespace_open(const char *path, struct pid_namespace *out);
void pid_namespace_release(struct pid_namespace *n);

#endif
