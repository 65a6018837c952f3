/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#include "inspect/render_parts.h"

#include <errno.h>

/* datetime's objects, as Include/datetime.h has them. */

static int get_date(struct render *c, uint64_t object, uint8_t data[12])
{
	/* hastzinfo, then the data, then the fold */
	return object_get(c->reader, render_fields(c, object) + OBJECT_DATE_DATA - 1, data, 12);
}

static unsigned int micros(const uint8_t *data)
{
	return data[0] << 16 | data[1] << 8 | data[2];
}

int render_date(struct render *c, uint64_t object)
{
	uint8_t data[12];
	int e = get_date(c, object, data);

	if (e < 0)
		return e;
	strbuf_appendf(c->out, "datetime.date(%u, %u, %u)", data[1] << 8 | data[2], data[3],
		       data[4]);
	return 0;
}

/* Minutes and seconds; seconds only where not 0, or where microseconds are not. */
static void put_clock(struct render *c, const uint8_t *data)
{
	strbuf_appendf(c->out, "%u, %u", data[0], data[1]);
	if (data[2] || micros(data + 3))
		strbuf_appendf(c->out, ", %u", data[2]);
	if (micros(data + 3))
		strbuf_appendf(c->out, ", %u", micros(data + 3));
}

static void put_zone(struct render *c, uint64_t object, bool has_zone, uint32_t at)
{
	uint64_t zone;

	if (!has_zone)
		return;
	strbuf_puts(c->out, ", tzinfo=");
	if (object_get_pointer(c->reader, render_fields(c, object) + at, &zone) < 0)
		strbuf_puts(c->out, "<unreadable>");
	else
		render_flat(c, zone);
}

int render_datetime(struct render *c, uint64_t object)
{
	uint8_t data[12];
	int e = get_date(c, object, data);

	if (e < 0)
		return e;
	strbuf_appendf(c->out, "datetime.datetime(%u, %u, %u, ", data[1] << 8 | data[2], data[3],
		       data[4]);
	put_clock(c, data + 5);
	if (data[11])
		strbuf_puts(c->out, ", fold=1");
	put_zone(c, object, data[0], OBJECT_DATETIME_TZINFO);
	strbuf_putc(c->out, ')');
	return 0;
}

int render_time(struct render *c, uint64_t object)
{
	uint8_t data[12];
	int e = get_date(c, object, data);

	if (e < 0)
		return e;
	strbuf_puts(c->out, "datetime.time(");
	put_clock(c, data + 1);
	if (data[7])
		strbuf_puts(c->out, ", fold=1");
	put_zone(c, object, data[0], OBJECT_TIME_TZINFO);
	strbuf_putc(c->out, ')');
	return 0;
}

int render_timedelta(struct render *c, uint64_t object)
{
	static const char *const names[] = { "days", "seconds", "microseconds" };
	int32_t parts[3];
	bool has_any = false;
	int e = object_get(c->reader, render_fields(c, object) + OBJECT_TIMEDELTA_DAYS, parts,
			   sizeof(parts));

	if (e < 0)
		return e;
	strbuf_puts(c->out, "datetime.timedelta(");
	for (int i = 0; i < 3; i++) {
		if (!parts[i])
			continue;
		strbuf_appendf(c->out, "%s%s=%d", has_any ? ", " : "", names[i], parts[i]);
		has_any = true;
	}
	strbuf_puts(c->out, has_any ? ")" : "0)");
	return 0;
}

/* offset, name (Modules/_datetimemodule.c). */
int render_timezone(struct render *c, uint64_t object)
{
	uint64_t parts[2];
	int32_t delta[3];
	int e;

	if ((e = object_get(c->reader, render_fields(c, object), parts, sizeof(parts))) < 0 ||
	    (e = object_get(c->reader, render_fields(c, parts[0]) + OBJECT_TIMEDELTA_DAYS, delta,
			    sizeof(delta))) < 0)
		return e;
	if (!parts[1] && !delta[0] && !delta[1] && !delta[2]) {
		strbuf_puts(c->out, "datetime.timezone.utc");
		return 0;
	}
	strbuf_puts(c->out, "datetime.timezone(");
	render_timedelta(c, parts[0]);
	if (parts[1]) {
		strbuf_puts(c->out, ", ");
		render_value(c, parts[1]);
	}
	strbuf_putc(c->out, ')');
	return 0;
}
