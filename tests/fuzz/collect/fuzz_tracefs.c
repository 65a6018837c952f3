/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * The first line is the name of a field, the rest is the format file of a tracepoint. Users may
 * define tracepoints of their own (CONFIG_USER_EVENTS).
 */
#include "collect/tracefs.c" /* put_fields() */

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t len);

static void require(bool fact)
{
	if (!fact)
		abort();
}

static void check_field(const char *format, const char *name)
{
	struct tracefs_field f = { 0 };
	int r = tracefs_parse_field(format, name, &f);

	require(r == 0 || r == -ENOENT || r == -EINVAL);
	if (r < 0)
		return;
	require(f.bytes == 1 || f.bytes == 2 || f.bytes == 4 || f.bytes == 8);
	require(f.offset <= UINT16_MAX && strstr(format, name));
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t len)
{
	_cleanup_(strbuf_releasep) struct strbuf fields = STRBUF_INIT;
	_cleanup_(freep) char *text = strndup((const char *)bytes, len);
	char *format = text, *name;

	if (!text)
		return 0;
	name = strsep(&format, "\n");
	if (!format)
		return 0;
	check_field(format, name);
	require(put_fields(format, &fields) == 0);
	require(fields.len <= 2 * len);
	return 0;
}
