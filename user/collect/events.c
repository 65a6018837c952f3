/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#include "collect/events.h"

#include <errno.h>
#include <linux/perf_event.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/clock.h"
#include "base/err.h"

#define FUNCTION_ARGS 5 /* that are in registers, on all machines */
#define PROBE_ARGS 12   /* BPF_USDT_MAX_ARG_CNT of libbpf */

#define CACHE(id, op, result)                                          \
	(PERF_COUNT_HW_CACHE_##id | PERF_COUNT_HW_CACHE_OP_##op << 8 | \
	 PERF_COUNT_HW_CACHE_RESULT_##result << 16)

/* clang-format off */
#define SOFTWARE(name, alias, config, words) \
	{ name, alias, PERF_TYPE_SOFTWARE, PERF_COUNT_SW_##config, UNIT_COUNT, false, words }
#define CLOCK(name, config, words) \
	{ name, NULL, PERF_TYPE_SOFTWARE, PERF_COUNT_SW_##config, UNIT_NS, true, words }
#define HARDWARE(name, alias, config, words) \
	{ name, alias, PERF_TYPE_HARDWARE, PERF_COUNT_HW_##config, UNIT_COUNT, true, words }
#define HW_CACHE(name, id, op, result, words) \
	{ name, NULL, PERF_TYPE_HW_CACHE, CACHE(id, op, result), UNIT_COUNT, true, words }

const struct event_row event_rows[] = {
	SOFTWARE("page-faults", "faults", PAGE_FAULTS, "page faults"),
	SOFTWARE("minor-faults", NULL, PAGE_FAULTS_MIN, "page faults without a disk"),
	SOFTWARE("major-faults", NULL, PAGE_FAULTS_MAJ, "page faults that waited for a disk"),
	SOFTWARE("context-switches", "cs", CONTEXT_SWITCHES, "a thread leaves its CPU"),
	SOFTWARE("cpu-migrations", "migrations", CPU_MIGRATIONS, "a thread comes to another CPU"),
	SOFTWARE("alignment-faults", NULL, ALIGNMENT_FAULTS, "accesses that the kernel had to mend"),
	SOFTWARE("emulation-faults", NULL, EMULATION_FAULTS, "instructions that it had to emulate"),
	CLOCK("cpu-clock", CPU_CLOCK, "time of each CPU"),
	CLOCK("task-clock", TASK_CLOCK, "the same, by the time that the event has run"),
	HARDWARE("cycles", "cpu-cycles", CPU_CYCLES, "cycles of the CPU"),
	HARDWARE("instructions", NULL, INSTRUCTIONS, "machine instructions that were completed"),
	HARDWARE("ref-cycles", NULL, REF_CPU_CYCLES, "cycles at the nominal frequency"),
	HARDWARE("bus-cycles", NULL, BUS_CYCLES, "cycles of the bus"),
	HARDWARE("cache-references", NULL, CACHE_REFERENCES, "accesses to the last level of cache"),
	HARDWARE("cache-misses", NULL, CACHE_MISSES, "of them those that went to memory"),
	HARDWARE("branches", "branch-instructions", BRANCH_INSTRUCTIONS, "branches"),
	HARDWARE("branch-misses", NULL, BRANCH_MISSES, "branches that were predicted wrongly"),
	HARDWARE("stalled-cycles-frontend", "idle-cycles-frontend", STALLED_CYCLES_FRONTEND, "cycles without instructions to start"),
	HARDWARE("stalled-cycles-backend", "idle-cycles-backend", STALLED_CYCLES_BACKEND, "cycles in which nothing could be started"),
	HW_CACHE("L1-dcache-loads", L1D, READ, ACCESS, "loads"),
	HW_CACHE("L1-dcache-load-misses", L1D, READ, MISS, "loads that missed the first level"),
	HW_CACHE("L1-dcache-stores", L1D, WRITE, ACCESS, "stores"),
	HW_CACHE("L1-icache-load-misses", L1I, READ, MISS, "instructions that missed the first level"),
	HW_CACHE("LLC-loads", LL, READ, ACCESS, "loads from the last level"),
	HW_CACHE("LLC-load-misses", LL, READ, MISS, "loads from memory"),
	HW_CACHE("LLC-stores", LL, WRITE, ACCESS, "stores to the last level"),
	HW_CACHE("LLC-store-misses", LL, WRITE, MISS, "stores to memory"),
	HW_CACHE("dTLB-loads", DTLB, READ, ACCESS, "address translations of loads"),
	HW_CACHE("dTLB-load-misses", DTLB, READ, MISS, "of them those that walked page tables"),
	HW_CACHE("dTLB-stores", DTLB, WRITE, ACCESS, "address translations of stores"),
	HW_CACHE("dTLB-store-misses", DTLB, WRITE, MISS, "of them those that walked page tables"),
	HW_CACHE("iTLB-loads", ITLB, READ, ACCESS, "address translations of instructions"),
	HW_CACHE("iTLB-load-misses", ITLB, READ, MISS, "of them those that walked page tables"),
	HW_CACHE("node-loads", NODE, READ, ACCESS, "loads from memory of any node"),
	HW_CACHE("node-load-misses", NODE, READ, MISS, "loads from memory of another node"),
};
/* clang-format on */
const size_t event_rows_count = sizeof(event_rows) / sizeof(event_rows[0]);

static void event_release(struct event *e)
{
	free(e->name);
	free(e->where);
	free(e->provider);
	free(e->what);
	free(e->field);
}

void events_release(struct event_list *list)
{
	for (size_t i = 0; i < list->len; i++)
		event_release(&list->items[i]);
	vec_release(list);
}

static const struct event_row *find_row(const char *name)
{
	for (size_t i = 0; i < event_rows_count; i++) {
		const struct event_row *row = &event_rows[i];

		if (!strcmp(row->name, name) || (row->alias && !strcmp(row->alias, name)))
			return row;
	}
	return NULL;
}

static int copy(char **to, const char *from, size_t len)
{
	*to = strndup(from, len);
	return *to ? 0 : -ENOMEM;
}

/* Ticks of a clock are as long as the rate says; of what hardware counts the kernel finds out. */
static int fill_perf(struct event *e, const char *text, const struct event_rate *rate)
{
	const struct event_row *row = find_row(text);

	if (!row)
		return err_set(-ENOENT, "no event %s", text);
	e->class = EVENT_CLASS_PERF;
	e->unit = row->unit;
	e->perf_type = row->type;
	e->perf_config = row->config;
	if (row->is_sampled && !rate->period && row->unit == UNIT_NS)
		e->config.period = NS_PER_SECOND / rate->freq_hz;
	else if (row->is_sampled && !rate->period)
		e->freq_hz = rate->freq_hz;
	if (e->freq_hz)
		e->config.value = EVENT_PERIOD;
	return copy(&e->name, row->name, strlen(row->name));
}

/* Cuts the text at its last colon: *len becomes what is before it, what is behind it is returned.
 */
static const char *cut_last(const char *text, size_t *len, size_t *last_len)
{
	const char *colon = memrchr(text, ':', *len);

	if (!colon)
		return NULL;
	*last_len = *len - (size_t)(colon + 1 - text);
	*len = (size_t)(colon - text);
	return colon + 1;
}

/* Takes ":argN" off the end, if it is there. */
static int cut_argument(struct event *e, const char *text, size_t *len, unsigned long max)
{
	size_t rest = *len, last_len;
	const char *last = cut_last(text, &rest, &last_len);
	unsigned long number;
	char *end;

	if (!last || last_len < 4 || strncmp(last, "arg", 3))
		return 0;
	number = strtoul(last + 3, &end, 10);
	if (end != last + last_len)
		return 0; /* a name that begins so */
	if (!number || number > max)
		return err_set(-EINVAL, "%s: arguments are arg1 to arg%lu", text, max);
	e->config.value = EVENT_ARG;
	e->config.arg = (uint8_t)(number - 1);
	*len = rest;
	return 0;
}

static int fill_function(struct event *e, const char *text)
{
	size_t len = strlen(text), what_len;
	int r = cut_argument(e, text, &len, FUNCTION_ARGS);
	const char *what;

	if (r < 0)
		return r;
	what = cut_last(text, &len, &what_len);
	if (!what || !what_len || !len)
		return err_set(-EINVAL,
			       "uprobe:%s is not uprobe:FILE:FUNCTION or "
			       "uprobe:FILE:FUNCTION:argN",
			       text);
	e->class = EVENT_CLASS_FUNCTION;
	r = copy(&e->where, text, len);
	return r < 0 ? r : copy(&e->what, what, what_len);
}

static int fill_probe(struct event *e, const char *text)
{
	size_t len = strlen(text), what_len, provider_len;
	const char *what, *provider;
	int r = cut_argument(e, text, &len, PROBE_ARGS);

	if (r < 0)
		return r;
	what = cut_last(text, &len, &what_len);
	provider = what ? cut_last(text, &len, &provider_len) : NULL;
	if (!provider || !what_len || !provider_len || !len)
		return err_set(-EINVAL,
			       "usdt:%s is not usdt:FILE:PROVIDER:NAME or "
			       "usdt:FILE:PROVIDER:NAME:argN",
			       text);
	e->class = EVENT_CLASS_PROBE;
	if ((r = copy(&e->where, text, len)) < 0 ||
	    (r = copy(&e->provider, provider, provider_len)) < 0)
		return r;
	return copy(&e->what, what, what_len);
}

/* Names that cannot be those of a folder. */
static int fill_tracepoint(struct event *e, const char *text)
{
	static const char letters[] =
		"abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789"
		"_-.";
	size_t group = strspn(text, letters), name, field;
	const char *at = text + group;
	int r;

	name = *at == ':' ? strspn(at + 1, letters) : 0;
	if (!group || !name || *text == '.' || at[1] == '.')
		return err_set(-EINVAL, "%s is not GROUP:NAME or GROUP:NAME:FIELD", text);
	e->class = EVENT_CLASS_TRACEPOINT;
	if ((r = copy(&e->where, text, group)) < 0 || (r = copy(&e->what, at + 1, name)) < 0)
		return r;
	at += 1 + name;
	if (!*at)
		return 0;
	field = strspn(at + 1, letters);
	if (*at != ':' || !field || at[1 + field])
		return err_set(-EINVAL, "%s is not GROUP:NAME or GROUP:NAME:FIELD", text);
	e->config.value = EVENT_FIELD;
	return copy(&e->field, at + 1, field);
}

static int fill(struct event *e, const char *text, const struct event_rate *rate)
{
	int r;

	if (!strchr(text, ':'))
		return fill_perf(e, text, rate);
	if (!strncmp(text, "uprobe:", 7))
		r = fill_function(e, text + 7);
	else if (!strncmp(text, "usdt:", 5))
		r = fill_probe(e, text + 5);
	else
		r = fill_tracepoint(e, text);
	return r < 0 ? r : copy(&e->name, text, strlen(text));
}

static int append(struct event_list *list, struct event *e)
{
	int r;

	if (list->len == EVENTS_MAX)
		return err_set(-EOVERFLOW, "more than %d events", EVENTS_MAX);
	for (size_t i = 0; i < list->len; i++)
		if (!strcmp(list->items[i].name, e->name))
			return err_set(-EINVAL, "%s is given twice", e->name);
	r = vec_push(list, *e);
	if (r >= 0)
		*e = (struct event){ 0 };
	return r;
}

int events_add(struct event_list *list, const char *text, const struct event_rate *rate)
{
	_cleanup_(event_release) struct event e = {
		.unit = UNIT_COUNT,
		.config = { .period = rate->period ? rate->period : 1 },
	};
	int r = fill(&e, text, rate);

	return r < 0 ? r : append(list, &e);
}

int events_add_memory(struct event_list *list)
{
	_cleanup_(event_release) struct event e = {
		.class = EVENT_CLASS_MEMORY,
		.unit = UNIT_BYTES,
		.config = { .period = 1 },
		.name = strdup("memory"),
		.where = strdup("kmem"),
		.what = strdup("rss_stat"),
	};

	if (!e.name || !e.where || !e.what)
		return -ENOMEM;
	return append(list, &e);
}
