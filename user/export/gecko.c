/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */

/*
 * The processed format of Firefox Profiler (profiler.firefox.com), version 60: the newest of which
 * Perfetto reads all, too; newer programs upgrade it. Tables of frames, functions and stacks are
 * shared by the threads; a stack is an index of ours less one, a string the same, and ours behind
 * them. Times are milliseconds since the start of the first recording.
 *
 * A thread has what it computed and what it waited as weighted samples, and a marker for each wait
 * and for each stretch in the collector. Kinds that are no time of it, such as memory, are threads
 * of their own, as a thread has one type of weights.
 */
#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "base/json.h"
#include "base/strbuf.h"
#include "base/vec.h"
#include "export/export.h"
#include "export/functions.h"
#include "export/json_parts.h"
#include "export/stretches.h"
#include "export/timeline.h"
#include "profile/module.h"
#include "profile/waits.h"

#define VERSION 60
#define NS_PER_MS 1000000.0
#define VISIBLE_MAX 15 /* threads that it opens with: as many as the viewer itself chooses */

/* Colours are names that Firefox Profiler knows. */
static const struct {
	const char *name, *colour;
} categories[] = {
	[ORIGIN_OWN] = { "Python", "orange" },
	[ORIGIN_IMPORT] = { "Import", "grey" },
	[ORIGIN_LIBRARY] = { "Libraries", "yellow" },
	[ORIGIN_STDLIB] = { "Standard library", "lightred" },
	[ORIGIN_NATIVE] = { "Native", "purple" },
	[ORIGIN_KERNEL] = { "Kernel", "green" },
	[ORIGIN_MARKER] = { "Other", "grey" },
	[ORIGIN_TASK] = { "Task", "magenta" },
	[ORIGIN_COUNT] = { "Waiting", "blue" },
};
#define CATEGORY_WAITING ORIGIN_COUNT
#define CATEGORY_COUNT (ORIGIN_COUNT + 1)

/* Strings of ours, behind the profile's: names of stretches, and of what has no frames. */
#define OWN_UNKNOWN STRETCH_KINDS

struct gecko {
	struct timeline timeline;

	/* while it is written */
	struct json j;
	const struct profile *p;
	struct functions functions;
	VEC(uint8_t) category_of; /* by frame id; the last for stacks without frames */
	VEC(uint32_t) sources;    /* string ids of files */
	uint32_t *source_of;      /* by string id: index + 1; 0: none */
};

static int begin(struct exporting *x)
{
	x->state = calloc(1, sizeof(struct gecko));
	return x->state ? 0 : -ENOMEM;
}

static void release(struct exporting *x)
{
	struct gecko *g = x->state;

	if (g) {
		timeline_release(&g->timeline);
		functions_release(&g->functions);
		vec_release(&g->category_of);
		vec_release(&g->sources);
		free(g->source_of);
	}
	free(g);
}

static int take(struct exporting *x)
{
	struct gecko *g = x->state;

	return timeline_add(&g->timeline, x->p, x->kinds);
}

/* --- what is shared --------------------------------------------------------------------------- */

static uint32_t own_string(const struct gecko *g, unsigned int s)
{
	return strtab_count(g->p->strings) + s;
}

static int use_source(struct gecko *g, uint32_t file)
{
	int r = 0;

	if (file && !g->source_of[file]) {
		r = vec_push(&g->sources, file);
		g->source_of[file] = (uint32_t)g->sources.len;
	}
	return r;
}

static int make_tables(struct gecko *g)
{
	const struct profile *p = g->p;
	uint32_t frames = frametab_count(p->frames);
	int r = functions_find(&g->functions, p);

	if (r < 0)
		return r;
	g->source_of = calloc(strtab_count(p->strings), sizeof(*g->source_of));
	if (!g->source_of)
		return -ENOMEM;
	for (uint32_t i = 0; i < frames && !r; i++) {
		const struct frame *f = frametab_get(p->frames, i);
		uint8_t category = wait_is_marker(p, i)
					   ? CATEGORY_WAITING
					   : (uint8_t)origin_of(p, f->name, f->file, f->kind);

		r = use_source(g, f->file) ?: vec_push(&g->category_of, category);
	}
	return r ?: vec_push(&g->category_of, ORIGIN_MARKER);
}

static void put_strings(struct gecko *g)
{
	struct json *j = &g->j;

	json_key(j, "stringArray");
	json_array_lines(j);
	for (uint32_t i = 0; i < strtab_count(g->p->strings); i++)
		json_string_len(j, strtab_get(g->p->strings, i), strtab_len(g->p->strings, i));
	for (size_t i = 0; i < STRETCH_KINDS; i++)
		json_string(j, stretch_names[i]);
	json_string(j, PROFILE_NO_FRAMES);
	json_end(j);
}

/* A column of a table: `number` for each i below `count`. */
#define PUT_COLUMN(j, name, count, put)              \
	do {                                         \
		json_key(j, name);                   \
		json_array(j);                       \
		for (size_t i = 0; i < (count); i++) \
			put;                         \
		json_end(j);                         \
	} while (0)

static void put_number_or_null(struct json *j, uint64_t number, bool is_known)
{
	if (is_known)
		json_u64(j, number);
	else
		json_null(j);
}

static void put_sources(struct gecko *g)
{
	struct json *j = &g->j;

	json_key(j, "sources");
	json_object(j);
	json_key_u64(j, "length", g->sources.len);
	PUT_COLUMN(j, "uuid", g->sources.len, json_null(j));
	PUT_COLUMN(j, "filename", g->sources.len, json_u64(j, g->sources.items[i]));
	json_end(j);
}

/* Entry 0 of ours is the empty stack: what has no frames gets one behind all others. */
static void put_stacks(struct gecko *g)
{
	const struct stack_entry *e = stacktab_entries(g->p->stacks) + 1;
	size_t count = stacktab_count(g->p->stacks) - 1;
	struct json *j = &g->j;

	json_key(j, "stackTable");
	json_object(j);
	json_key_u64(j, "length", count + 1);
	json_key(j, "frame");
	json_array(j);
	for (size_t i = 0; i < count; i++)
		json_u64(j, e[i].frame);
	json_u64(j, frametab_count(g->p->frames));
	json_end(j);
	json_key(j, "prefix");
	json_array(j);
	for (size_t i = 0; i < count; i++)
		put_number_or_null(j, (uint64_t)e[i].parent - 1, e[i].parent);
	json_null(j);
	json_end(j);
	json_end(j);
}

static uint64_t stack_index(const struct gecko *g, uint32_t stack)
{
	return (stack ? stack : stacktab_count(g->p->stacks)) - 1;
}

static uint32_t line_of(const struct gecko *g, size_t frame)
{
	return frame < frametab_count(g->p->frames)
		       ? frame_told_line(frametab_get(g->p->frames, (uint32_t)frame))
		       : 0;
}

static void put_frames(struct gecko *g)
{
	size_t count = g->category_of.len;
	struct json *j = &g->j;

	json_key(j, "frameTable");
	json_object(j);
	json_key_u64(j, "length", count);
	PUT_COLUMN(j, "address", count, json_i64(j, -1));
	PUT_COLUMN(j, "inlineDepth", count, json_u64(j, 0));
	PUT_COLUMN(j, "category", count, json_u64(j, g->category_of.items[i]));
	PUT_COLUMN(j, "subcategory", count, json_u64(j, 0));
	PUT_COLUMN(j, "func", count, json_u64(j, g->functions.of_frame[i]));
	PUT_COLUMN(j, "nativeSymbol", count, json_null(j));
	PUT_COLUMN(j, "innerWindowID", count, json_null(j));
	PUT_COLUMN(j, "line", count, put_number_or_null(j, line_of(g, i), line_of(g, i)));
	PUT_COLUMN(j, "column", count, json_null(j));
	json_end(j);
}

static void put_functions(struct gecko *g)
{
	const struct functions *functions = &g->functions;
	size_t count = (size_t)functions->none + 1;
	struct json *j = &g->j;
	const struct frame *f;
#define PUT_FUNCTION_COLUMN(name, put) \
	PUT_COLUMN(j, name, count, (f = functions_get(functions, (uint32_t)i), put))

	json_key(j, "funcTable");
	json_object(j);
	json_key_u64(j, "length", count);
	PUT_FUNCTION_COLUMN("name", json_u64(j, f ? f->name : own_string(g, OWN_UNKNOWN)));
	PUT_COLUMN(j, "isJS", count, json_bool(j, false));
	PUT_COLUMN(j, "relevantForJS", count, json_bool(j, false));
	PUT_COLUMN(j, "resource", count, json_i64(j, -1));
	PUT_FUNCTION_COLUMN(
		"source", put_number_or_null(j, f ? g->source_of[f->file] - 1u : 0, f && f->file));
	PUT_FUNCTION_COLUMN("lineNumber",
			    put_number_or_null(j, f ? f->first_line : 0, f && f->first_line));
	PUT_COLUMN(j, "columnNumber", count, json_null(j));
	json_end(j);
#undef PUT_FUNCTION_COLUMN
}

/* Tables that Python has nothing for. */
static void put_empty_table(struct json *j, const char *name, const char *const *columns)
{
	json_key(j, name);
	json_object(j);
	json_key_u64(j, "length", 0);
	for (; *columns; columns++) {
		json_key(j, *columns);
		json_array(j);
		json_end(j);
	}
	json_end(j);
}

static void put_shared(struct gecko *g)
{
	static const char *const resources[] = { "lib", "name", "host", "type", NULL };
	static const char *const symbols[] = { "libIndex", "address", "name", "functionSize",
					       NULL };

	json_key(&g->j, "shared");
	json_object(&g->j);
	put_strings(g);
	put_sources(g);
	put_stacks(g);
	put_frames(g);
	put_functions(g);
	put_empty_table(&g->j, "resourceTable", resources);
	put_empty_table(&g->j, "nativeSymbols", symbols);
	json_end(&g->j);
}

/* --- meta ------------------------------------------------------------------------------------- */

static void put_categories(struct json *j)
{
	json_key(j, "categories");
	json_array(j);
	for (size_t i = 0; i < CATEGORY_COUNT; i++) {
		json_object(j);
		json_key_string(j, "name", categories[i].name);
		json_key_string(j, "color", categories[i].colour);
		json_key(j, "subcategories");
		json_array(j);
		json_string(j, "Other");
		json_end(j);
		json_end(j);
	}
	json_end(j);
}

static void put_field(struct json *j, const char *key, const char *label, const char *format)
{
	json_object(j);
	json_key_string(j, "key", key);
	json_key_string(j, "label", label);
	json_key_string(j, "format", format);
	json_end(j);
}

static void put_marker_schema(struct json *j)
{
	json_key(j, "markerSchema");
	json_array(j);
	for (size_t i = 0; i < STRETCH_KINDS; i++) {
		json_object(j);
		json_key_string(j, "name", stretch_names[i]);
		json_key_string(j, "tooltipLabel", "{marker.name}: {marker.data.reason}");
		json_key_string(j, "tableLabel", "{marker.data.reason}, {marker.data.function}");
		json_key_string(j, "chartLabel", "{marker.data.reason}");
		json_key(j, "display");
		json_array(j);
		json_string(j, "marker-chart");
		json_string(j, "marker-table");
		json_string(j, "timeline-overview");
		json_end(j);
		json_key(j, "fields");
		json_array(j);
		put_field(j, "reason", "Reason", "string");
		put_field(j, "function", "Function", "string");
		json_end(j);
		json_end(j);
	}
	json_end(j);
}

/* CPU time of a thread's list; of others 0. */
static uint64_t cpu_ns(const struct timeline_list *l)
{
	struct timeline_cursor c = timeline_begin(l);
	uint64_t sum = 0;

	while (l->kind == TIMELINE_TIME && timeline_next(&c))
		sum += c.entry.duration_ns ? 0 : c.entry.value;
	return sum;
}

struct visible {
	size_t list;
	uint64_t cpu_ns;
};

/* The busiest first. */
static int compare_visible(const void *a, const void *b)
{
	const struct visible *x = a, *y = b;

	if (x->cpu_ns != y->cpu_ns)
		return x->cpu_ns > y->cpu_ns ? -1 : 1;
	return x->list < y->list ? -1 : x->list > y->list;
}

static void put_indexes(struct json *j, const char *name, const struct visible *v, size_t count)
{
	json_key(j, name);
	json_array(j);
	for (size_t i = 0; i < count; i++)
		json_u64(j, v[i].list);
	json_end(j);
}

/*
 * What it opens with: threads over time, the busiest selected. By itself the viewer prefers lists
 * of memory and hides threads that mostly wait, as it takes samples for activity.
 */
static int put_opened(struct gecko *g)
{
	VEC(struct visible) visible = { 0 };
	int r = 0;

	for (size_t i = 0; i < g->timeline.lists.len && !r; i++) {
		const struct timeline_list *l = &g->timeline.lists.items[i];

		if (l->kind == TIMELINE_TIME)
			r = vec_push(&visible, ((struct visible){ i, cpu_ns(l) }));
	}
	if (visible.len && !r) {
		qsort(visible.items, visible.len, sizeof(*visible.items), compare_visible);
		put_indexes(&g->j, "initialVisibleThreads", visible.items,
			    visible.len < VISIBLE_MAX ? visible.len : VISIBLE_MAX);
		put_indexes(&g->j, "initialSelectedThreads", visible.items, 1);
	}
	vec_release(&visible);
	return r;
}

static int put_meta(struct gecko *g, const struct recording *of)
{
	struct json *j = &g->j;
	int r;

	json_key(j, "meta");
	json_object(j);
	json_key_u64(j, "version", 27); /* of Firefox's own format, which this one was made of */
	json_key_u64(j, "preprocessedProfileVersion", VERSION);
	json_key_double(j, "interval", of->interval_ns ? (double)of->interval_ns / NS_PER_MS : 1);
	json_key_double(j, "startTime", (double)of->start_realtime_ns / NS_PER_MS);
	json_key_u64(j, "processType", 0);
	json_key_string(j, "product", of->target ?: "Python");
	json_key_u64(j, "stackwalk", 0);
	json_key(j, "symbolicated");
	json_bool(j, true);
	json_key_string(j, "importedFrom", "pyebpf " PYEBPF_VERSION);
	if (of->machine)
		json_key_string(j, "abi", of->machine);
	json_key(j, "sampleUnits");
	json_object(j);
	json_key_string(j, "time", "ms");
	json_key_string(j, "eventDelay", "ms");
	json_key_string(j, "threadCPUDelta", "ns");
	json_end(j);
	/* Neither is a choice of "Script" and "Native" any use, nor a link to Firefox's sources. */
	json_key(j, "usesOnlyOneStackType");
	json_bool(j, true);
	json_key(j, "sourceCodeIsNotOnSearchfox");
	json_bool(j, true);
	json_key(j, "keepProfileThreadOrder");
	json_bool(j, true);
	r = put_opened(g);
	put_categories(j);
	put_marker_schema(j);
	json_end(j);
	return r;
}

/* --- threads ---------------------------------------------------------------------------------- */

static void put_ms(struct json *j, uint64_t ns)
{
	json_double(j, (double)ns / NS_PER_MS);
}

/* A column of numbers that are computed from each sample. */
static void put_samples_column(struct gecko *g, const struct timeline_list *l, const char *name,
			       void (*put)(struct gecko *g, const struct timeline_list *l,
					   const struct timeline_entry *e))
{
	struct timeline_cursor c = timeline_begin(l);

	json_key(&g->j, name);
	json_array(&g->j);
	while (timeline_next(&c))
		put(g, l, &c.entry);
	json_end(&g->j);
}

static void put_stack(struct gecko *g, const struct timeline_list *l,
		      const struct timeline_entry *e)
{
	(void)l;
	json_u64(&g->j, stack_index(g, e->stack));
}

static void put_time(struct gecko *g, const struct timeline_list *l, const struct timeline_entry *e)
{
	(void)l;
	put_ms(&g->j, e->time_ns);
}

static void put_weight(struct gecko *g, const struct timeline_list *l,
		       const struct timeline_entry *e)
{
	if (l->unit == UNIT_NS)
		put_ms(&g->j, e->value);
	else
		json_u64(&g->j, e->value);
}

/* Of a wait none. */
static void put_cpu(struct gecko *g, const struct timeline_list *l, const struct timeline_entry *e)
{
	json_u64(&g->j, l->unit == UNIT_NS && !e->duration_ns ? e->value : 0);
}

static void put_samples(struct gecko *g, const struct timeline_list *l)
{
	static const char *const weight_types[] = {
		[UNIT_NS] = "tracing-ms", [UNIT_BYTES] = "bytes", [UNIT_COUNT] = "samples"
	};

	json_key(&g->j, "samples");
	json_object(&g->j);
	json_key_u64(&g->j, "length", l->count);
	json_key_string(&g->j, "weightType", weight_types[l->unit]);
	put_samples_column(g, l, "stack", put_stack);
	put_samples_column(g, l, "time", put_time);
	put_samples_column(g, l, "weight", put_weight);
	if (l->kind == TIMELINE_TIME && l->unit == UNIT_NS)
		put_samples_column(g, l, "threadCPUDelta", put_cpu);
	json_end(&g->j);
}

static void put_marker_data(struct gecko *g, const struct stretch *s)
{
	uint32_t function = stretch_function(g->p, s);
	size_t len;
	const char *reason = stretch_reason(g->p, s, &len);

	json_object(&g->j);
	json_key_string(&g->j, "type", stretch_names[s->kind]);
	json_key(&g->j, "reason");
	json_string_len(&g->j, reason, len);
	json_key(&g->j, "function");
	json_string_len(&g->j, strtab_get(g->p->strings, function),
			strtab_len(g->p->strings, function));
	json_end(&g->j);
}

enum marker_column {
	MARKER_DATA,
	MARKER_NAME,
	MARKER_START,
	MARKER_END,
	MARKER_PHASE,
	MARKER_CATEGORY
};

static void put_marker_cell(struct gecko *g, enum marker_column column, const struct stretch *s)
{
	switch (column) {
	case MARKER_DATA:
		put_marker_data(g, s);
		break;
	case MARKER_NAME:
		json_u64(&g->j, own_string(g, s->kind));
		break;
	case MARKER_START:
		put_ms(&g->j, s->begin_ns);
		break;
	case MARKER_END:
		put_ms(&g->j, s->end_ns);
		break;
	case MARKER_PHASE:
		json_u64(&g->j, 1); /* an interval */
		break;
	case MARKER_CATEGORY:
		json_u64(&g->j, s->kind == STRETCH_GC ? ORIGIN_MARKER : CATEGORY_WAITING);
		break;
	}
}

static void put_markers(struct gecko *g, const struct timeline_list *l)
{
	static const char *const columns[] = {
		[MARKER_DATA] = "data",   [MARKER_NAME] = "name",   [MARKER_START] = "startTime",
		[MARKER_END] = "endTime", [MARKER_PHASE] = "phase", [MARKER_CATEGORY] = "category",
	};
	uint64_t count = 0;

	json_key(&g->j, "markers");
	json_object(&g->j);
	for (enum marker_column i = 0; i <= MARKER_CATEGORY; i++) {
		struct stretches all = stretches_begin(g->p, l);
		struct stretch s;

		json_key(&g->j, columns[i]);
		json_array(&g->j);
		for (count = 0; stretches_next(&all, &s); count++)
			put_marker_cell(g, i, &s);
		json_end(&g->j);
	}
	json_key_u64(&g->j, "length", count);
	json_end(&g->j);
}

static void put_times(struct gecko *g, const struct timeline_list *l)
{
	struct timeline_cursor c = timeline_begin(l);
	uint64_t first, last;

	timeline_next(&c); /* a list has one at least */
	for (first = last = c.entry.time_ns; timeline_next(&c);)
		last = c.entry.time_ns;
	json_key(&g->j, "processStartupTime");
	json_u64(&g->j, 0);
	json_key(&g->j, "processShutdownTime");
	json_null(&g->j);
	json_key(&g->j, "registerTime");
	put_ms(&g->j, first);
	json_key(&g->j, "unregisterTime");
	put_ms(&g->j, last + c.entry.duration_ns);
	json_key(&g->j, "pausedRanges");
	json_array(&g->j);
	json_end(&g->j);
}

static void put_thread(struct gecko *g, const struct timeline_list *l)
{
	const struct profile *p = g->p;
	const struct thread *t = &p->threads.items[l->thread];
	const struct process *process = &p->processes.items[t->process];
	_cleanup_(strbuf_releasep) struct strbuf name = STRBUF_INIT;
	char pid[16];

	strbuf_append(&name, strtab_get(p->strings, t->name), strtab_len(p->strings, t->name));
	if (l->kind != TIMELINE_TIME)
		strbuf_appendf(&name, " (%s)",
			       strtab_get(p->strings, p->kinds.items[l->kind - 1].name));
	snprintf(pid, sizeof(pid), "%" PRIu32, process->pid);
	json_object(&g->j);
	json_key(&g->j, "name");
	json_string_len(&g->j, strbuf_str(&name), name.len);
	json_key(&g->j, "processName");
	json_string_len(&g->j, strtab_get(p->strings, process->name),
			strtab_len(p->strings, process->name));
	json_key_string(&g->j, "pid", pid);
	json_key_u64(&g->j, "tid", t->tid);
	json_key(&g->j, "isMainThread");
	json_bool(&g->j, t->tid == process->pid && l->kind == TIMELINE_TIME);
	json_key_string(&g->j, "processType", "default");
	put_times(g, l);
	put_samples(g, l);
	put_markers(g, l);
	json_end(&g->j);
}

static int finish(struct exporting *x)
{
	struct gecko *g = x->state;
	struct recording facts = profile_facts(x->p);
	int r;

	g->p = x->p;
	r = timeline_finish(&g->timeline, x->p) ?: make_tables(g);
	if (r < 0)
		return r;
	json_init(&g->j, x->out);
	json_object(&g->j);
	r = put_meta(g, &facts);
	json_key(&g->j, "libs");
	json_array(&g->j);
	json_end(&g->j);
	put_shared(g);
	json_key(&g->j, "threads");
	json_array_lines(&g->j);
	for (size_t i = 0; i < g->timeline.lists.len; i++)
		put_thread(g, &g->timeline.lists.items[i]);
	json_end(&g->j);
	json_end(&g->j);
	return r;
}

static const char *const suffixes[] = { ".gecko.json", ".gecko", NULL };

const struct exporter exporter_gecko = {
	.name = "gecko",
	.suffixes = suffixes,
	.help = "for profiler.firefox.com and ui.perfetto.dev: threads over time, waits",
	.needs = EXPORT_NEEDS_SAMPLES,
	.begin = begin,
	.take = take,
	.release = release,
	.finish = finish,
};
