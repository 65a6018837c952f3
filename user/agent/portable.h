/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#ifndef AGENT_PORTABLE_H
#define AGENT_PORTABLE_H

/*
 * What a program that brings its libraries along (PYEBPF_STATIC) must find out about the system it
 * runs on, where those of the system would know. In other builds both do nothing.
 */

/* Names of hosts are looked up in /etc/hosts and by DNS alone: other ways are plugins, made for the
 * system's own C library, that this one may not load. Before the first look-up and the first
 * thread. */
void portable_init(void);

/* The certificates of public authorities here: a file that lasts. NULL: the TLS library knows, or
 * SSL_CERT_FILE or SSL_CERT_DIR, which it reads, say. */
const char *portable_ca_file(void);

#endif
