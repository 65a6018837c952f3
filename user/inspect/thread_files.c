/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#include "inspect/thread_files.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/cleanup.h"

/* Of a file so much is read: of `sched`, what matters is in its first lines. */
#define FILE_BYTES 16384 /* `status` has a line of supplementary groups */

/* The value behind "\nKEY:", its blanks skipped; NULL: no such line. */
static const char *value_of(const char *text, const char *key)
{
	const char *line = strstr(text, key);

	if (!line)
		return NULL;
	line += strlen(key);
	return line + strspn(line, " \t");
}

static int number_of(const char *text, const char *key, uint64_t *out)
{
	const char *value = value_of(text, key);
	char *end;

	if (!value)
		return -EBADMSG;
	errno = 0;
	*out = strtoull(value, &end, 10);
	return end == value || errno ? -EBADMSG : 0;
}

/* The kernel writes newlines and backslashes of a name as \n and \\. */
static void unescape(const char *from, size_t len, char *out, size_t size)
{
	size_t to = 0;

	for (size_t i = 0; i < len && to + 1 < size; i++) {
		if (from[i] == '\\' && i + 1 < len) {
			i++;
			out[to++] = from[i] == 'n' ? '\n' : from[i];
		} else {
			out[to++] = from[i];
		}
	}
	out[to] = '\0';
}

/* The last of the numbers on a line. */
static pid_t last_number(const char *value)
{
	unsigned long last = 0;
	char *end;

	for (const char *p = value; *p && *p != '\n'; p = end) {
		last = strtoul(p, &end, 10);
		if (end == p)
			return 0;
		end += strspn(end, " \t");
	}
	return last <= PROC_PIDS_MAX ? (pid_t)last : 0;
}

int thread_status_parse(const char *text, size_t len, struct thread_status *out)
{
	const char *name, *state, *nspid;
	struct thread_status s = { 0 };
	uint64_t voluntary, other;
	char copy[FILE_BYTES + 1];

	if (len > FILE_BYTES)
		len = FILE_BYTES;
	memcpy(copy, text, len);
	copy[len] = '\0';
	if (strncmp(copy, "Name:\t", 6) != 0)
		return -EBADMSG;
	name = copy + 6;
	state = value_of(copy, "\nState:");
	nspid = value_of(copy, "\nNSpid:");
	if (!state || !*state || number_of(copy, "\nvoluntary_ctxt_switches:", &voluntary) < 0 ||
	    number_of(copy, "\nnonvoluntary_ctxt_switches:", &other) < 0)
		return -EBADMSG;
	unescape(name, strcspn(name, "\n"), s.comm, sizeof(s.comm));
	s.state = *state;
	s.nspid = nspid ? last_number(nspid) : 0;
	s.switches = voluntary + other;
	*out = s;
	return 0;
}

int thread_folder_open(pid_t pid, pid_t tid)
{
	char path[64];
	int fd;

	snprintf(path, sizeof(path), "/proc/%d/task/%d", pid, tid);
	fd = open(path, O_PATH | O_DIRECTORY | O_CLOEXEC);
	return fd < 0 ? -errno : fd;
}

static int open_file(int folder, const char *name)
{
	int fd = openat(folder, name, O_RDONLY | O_CLOEXEC);

	return fd < 0 ? -errno : fd;
}

/* These files come in one piece, if there is room for all of it. */
static ssize_t read_once(int fd, char text[FILE_BYTES + 1])
{
	ssize_t n = pread(fd, text, FILE_BYTES, 0);

	if (n < 0)
		return -errno;
	text[n] = '\0';
	return n;
}

static ssize_t read_start(int folder, const char *name, char text[FILE_BYTES + 1])
{
	_cleanup_(closep) int fd = open_file(folder, name);

	return fd < 0 ? fd : read_once(fd, text);
}

int thread_status_open(int folder)
{
	return open_file(folder, "status");
}

int thread_status_read(int fd, struct thread_status *out)
{
	char text[FILE_BYTES + 1];
	ssize_t n = read_once(fd, text);

	return n < 0 ? (int)n : thread_status_parse(text, (size_t)n, out);
}

#define CALL_ARGS 6

/* "0 0x3 ... 0x7ffd3c 0x7f3a": the call and its arguments, or -1; then where stack and code are. */
int thread_call_parse(const char *text, size_t len, struct thread_call *out)
{
	struct thread_call call = { .nr = -1 };
	char copy[256], *p = copy, *end;

	if (len >= sizeof(copy))
		return -EBADMSG;
	memcpy(copy, text, len);
	copy[len] = '\0';
	if (!strncmp(copy, "running", 7)) {
		call.is_running = true;
		*out = call;
		return 0;
	}
	call.nr = strtoll(p, &end, 10);
	if (end == p || (*end && *end != ' ' && *end != '\n'))
		return -EBADMSG;
	p = end;
	for (int i = 0; call.nr >= 0 && i < CALL_ARGS; i++, p = end) {
		uint64_t arg = strtoull(p, &end, 16);

		if (end == p)
			return -EBADMSG;
		if (i < 2)
			call.args[i] = arg;
	}
	call.sp = strtoull(p, NULL, 16);
	if (call.nr < 0)
		call.nr = -1;
	*out = call;
	return 0;
}

int thread_call_read(int folder, struct thread_call *out)
{
	char text[FILE_BYTES + 1];
	ssize_t n = read_start(folder, "syscall", text);

	return n < 0 ? (int)n : thread_call_parse(text, (size_t)n, out);
}

/* "se.exec_start   :   34873.171043": ms, and six digits of them. */
int thread_sched_parse(const char *text, size_t len, uint64_t *exec_start_ns)
{
	static const char key[] = "\nse.exec_start";
	const char *line = memmem(text, len, key, sizeof(key) - 1), *end;
	unsigned long long ms, ns;
	char value[64];

	if (!line)
		return -ENODATA;
	line += sizeof(key) - 1;
	end = memchr(line, '\n', (size_t)(text + len - line));
	if (!end || (size_t)(end - line) >= sizeof(value))
		return -EBADMSG;
	memcpy(value, line, (size_t)(end - line));
	value[end - line] = '\0';
	if (sscanf(value, " : %llu.%6llu", &ms, &ns) != 2 || ms > UINT64_MAX / 2000000)
		return -EBADMSG;
	*exec_start_ns = ms * 1000000 + ns;
	return 0;
}

int thread_sched_read(int folder, uint64_t *exec_start_ns)
{
	char text[FILE_BYTES + 1];
	ssize_t n = read_start(folder, "sched", text);

	return n < 0 ? (int)n : thread_sched_parse(text, (size_t)n, exec_start_ns);
}

#define FIELD_STATE 3
#define FIELD_PROCESSOR 39

int thread_cpu_parse(const char *text, size_t len, unsigned *cpu)
{
	const char *at = memrchr(text, ')', len), *end = text + len;
	unsigned long value = 0;

	if (!at)
		return -EBADMSG;
	for (int field = FIELD_STATE - 1; field < FIELD_PROCESSOR; field++) {
		at = memchr(at, ' ', (size_t)(end - at));
		if (!at)
			return -EBADMSG;
		at++;
	}
	for (; at < end && *at >= '0' && *at <= '9' && value <= INT_MAX / 10; at++)
		value = value * 10 + (unsigned long)(*at - '0');
	if (at == end || *at != ' ')
		return -EBADMSG;
	*cpu = (unsigned)value;
	return 0;
}

int thread_cpu_read(int folder, unsigned *cpu)
{
	char text[FILE_BYTES + 1];
	ssize_t n = read_start(folder, "stat", text);

	return n < 0 ? (int)n : thread_cpu_parse(text, (size_t)n, cpu);
}
