/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#ifndef COLLECT_TRACEFS_H
#define COLLECT_TRACEFS_H

#include <stdbool.h>
#include <stdint.h>

/*
 * The kernel's tracepoints, as its tracefs describes them. Where that is mounted nowhere it is
 * opened all the same, in a mount that nobody sees and that ends with the descriptor.
 */

/* The folder of all groups; *fd is the caller's. -EPERM, -EOPNOTSUPP with a message. */
int tracefs_open(int *fd);

/* Has it open from now on, for a process that gives up CAP_SYS_ADMIN: a mount takes it. */
void tracefs_hold(void);

/* The number that perf_event_open() takes. -EINVAL with a message: there is none. */
int tracefs_id(int fd, const char *group, const char *name, uint64_t *id);

/* Calls fn for each tracepoint that perf events can be of, by name. Stops at its first negative
 * result. */
int tracefs_list(int fd, int (*fn)(void *arg, const char *group, const char *name), void *arg);

/* A field of its record that is a number. */
struct tracefs_field {
	uint32_t offset;
	uint8_t bytes; /* 1, 2, 4 or 8 */
	bool is_signed;
};

/* -EINVAL with a message that names those there are: no such field, or no number. */
int tracefs_field(int fd, const char *group, const char *name, const char *field,
		  struct tracefs_field *out);

/* The same from the text of a `format` file. -ENOENT: not there, -EINVAL: no number. */
int tracefs_parse_field(const char *format, const char *field, struct tracefs_field *out);

#endif
