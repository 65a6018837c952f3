/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#include "inspect/files.h"
#include "inspect/thread_files.h"

#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <string.h>
#include <unistd.h>
#include <cmocka.h>

#define STATUS(name, state, nspid)                                                   \
	"Name:\t" name "\nUmask:\t0022\nState:\t" state "\nTgid:\t7\nNSpid:\t" nspid \
	"\nThreads:\t2\n"                                                            \
	"voluntary_ctxt_switches:\t40\nnonvoluntary_ctxt_switches:\t2\n"

static void test_status_is_read(void **state)
{
	static const struct {
		const char *name, *text;
		int want;
		char letter;
		pid_t nspid;
		const char *comm;
	} cases[] = {
		{ "asleep", STATUS("python3", "S (sleeping)", "412"), 0, 'S', 412, "python3" },
		{ "inner namespaces come last", STATUS("a b", "D (disk sleep)", "412\t31\t7"), 0,
		  'D', 7, "a b" },
		{ "a name with a newline", STATUS("x\\nState:\\\\", "T (stopped)", "5"), 0, 'T', 5,
		  "x\nState:\\" },
		{ "no namespaces",
		  "Name:\tx\nState:\tR (running)\nvoluntary_ctxt_switches:\t42\n"
		  "nonvoluntary_ctxt_switches:\t0\n",
		  0, 'R', 0, "x" },
		{ "cut", "Name:\tx\nState:\tR (running)\nvoluntary_ctxt_switches:\t1\n", -EBADMSG,
		  0, 0, NULL },
		{ "another file", "412 (python3) S 1", -EBADMSG, 0, 0, NULL },
		{ "empty", "", -EBADMSG, 0, 0, NULL },
	};

	(void)state;
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		struct thread_status s;
		int r = thread_status_parse(cases[i].text, strlen(cases[i].text), &s);

		if (r != cases[i].want)
			fail_msg("%s: got %d", cases[i].name, r);
		if (r < 0)
			continue;
		if (s.state != cases[i].letter || s.nspid != cases[i].nspid || s.switches != 42 ||
		    strcmp(s.comm, cases[i].comm) != 0)
			fail_msg("%s: %c %d %llu %s", cases[i].name, s.state, s.nspid,
				 (unsigned long long)s.switches, s.comm);
	}
}

static void test_call_is_read(void **state)
{
	static const struct {
		const char *name, *text;
		int want;
		struct thread_call call;
	} cases[] = {
		{ "a futex",
		  "202 0x7f10 0x189 0x0 0x0 0x0 0xffffffff 0x7fff 0x7ffe\n",
		  0,
		  { .nr = 202, .args = { 0x7f10, 0x189 }, .sp = 0x7fff } },
		{ "on a CPU", "running\n", 0, { .is_running = true, .nr = -1 } },
		{ "in none", "-1 0x7fff 0x7ffe\n", 0, { .nr = -1, .sp = 0x7fff } },
		{ "cut", "202 ", -EBADMSG, { 0 } },
		{ "one argument", "202 0x7", -EBADMSG, { 0 } },
		{ "words", "stopped\n", -EBADMSG, { 0 } },
	};

	(void)state;
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		struct thread_call call;
		int r = thread_call_parse(cases[i].text, strlen(cases[i].text), &call);

		if (r != cases[i].want)
			fail_msg("%s: got %d", cases[i].name, r);
		if (r < 0)
			continue;
		if (call.nr != cases[i].call.nr || call.sp != cases[i].call.sp ||
		    call.is_running != cases[i].call.is_running ||
		    memcmp(call.args, cases[i].call.args, sizeof(call.args)) != 0)
			fail_msg("%s: %lld", cases[i].name, (long long)call.nr);
	}
}

static void test_exec_start_is_ns(void **state)
{
	static const char text[] = "python3 (412, #threads: 9)\n-----\n"
				   "se.exec_start                :      13448618.188432\n"
				   "se.vruntime                  :        314447.679776\n";
	uint64_t ns;

	(void)state;
	assert_int_equal(thread_sched_parse(text, strlen(text), &ns), 0);
	assert_int_equal(ns, 13448618188432);
	assert_int_equal(thread_sched_parse(text, 60, &ns), -EBADMSG);
	assert_int_equal(thread_sched_parse(text, 20, &ns), -ENODATA);
}

static void test_cpu_is_field_39(void **state)
{
	static const char text[] =
		"412 (a) b) S 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15 16 17 18 19 20 21 22 23 24 25 26 "
		"27 28 29 30 31 32 33 34 17 36 38\n";
	unsigned cpu = 0;

	(void)state;
	assert_int_equal(thread_cpu_parse(text, strlen(text), &cpu), 0);
	assert_int_equal(cpu, 36);
	assert_int_equal(thread_cpu_parse(text, 60, &cpu), -EBADMSG);
	assert_int_equal(thread_cpu_parse("", 0, &cpu), -EBADMSG);
}

/* Our own: running, as nobody else is who asks. */
static void test_our_own_files_are_read(void **state)
{
	int folder = thread_folder_open(getpid(), getpid()), fd;
	struct thread_status status;
	unsigned cpu;

	(void)state;
	assert_true(folder >= 0);
	fd = thread_status_open(folder);
	assert_true(fd >= 0);
	assert_int_equal(thread_status_read(fd, &status), 0);
	assert_int_equal(status.state, 'R');
	assert_int_equal(thread_cpu_read(folder, &cpu), 0);
	close(fd);
	close(folder);
	assert_int_equal(thread_folder_open(getpid(), 1 << 22), -ENOENT);
}

static void test_both_ends_of_a_socket_are_told(void **state)
{
	static const struct {
		const char *name, *line, *want;
	} cases[] = {
		{ "connected",
		  "   0: 0100007F:E3B4 0100007F:9A3B 01 00000000:00000000 00:00000000 00000000     "
		  "0   "
		  "     0 41 2 ffff 20 4 30 10 -1",
		  "127.0.0.1:58292 to 127.0.0.1:39483" },
		{ "listening",
		  "   1: 00000000:0050 00000000:0000 0A 00000000:00000000 00:00000000 00000000     "
		  "0   "
		  "     0 41 1 ffff 100 0 0 10 0",
		  "0.0.0.0:80" },
		{ "version 6",
		  "   0: 00000000000000000000000001000000:0050 "
		  "0000000000000000FFFF00000100007F:C350 01 "
		  "0:0 00:0 0 0 0 41 1 ffff",
		  "[::1]:80 to [::ffff:127.0.0.1]:50000" },
		{ "the head", "  sl  local_address rem_address   st tx_queue rx_queue tr tm->when",
		  NULL },
		{ "cut", "   0: 0100007F:E3B4 0100007F:9A3B 01", NULL },
		{ "no address", "0: x:1 y:2 01 0:0 0:0 0 0 0 41", NULL },
		{ "no port", "0: 0100007F:10000 0100007F:1 01 0:0 0:0 0 0 0 41", NULL },
	};

	(void)state;
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		char text[SOCKET_TEXT_BYTES] = "";
		uint64_t inode = 0;
		int r = socket_line_parse(cases[i].line, &inode, text);

		if (cases[i].want ? r != 0 || inode != 41 || strcmp(text, cases[i].want) != 0
				  : r != -EBADMSG)
			fail_msg("%s: %d %s", cases[i].name, r, text);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_status_is_read),
		cmocka_unit_test(test_call_is_read),
		cmocka_unit_test(test_exec_start_is_ns),
		cmocka_unit_test(test_cpu_is_field_39),
		cmocka_unit_test(test_our_own_files_are_read),
		cmocka_unit_test(test_both_ends_of_a_socket_are_told),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
