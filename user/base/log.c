/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#include "base/log.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>

static enum log_level current_level = LOG_LEVEL_WARNING;

static const char *const prefixes[] = {
	[LOG_LEVEL_ERROR] = "pyebpf: ",
	[LOG_LEVEL_WARNING] = "pyebpf: warning: ",
	[LOG_LEVEL_NOTE] = "pyebpf: ",
	[LOG_LEVEL_DEBUG] = "pyebpf: debug: ",
};

void log_set_level(int level)
{
	if (level < LOG_LEVEL_ERROR)
		level = LOG_LEVEL_ERROR;
	if (level > LOG_LEVEL_DEBUG)
		level = LOG_LEVEL_DEBUG;
	current_level = level;
}

enum log_level log_level(void)
{
	return current_level;
}

void log_line(const char *prefix, const char *text)
{
	char line[1024];
	size_t n;

	n = (size_t)snprintf(line, sizeof(line) - 1, "%s%s", prefix, text);
	if (n > sizeof(line) - 2)
		n = sizeof(line) - 2;
	for (size_t i = 0; i < n; i++)
		if ((unsigned char)line[i] < 0x20 || line[i] == 0x7f)
			line[i] = '?';
	line[n++] = '\n';
	fwrite(line, 1, n, stderr); /* unbuffered: one write() */
}

void log_print(enum log_level level, const char *fmt, ...)
{
	int saved_errno = errno;
	char text[1024];
	va_list ap;

	va_start(ap, fmt);
	vsnprintf(text, sizeof(text), fmt, ap);
	va_end(ap);
	log_line(prefixes[level], text);
	errno = saved_errno;
}
