/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
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

#include "base/err.h"
#include "base/escape.h"
#include "base/file.h"
#include "base/strbuf.h"
#include "import/import.h"
#include "import/text_reader.h"

/* What a file says beside its samples. */
struct text_facts {
	uint64_t interval_ns; /* 0: unknown */
	double work;
	uint64_t skipped;
};

/* What was read of a text. */
struct fixture {
	struct profile *p;
	struct text_facts facts;
	int result;
	struct strbuf text; /* samples in order, a line each */
};

static void append_string(struct fixture *f, uint32_t id)
{
	escape_append(&f->text, strtab_get(f->p->strings, id), strtab_len(f->p->strings, id), "\\");
}

static void append_stack(struct fixture *f, uint32_t stack)
{
	const struct stack_entry *entry = &stacktab_entries(f->p->stacks)[stack];
	const struct frame *frame;

	if (!stack)
		return;
	append_stack(f, entry->parent);
	frame = frametab_get(f->p->frames, entry->frame);
	strbuf_puts(&f->text, frame->kind == FRAME_MARKER ? " !" : " ");
	append_string(f, frame->name);
	strbuf_putc(&f->text, '@');
	append_string(f, frame->file);
	strbuf_appendf(&f->text, ":%s%" PRIu32, frame->flags & FRAME_LINE_APPROXIMATE ? "~" : "",
		       frame->line);
}

/* "PID NAME/TID NAME FRAME@FILE:LINE ... xWEIGHT", markers as !NAME. */
static void describe(struct fixture *f)
{
	for (size_t i = 0; i < f->p->samples.len; i++) {
		const struct sample *s = &f->p->samples.items[i];
		const struct thread *t = &f->p->threads.items[s->thread];
		const struct process *process = &f->p->processes.items[t->process];

		if (process->pid || process->name || t->tid || t->name) {
			strbuf_appendf(&f->text, "%" PRIu32 " ", process->pid);
			append_string(f, process->name);
			strbuf_appendf(&f->text, "/%" PRIu32 " ", t->tid);
			append_string(f, t->name);
		}
		append_stack(f, s->stack);
		strbuf_appendf(&f->text, " x%" PRIu64 "\n", s->value);
	}
}

/* As import_open() and import_next(): all batches. */
static int import_all(const char *path, struct profile *p, struct text_facts *facts)
{
	_cleanup_(import_freep) struct import *i = NULL;
	int r = import_open(path, (struct import_choice){ 0 }, &i);

	if (r <= 0)
		return r;
	do {
		r = import_next(i, p);
	} while (r > 0);
	*facts = (struct text_facts){ .interval_ns = import_facts(i)->recording.interval_ns,
				      .work = import_facts(i)->recording.work,
				      .skipped = import_facts(i)->skipped };
	return r < 0 ? r : 1;
}

static int import_bytes(struct profile *p, const char *bytes, size_t len, struct text_facts *facts)
{
	_cleanup_(closep) int fd = memfd_create("text", MFD_CLOEXEC);
	char path[64];

	assert_true(fd >= 0);
	assert_int_equal(file_write(fd, bytes, len), 0);
	snprintf(path, sizeof(path), "/proc/self/fd/%d", fd);
	return import_all(path, p, facts);
}

static void fixture_read_bytes(struct fixture *f, const char *bytes, size_t len)
{
	*f = (struct fixture){ .text = STRBUF_INIT };
	assert_int_equal(profile_new(&f->p), 0);
	f->result = import_bytes(f->p, bytes, len, &f->facts);
	describe(f);
}

static void fixture_read(struct fixture *f, const char *text)
{
	fixture_read_bytes(f, text, strlen(text));
}

static void fixture_release(struct fixture *f)
{
	profile_free(f->p);
	strbuf_release(&f->text);
}

static void test_collapsed_frames(void **state)
{
	static const struct {
		const char *row, *text, *want;
	} cases[] = {
		{ "root first", "f (a.py:1);g (b.py:22) 3\n", " f@a.py:1 g@b.py:22 x3\n" },
		{ "no newline at the end", "f (a.py:1) 3", " f@a.py:1 x3\n" },
		{ "marker", "<GC> 3\n", " !<GC>@:0 x3\n" },
		{ "native", "read [libc.so.6] 3\n", " !read [libc.so.6]@:0 x3\n" },
		{ "file without line", "f (a.py) 3\n", " f@a.py:0 x3\n" },
		{ "line without file", "f (:7) 3\n", " f@:7 x3\n" },
		{ "neither", "f () 3\n", " f@:0 x3\n" },
		{ "splits at the last", "f (x) (a.py:1) 3\n", " f (x)@a.py:1 x3\n" },
		{ "file begins with one", "f ((a.py:1) 3\n", " f@(a.py:1 x3\n" },
		{ "not closed", "f (a.py:1 3\n", " !f (a.py:1@:0 x3\n" },
		{ "no space before it", "f(a.py:1) 3\n", " !f(a.py:1)@:0 x3\n" },
		{ "last colon", "f (C:\\a:12:8) 3\n", " f@C:\\x5ca:12:8 x3\n" },
		{ "line with a letter", "f (a.py:1x) 3\n", " f@a.py:1x:0 x3\n" },
		{ "approximate line", "f (a.py:~12) 3\n", " f@a.py:~12 x3\n" },
		{ "mark without a line", "f (a.py:~) 3\n", " f@a.py:~:0 x3\n" },
		{ "line empty", "f (a.py:) 3\n", " f@a.py::0 x3\n" },
		{ "largest line", "f (a:4294967295) 3\n", " f@a:4294967295 x3\n" },
		{ "line beyond", "f (a:4294967296) 3\n", " f@a:4294967296:0 x3\n" },
		{ "empty name", " (a.py:1) 3\n", " @a.py:1 x3\n" },
		{ "empty frames", ";;f 3\n", " !@:0 !@:0 !f@:0 x3\n" },
		{ "only an empty frame", " 3\n", " !@:0 x3\n" },
		{ "name of two words", "my func 3\n", " !my func@:0 x3\n" },
		{ "escapes", "a\\x3bb\\x5cx41 (c\\x5Cd \\x28e:1) 3\n",
		  " a;b\\x5cx41@c\\x5cd (e:1 x3\n" },
		{ "escaped parenthesis does not split", "f \\x28a:1) 3\n", " !f (a:1)@:0 x3\n" },
		{ "escaped NUL", "a\\x00b 3\n", " !a\\x00b@:0 x3\n" },
		{ "other backslashes", "\\n\\x4\\xgg\\\\x41\\x 3\n",
		  " !\\x5cn\\x5cx4\\x5cxgg\\x5cA\\x5cx@:0 x3\n" },
		{ "not UTF-8", "\xff\xc3 (\xed\xb2\x80:1) 3\n",
		  " \\xff\\xc3@\\xed\\xb2\\x80:1 x3\n" },
		{ "CRLF", "f (a.py:1) 3\r\ng 4\r\n", " f@a.py:1 x3\n !g@:0 x4\n" },
		{ "spaces behind", "f 3 \t \n", " !f@:0 x3\n" },
		{ "spaces in front", "  f 3\n", " !  f@:0 x3\n" },
	};

	(void)state;
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		struct fixture f;

		fixture_read(&f, cases[i].text);
		if (f.result != 1 || strcmp(strbuf_str(&f.text), cases[i].want))
			fail_msg("%s: %d, got %s", cases[i].row, f.result, strbuf_str(&f.text));
		fixture_release(&f);
	}
}

static void test_collapsed_tags(void **state)
{
	static const struct {
		const char *row, *text, *want;
	} cases[] = {
		{ "both", "process shop (4);thread w (5);f 1\n", "4 shop/5 w !f@:0 x1\n" },
		{ "thread", "thread w (5);f 1\n", "0 /5 w !f@:0 x1\n" },
		{ "process", "process shop (4);f 1\n", "4 shop/0  !f@:0 x1\n" },
		{ "thread first", "thread w (5);process p (4);f 1\n", "4 p/5 w !f@:0 x1\n" },
		{ "name with parentheses", "thread w (1) (5);f 1\n", "0 /5 w (1) !f@:0 x1\n" },
		{ "empty name", "thread  (5);f 1\n", "0 /5  !f@:0 x1\n" },
		{ "escapes", "thread a\\x3bb (5);f 1\n", "0 /5 a;b !f@:0 x1\n" },
		{ "no frames", "thread w (5) 1\n", "0 /5 w x1\n" },
		{ "second thread is a frame", "thread v (4);thread w (5);f 1\n",
		  "0 /4 v thread w@5:0 !f@:0 x1\n" },
		{ "not in front", "f;thread w (5) 1\n", " !f@:0 thread w@5:0 x1\n" },
		{ "no name", "thread (5);f 1\n", " thread@5:0 !f@:0 x1\n" },
		{ "a file, a line", "thread w (5:1);f 1\n", " thread w@5:1 !f@:0 x1\n" },
		{ "not a number", "thread w (0x5);f 1\n", " thread w@0x5:0 !f@:0 x1\n" },
		{ "escaped digit", "thread w (\\x35);f 1\n", " thread w@5:0 !f@:0 x1\n" },
		{ "beyond 32 bits", "thread w (4294967296);f 1\n",
		  " thread w@4294967296:0 !f@:0 x1\n" },
		{ "py-spy's", "process 4:\"py a\";thread (5): w (x);f (a.py:1) 1\n",
		  "4 py a/5 w (x) f@a.py:1 x1\n" },
		{ "py-spy's pthread id", "thread (0x7F2A): MainThread;f (a.py:1) 1\n",
		  "0 /0 (0x7F2A): MainThread f@a.py:1 x1\n" },
		{ "py-spy's without name", "thread (5): ;f 1\n", "0 /5  !f@:0 x1\n" },
		{ "nearly py-spy's", "process 4:\"a;thread (x): y;process a:\"b\" 1\n",
		  " !process 4:\"a@:0 !thread (x): y@:0 !process a:\"b\"@:0 x1\n" },
		{ "CPython's", "tid:5;<frozen x>:m:1;a.py:f:22;<GC>;C:g:h:0 1\n",
		  "0 /5  m@<frozen x>:1 f@a.py:22 !<GC>@:0 h@C:g:0 x1\n" },
		{ "nearly CPython's", "tid:x;a.py:f:22 1\n", " !tid:x@:0 !a.py:f:22@:0 x1\n" },
	};

	(void)state;
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		struct fixture f;

		fixture_read(&f, cases[i].text);
		if (f.result != 1 || strcmp(strbuf_str(&f.text), cases[i].want))
			fail_msg("%s: %d, got %s", cases[i].row, f.result, strbuf_str(&f.text));
		fixture_release(&f);
	}
}

static void test_collapsed_threads_are_shared(void **state)
{
	struct fixture f;

	(void)state;
	fixture_read(&f, "process p (1);thread t (2);f 1\nprocess p (1);thread t (2);g 1\n"
			 "process p (1);thread u (2);g 1\nprocess q (1);thread t (2);g 1\n");
	assert_int_equal(f.result, 1);
	assert_int_equal(f.p->processes.len, 2);
	assert_int_equal(f.p->threads.len, 3);
	assert_int_equal(f.p->samples.items[0].thread, f.p->samples.items[1].thread);
	fixture_release(&f);
}

static void test_collapsed_header(void **state)
{
	static const struct {
		const char *row, *text;
		uint64_t interval_ns;
		double work;
		uint64_t skipped;
	} cases[] = {
		{ "none", "f 1\n", 0, 0, 0 },
		{ "alone", "# pyebpf-collapsed\n", 0, 0, 0 },
		{ "alone, no newline", "# pyebpf-collapsed", 0, 0, 0 },
		{ "interval", "# pyebpf-collapsed interval_us=250\nf 1\n", 250000, 0, 0 },
		{ "decimals", "# pyebpf-collapsed interval_us=10101.01\n", 10101010, 0, 0 },
		{ "rounded to the ns", "# pyebpf-collapsed interval_us=0.0016\n", 2, 0, 0 },
		{ "both", "# pyebpf-collapsed interval_us=2 work=300\n", 2000, 300, 0 },
		{ "other order", "# pyebpf-collapsed work=0.5 interval_us=2\r\n", 2000, 0.5, 0 },
		{ "exponents", "# pyebpf-collapsed interval_us=2e3 work=1e-05\n", 2000000, 1e-5,
		  0 },
		{ "unknown keys", "# pyebpf-collapsed x=- interval_us=2 y interval_usual=z\n", 2000,
		  0, 0 },
		{ "more spaces", "# pyebpf-collapsed   work=2  \n", 0, 2, 0 },
		{ "longest interval", "# pyebpf-collapsed interval_us=1000000000000\n",
		  UINT64_C(1000000000000000), 0, 0 },
		{ "not the first line", "f 1\n# pyebpf-collapsed interval_us=2\n", 0, 0, 1 },
		{ "another word", "# pyebpf-collapsed2 interval_us=2\nf 1\n", 0, 0, 1 },
		{ "skipped", "\n# a comment 5\nf 1\n#\n  \t\r\ng 0\n", 0, 0, 5 },
	};

	(void)state;
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		struct fixture f;

		fixture_read(&f, cases[i].text);
		if (f.result != 1 || profile_recording(f.p)->interval_ns != cases[i].interval_ns ||
		    f.facts.work != cases[i].work || f.facts.skipped != cases[i].skipped ||
		    f.p->recordings.len != 1)
			fail_msg("%s: %d, %" PRIu64 " ns, work %g, %" PRIu64 " skipped",
				 cases[i].row, f.result, profile_recording(f.p)->interval_ns,
				 f.facts.work, f.facts.skipped);
		assert_string_equal(profile_recording(f.p)->source, "collapsed text");
		assert_null(profile_recording(f.p)->event);
		assert_null(profile_recording(f.p)->mode);
		fixture_release(&f);
	}
}

static void test_collapsed_errors(void **state)
{
	static const struct {
		const char *row, *text;
		int want;
		const char *message; /* behind the path */
	} cases[] = {
		{ "no count", "f 1\ng\n", -EBADMSG,
		  "line 2, at byte 4: expected a sample count at the end of the line" },
		{ "count with a letter", "f 1\n\n# c\ng 1x\n", -EBADMSG,
		  "line 4, at byte 9: expected a sample count at the end of the line" },
		{ "negative", "f 1\ng -1\n", -EBADMSG,
		  "line 2, at byte 4: expected a sample count at the end of the line" },
		{ "decimals", "f 1\r\ng 1.5\n", -EBADMSG,
		  "line 2, at byte 5: expected a sample count at the end of the line" },
		{ "2^53 + 1", "f 9007199254740993\n", -EBADMSG,
		  "line 1, at byte 0: more than 2^53 samples" },
		{ "2^64", "f 1\nf 18446744073709551616\n", -EBADMSG,
		  "line 2, at byte 4: more than 2^53 samples" },
		{ "2^53 in all", "f 9007199254740985\nf 8\n", -EBADMSG,
		  "line 2, at byte 19: more than 2^53 samples" },
		{ "interval of nothing", "# pyebpf-collapsed interval_us=\n", -EBADMSG,
		  "line 1, at byte 0: interval_us is no time of a sample" },
		{ "interval 0", "# pyebpf-collapsed interval_us=0.0\n", -EBADMSG,
		  "line 1, at byte 0: interval_us is no time of a sample" },
		{ "interval too small", "# pyebpf-collapsed interval_us=0.0001\n", -EBADMSG,
		  "line 1, at byte 0: interval_us is less than a nanosecond" },
		{ "interval too large", "# pyebpf-collapsed interval_us=1000000000001\n", -EBADMSG,
		  "line 1, at byte 0: interval_us is no time of a sample" },
		{ "interval with a unit", "# pyebpf-collapsed interval_us=1ms\n", -EBADMSG,
		  "line 1, at byte 0: interval_us is no time of a sample" },
		{ "interval in hex", "# pyebpf-collapsed interval_us=0x10\n", -EBADMSG,
		  "line 1, at byte 0: interval_us is no time of a sample" },
		{ "two points", "# pyebpf-collapsed interval_us=1.2.3\n", -EBADMSG,
		  "line 1, at byte 0: interval_us is no time of a sample" },
		{ "work is infinite", "# pyebpf-collapsed work=inf\n", -EBADMSG,
		  "line 1, at byte 0: work is no number of units" },
	};

	(void)state;
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		const char *message;
		struct fixture f;

		fixture_read(&f, cases[i].text);
		message = strstr(err_message(f.result), ": ");
		if (f.result != cases[i].want || !message || strcmp(message + 2, cases[i].message))
			fail_msg("%s: %d, %s", cases[i].row, f.result, err_message(f.result));
		fixture_release(&f);
	}
}

/* Counts are 64 bits, weights 32. */
/* What a line has in common with those before it is taken over: it must not change what it is. */
static void test_collapsed_lines_do_not_depend_on_those_before(void **state)
{
	static const char *const lines[] = {
		"a;b;c 1\n",
		"a;b 1\n",
		"a 1\n",
		"a;b;c;d 1\n",
		"a;bc;c 1\n",
		"ab;c 1\n",
		"a;b;;c 1\n",
		"a;b; 1\n",
		";a;b 1\n",
		"; 1\n",
		" 1\n",
		"f.py:a:1;f.py:b:2 1\n",
		"tid:1;f.py:a:1;f.py:b:2 1\n",
		"tid:1;f.py:a:1;f.py:b:22 1\n",
		"tid:2;f.py:a:1 1\n",
		"thread x (1);f.py:a:1;f.py:b:2 1\n",
		"thread x (1) 1\n",
		"process p (1);a;b 1\n",
		"process p (1);thread x (1);a;b;c 1\n",
		"process p (1);process q (2);a 1\n",
		"a (f.py:1);b (f.py:2) 1\n",
		"a (f.py:1);b (f.py:22) 1\n",
		"a\\x3bb;c 1\n",
		"a\\x3bb;c;d 2\n",
		"#\n",
	};
	const size_t count = sizeof(lines) / sizeof(lines[0]);
	struct fixture alone[sizeof(lines) / sizeof(lines[0])];

	(void)state;
	for (size_t i = 0; i < count; i++)
		fixture_read(&alone[i], lines[i]);
	for (size_t i = 0; i < count * count * count; i++) {
		const size_t at[3] = { i / count / count, i / count % count, i % count };
		char text[256], want[512];
		struct fixture f;

		snprintf(text, sizeof(text), "a 1\n%s%s%s", lines[at[0]], lines[at[1]],
			 lines[at[2]]);
		snprintf(want, sizeof(want), " !a@:0 x1\n%s%s%s", strbuf_str(&alone[at[0]].text),
			 strbuf_str(&alone[at[1]].text), strbuf_str(&alone[at[2]].text));
		fixture_read(&f, text);
		if (f.result < 0 || strcmp(strbuf_str(&f.text), want))
			fail_msg("%s: %d, got %s, want %s", text, f.result, strbuf_str(&f.text),
				 want);
		fixture_release(&f);
	}
	for (size_t i = 0; i < count; i++)
		fixture_release(&alone[i]);
}

static void test_collapsed_large_counts(void **state)
{
	static const struct {
		const char *text;
		uint64_t ticks;
		size_t samples;
	} cases[] = {
		{ "f 4294967295\n", UINT64_C(4294967295), 1 },
		{ "f 4294967296\n", UINT64_C(4294967296), 2 },
		{ "f 10000000000\n", UINT64_C(10000000000), 3 },
		{ "f 9007199254740990\ng 2\n", UINT64_C(1) << 53, 2097154 },
	};

	(void)state;
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		struct profile *p = NULL;
		struct text_facts facts;
		uint64_t ticks = 0;

		assert_int_equal(profile_new(&p), 0);
		assert_int_equal(import_bytes(p, cases[i].text, strlen(cases[i].text), &facts), 1);
		for (size_t k = 0; k < p->samples.len; k++)
			ticks += p->samples.items[k].value;
		assert_int_equal(ticks, cases[i].ticks);
		assert_int_equal(p->samples.len, cases[i].samples);
		profile_free(p);
	}
}

static void test_import_file_recognises(void **state)
{
	static const struct {
		const char *row, *bytes;
		size_t len;
		int want;
	} cases[] = {
		{ "empty", "", 0, 0 },
		{ "newline", "\n", 1, 0 },
		{ "comments only", "# a\n# b\n", 8, 0 },
		{ "words", "hello world, this is no recording\n", 34, 0 },
		{ "words, then a stack", "hello\nf 1\n", 10, 0 },
		{ "a recording's magic", "\x89PYEBPF\nf 1\n", 12, 0 },
		{ "NUL", "f\0 1\n", 5, 0 },
		{ "a stack", "f 1", 3, 1 },
		{ "comments, a stack", "# a\n\nf 1\n", 9, 1 },
		{ "a header", "# pyebpf-collapsed", 18, 1 },
		{ "a header behind a line", "\n# pyebpf-collapsed\n", 20, 0 },
		{ "a header, then words", "# pyebpf-collapsed\nhello\n", 25, -EBADMSG },
	};

	(void)state;
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		struct fixture f;

		fixture_read_bytes(&f, cases[i].bytes, cases[i].len);
		if (f.result != cases[i].want)
			fail_msg("%s: %d", cases[i].row, f.result);
		if (!f.result)
			assert_int_equal(strtab_count(f.p->strings), 1);
		fixture_release(&f);
	}
}

static void test_import_file_that_is_none(void **state)
{
	struct text_facts facts;
	struct profile *p = NULL;

	(void)state;
	assert_int_equal(profile_new(&p), 0);
	assert_int_equal(import_all("/nonexistent/x", p, &facts), -ENOENT);
	assert_string_equal(err_message(-ENOENT), "/nonexistent/x: No such file or directory");
	assert_int_equal(import_all("/", p, &facts), -EINVAL);
	profile_free(p);
}

/* Lines beyond the head and beyond one read: frames of step bytes each, then `g 2`. */
static void test_collapsed_long_lines(void **state)
{
	static const struct {
		const char *row;
		size_t len, step;
		int want;
	} cases[] = {
		{ "as long as the head", IMPORT_HEAD_BYTES, 2, 1 },
		{ "longer than the head", IMPORT_HEAD_BYTES + 1, 2, 1 },
		{ "of several reads", 800000, 16, 1 },
		{ "the longest", LINE_BYTES_MAX, 4096, 1 },
		{ "too long", LINE_BYTES_MAX + 1, 4096, -E2BIG },
	};

	(void)state;
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		size_t len = cases[i].len, frames = (len - 3) / cases[i].step;
		struct text_facts facts;
		struct profile *p = NULL;
		char *text = malloc(len + 9);
		int r;

		assert_non_null(text);
		assert_int_equal(profile_new(&p), 0);
		memset(text, 'f', len);
		for (size_t k = 1; k <= frames; k++)
			text[k * cases[i].step - 1] = ';';
		memcpy(text + len - 3, "g 2\nh 1\nh 1\n", 12);
		r = import_bytes(p, text, len + 9, &facts);
		if (r != cases[i].want)
			fail_msg("%s: %d", cases[i].row, r);
		if (r == 1) {
			assert_int_equal(p->samples.len, 3);
			assert_int_equal(p->samples.items[0].value, 2);
			assert_int_equal(stacktab_count(p->stacks), frames + 3);
		} else {
			assert_non_null(strstr(err_message(r), "line 1, at byte 0: longer than"));
		}
		free(text);
		profile_free(p);
	}
}

/* Line numbers and offsets hold where lines straddle reads. */
static void test_collapsed_places_of_many_lines(void **state)
{
	enum { LINES = 50000 };
	_cleanup_(strbuf_releasep) struct strbuf text = STRBUF_INIT;
	char want[64];
	struct fixture f;

	(void)state;
	for (int i = 0; i < LINES; i++)
		strbuf_appendf(&text, "main (app.py:%d);f%d (lib.py:7) %d\n", i % 100, i, i + 1);
	snprintf(want, sizeof(want), ": line %d, at byte %zu: expected a sample count", LINES + 1,
		 text.len);
	strbuf_puts(&text, "broken");
	fixture_read_bytes(&f, text.bytes, text.len);
	assert_int_equal(f.result, -EBADMSG);
	assert_non_null(strstr(err_message(f.result), want));
	assert_int_equal(f.p->samples.len, LINES);
	assert_int_equal(f.p->samples.items[LINES - 1].value, LINES);
	fixture_release(&f);
}

static void test_collapsed_names_too_long(void **state)
{
	size_t len = STRTAB_LEN_MAX + 1;
	char *text = malloc(len + 2);
	struct fixture f;

	(void)state;
	assert_non_null(text);
	memset(text, 'x', len);
	memcpy(text + len, " 1", 2);
	fixture_read_bytes(&f, text, len + 2);
	assert_int_equal(f.result, -EBADMSG);
	assert_non_null(strstr(err_message(f.result), "line 1, at byte 0: a name is longer"));
	fixture_release(&f);
	fixture_read_bytes(&f, text + 1, len + 1);
	assert_int_equal(f.result, 1);
	fixture_release(&f);
	memcpy(text, "begin", 5); /* both ends stay, and whole characters */
	memcpy(text + 8187, "\xe2\x82\xac\xe2\x82\xac", 6);
	memcpy(text + 40000 - 5, "end 1", 5);
	fixture_read_bytes(&f, text, 40000);
	assert_int_equal(f.result, 1);
	assert_true(f.text.len < (16 << 10) + 16);
	assert_non_null(strstr(strbuf_str(&f.text), " !begin"));
	assert_non_null(strstr(strbuf_str(&f.text), "x\xe2\x82\xac\xe2\x80\xa6xxx")
				?: strstr(strbuf_str(&f.text), "x\xe2\x80\xa6xxx"));
	assert_non_null(strstr(strbuf_str(&f.text), "xend@"));
	fixture_release(&f);
	free(text);
}

/* The first file tells the interval, tables are one, work adds up where all know it. */
static void test_import_file_merges(void **state)
{
	static const char first[] = "# pyebpf-collapsed interval_us=5\nf (a:1);g (a:2) 1\n";
	static const char second[] = "# pyebpf-collapsed interval_us=7 work=2\nf (a:1);h (a:3) 1\n";
	struct text_facts facts;
	struct profile *p = NULL;

	(void)state;
	assert_int_equal(profile_new(&p), 0);
	assert_int_equal(import_bytes(p, first, strlen(first), &facts), 1);
	assert_true(facts.work == 0);
	assert_int_equal(import_bytes(p, second, strlen(second), &facts), 1);
	assert_true(facts.work == 2);
	assert_int_equal(facts.interval_ns, 7000);
	assert_int_equal(profile_recording(p)->interval_ns, 5000);
	assert_true(profile_facts(p).work == 0);
	assert_true(p->recordings.items[1].work == 2);
	assert_int_equal(p->recordings.len, 2);
	assert_int_equal(p->samples.len, 2);
	assert_int_equal(p->threads.len, 2); /* one of each recording, shown as one */
	assert_int_equal(p->threads.items[1].same, 0);
	assert_int_equal(p->threads.items[1].number, 0);
	assert_int_equal(p->processes.items[1].recording, 1);
	assert_int_equal(frametab_count(p->frames), 3);
	assert_int_equal(stacktab_count(p->stacks), 4);
	profile_free(p);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_collapsed_frames),
		cmocka_unit_test(test_collapsed_tags),
		cmocka_unit_test(test_collapsed_threads_are_shared),
		cmocka_unit_test(test_collapsed_header),
		cmocka_unit_test(test_collapsed_errors),
		cmocka_unit_test(test_collapsed_lines_do_not_depend_on_those_before),
		cmocka_unit_test(test_collapsed_large_counts),
		cmocka_unit_test(test_import_file_recognises),
		cmocka_unit_test(test_import_file_that_is_none),
		cmocka_unit_test(test_collapsed_long_lines),
		cmocka_unit_test(test_collapsed_places_of_many_lines),
		cmocka_unit_test(test_collapsed_names_too_long),
		cmocka_unit_test(test_import_file_merges),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
