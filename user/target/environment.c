/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#include "target/environment.h"

#include <errno.h>
#include <fcntl.h>
#include <glob.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/err.h"
#include "base/file.h"
#include "target/elf.h"
#include "target/proc.h"

#define CPUINFO_MAX (16u << 20) /* 4,096 CPUs of 4 KiB */
#define GOVERNOR_MAX 8192
#define NUMBER_MAX 16 /* bytes of a number of cpuinfo */

/* --- one text of several ---------------------------------------------------------------------- */

/* Appends what is not in it yet; out holds nothing but such items. */
static int put_once(struct strbuf *out, const char *item, size_t len)
{
	const char *at = strbuf_str(out);

	while (*at) {
		const char *end = strstr(at, ", ");
		size_t have = end ? (size_t)(end - at) : strlen(at);

		if (have == len && !memcmp(at, item, len))
			return 0;
		at += have + (end ? 2 : 0);
	}
	if (out->len)
		strbuf_puts(out, ", ");
	return strbuf_append(out, item, len);
}

/* A file of /proc or /sys; NULL where it cannot be read: unknown. */
static char *read_text(const char *path, size_t max, size_t *len)
{
	char *text = NULL;

	if (file_read(path, max, &text, len) < 0) {
		err_clear();
		return NULL;
	}
	return text;
}

/* --- CPUs ------------------------------------------------------------------------------------- */

/* The value of a line "NAME<blanks>: VALUE", or NULL. */
static const char *value_of(const char *line, size_t len, const char *name, size_t *value_len)
{
	size_t n = strlen(name);
	const char *colon = len > n && !memcmp(line, name, n) ? memchr(line, ':', len) : NULL;

	if (!colon || strspn(line + n, " \t") != (size_t)(colon - line) - n)
		return NULL;
	colon++;
	while (colon < line + len && *colon == ' ')
		colon++;
	*value_len = (size_t)(line + len - colon);
	return colon;
}

static int number_len(size_t len)
{
	return len < NUMBER_MAX ? (int)len : NUMBER_MAX;
}

/* x86 and POWER have a name, arm64 the numbers of who made it and of what. */
int environment_cpu_of(const char *cpuinfo, size_t len, struct strbuf *out)
{
	static const char *const names[] = { "model name", "cpu", "CPU implementer" };
	const char *maker = NULL, *value;
	size_t maker_len = 0, value_len;
	char made[ENVIRONMENT_VALUE_MAX];
	int r = 0;

	for (const char *line = cpuinfo, *end; line < cpuinfo + len && !r; line = end + 1) {
		size_t left = (size_t)(cpuinfo + len - line);

		end = memchr(line, '\n', left);
		if (!end)
			end = line + left;
		left = (size_t)(end - line);
		if ((value = value_of(line, left, names[0], &value_len)) ||
		    (value = value_of(line, left, names[1], &value_len))) {
			r = put_once(out, value, value_len);
		} else if ((value = value_of(line, left, names[2], &value_len))) {
			maker = value;
			maker_len = value_len;
		} else if (maker && (value = value_of(line, left, "CPU part", &value_len))) {
			snprintf(made, sizeof(made), "%.*s:%.*s", number_len(maker_len), maker,
				 number_len(value_len), value);
			r = put_once(out, made, strlen(made));
		}
	}
	return r;
}

int environment_put_cpu(struct strbuf *out)
{
	_cleanup_(freep) char *text = NULL;
	size_t len;

	text = read_text("/proc/cpuinfo", CPUINFO_MAX, &len);
	return text ? environment_cpu_of(text, strlen(text), out) : 0;
}

int environment_put_governor(struct strbuf *out)
{
	glob_t found;
	int r = 0;

	if (glob("/sys/devices/system/cpu/cpufreq/policy*/scaling_governor", 0, NULL, &found))
		return 0;
	for (size_t i = 0; i < found.gl_pathc && !r; i++) {
		size_t len;
		char *text = read_text(found.gl_pathv[i], GOVERNOR_MAX, &len);

		if (text)
			r = put_once(out, text, strcspn(text, "\n"));
		free(text);
	}
	globfree(&found);
	return r;
}

/* --- the interpreter -------------------------------------------------------------------------- */

bool environment_find(const char *block, size_t block_len, const char *name, const char **value,
		      size_t *len)
{
	size_t n = strlen(name);

	for (const char *at = block, *end; at < block + block_len; at = end + 1) {
		size_t left = (size_t)(block + block_len - at);

		end = memchr(at, '\0', left);
		if (!end)
			end = at + left;
		if ((size_t)(end - at) > n && !memcmp(at, name, n) && at[n] == '=') {
			*value = at + n + 1;
			*len = (size_t)(end - *value);
			return true;
		}
	}
	return false;
}

/* Without the variable, or with an empty one, Python does what it does by itself. */
static int put_variable(const char *block, size_t len, const char *name, const char *by_itself,
			struct strbuf *out)
{
	const char *value;
	size_t value_len;

	if (!environment_find(block, len, name, &value, &value_len) || !value_len)
		return strbuf_puts(out, by_itself);
	if (value_len > ENVIRONMENT_VALUE_MAX)
		value_len = ENVIRONMENT_VALUE_MAX;
	return strbuf_append(out, value, value_len);
}

int environment_put_python(pid_t pid, struct strbuf *hash_seed, struct strbuf *allocator)
{
	_cleanup_(freep) char *block = NULL;
	char path[32];
	size_t len;
	int r;

	snprintf(path, sizeof(path), "/proc/%d/environ", proc_living_thread(pid));
	block = read_text(path, ENVIRONMENT_BLOCK_MAX, &len);
	if (!block)
		return 0;
	r = put_variable(block, len, "PYTHONHASHSEED", "random", hash_seed);
	return r ? r : put_variable(block, len, "PYTHONMALLOC", "default", allocator);
}
