/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#include "inspect/files.h"

#include <arpa/inet.h>
#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "inspect/process.h"

#define LINES_MAX 200000 /* of one table of sockets */
#define ADDRESS_TEXT_BYTES 60

/* "0100007F:1F90", or 32 digits: words of the machine's order. Writes "127.0.0.1:8080". */
static int parse_address(const char *text, char out[ADDRESS_TEXT_BYTES], bool *is_none)
{
	const size_t digits = strspn(text, "0123456789ABCDEF");
	char name[INET6_ADDRSTRLEN];
	uint32_t words[4] = { 0 };
	unsigned long port;
	char *end;

	if ((digits != 8 && digits != 32) || text[digits] != ':')
		return -EBADMSG;
	for (size_t i = 0; i < digits / 8; i++) {
		char word[9] = { 0 };

		memcpy(word, text + 8 * i, 8);
		words[i] = (uint32_t)strtoul(word, NULL, 16);
	}
	port = strtoul(text + digits + 1, &end, 16);
	if (end == text + digits + 1 || port > UINT16_MAX)
		return -EBADMSG;
	*is_none = !port;
	if (!inet_ntop(digits == 8 ? AF_INET : AF_INET6, words, name, sizeof(name)))
		return -EBADMSG;
	snprintf(out, ADDRESS_TEXT_BYTES, digits == 8 ? "%s:%lu" : "[%s]:%lu", name, port);
	return 0;
}

int socket_line_parse(const char *line, uint64_t *inode, char text[SOCKET_TEXT_BYTES])
{
	char local[ADDRESS_TEXT_BYTES], remote[ADDRESS_TEXT_BYTES];
	char here[48], there[48];
	unsigned long long number;
	bool is_none;

	/* sl local remote st tx:rx tr:when retransmits uid timeout inode */
	if (sscanf(line, "%*s %47s %47s %*s %*s %*s %*s %*s %*s %llu", here, there, &number) != 3 ||
	    parse_address(here, local, &is_none) < 0 || parse_address(there, remote, &is_none) < 0)
		return -EBADMSG;
	*inode = number;
	if (is_none)
		snprintf(text, SOCKET_TEXT_BYTES, "%s", local);
	else
		snprintf(text, SOCKET_TEXT_BYTES, "%s to %s", local, remote);
	return 0;
}

/* "socket:[1234]" */
static bool socket_inode(const char *link, uint64_t *inode)
{
	unsigned long long number;
	char end;

	if (sscanf(link, "socket:[%llu%c", &number, &end) != 2 || end != ']')
		return false;
	*inode = number;
	return true;
}

/* The paths that the descriptors lead to. Returns how many are sockets. */
static int read_links(struct inspect_process *p, size_t *sockets)
{
	for (size_t i = 0; i < p->thread_count; i++) {
		struct inspect_thread *t = &p->threads[i];
		char path[64], link[PATH_MAX];
		uint64_t inode;
		ssize_t n;

		if (t->fd < 0)
			continue;
		snprintf(path, sizeof(path), "/proc/%d/fd/%d", p->door, t->fd);
		n = readlink(path, link, sizeof(link) - 1);
		if (n < 0)
			continue;
		link[n] = '\0';
		t->file = strdup(link);
		if (!t->file)
			return -ENOMEM;
		*sockets += socket_inode(link, &inode);
	}
	return 0;
}

static int name_socket(struct inspect_process *p, const char *table, uint64_t wanted,
		       const char *text)
{
	for (size_t i = 0; i < p->thread_count; i++) {
		struct inspect_thread *t = &p->threads[i];
		uint64_t inode;
		char *name;

		if (!t->file || !socket_inode(t->file, &inode) || inode != wanted)
			continue;
		if (asprintf(&name, "%.3s %s", table, text) < 0)
			return -ENOMEM;
		free(t->file);
		t->file = name;
	}
	return 0;
}

static int read_table(struct inspect_process *p, const char *table)
{
	char path[64], line[512], text[SOCKET_TEXT_BYTES];
	uint64_t inode;
	FILE *f;
	int r = 0;

	snprintf(path, sizeof(path), "/proc/%d/net/%s", p->door, table);
	f = fopen(path, "re");
	if (!f)
		return 0; /* not ours to see, or no such protocol */
	for (size_t i = 0; i < LINES_MAX && !r && fgets(line, sizeof(line), f); i++)
		if (!socket_line_parse(line, &inode, text) && inode)
			r = name_socket(p, table, inode, text);
	fclose(f);
	return r;
}

int files_find(struct inspect_process *p)
{
	static const char *const tables[] = { "tcp", "tcp6", "udp", "udp6" };
	size_t sockets = 0;
	int r = read_links(p, &sockets);

	for (size_t i = 0; i < sizeof(tables) / sizeof(tables[0]) && sockets && !r; i++)
		r = read_table(p, tables[i]);
	return r;
}
