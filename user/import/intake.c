/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#include "import/intake.h"

#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "base/err.h"
#define TICKS_MAX (UINT64_C(1) << 53)

void intake_unit(const char *name, uint8_t *unit, uint64_t *scale)
{
	static const struct {
		const char *name;
		enum sample_unit unit;
		uint64_t scale;
	} rows[] = {
		{ "nanoseconds", UNIT_NS, 1 },
		{ "ns", UNIT_NS, 1 },
		{ "microseconds", UNIT_NS, 1000 },
		{ "us", UNIT_NS, 1000 },
		{ "milliseconds", UNIT_NS, 1000000 },
		{ "ms", UNIT_NS, 1000000 },
		{ "seconds", UNIT_NS, 1000000000 },
		{ "s", UNIT_NS, 1000000000 },
		{ "bytes", UNIT_BYTES, 1 },
		{ "kilobytes", UNIT_BYTES, 1u << 10 },
		{ "megabytes", UNIT_BYTES, 1u << 20 },
	};

	*unit = UNIT_COUNT;
	*scale = 1;
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++)
		if (!strcmp(rows[i].name, name)) {
			*unit = rows[i].unit;
			*scale = rows[i].scale;
		}
}

static int add_kind(const struct intake_values *v, struct profile *p, const char *suffix,
		    uint16_t *kind)
{
	_cleanup_(strbuf_releasep) struct strbuf name = STRBUF_INIT;
	struct sample_kind k = { .unit = v->unit, .period = 1 };
	int r;

	strbuf_puts(&name, v->name);
	if ((r = strbuf_puts(&name, suffix)) < 0 ||
	    (r = intake_string(p, (struct span){ strbuf_str(&name), name.len }, &k.name)) < 0)
		return r;
	if (v->event &&
	    (r = intake_string(p, (struct span){ v->event, strlen(v->event) }, &k.event)) < 0)
		return r;
	r = profile_add_kind(p, &k, kind);
	return r == -EOVERFLOW ? err_set(-E2BIG, "more than %d kinds of samples", KINDS_MAX) : r;
}

int intake_values_init(struct intake_values *v, struct profile *p)
{
	int r = add_kind(v, p, "", &v->up);

	v->down = v->up;
	return r;
}

static int add_ticks(struct profile *p, struct sample s, uint64_t ticks)
{
	int r = 0;

	for (; ticks && !r; ticks -= s.value) {
		s.value = ticks < UINT32_MAX ? ticks : UINT32_MAX;
		r = profile_add_sample(p, &s);
	}
	return r;
}

/* amount: without its sign, of the unit. */
static int add_amount(struct intake_values *v, struct profile *p, struct sample s, bool is_below,
		      uint64_t amount)
{
	uint64_t max = v->up ? INT64_MAX : TICKS_MAX;
	int r = 0;

	if (amount > max - v->sum || (is_below && !v->up))
		return -ERANGE;
	v->sum += amount;
	if (!amount)
		return 0;
	if (!v->up)
		return add_ticks(p, s, amount);
	if (is_below && v->down == v->up)
		r = add_kind(v, p, v->unit == UNIT_BYTES ? "-freed" : "-negative", &v->down);
	s.kind = is_below ? v->down : v->up;
	s.value = amount;
	return r ? r : profile_add_sample(p, &s);
}

int intake_value(struct intake_values *v, struct profile *p, struct sample s, int64_t value)
{
	uint64_t amount = value < 0 ? 0 - (uint64_t)value : (uint64_t)value;

	if (__builtin_mul_overflow(amount, v->scale ?: 1, &amount))
		return -ERANGE;
	return add_amount(v, p, s, value < 0, amount);
}

int intake_real(struct intake_values *v, struct profile *p, struct sample s, double value)
{
	double amount = round(fabs(value) * (double)(v->scale ?: 1));

	return amount < 0x1p63 ? add_amount(v, p, s, value < 0, (uint64_t)amount) : -ERANGE;
}

int intake_string(struct profile *p, struct span s, uint32_t *id)
{
	return strtab_intern_name(p->strings, s.bytes ? s.bytes : "", s.len, id);
}

int intake_frame(struct profile *p, struct frame f, struct span name, struct span file,
		 uint32_t *stack)
{
	uint32_t id;
	int r;

	if ((r = intake_string(p, name, &f.name)) < 0 ||
	    (r = intake_string(p, file, &f.file)) < 0 ||
	    (r = frametab_intern(p->frames, &f, &id)) < 0)
		return r;
	return stacktab_intern(p->stacks, *stack, id, stack);
}

int intake_thread(struct profile *p, uint32_t process, uint64_t tid, uint64_t interpreter,
		  uint32_t *index)
{
	struct thread thread = { .process = process };
	char name[80];
	int len = 0, r;

	if (tid <= UINT32_MAX)
		thread.tid = (uint32_t)tid;
	else
		len = snprintf(name, sizeof(name), "thread 0x%llx", (unsigned long long)tid);
	if (interpreter)
		len += snprintf(name + len, sizeof(name) - (size_t)len, "%sinterpreter %llu",
				len ? ", " : "", (unsigned long long)interpreter);
	r = strtab_intern(p->strings, name, (size_t)len, &thread.name);
	return r ? r : profile_add_thread(p, &thread, index);
}
