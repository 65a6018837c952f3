/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#ifndef INSPECT_FILES_H
#define INSPECT_FILES_H

#include <stddef.h>
#include <stdint.h>

/*
 * What the descriptors are that threads read or write: paths, pipes, and of sockets both ends, as
 * the process's network namespace has them.
 */
struct inspect_process;

/* Fills in file of p->threads, where it can be told. 0 or -ENOMEM. */
int files_find(struct inspect_process *p);

/*
 * A line of /proc/PID/net/tcp, tcp6, udp or udp6: "10.0.0.3:40412 to 10.0.0.9:5432", or
 * "10.0.0.3:80" of one without a peer. 0 or -EBADMSG.
 */
#define SOCKET_TEXT_BYTES 128
int socket_line_parse(const char *line, uint64_t *inode, char text[SOCKET_TEXT_BYTES]);

#endif
