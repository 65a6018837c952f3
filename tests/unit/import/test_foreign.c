/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* What each format's lines, events and messages become; how what is wrong with them is said. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>
#include <zlib.h>
#include <zstd.h>

#include "base/err.h"
#include "base/file.h"
#include "base/strbuf.h"
#include "import/import.h"
#include "pprof.pb-c.h"
#include "profile/sample_flag.h"

struct fixture {
	struct profile *p;
	const char *format; /* of the importer */
	int result;
	struct strbuf text; /* a line a sample */
};

static const char *text_of(const struct fixture *f, uint32_t string)
{
	return strtab_get(f->p->strings, string);
}

static void put_stack(struct fixture *f, uint32_t stack)
{
	static const char *const marks[] = { [FRAME_PYTHON] = "",
					     [FRAME_NATIVE] = "native:",
					     [FRAME_KERNEL] = "kernel:",
					     [FRAME_MARKER] = "!" };
	const struct stack_entry *entry = &stacktab_entries(f->p->stacks)[stack];
	const struct frame *frame;

	if (!stack)
		return;
	put_stack(f, entry->parent);
	frame = frametab_get(f->p->frames, entry->frame);
	strbuf_appendf(&f->text, " %s%s@%s:%" PRIu32, marks[frame->kind], text_of(f, frame->name),
		       text_of(f, frame->file), frame->line);
	if (frame->first_line)
		strbuf_appendf(&f->text, "<%" PRIu32, frame->first_line);
}

static void put_labels(struct fixture *f, uint32_t set)
{
	const struct label_entry *entries = labeltab_entries(f->p->labels);

	for (; set; set = entries[set].parent)
		strbuf_appendf(&f->text, " %s=%s", text_of(f, entries[set].name),
			       text_of(f, entries[set].value));
}

/* "KIND PID/TID THREAD FRAME@FILE:LINE ... LABEL=VALUE xVALUE +TIME~DURATION #FLAG" */
static void put_sample(struct fixture *f, const struct sample *s)
{
	const struct thread *t = &f->p->threads.items[s->thread];
	const struct process *process = &f->p->processes.items[t->process];

	strbuf_puts(&f->text, s->kind ? text_of(f, f->p->kinds.items[s->kind - 1].name) : "tick");
	if (process->pid || t->tid || t->name)
		strbuf_appendf(&f->text, " %" PRIu32 "/%" PRIu32 " %s%s", process->pid, t->tid,
			       text_of(f, process->name), text_of(f, t->name));
	put_stack(f, s->stack);
	put_labels(f, s->labels);
	strbuf_appendf(&f->text, " x%" PRIu64, s->value);
	if (s->time_ns || s->duration_ns)
		strbuf_appendf(&f->text, " +%" PRIu64 "~%" PRIu64, s->time_ns, s->duration_ns);
	for (size_t i = 0; i < sample_flag_count; i++)
		if (s->flags & sample_flags[i].bit)
			strbuf_appendf(&f->text, " #%s", sample_flags[i].name);
	strbuf_putc(&f->text, '\n');
}

/* As the file at a path that says nothing. as: NULL: what it looks like. */
static void fixture_read(struct fixture *f, const struct importer *as, const void *bytes,
			 size_t len)
{
	_cleanup_(closep) int fd = memfd_create("foreign", MFD_CLOEXEC);
	_cleanup_(import_freep) struct import *i = NULL;
	struct import_choice choice = { 0 };
	char path[64];

	*f = (struct fixture){ .text = STRBUF_INIT };
	while (import_chosen(choice) != as)
		choice.format++;
	assert_int_equal(profile_new(&f->p), 0);
	assert_int_equal(file_write(fd, bytes, len), 0);
	snprintf(path, sizeof(path), "/proc/self/fd/%d", fd);
	f->result = import_open(path, choice, &i);
	if (f->result <= 0)
		return;
	f->format = import_format(i);
	while ((f->result = import_next(i, f->p)) > 0)
		;
	for (size_t k = 0; k < f->p->samples.len; k++)
		put_sample(f, &f->p->samples.items[k]);
}

static void fixture_release(struct fixture *f)
{
	profile_free(f->p);
	strbuf_release(&f->text);
}

struct row {
	const char *name, *text, *want; /* what is read; NULL: it is refused */
	const char *error;              /* in the message */
};

static void check_row(const struct importer *as, const struct row *row)
{
	struct fixture f;

	fixture_read(&f, as, row->text, strlen(row->text));
	if (row->error && f.result != -EBADMSG)
		fail_msg("%s: got %d, want an error", row->name, f.result);
	if (row->error && !strstr(err_message(f.result), row->error))
		fail_msg("%s: got '%s', want '%s'", row->name, err_message(f.result), row->error);
	if (!row->error && f.result)
		fail_msg("%s: %s", row->name, err_message(f.result));
	if (row->want && strcmp(strbuf_str(&f.text), row->want) != 0)
		fail_msg("%s: got\n%swant\n%s", row->name, strbuf_str(&f.text), row->want);
	fixture_release(&f);
}

#define CHECK_ROWS(as, rows)                                             \
	for (size_t i_ = 0; i_ < sizeof(rows) / sizeof((rows)[0]); i_++) \
	check_row(as, &(rows)[i_])

#define AUSTIN(mode) "# austin: 3.7.0\n# interval: 100\n# mode: " mode "\n\n"

static void test_austin_lines(void **state)
{
	static const struct row rows[] = {
		{ "microseconds", AUSTIN("wall") "P4;T0:5;a.py:f:2;b.py:C.m:30 7\n",
		  "wall 4/5  f@a.py:2 C.m@b.py:30 x7000\n", NULL },
		{ "cpu mode", AUSTIN("cpu") "P4;T0:5;a.py:f:2 7\n", "cpu 4/5  f@a.py:2 x7000\n",
		  NULL },
		{ "no frames", AUSTIN("cpu") "P4;T0:5 7\n", "cpu 4/5  x7000\n", NULL },
		{ "no interpreter, as up to 3.5", AUSTIN("cpu") "P4;T5;a.py:f:2 7\n",
		  "cpu 4/5  f@a.py:2 x7000\n", NULL },
		{ "second interpreter", AUSTIN("cpu") "P4;T1:5 7\n",
		  "cpu 4/5 interpreter 1 x7000\n", NULL },
		{ "thread of pthreads", AUSTIN("cpu") "P4;T4294967296 7\n",
		  "cpu 4/0 thread 0x100000000 x7000\n", NULL },
		{ "memory", AUSTIN("memory") "P4;T0:5 4096\nP4;T0:5 -512\nP4;T0:5 0\n",
		  "memory 4/5  x4096\nmemory-freed 4/5  x512\n", NULL },
		{ "full", AUSTIN("full") "P4;T0:5 7,0,-3\nP4;T0:5 8,1,4\n",
		  "cpu 4/5  x7000\nmemory-freed 4/5  x3\noff-cpu 4/5  x8000\nmemory 4/5  x4\n",
		  NULL },
		{ "markers", AUSTIN("cpu") "P4;T0:5;a.py:f:2;:GC: 1\nP4;T0:5;:INVALID: 1\n",
		  "cpu 4/5  f@a.py:2 !<GC>@:0 x1000\ncpu 4/5  !<invalid>@:0 x1000\n", NULL },
		{ "kernel", AUSTIN("cpu") "P4;T0:5;kernel:read:0 1\n",
		  "cpu 4/5  kernel:read@kernel:0 x1000\n", NULL },
		{ "splits from the right", AUSTIN("cpu") "P4;T0:5;C:\\a b.py:f:2 1\n",
		  "cpu 4/5  f@C:\\a b.py:2 x1000\n", NULL },
		{ "no header: nobody knows what", "P4;T0:5 7\n", "value 4/5  x7\n", NULL },
		{ "no header, three numbers", "P4;T0:5 7,1,3\n",
		  "off-cpu 4/5  x7000\nmemory 4/5  x3\n", NULL },
		{ "one number in full mode", AUSTIN("full") "P4;T0:5 7\n", NULL,
		  "line 5, at byte 46: expected the numbers" },
		{ "no process", AUSTIN("wall") "T0:5;a.py:f:2 7\n", NULL,
		  "line 5, at byte 46: no P<pid>" },
		{ "2^60 and more", AUSTIN("wall") "P4;T0:5 9223372036854775807\n", NULL,
		  "add up to more than 2^63" },
	};

	(void)state;
	CHECK_ROWS(&importer_austin, rows);
}

static void test_perf_lines(void **state)
{
	static const struct row rows[] = {
		{ "leaf first; clock in ns",
		  "py 4/5 [001] 7.000001: 1000 cpu-clock:\n\t7f00 leaf+0x1f (/usr/lib/a.so)\n"
		  "\t7f01 root (/usr/lib/a.so)\n\n",
		  "cpu 4/5 py native:root@/usr/lib/a.so:0 native:leaf@/usr/lib/a.so:0 x1000\n",
		  NULL },
		{ "times since the first", "py 5 7.5: 1 cycles:\n\npy 5 7.500002: 1 cycles:\n",
		  "cycles 0/5 py x1\ncycles 0/5 py x1 +2000~0\n", NULL },
		{ "no period: a sample is one", "py 5 7.5: cycles:u:\n\n", "cycles:u 0/5 py x1\n",
		  NULL },
		{ "a clock without period: ticks", "py 5 7.5: cpu-clock:\n\n", "tick 0/5 py x1\n",
		  NULL },
		{ "spaces in the command", "my prog 2 5 7.5: 1 cycles:\n",
		  "cycles 0/5 my prog 2 x1\n", NULL },
		{ "kernel",
		  "a 5 7.5: 1 cycles:\n\tffffffff81000000 do_it+0x1 (e1000)\n"
		  "\t10 x ([kernel.kallsyms])\n",
		  "cycles 0/5 a kernel:x@[kernel.kallsyms]:0 kernel:do_it@e1000:0 x1\n", NULL },
		{ "Python", "a 5 7.5: 1 cycles:\n\t10 py::C.m:/srv/a b.py+0xa (/tmp/perf-5.map)\n",
		  "cycles 0/5 a C.m@/srv/a b.py:0 x1\n", NULL },
		{ "inlined, unknown",
		  "a 5 7.5: 1 cycles:\n\t10 f(int) const (inlined)\n\t11 [unknown] ([unknown])\n",
		  "cycles 0/5 a native:[unknown]@:0 native:f(int) const@:0 x1\n", NULL },
		{ "ours",
		  "a (1) 4/5 [000] 0.0: 9 cpu:gil,route=/cart,of=\\x3a:\n"
		  "\t0 f.<locals>.g (/a\\x20b.py:12)\n\t0 <GC> ()\n",
		  "cpu 4/5 a (1) !<GC>@:0 f.<locals>.g@/a b.py:12 of=: route=/cart x9 #gil\n",
		  NULL },
		{ "an event's parameters are its name", "a 5 7.5: 3 cpu/event=0x3c/:\n",
		  "cpu/event=0x3c/ 0/5 a x3\n", NULL },
		{ "a frame in the line", "a 5 7.5: 3 cycles: 10 f+0x1 (/b)\n",
		  "cycles 0/5 a native:f@/b:0 x3\n", NULL },
		{ "neither", "a 5 7.5: 3 cycles:\nwhat is this\n", NULL,
		  "line 2, at byte 19: neither a sample nor a frame" },
		{ "2^63", "a 5 7.5: 9223372036854775807 cycles:\n\na 5 7.6: 1 cycles:\n\n", NULL,
		  "line 4, at byte 57: periods that add up" },
	};

	(void)state;
	CHECK_ROWS(&importer_perf, rows);
}

#define FRAMES                                                                   \
	"\"shared\":{\"frames\":[{\"name\":\"f\",\"file\":\"a.py\",\"line\":2}," \
	"{\"name\":\"g\",\"file\":null,\"line\":null,\"col\":null}]}"
#define SAMPLED(unit, samples, weights)                                                   \
	"{\"profiles\":[{\"type\":\"sampled\",\"name\":\"worker\",\"unit\":\"" unit       \
	"\",\"startValue\":0,\"endValue\":9,\"samples\":" samples ",\"weights\":" weights \
	"}]," FRAMES "}"
#define EVENTED(unit, events)                                                                   \
	"{" FRAMES ",\"profiles\":[{\"events\":" events ",\"name\":\"worker\",\"unit\":\"" unit \
	"\",\"startValue\":100,\"endValue\":900,\"type\":\"evented\"}]}"
#define EVENT(type, frame, at) "{\"type\":\"" type "\",\"frame\":" frame ",\"at\":" at "}"

static void test_speedscope_profiles(void **state)
{
	static const struct row rows[] = {
		{ "seconds", SAMPLED("seconds", "[[0],[0,1]]", "[0.01,1e-3]"),
		  "time 0/0 worker f@a.py:2 x10000000\ntime 0/0 worker f@a.py:2 !g@:0 x1000000\n",
		  NULL },
		{ "bytes; freed", SAMPLED("bytes", "[[0],[0]]", "[7,-8]"),
		  "bytes 0/0 worker f@a.py:2 x7\nbytes-freed 0/0 worker f@a.py:2 x8\n", NULL },
		{ "nothing on the stack", SAMPLED("none", "[[],[0]]", "[5,6]"),
		  "weight 0/0 worker f@a.py:2 x6\n", NULL },
		{ "evented",
		  EVENTED("milliseconds",
			  "[" EVENT("O", "0", "100") "," EVENT("O", "1", "101.5") "," EVENT(
				  "C", "1", "102") "," EVENT("C", "0", "102") "]"),
		  "time 0/0 worker f@a.py:2 x1500000 +0~1500000\n"
		  "time 0/0 worker f@a.py:2 !g@:0 x500000 +1500000~500000\n",
		  NULL },
		{ "more samples than weights", SAMPLED("none", "[[0],[0]]", "[5]"), NULL,
		  "a profile with more samples than weights" },
		{ "no such frame", SAMPLED("none", "[[2]]", "[5]"), NULL,
		  "at byte 102: a frame that is not in the list" },
		{ "half a frame", SAMPLED("none", "[[0.5]]", "[5]"), NULL, "not in the list" },
		{ "2^63", SAMPLED("none", "[[0]]", "[1e300]"), NULL, "add up to more than 2^63" },
		{ "back in time",
		  EVENTED("none", "[" EVENT("O", "0", "200") "," EVENT("C", "0", "199") "]"), NULL,
		  "an event before the one in front of it" },
		{ "closed out of order",
		  EVENTED("none", "[" EVENT("O", "0", "200") "," EVENT("C", "1", "201") "]"), NULL,
		  "closes a frame that is not the innermost" },
		{ "not closed", EVENTED("none", "[" EVENT("O", "0", "200") "]"), NULL,
		  "ends with frames still open" },
		{ "no profiles", "{\"shared\":{}}", NULL, "no profiles in it" },
		{ "a type of its own", "{\"profiles\":[{\"type\":\"x\"}]}", NULL,
		  "neither sampled nor evented" },
		{ "cut", "{\"profiles\":[{\"type\":\"sampled\"", NULL,
		  "at byte 30: unexpected end of file" },
		{ "not JSON", "{\"profiles\":[}", NULL, "at byte 13: no value of JSON" },
		{ "behind its end", "{\"profiles\":[]} x", NULL, "at byte 16: unexpected data" },
	};

	(void)state;
	CHECK_ROWS(&importer_speedscope, rows);
}

/* Names of profiles as writers make them. */
static void test_speedscope_owners(void **state)
{
	static const struct {
		const char *exporter, *name, *want;
	} cases[] = {
		{ "pyebpf 0.1.0", "py (4) w (1) (5)", "cpu 4/5 pyw (1)" },
		{ "pyebpf 0.1.0", "py (4) w (5): off-cpu", "off-cpu 4/5 pyw" },
		{ "py-spy@0.4.3", "Thread 5 \"w\"", "time 0/5 w" },
		{ "py-spy@0.4.3", "Process 4 Thread 5 \"\"", "time 4/5 " },
		{ "x", "Wall time profile for 4:0:5", "wall 4/5 " },
		{ "x", "Memory deallocation profile for 4:1:5", "memory-freed 4/5 interpreter 1" },
		{ "x", "main (4)", "time 0/0 main (4)" },
		{ "x", "", "time" },
	};

	(void)state;
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		struct fixture f;
		_cleanup_(strbuf_releasep) struct strbuf text = STRBUF_INIT, name = STRBUF_INIT;

		for (const char *c = cases[i].name; *c; c++)
			strbuf_appendf(&name, "%s%c", *c == '"' ? "\\" : "", *c);
		strbuf_appendf(
			&text,
			"{\"exporter\":\"%s\",\"profiles\":[{\"type\":\"sampled\",\"name\":"
			"\"%s\",\"unit\":\"nanoseconds\",\"samples\":[[0]],\"weights\":[3]}],"
			"\"shared\":{\"frames\":[{\"name\":\"f\"}]}}",
			cases[i].exporter, strbuf_str(&name));
		fixture_read(&f, NULL, text.bytes, text.len);
		assert_string_equal(f.format, "speedscope");
		strbuf_truncate(&name, 0);
		strbuf_appendf(&name, "%s !f@:0 x3\n", cases[i].want);
		assert_string_equal(strbuf_str(&f.text), strbuf_str(&name));
		fixture_release(&f);
	}
}

/* --- MOJO: bytes as Austin writes them -------------------------------------------------------- */

#define MOJO(version) "MOJ" version "\1mode\0full\0"
#define STACK "\2\x04\0005\0" /* pid 4, interpreter 0, thread 5 */

struct bytes_row {
	const char *name;
	const char *bytes;
	size_t len;
	const char *want, *error;
};
#define BYTES(b) b, sizeof(b) - 1

static void test_mojo_events(void **state)
{
	static const struct bytes_row rows[] = {
		{ "a sample",
		  BYTES(MOJO("\3") STACK "\13\5a.py\0\13\6f\0\3\7\5\6\x09\x09\1\2\5\7\x09\x07"),
		  "cpu 4/5  f@a.py:9 x7000\n", NULL },
		{ "version 1 has no columns",
		  BYTES("MOJ\1\1mode\0cpu\0\2\4"
			"5\0\13\5a.py\0\13\6f\0\3\7\5\6\x09\5\7\x09\x07"),
		  "cpu 4/5  f@a.py:9 x7000\n", NULL },
		{ "idle, freed, collector", BYTES(MOJO("\3") STACK "\7\10\x09\x07\12\x43"),
		  "off-cpu 4/5  !<GC>@:0 x7000\nmemory-freed 4/5  !<GC>@:0 x3\n", NULL },
		{ "the last word counts",
		  BYTES(MOJO("\3") STACK "\13\5a\0\13\5b\0\3\7\5\1\1\0\0\0\5\7\x09\x01"),
		  "cpu 4/5  <unknown>@b:1 x1000\n", NULL },
		{ "kernel, invalid", BYTES(MOJO("\3") STACK "\6read\0\4\x09\x01"),
		  "cpu 4/5  kernel:read@kernel:0 !<invalid>@:0 x1000\n", NULL },
		{ "a repetition, without the native frames on top",
		  BYTES(MOJO("\3") STACK
			"\13\5a.py\0\13\6c.so\0\3\7\5\1\1\0\0\0\3\10\6\1\0\0\0\0\5\7"
			"\5\10\x09\x01" STACK "\5\10\15\x09\x02"),
		  "cpu 4/5  <unknown>@a.py:1 <unknown>@c.so:0 x1000\n"
		  "cpu 4/5  <unknown>@a.py:1 <unknown>@c.so:0 x2000\n",
		  NULL },
		{ "tasks are read over",
		  BYTES(MOJO("\3") STACK
			"\13\5a.py\0\3\7\5\1\1\0\0\0\16\1\0\1\5\7\17\1\2\20\1\x09\x01"),
		  "cpu 4/5  x1000\n", NULL },
		{ "no such frame", BYTES(MOJO("\3") STACK "\5\7"), NULL,
		  "a frame that is not there" },
		{ "no such string", BYTES(MOJO("\3") STACK "\3\7\5\6\1\0\0\0"), NULL,
		  "a frame names no string" },
		{ "unknown event", BYTES(MOJO("\3") STACK "\x63"), NULL,
		  "at byte 21: an unknown event" },
		{ "cut", BYTES(MOJO("\3") STACK "\13\5a.p"), NULL, "it ends within a string" },
		{ "cut number", BYTES(MOJO("\3") STACK "\x09\x80"), NULL,
		  "it ends within a number" },
		{ "2^60 and more",
		  BYTES(MOJO("\3") STACK "\x09\xbf\xff\xff\xff\xff\xff\xff\xff\x7f"), NULL,
		  "add up to more than 2^63" },
		{ "more than 64 bits",
		  BYTES(MOJO("\3") STACK "\x09\xbf\xff\xff\xff\xff\xff\xff\xff\xff\x7f"), NULL,
		  "a number of more than 64 bits" },
	};

	(void)state;
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		struct fixture f;

		fixture_read(&f, NULL, rows[i].bytes, rows[i].len);
		if (rows[i].error &&
		    (f.result != -EBADMSG || !strstr(err_message(f.result), rows[i].error)))
			fail_msg("%s: got %s", rows[i].name, err_message(f.result));
		if (rows[i].want && strcmp(strbuf_str(&f.text), rows[i].want) != 0)
			fail_msg("%s: got\n%swant\n%s", rows[i].name, strbuf_str(&f.text),
				 rows[i].want);
		assert_string_equal(f.format, "mojo");
		fixture_release(&f);
	}
}

/* --- pprof: parts, packed one by one ---------------------------------------------------------- */

static void put_part(struct strbuf *out, const Pprof__Profile *part)
{
	uint8_t packed[512];
	size_t len = pprof__profile__pack(part, packed);

	assert_true(len <= sizeof(packed));
	strbuf_append(out, (const char *)packed, len);
}

static void put_type(struct strbuf *out, int64_t type, int64_t unit)
{
	Pprof__ValueType value = PPROF__VALUE_TYPE__INIT, *list = &value;
	Pprof__Profile part = PPROF__PROFILE__INIT;

	value.type = type;
	value.unit = unit;
	part.n_sample_type = 1;
	part.sample_type = &list;
	put_part(out, &part);
}

static void put_pprof_sample(struct strbuf *out, uint64_t location, int64_t first, int64_t second)
{
	Pprof__Sample sample = PPROF__SAMPLE__INIT, *list = &sample;
	Pprof__Label label = PPROF__LABEL__INIT, *labels = &label;
	Pprof__Profile part = PPROF__PROFILE__INIT;
	int64_t values[] = { first, second };

	label.key = 9;
	label.num = 128;
	label.num_unit = 3;
	sample.n_location_id = 1;
	sample.location_id = &location;
	sample.n_value = 2;
	sample.value = values;
	sample.n_label = 1;
	sample.label = &labels;
	part.n_sample = 1;
	part.sample = &list;
	put_part(out, &part);
}

static void put_function(struct strbuf *out, uint64_t id, int64_t name)
{
	Pprof__Function function = PPROF__FUNCTION__INIT, *list = &function;
	Pprof__Profile part = PPROF__PROFILE__INIT;

	function.id = id;
	function.name = name;
	function.filename = 8;
	function.start_line = 5;
	part.n_function = 1;
	part.function = &list;
	put_part(out, &part);
}

/* Two lines: the first is inlined in the other. */
static void put_location(struct strbuf *out, uint64_t id, uint64_t inner, uint64_t outer)
{
	Pprof__Line lines[] = { PPROF__LINE__INIT, PPROF__LINE__INIT };
	Pprof__Line *list_of_lines[] = { &lines[0], &lines[1] };
	Pprof__Location location = PPROF__LOCATION__INIT, *list = &location;
	Pprof__Profile part = PPROF__PROFILE__INIT;

	location.id = id;
	location.address = 0xabc;
	lines[0].function_id = inner;
	lines[0].line = 7;
	lines[1].function_id = outer;
	lines[1].line = 9;
	location.n_line = inner ? 2 : 0;
	location.line = list_of_lines;
	part.n_location = 1;
	part.location = &list;
	put_part(out, &part);
}

static void put_strings(struct strbuf *out)
{
	static const char *const strings[] = { "",     "samples",     "count", "bytes",
					       "cpu",  "nanoseconds", "in",    "out",
					       "a.go", "size" };
	Pprof__Profile part = PPROF__PROFILE__INIT;

	part.n_string_table = sizeof(strings) / sizeof(strings[0]);
	part.string_table = (char **)strings;
	put_part(out, &part);
}

static void put_period(struct strbuf *out, int64_t period)
{
	Pprof__ValueType type = PPROF__VALUE_TYPE__INIT;
	Pprof__Profile part = PPROF__PROFILE__INIT;

	type.type = 4;
	type.unit = 5;
	part.period_type = &type;
	part.period = period;
	put_part(out, &part);
}

/* What is named comes behind what names it, as Go writes it. */
static void put_profile(struct strbuf *out, int64_t period, int64_t ns)
{
	put_type(out, 1, 2);
	put_type(out, 4, 5);
	put_pprof_sample(out, UINT64_MAX, 2, ns);
	put_pprof_sample(out, 1, 0, 0);
	put_location(out, UINT64_MAX, 77, 78);
	put_location(out, 1, 0, 0);
	put_function(out, 77, 6);
	put_function(out, 78, 7);
	put_period(out, period);
	put_strings(out);
}

static void test_pprof_values(void **state)
{
	static const struct {
		const char *name;
		int64_t period, ns;
		const char *want;
	} cases[] = {
		{ "of the period: ticks", 10, 20,
		  "tick out@a.go:9<5 in@a.go:7<5 size=128 bytes x2\n" },
		{ "of none: as they are", 0, 20,
		  "samples out@a.go:9<5 in@a.go:7<5 size=128 bytes x2\n"
		  "cpu out@a.go:9<5 in@a.go:7<5 size=128 bytes x20\n" },
		{ "of another", 10, 21,
		  "samples out@a.go:9<5 in@a.go:7<5 size=128 bytes x2\n"
		  "cpu out@a.go:9<5 in@a.go:7<5 size=128 bytes x21\n" },
		{ "below 0", 10, -20,
		  "samples out@a.go:9<5 in@a.go:7<5 size=128 bytes x2\n"
		  "cpu-negative out@a.go:9<5 in@a.go:7<5 size=128 bytes x20\n" },
	};

	(void)state;
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		_cleanup_(strbuf_releasep) struct strbuf bytes = STRBUF_INIT;
		struct fixture f;

		put_profile(&bytes, cases[i].period, cases[i].ns);
		fixture_read(&f, NULL, bytes.bytes, bytes.len);
		if (f.result || strcmp(strbuf_str(&f.text), cases[i].want) != 0)
			fail_msg("%s: got %d\n%swant\n%s", cases[i].name, f.result,
				 strbuf_str(&f.text), cases[i].want);
		assert_string_equal(f.format, "pprof");
		assert_string_equal(profile_recording(f.p)->mode, "cpu");
		assert_int_equal(profile_recording(f.p)->interval_ns, i ? 0 : 10);
		fixture_release(&f);
	}
}

static void put_wrong_location(struct strbuf *b)
{
	put_pprof_sample(b, 3, 1, 1);
}

static void put_id_twice(struct strbuf *b)
{
	put_function(b, 77, 6);
}

static void put_id_of_none(struct strbuf *b)
{
	put_function(b, 0, 6);
}

static void put_wrong_function(struct strbuf *b)
{
	put_location(b, 5, 76, 77);
}

static void put_wrong_string(struct strbuf *b)
{
	put_function(b, 5, 10);
}

static void put_third_type(struct strbuf *b)
{
	put_type(b, 6, 7);
}

/* A thousand bytes of a sample that says it is 2^60 long. */
static void put_huge_part(struct strbuf *b)
{
	strbuf_append(b, "\x12\x80\x80\x80\x80\x80\x80\x80\x80\x10", 10);
	for (int i = 0; i < 1000; i++)
		strbuf_putc(b, 'x');
}

static void put_cut_part(struct strbuf *b)
{
	strbuf_append(b, "\x12\x70\x0a", 3);
}

static void put_no_message(struct strbuf *b)
{
	strbuf_append(b, "\x12\x02\x0a\x70", 4);
}

static void test_pprof_errors(void **state)
{
	static const struct {
		void (*put)(struct strbuf *);
		const char *error;
	} cases[] = {
		{ put_wrong_location, "sample refers to an undefined location" },
		{ put_id_twice, "an id that another one has" },
		{ put_id_of_none, "an id of 0" },
		{ put_wrong_function, "a location in a function that is not there" },
		{ put_wrong_string, "names a string that is not in it" },
		{ put_third_type, "a sample that has not a value of each type" },
		{ put_huge_part, "a part that says it is longer than 2 MiB" },
		{ put_cut_part, "it ends within this part" },
		{ put_no_message, "a part that is no message of pprof's" },
	};

	(void)state;
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		_cleanup_(strbuf_releasep) struct strbuf bytes = STRBUF_INIT;
		struct fixture f;

		put_profile(&bytes, 0, 20);
		cases[i].put(&bytes);
		fixture_read(&f, NULL, bytes.bytes, bytes.len);
		if (f.result != -EBADMSG || !strstr(err_message(f.result), cases[i].error) ||
		    !strstr(err_message(f.result), "at byte "))
			fail_msg("got %s, want %s", err_message(f.result), cases[i].error);
		fixture_release(&f);
	}
}

/* --- what is packed, and what a file is ------------------------------------------------------- */

static const char line[] = AUSTIN("cpu") "P4;T0:5;a.py:f:2 7\n";

static size_t pack_gzip(uint8_t *to, size_t size)
{
	z_stream z = { .next_in = (uint8_t *)line,
		       .avail_in = sizeof(line) - 1,
		       .next_out = to,
		       .avail_out = (unsigned int)size };

	assert_int_equal(deflateInit2(&z, 9, Z_DEFLATED, 31, 8, Z_DEFAULT_STRATEGY), Z_OK);
	assert_int_equal(deflate(&z, Z_FINISH), Z_STREAM_END);
	deflateEnd(&z);
	return z.total_out;
}

static size_t pack_zstd(uint8_t *to, size_t size)
{
	size_t len = ZSTD_compress(to, size, line, sizeof(line) - 1, 3);

	assert_false(ZSTD_isError(len));
	return len;
}

static void test_import_looks_through_what_is_packed(void **state)
{
	static size_t (*const packers[])(uint8_t *, size_t) = { pack_gzip, pack_zstd };
	uint8_t packed[1024];

	(void)state;
	for (size_t i = 0; i < sizeof(packers) / sizeof(packers[0]); i++) {
		size_t len = packers[i](packed, sizeof(packed) / 2);
		struct fixture f;

		fixture_read(&f, NULL, packed, len);
		assert_string_equal(f.format, "austin");
		assert_string_equal(strbuf_str(&f.text), "cpu 4/5  f@a.py:2 x7000\n");
		fixture_release(&f);

		memcpy(packed + len, packed, len); /* two pieces are one text */
		fixture_read(&f, NULL, packed, 2 * len);
		assert_string_equal(strbuf_str(&f.text),
				    "cpu 4/5  f@a.py:2 x7000\ncpu 4/5  f@a.py:2 x7000\n");
		fixture_release(&f);

		fixture_read(&f, NULL, packed, len - 2);
		assert_int_equal(f.result, -EBADMSG);
		assert_non_null(strstr(err_message(f.result), "unexpected end of file"));
		fixture_release(&f);
	}
}

static void test_import_words_are_the_importers(void **state)
{
	size_t i = 0;

	(void)state;
	for (; importers[i]; i++) {
		assert_string_equal(import_words[i + 1], importers[i]->name);
		assert_ptr_equal(
			import_chosen((struct import_choice){ .format = (unsigned int)i + 1 }),
			importers[i]);
	}
	assert_null(import_words[i + 1]);
	assert_null(import_chosen((struct import_choice){ 0 }));
}

/* Austin's lines end in a number, as collapsed ones do. */
static void test_import_as_what_it_is_said_to_be(void **state)
{
	struct fixture f;

	(void)state;
	fixture_read(&f, &importer_collapsed, line, sizeof(line) - 1);
	assert_string_equal(f.format, "collapsed");
	assert_string_equal(strbuf_str(&f.text), "tick !P4@:0 !T0:5@:0 !a.py:f:2@:0 x7\n");
	fixture_release(&f);
	fixture_read(&f, &importer_pprof, line, sizeof(line) - 1);
	assert_int_equal(f.result, -EBADMSG);
	fixture_release(&f);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_austin_lines),
		cmocka_unit_test(test_perf_lines),
		cmocka_unit_test(test_speedscope_profiles),
		cmocka_unit_test(test_speedscope_owners),
		cmocka_unit_test(test_mojo_events),
		cmocka_unit_test(test_pprof_values),
		cmocka_unit_test(test_pprof_errors),
		cmocka_unit_test(test_import_looks_through_what_is_packed),
		cmocka_unit_test(test_import_words_are_the_importers),
		cmocka_unit_test(test_import_as_what_it_is_said_to_be),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
