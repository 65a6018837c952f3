/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */

/*
 * Perfetto's traces: packets of protobuf, perfetto.proto. Samples are those that its own profiler
 * writes for perf events, as all versions read these; `timebase_count` is what a sample stands for,
 * by which the viewer's flame graphs are weighted ("Perf Samples (wall, ns)"). Each kind is a
 * session and a sequence of packets of its own, as a sequence has one timebase, and has its own
 * interned functions, frames and stacks, each written where it is first needed. What a thread
 * computed and what it waited are one session, its time; the parts are told as counters beside.
 *
 * Waits, also for the GIL, and stretches in the collector are slices on the track of their thread.
 * Times are those of the monotonic clock.
 */
#include <errno.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include "base/strbuf.h"
#include "base/vec.h"
#include "base/escape.h"
#include "export/export.h"
#include "export/json_parts.h"
#include "export/stretches.h"
#include "export/symbols.h"
#include "export/timeline.h"
#include "profile/kinds.h"
#include "perfetto.pb-c.h"

/* Sequences: this one is of tracks, and one behind the other of kinds. */
#define SEQUENCE_TRACKS 1
#define FLAGS_BEGIN 1 /* SEQ_INCREMENTAL_STATE_CLEARED */
#define FLAGS_GO_ON 2 /* SEQ_NEEDS_INCREMENTAL_STATE */

enum { CLOCK_ID_REALTIME = 1, CLOCK_ID_MONOTONIC = 3 };
enum { COUNTER_CPU_CLOCK = 1 };
enum { MODE_KERNEL = 1, MODE_USER = 2 };
enum { SLICE_BEGIN = 1, SLICE_END = 2 };

/* Processes of which nobody knows the number, as 0 is the kernel's idle one to readers. */
#define UNKNOWN_PID 1

/* A frame has a mapping. What has no module, such as a marker, is in one without a path. */
enum { NO_MAPPING_IID = 1, FIRST_MAPPING_IID };

static const uint8_t frame_kinds[FRAME_TYPE_COUNT] = {
	[FRAME_PYTHON] = 3, [FRAME_NATIVE] = 1, [FRAME_KERNEL] = 2,
	[FRAME_MARKER] = 6, [FRAME_TASK] = 3,
};

/* What the samples of a kind are of, all lists of one. */
struct session {
	uint16_t kind;
	uint8_t unit;
	bool has_waits;
};

struct perfetto {
	struct timeline timeline;

	/* while it is written */
	const struct profile *p;
	FILE *out;
	ProtobufCBuffer buffer; /* appends to out */
	uint64_t start_ns;      /* of the first recording, on the clock of the trace */
	struct strbuf text;

	/* of the sequence that is written */
	struct symbols symbols;
	uint32_t sequence;
	uint32_t flags;
	bool splits;                           /* its time: computed, waited */
	size_t functions, mappings, locations; /* so many are written */
	bool *has_stack;                       /* by stack id */
	struct symbols_stack stack;
	VEC(uint64_t) frames;
};

static int begin(struct exporting *x)
{
	x->state = calloc(1, sizeof(struct perfetto));
	return x->state ? 0 : -ENOMEM;
}

static void release(struct exporting *x)
{
	struct perfetto *w = x->state;

	if (w) {
		timeline_release(&w->timeline);
		strbuf_release(&w->text);
		symbols_release(&w->symbols);
		free(w->has_stack);
		vec_release(&w->stack);
		vec_release(&w->frames);
	}
	free(w);
}

static int take(struct exporting *x)
{
	struct perfetto *w = x->state;

	return timeline_add(&w->timeline, x->p, x->kinds);
}

/* --- packets ---------------------------------------------------------------------------------- */

static void append_packed(ProtobufCBuffer *buffer, size_t len, const uint8_t *bytes)
{
	struct perfetto *w =
		(struct perfetto *)((char *)buffer - offsetof(struct perfetto, buffer));

	fwrite(bytes, 1, len, w->out);
}

/* A trace of one packet: one behind the other they are one trace. */
static void put(struct perfetto *w, Perfetto__TracePacket *packet)
{
	Perfetto__Trace trace = PERFETTO__TRACE__INIT;

	packet->trusted_packet_sequence_id = w->sequence;
	if (!packet->sequence_flags)
		packet->sequence_flags = w->flags;
	trace.n_packet = 1;
	trace.packet = &packet;
	perfetto__trace__pack_to_buffer(&trace, &w->buffer);
}

static void set_time(const struct perfetto *w, Perfetto__TracePacket *packet, uint64_t ns)
{
	packet->optional_timestamp_case = PERFETTO__TRACE_PACKET__OPTIONAL_TIMESTAMP_TIMESTAMP;
	packet->timestamp = w->start_ns + ns;
}

/* A text of the profile that stands in a message: "" of 0. Borrowed until symbols are released. */
static int text_of(struct perfetto *w, uint32_t string, char **text)
{
	uint32_t id;
	int r = symbols_string(&w->symbols, string, &id);

	if (!r)
		*text = (char *)strtab_get(w->symbols.strings, id);
	return r;
}

static int begin_sequence(struct perfetto *w, uint32_t sequence, Perfetto__PerfSampleDefaults *of)
{
	Perfetto__TracePacketDefaults defaults = PERFETTO__TRACE_PACKET_DEFAULTS__INIT;
	Perfetto__TracePacket packet = PERFETTO__TRACE_PACKET__INIT;

	symbols_release(&w->symbols);
	w->sequence = sequence;
	w->flags = FLAGS_GO_ON;
	w->functions = w->mappings = w->locations = 0;
	memset(w->has_stack, 0, stacktab_count(w->p->stacks) * sizeof(*w->has_stack));
	packet.sequence_flags = FLAGS_BEGIN;
	defaults.timestamp_clock_id = CLOCK_ID_MONOTONIC;
	defaults.perf_sample_defaults = of;
	packet.trace_packet_defaults = &defaults;
	put(w, &packet);
	return symbols_init(&w->symbols, w->p, SYMBOLS_PYTHON_PATH);
}

/* --- processes and threads -------------------------------------------------------------------- */

static uint32_t pid_of(const struct perfetto *w, const struct timeline_list *l)
{
	return w->p->processes.items[w->p->threads.items[l->thread].process].pid ?: UNKNOWN_PID;
}

static uint32_t tid_of(const struct perfetto *w, const struct timeline_list *l)
{
	return w->p->threads.items[l->thread].tid ?: pid_of(w, l);
}

static uint64_t track_of(const struct perfetto *w, const struct timeline_list *l)
{
	return (uint64_t)pid_of(w, l) << 32 | tid_of(w, l);
}

static int put_thread(struct perfetto *w, const struct timeline_list *l)
{
	const struct thread *from = &w->p->threads.items[l->thread];
	const struct process *owner = &w->p->processes.items[from->process];
	Perfetto__ProcessTree__Process process = PERFETTO__PROCESS_TREE__PROCESS__INIT;
	Perfetto__ProcessTree__Process *processes = &process;
	Perfetto__ProcessTree__Thread thread = PERFETTO__PROCESS_TREE__THREAD__INIT;
	Perfetto__ProcessTree__Thread *threads = &thread;
	Perfetto__ProcessTree tree = PERFETTO__PROCESS_TREE__INIT;
	Perfetto__TracePacket packet = PERFETTO__TRACE_PACKET__INIT;
	char *name = NULL;
	int r;

	if ((r = text_of(w, owner->name, &name)) < 0 ||
	    (r = text_of(w, from->name, &thread.name)) < 0)
		return r;
	process.pid = (int32_t)pid_of(w, l);
	process.ppid = (int32_t)owner->ppid;
	process.n_cmdline = owner->name != 0;
	process.cmdline = &name;
	thread.tid = (int32_t)tid_of(w, l);
	thread.tgid = process.pid;
	tree.n_processes = tree.n_threads = 1;
	tree.processes = &processes;
	tree.threads = &threads;
	packet.process_tree = &tree;
	put(w, &packet);
	return 0;
}

/* When it was: readers show the time of day, and merge traces by these. */
static void put_clocks(struct perfetto *w, const struct recording *of)
{
	Perfetto__ClockSnapshot__Clock clocks[2] = { PERFETTO__CLOCK_SNAPSHOT__CLOCK__INIT,
						     PERFETTO__CLOCK_SNAPSHOT__CLOCK__INIT };
	Perfetto__ClockSnapshot__Clock *list[] = { &clocks[0], &clocks[1] };
	Perfetto__ClockSnapshot snapshot = PERFETTO__CLOCK_SNAPSHOT__INIT;
	Perfetto__TracePacket packet = PERFETTO__TRACE_PACKET__INIT;

	clocks[0].clock_id = CLOCK_ID_MONOTONIC;
	clocks[0].timestamp = of->start_monotonic_ns;
	clocks[1].clock_id = CLOCK_ID_REALTIME;
	clocks[1].timestamp = of->start_realtime_ns;
	snapshot.n_clocks = of->start_realtime_ns ? 2 : 1;
	snapshot.clocks = list;
	snapshot.primary_trace_clock = CLOCK_ID_MONOTONIC;
	packet.clock_snapshot = &snapshot;
	put(w, &packet);
}

/* --- slices ----------------------------------------------------------------------------------- */

static int put_slice(struct perfetto *w, const struct timeline_list *l, const struct stretch *s)
{
	Perfetto__DebugAnnotation function = PERFETTO__DEBUG_ANNOTATION__INIT;
	Perfetto__DebugAnnotation *annotations = &function;
	Perfetto__TrackEvent event = PERFETTO__TRACK_EVENT__INIT;
	Perfetto__TracePacket packet = PERFETTO__TRACE_PACKET__INIT;
	char *category = (char *)stretch_names[s->kind];
	size_t len;
	const char *reason = stretch_reason(w->p, s, &len);
	int r = text_of(w, stretch_function(w->p, s), &function.string_value);

	strbuf_truncate(&w->text, 0);
	if (r < 0 || (r = escape_append(&w->text, reason, len, "")) < 0)
		return r;
	function.name = (char *)"function";
	event.n_debug_annotations = 1;
	event.debug_annotations = &annotations;
	event.type = SLICE_BEGIN;
	event.track_uuid = track_of(w, l);
	event.n_categories = 1;
	event.categories = &category;
	event.name = (char *)strbuf_str(&w->text);
	set_time(w, &packet, s->begin_ns);
	packet.track_event = &event;
	put(w, &packet);
	set_time(w, &packet, s->end_ns);
	event = (Perfetto__TrackEvent)PERFETTO__TRACK_EVENT__INIT;
	event.type = SLICE_END;
	event.track_uuid = track_of(w, l);
	put(w, &packet);
	return 0;
}

/* Slices of a track do not overlap, or they would be within each other. */
static int put_slices(struct perfetto *w, const struct timeline_list *l)
{
	struct stretches all = stretches_begin(w->p, l);
	uint64_t end_ns = 0;
	struct stretch s;
	int r = 0;

	while (!r && stretches_next(&all, &s)) {
		if (s.begin_ns < end_ns)
			s.begin_ns = end_ns;
		if (s.end_ns < s.begin_ns)
			s.end_ns = s.begin_ns;
		end_ns = s.end_ns;
		r = put_slice(w, l, &s);
	}
	return r;
}

static void put_track(struct perfetto *w, const struct timeline_list *l)
{
	Perfetto__ThreadDescriptor thread = PERFETTO__THREAD_DESCRIPTOR__INIT;
	Perfetto__TrackDescriptor track = PERFETTO__TRACK_DESCRIPTOR__INIT;
	Perfetto__TracePacket packet = PERFETTO__TRACE_PACKET__INIT;

	thread.pid = (int32_t)pid_of(w, l);
	thread.tid = (int32_t)tid_of(w, l);
	track.uuid = track_of(w, l);
	track.thread = &thread;
	packet.track_descriptor = &track;
	put(w, &packet);
}

static int put_tracks(struct perfetto *w)
{
	int r = begin_sequence(w, SEQUENCE_TRACKS, NULL);

	for (size_t i = 0; i < w->timeline.lists.len && !r; i++) {
		const struct timeline_list *l = &w->timeline.lists.items[i];

		if (i && l[-1].thread == l->thread)
			continue; /* its time is the first of its lists */
		r = put_thread(w, l);
		put_track(w, l);
		if (!r)
			r = put_slices(w, l);
	}
	return r;
}

/* --- what samples point to -------------------------------------------------------------------- */

static Perfetto__InternedString interned(uint64_t iid, const struct strtab *strings, uint32_t id)
{
	Perfetto__InternedString s = PERFETTO__INTERNED_STRING__INIT;

	s.iid = iid;
	s.str.data = (uint8_t *)strtab_get(strings, id);
	s.str.len = strtab_len(strings, id);
	return s;
}

static void put_interned(struct perfetto *w, Perfetto__InternedData *data)
{
	Perfetto__TracePacket packet = PERFETTO__TRACE_PACKET__INIT;

	packet.interned_data = data;
	put(w, &packet);
}

static void put_mapping(struct perfetto *w, uint64_t iid, const uint32_t *module)
{
	Perfetto__InternedString path, *paths = &path;
	Perfetto__Mapping mapping = PERFETTO__MAPPING__INIT, *mappings = &mapping;
	Perfetto__InternedData data = PERFETTO__INTERNED_DATA__INIT;

	mapping.iid = iid;
	data.n_mappings = 1;
	data.mappings = &mappings;
	if (module) {
		path = interned(iid, w->symbols.strings, *module);
		mapping.n_path_string_ids = data.n_mapping_paths = 1;
		mapping.path_string_ids = &path.iid;
		data.mapping_paths = &paths;
	}
	put_interned(w, &data);
}

static void put_function(struct perfetto *w, size_t index)
{
	const struct frame *f = frametab_get(w->symbols.functions, (uint32_t)index);
	Perfetto__InternedString name = interned(index + 1, w->symbols.strings, f->name),
				 *names = &name;
	Perfetto__InternedString file = interned(index + 1, w->symbols.strings, f->file),
				 *files = &file;
	Perfetto__InternedData data = PERFETTO__INTERNED_DATA__INIT;

	data.n_function_names = 1;
	data.function_names = &names;
	data.n_source_paths = f->file != 0;
	data.source_paths = &files;
	put_interned(w, &data);
}

static void put_frame(struct perfetto *w, size_t index)
{
	const struct symbols_location *from = &w->symbols.locations.items[index];
	const struct frame *f = frametab_get(w->symbols.functions, from->function);
	Perfetto__Frame frame = PERFETTO__FRAME__INIT, *frames = &frame;
	Perfetto__InternedData data = PERFETTO__INTERNED_DATA__INIT;

	frame.iid = frame.rel_pc = index + 1;
	frame.function_name_id = (uint64_t)from->function + 1;
	frame.mapping_id = from->mapping == SYMBOLS_NO_MAPPING
				   ? NO_MAPPING_IID
				   : (uint64_t)from->mapping + FIRST_MAPPING_IID;
	frame.source_path_iid = f->file ? (uint64_t)from->function + 1 : 0;
	frame.line_number = from->line;
	frame.kind = frame_kinds[from->kind];
	data.n_frames = 1;
	data.frames = &frames;
	put_interned(w, &data);
}

/* What the stack that was read is made of, where it was not needed before. */
static void put_symbols(struct perfetto *w)
{
	const struct symbols *s = &w->symbols;

	for (; w->mappings < s->mappings.len; w->mappings++)
		put_mapping(w, w->mappings + FIRST_MAPPING_IID, &s->mappings.items[w->mappings]);
	for (; w->functions < frametab_count(s->functions); w->functions++)
		put_function(w, w->functions);
	for (; w->locations < s->locations.len; w->locations++)
		put_frame(w, w->locations);
}

/* Reads a stack of this sequence: its frames, root first, go to w->frames. */
static int read_stack(struct perfetto *w, uint32_t stack)
{
	int r = symbols_stack(&w->symbols, stack, &w->stack);

	if (r < 0)
		return r;
	put_symbols(w);
	w->frames.len = 0;
	for (size_t i = w->stack.len; i-- > 0 && !r;)
		r = vec_push(&w->frames, (uint64_t)w->stack.items[i] + 1);
	return r;
}

/* --- samples ---------------------------------------------------------------------------------- */

static int put_sample(struct perfetto *w, const struct timeline_list *l,
		      const struct timeline_entry *e)
{
	Perfetto__Callstack callstack = PERFETTO__CALLSTACK__INIT, *callstacks = &callstack;
	Perfetto__InternedData data = PERFETTO__INTERNED_DATA__INIT;
	Perfetto__PerfSample sample = PERFETTO__PERF_SAMPLE__INIT;
	Perfetto__TracePacket packet = PERFETTO__TRACE_PACKET__INIT;
	uint64_t parts[] = { e->duration_ns ? 0 : e->value, e->duration_ns ? e->value : 0 };

	sample.callstack_iid = (uint64_t)e->stack + 1;
	if (!w->has_stack[e->stack]) {
		int r = read_stack(w, e->stack);

		if (r < 0)
			return r;
		w->has_stack[e->stack] = true;
		callstack.iid = sample.callstack_iid;
		callstack.n_frame_ids = w->frames.len;
		callstack.frame_ids = w->frames.items;
		data.n_callstacks = 1;
		data.callstacks = &callstacks;
		packet.interned_data = &data;
	}
	sample.cpu = e->cpu;
	sample.pid = pid_of(w, l);
	sample.tid = tid_of(w, l);
	sample.cpu_mode = e->flags & SAMPLE_BIT_KERNEL ? MODE_KERNEL : MODE_USER;
	sample.timebase_count = e->value;
	sample.n_follower_counts = w->splits ? 2 : 0;
	sample.follower_counts = parts;
	set_time(w, &packet, e->time_ns);
	packet.perf_sample = &sample;
	put(w, &packet);
	return 0;
}

static const char *unit_suffix(uint8_t unit)
{
	return unit == UNIT_NS ? ", ns" : unit == UNIT_BYTES ? ", bytes" : "";
}

/* "wall, ns": what the values of a session are, which readers show beside them. */
static int name_session(struct perfetto *w, const struct session *s)
{
	const char *name = s->has_waits ? KINDS_WALL
			   : s->kind == TIMELINE_TIME && w->p->kinds.len
				   ? KINDS_CPU
				   : json_tick_kind(profile_recording(w->p));

	if (s->kind != TIMELINE_TIME)
		name = strtab_get(w->p->strings, w->p->kinds.items[s->kind - 1].name);
	strbuf_truncate(&w->text, 0);
	escape_append(&w->text, name, strlen(name), "");
	return strbuf_puts(&w->text, unit_suffix(s->unit));
}

static int begin_session(struct perfetto *w, uint32_t sequence, const struct session *s)
{
	Perfetto__PerfSampleDefaults__Timebase timebase =
		PERFETTO__PERF_SAMPLE_DEFAULTS__TIMEBASE__INIT;
	Perfetto__PerfSampleDefaults__Follower
		parts[2] = { PERFETTO__PERF_SAMPLE_DEFAULTS__FOLLOWER__INIT,
			     PERFETTO__PERF_SAMPLE_DEFAULTS__FOLLOWER__INIT },
		*followers[] = { &parts[0], &parts[1] };
	Perfetto__PerfSampleDefaults defaults = PERFETTO__PERF_SAMPLE_DEFAULTS__INIT;
	int r = name_session(w, s);

	if (r < 0)
		return r;
	timebase.counter = s->unit == UNIT_NS ? COUNTER_CPU_CLOCK : 0;
	timebase.name = (char *)strbuf_str(&w->text);
	defaults.timebase = &timebase;
	parts[0].name = (char *)KINDS_CPU ", ns";
	parts[1].name = (char *)KINDS_OFF_CPU ", ns";
	w->splits = s->has_waits;
	defaults.n_followers = w->splits ? 2 : 0;
	defaults.followers = followers;
	r = begin_sequence(w, sequence, &defaults);
	if (!r)
		put_mapping(w, NO_MAPPING_IID, NULL);
	return r;
}

static int put_session(struct perfetto *w, uint32_t sequence, const struct session *s)
{
	int r = begin_session(w, sequence, s);

	for (size_t i = 0; i < w->timeline.lists.len && !r; i++) {
		const struct timeline_list *l = &w->timeline.lists.items[i];
		struct timeline_cursor c = timeline_begin(l);

		while (l->kind == s->kind && !r && timeline_next(&c))
			r = put_sample(w, l, &c.entry);
	}
	return r;
}

/* All lists of a kind, which has one unit; but ticks of some recordings are time and others not. */
static int put_sessions(struct perfetto *w)
{
	int r = 0;

	for (size_t kind = 0; kind <= w->p->kinds.len && !r; kind++) {
		struct session s = { .kind = (uint16_t)kind };
		bool is_used = false;

		for (size_t i = 0; i < w->timeline.lists.len; i++) {
			const struct timeline_list *l = &w->timeline.lists.items[i];

			if (l->kind != kind)
				continue;
			if (!is_used)
				s.unit = l->unit;
			s.has_waits |= l->has_waits;
			is_used = true;
		}
		if (is_used)
			r = put_session(w, SEQUENCE_TRACKS + 1 + (uint32_t)kind, &s);
	}
	return r;
}

static int finish(struct exporting *x)
{
	struct perfetto *w = x->state;
	const struct recording *of = profile_recording(x->p);
	int r = timeline_finish(&w->timeline, x->p);

	if (r < 0)
		return r;
	w->p = x->p;
	w->out = x->out;
	w->buffer.append = append_packed;
	w->start_ns = of->start_monotonic_ns;
	w->has_stack = calloc(stacktab_count(x->p->stacks), sizeof(*w->has_stack));
	if (!w->has_stack)
		return -ENOMEM;
	put_clocks(w, of);
	return put_tracks(w) ?: put_sessions(w);
}

static const char *const suffixes[] = { ".pftrace", ".perfetto-trace", ".perfetto", NULL };

const struct exporter exporter_perfetto = {
	.name = "perfetto",
	.suffixes = suffixes,
	.help = "for ui.perfetto.dev: samples with CPU and weight, waits as slices",
	.needs = EXPORT_NEEDS_SAMPLES,
	.begin = begin,
	.take = take,
	.release = release,
	.finish = finish,
};
