/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */

/*
 * golden_recording FILE: writes the recording that golden.py exports, and prints what is in it, a
 * line for each kind of sample: PROCESS PID THREAD TID TICKS and, root first, NAME FILE LINE KIND
 * of each frame. Texts are in hex, a dot where empty.
 */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "base/err.h"
#include "profile/profile.h"
#include "store/writer.h"

#define APP "/srv/shop/app.py"
#define CONTAINER "0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef"
#define POD "1f2e3d4c-5b6a-7988-a7b6-c5d4e3f2a1b0"
#define LIB "/usr/lib/python3.12/json/decoder.py"
#define SITE "/venv/lib/python3.12/site-packages/requests/api.py"

struct text {
	const char *bytes;
	size_t len;
};
#define T(literal)                           \
	{                                    \
		literal, sizeof(literal) - 1 \
	}

static const struct golden_frame {
	struct text name, file;
	uint32_t line, first_line;
	uint8_t kind, flags;
} frames[] = {
	/* clang-format off */
	[0] = { T("<module>"), T(APP), 90, 1, FRAME_PYTHON, 0 },
	[1] = { T("main"), T(APP), 81, 80, FRAME_PYTHON, 0 },
	[2] = { T("main"), T(APP), 82, 80, FRAME_PYTHON, 0 },
	[3] = { T("main"), T(APP), 82, 80, FRAME_PYTHON, FRAME_LINE_APPROXIMATE },
	[4] = { T("f.<locals>.<lambda>"), T(APP), 12, 12, FRAME_PYTHON, 0 },
	[5] = { T("recurse"), T(LIB), 20, 19, FRAME_PYTHON, 0 },
	[6] = { T("request"), T(SITE), 59, 14, FRAME_PYTHON, 0 },
	[7] = { T("na\xc3\xafve.\xe6\x97\xa5\xe6\x9c\xac"), T("/srv/\xc3\xbcn\xc3\xaf/\xe6\xa8\xa1.py"), 3, 2, FRAME_PYTHON, 0 },
	[8] = { T("odd (name);\\x41"), T("/tmp/dir (copy)/x;y\\z (1).py"), 4, 1, FRAME_PYTHON, 0 },
	[9] = { T("\x1b[31mred\nline\x7f\xc2\x9b" "2J\xe2\x80\xae" "evil\xe2\x80\xa8\0nul"), T("/tmp/\r.py"), 5, 1, FRAME_PYTHON, 0 },
	[10] = { T("broken\xff\xc3"), T("/tmp/\xed\xb2\x80.py"), 6, 1, FRAME_PYTHON, 0 },
	[11] = { T("exec"), T(""), 3, 1, FRAME_PYTHON, 0 },
	[12] = { T("thread fake"), T("12"), 7, 1, FRAME_PYTHON, 0 },
	[13] = { T("ends_like_a_line"), T("/tmp/a:12"), 8, 1, FRAME_PYTHON, 0 },
	[14] = { T("<truncated>"), T(""), 0, 0, FRAME_MARKER, 0 },
	[15] = { T("<incomplete>"), T(""), 0, 0, FRAME_MARKER, 0 },
	[16] = { T("<unknown>"), T(""), 0, 0, FRAME_PYTHON, FRAME_NAME_UNKNOWN },
	[17] = { T("looks (like:1)"), T(""), 0, 0, FRAME_MARKER, 0 },
	[18] = { T("read (plt)"), T("libc.so.6"), 0, 0, FRAME_NATIVE, 0 },
	[19] = { T("vfs_read"), T("kernel"), 0, 0, FRAME_KERNEL, 0 },
	[20] = { T("no_line"), T(APP), 0, 30, FRAME_PYTHON, 0 },
	/* the order of lines, where a frame is the beginning of another */
	[21] = { T("<a"), T(""), 0, 0, FRAME_MARKER, 0 },
	[22] = { T("<a!"), T(""), 0, 0, FRAME_MARKER, 0 },
	[23] = { T("<a 5"), T(""), 0, 0, FRAME_MARKER, 0 },
	[24] = { T("<a=b"), T(""), 0, 0, FRAME_MARKER, 0 },
	/* clang-format on */
};
#define FRAMES (sizeof(frames) / sizeof(frames[0]))

static const struct {
	uint32_t pid;
	struct text name, command_line, python_version, implementation;
	struct text container, pod_uid, pod_name, pod_namespace;
} processes[] = {
	{ 412, T("shop"), T("python3 " APP), T("3.12.4"), T("CPython"), T(CONTAINER), T(POD),
	  T("shop-7d9f"), T("prod") },
	{ 500, T("we;ird\n(1)"), T(""), T("3.14.0"), T("CPython free-threaded"), T("\x1b[2J\xffid"),
	  T(""), T(""), T("") },
};

static const struct {
	uint32_t process, tid;
	struct text name;
} threads[] = {
	{ 0, 412, T("MainThread") },
	{ 0, 413, T("worker (1)") },
	{ 1, 500, T("") },
	{ 1, 501, T("\x1b]0;title\a") },
};

/* frames: root first, -1 last. */
static const struct golden_sample {
	uint32_t thread, ticks;
	int frames[8];
} samples[] = {
	{ 0, 40, { 0, 1, -1 } },      { 0, 20, { 0, 2, -1 } },
	{ 0, 5, { 0, 3, -1 } },       { 1, 7, { 0, 2, -1 } },
	{ 1, 30, { 0, 2, 4, -1 } },   { 0, 12, { 0, 2, 5, 5, 5, -1 } },
	{ 0, 3, { 0, 2, 5, -1 } },    { 1, 8, { 0, 1, 6, 18, 19, -1 } },
	{ 2, 9, { 14, 7, 8, -1 } },   { 2, 4, { 15, 9, -1 } },
	{ 3, 6, { 9, 10, -1 } },      { 3, 2, { 11, 12, 13, -1 } },
	{ 0, 1, { 16, 17, 20, -1 } }, { 0, 1, { -1 } },
	{ 2, 11, { 21, -1 } },        { 2, 1, { 21, 1, -1 } },
	{ 2, 4, { 22, -1 } },         { 2, 1, { 23, -1 } },
	{ 2, 1, { 24, -1 } },         { 2, 1, { 24, 1, -1 } },
};
#define SAMPLES (sizeof(samples) / sizeof(samples[0]))

static const struct counter counters[] = {
	{ (char *)"expected", 190 },    { (char *)"ticks", 187 },    { (char *)"ring_full", 2 },
	{ (char *)"not_delivered", 3 }, { (char *)"outside", 15 },   { (char *)"truncated", 9 },
	{ (char *)"unnamed", 1 },       { (char *)"recorded", 170 },
};

static int intern(struct profile *p, struct text t, uint32_t *id)
{
	return strtab_intern(p->strings, t.bytes, t.len, id);
}

static int add_tables(struct profile *p)
{
	uint32_t index;
	int r = 0;

	for (size_t i = 0; i < sizeof(processes) / sizeof(processes[0]) && !r; i++) {
		struct process process = { .pid = processes[i].pid };

		if (!(r = intern(p, processes[i].name, &process.name)) &&
		    !(r = intern(p, processes[i].command_line, &process.command_line)) &&
		    !(r = intern(p, processes[i].python_version, &process.python_version)) &&
		    !(r = intern(p, processes[i].implementation, &process.implementation)) &&
		    !(r = intern(p, processes[i].container, &process.container)) &&
		    !(r = intern(p, processes[i].pod_uid, &process.pod_uid)) &&
		    !(r = intern(p, processes[i].pod_name, &process.pod_name)) &&
		    !(r = intern(p, processes[i].pod_namespace, &process.pod_namespace)))
			r = profile_add_process(p, &process, &index);
	}
	for (size_t i = 0; i < sizeof(threads) / sizeof(threads[0]) && !r; i++) {
		struct thread thread = { .process = threads[i].process, .tid = threads[i].tid };

		r = intern(p, threads[i].name, &thread.name);
		if (!r)
			r = profile_add_thread(p, &thread, &index);
	}
	return r;
}

static int add_sample(struct profile *p, const struct golden_sample *g, uint64_t time_ns)
{
	struct sample s = { .time_ns = time_ns, .thread = g->thread, .value = g->ticks };
	int r = 0;

	for (const int *f = g->frames; *f >= 0 && !r; f++) {
		const struct golden_frame *from = &frames[*f];
		struct frame frame = { .line = from->line,
				       .first_line = from->first_line,
				       .kind = from->kind,
				       .flags = from->flags };
		uint32_t id;

		if (!(r = intern(p, from->name, &frame.name)) &&
		    !(r = intern(p, from->file, &frame.file)) &&
		    !(r = frametab_intern(p->frames, &frame, &id)))
			r = stacktab_intern(p->stacks, s.stack, id, &s.stack);
	}
	return r ? r : profile_add_sample(p, &s);
}

static int describe(struct profile *p)
{
	struct recording *m = profile_recording(p);
	int r = 0;

	m->start_realtime_ns = UINT64_C(1767348671000000000);
	m->duration_ns = UINT64_C(1900000000);
	m->rate_hz = 99;
	m->interval_ns = 10101010;
	m->cpus = 2;
	m->has_ended = 1;
	if (!(r = recording_set_text(&m->host, "web1")) &&
	    !(r = recording_set_text(&m->kernel, "6.1.0-28-amd64")) &&
	    !(r = recording_set_text(&m->machine, "x86_64")) &&
	    !(r = recording_set_text(&m->version, "0.1.0")) &&
	    !(r = recording_set_text(&m->mode, "cpu")) &&
	    !(r = recording_set_text(&m->event, "task-clock")))
		r = recording_set_text(&m->target, "pid 412, pid 500");
	for (size_t i = 0; i < sizeof(counters) / sizeof(counters[0]) && !r; i++)
		r = profile_set_counter(p, counters[i].name, counters[i].value);
	return r;
}

static int write_recording(const char *path)
{
	_cleanup_(profile_freep) struct profile *p = NULL;
	_cleanup_(writer_freep) struct writer *w = NULL;
	int r = profile_new(&p);

	if (!r)
		r = describe(p);
	if (!r)
		r = add_tables(p);
	for (size_t i = 0; i < SAMPLES && !r; i++)
		r = add_sample(p, &samples[i], i * 10101010);
	if (!r)
		r = writer_open(path, p, &w);
	return r ? r : writer_finish(w, p);
}

static void print_text(struct text t)
{
	for (size_t i = 0; i < t.len; i++)
		printf("%02x", (unsigned char)t.bytes[i]);
	fputs(t.len ? " " : ". ", stdout);
}

static void print_samples(void)
{
	for (size_t i = 0; i < SAMPLES; i++) {
		uint32_t thread = samples[i].thread, process = threads[thread].process;

		print_text(processes[process].name);
		printf("%" PRIu32 " ", processes[process].pid);
		print_text(threads[thread].name);
		printf("%" PRIu32 " %" PRIu32, threads[thread].tid, samples[i].ticks);
		for (const int *f = samples[i].frames; *f >= 0; f++) {
			putchar(' ');
			print_text(frames[*f].name);
			print_text(frames[*f].file);
			printf("%s%" PRIu32 " %u",
			       frames[*f].flags & FRAME_LINE_APPROXIMATE ? "~" : "",
			       frames[*f].line, frames[*f].kind);
		}
		putchar('\n');
	}
}

int main(int argc, char **argv)
{
	int r;

	if (argc != 2) {
		fprintf(stderr, "usage: golden_recording FILE\n");
		return 2;
	}
	r = write_recording(argv[1]);
	if (r < 0) {
		fprintf(stderr, "golden_recording: %s\n", err_message(r));
		return 1;
	}
	print_samples();
	return 0;
}
