/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <unistd.h>

#include "agent/spool.h"
#include "tests/unit/skip.h"

#define SECOND 1000000000ULL
#define NOW (1000 * SECOND)

struct fixture {
	char folder[64];
	struct spool *s;
};

static void open_spool(struct fixture *f, uint64_t bytes_max)
{
	struct spool_opts o = { f->folder, "otlp", bytes_max, 60 * SECOND };

	assert_int_equal(spool_open(&o, &f->s), 0);
}

static int setup(void **state)
{
	struct fixture *f = calloc(1, sizeof(*f));

	strncpy(f->folder, "/tmp/pyebpf-spool-XXXXXX", sizeof(f->folder) - 1);
	assert_non_null(mkdtemp(f->folder));
	open_spool(f, 1000);
	*state = f;
	return 0;
}

static void for_each_file(const char *folder, void (*fn)(const char *path))
{
	DIR *dir = opendir(folder);
	const struct dirent *d;
	char path[512];

	assert_non_null(dir);
	while ((d = readdir(dir))) {
		if (d->d_name[0] == '.' || !strcmp(d->d_name, "lock"))
			continue;
		snprintf(path, sizeof(path), "%s/%s", folder, d->d_name);
		fn(path);
	}
	closedir(dir);
}

static char noted[128];

static void note_name(const char *path)
{
	snprintf(noted, sizeof(noted), "%s", path);
}

static void remove_file(const char *path)
{
	assert_int_equal(unlink(path), 0);
}

static int teardown(void **state)
{
	struct fixture *f = *state;
	char lock[128];

	spool_free(f->s);
	for_each_file(f->folder, remove_file);
	snprintf(lock, sizeof(lock), "%s/lock", f->folder);
	unlink(lock);
	assert_int_equal(rmdir(f->folder), 0);
	free(f);
	return 0;
}

static void reopen(struct fixture *f, uint64_t bytes_max)
{
	spool_free(f->s);
	open_spool(f, bytes_max);
}

/* Takes the oldest entry out and looks at it; want NULL: there is none. */
static void expect_next(struct fixture *f, uint64_t now_ns, const char *want)
{
	struct spool_entry e;
	void *body = NULL;
	size_t len;
	int n = spool_take(f->s, now_ns, &e, &body, &len);

	assert_int_equal(n, want != NULL);
	if (!want)
		return;
	assert_int_equal(len, strlen(want));
	assert_memory_equal(body, want, len);
	assert_int_equal(e.samples, len);
	free(body);
	spool_remove(f->s, e.number);
}

static int add(struct fixture *f, uint64_t time_ns, const char *body)
{
	return spool_add(f->s, time_ns, strlen(body), body, strlen(body));
}

static void test_spool_keeps_the_order_over_restarts(void **state)
{
	struct fixture *f = *state;

	assert_int_equal(add(f, NOW, "first"), 0);
	assert_int_equal(add(f, NOW - 5, "second"), 0); /* the clock was set back */
	reopen(f, 1000);
	assert_int_equal(add(f, NOW, "third"), 0);
	expect_next(f, NOW, "first");
	reopen(f, 1000);
	expect_next(f, NOW, "second");
	expect_next(f, NOW, "third");
	expect_next(f, NOW, NULL);
}

static void test_spool_add_makes_room(void **state)
{
	struct fixture *f = *state;
	struct spool_stats stats;

	reopen(f, 12);
	assert_int_equal(add(f, NOW, "aaaaa"), 0);
	assert_int_equal(add(f, NOW, "bbbbb"), 0);
	assert_int_equal(add(f, NOW, "cccc"), 0);
	assert_int_equal(spool_add(f->s, NOW, 13, "0123456789abc", 13), -EFBIG);
	spool_stats(f->s, &stats);
	assert_int_equal(stats.entries, 2);
	assert_int_equal(stats.bytes, 9);
	assert_int_equal(stats.lost_samples[SPOOL_FULL], 5);
	assert_int_equal(stats.lost_samples[SPOOL_FAILED], 13);
	expect_next(f, NOW, "bbbbb");
	expect_next(f, NOW, "cccc");
}

static void test_spool_take_drops_what_is_too_old(void **state)
{
	struct fixture *f = *state;
	struct spool_stats stats;

	assert_int_equal(add(f, NOW - 61 * SECOND, "old"), 0);
	assert_int_equal(add(f, NOW - 60 * SECOND, "just"), 0);
	assert_int_equal(add(f, NOW + 3600 * SECOND, "future"), 0); /* the clock jumped back */
	expect_next(f, NOW, "just");
	expect_next(f, NOW, "future");
	spool_stats(f->s, &stats);
	assert_int_equal(stats.lost_samples[SPOOL_EXPIRED], 3);
	assert_int_equal(stats.entries, 0);
}

static struct spool_entry take(struct fixture *f, const char *want)
{
	struct spool_entry e;
	void *body = NULL;
	size_t len;

	assert_int_equal(spool_take(f->s, NOW, &e, &body, &len), 1);
	assert_int_equal(len, strlen(want));
	assert_memory_equal(body, want, len);
	free(body);
	return e;
}

/* Several are on their way at once; one that comes back is the oldest again. */
static void test_spool_take_gives_each_once(void **state)
{
	struct fixture *f = *state;
	struct spool_entry first, second;

	assert_int_equal(add(f, NOW, "first"), 0);
	assert_int_equal(add(f, NOW, "second"), 0);
	assert_int_equal(add(f, NOW, "third"), 0);
	first = take(f, "first");
	second = take(f, "second");
	first.failures = 2;
	first.is_suspect = true;
	spool_return(f->s, &first);
	first = take(f, "first");
	assert_int_equal(first.failures, 2);
	assert_true(first.is_suspect);
	spool_remove(f->s, second.number);
	spool_return(f->s, &second); /* nothing: it is gone */
	expect_next(f, NOW, "third");
	spool_remove(f->s, first.number);
	expect_next(f, NOW, NULL);
}

/* What is on its way may have arrived: it is not counted as lost, whatever its age. */
static void test_spool_add_spares_what_is_taken(void **state)
{
	struct fixture *f = *state;
	struct spool_stats stats;
	struct spool_entry e;

	reopen(f, 12);
	assert_int_equal(add(f, NOW, "aaaaa"), 0);
	assert_int_equal(add(f, NOW, "bbbbb"), 0);
	e = take(f, "aaaaa");
	assert_int_equal(add(f, NOW, "cccc"), 0);
	assert_int_equal(add(f, NOW, "ddddddddd"), -EFBIG);
	spool_stats(f->s, &stats);
	assert_int_equal(stats.lost_samples[SPOOL_FULL], 5 + 4);
	assert_int_equal(stats.lost_samples[SPOOL_FAILED], 9);
	expect_next(f, NOW + 3600 * SECOND, NULL);
	spool_return(f->s, &e);
	expect_next(f, NOW, "aaaaa");
}

/* A queue that was never empty reuses what is gone at its front. */
static void test_spool_add_after_many(void **state)
{
	struct fixture *f = *state;
	char body[16], next[16];

	assert_int_equal(add(f, NOW, "0"), 0);
	for (int i = 1; i < 100; i++) {
		snprintf(body, sizeof(body), "%d", i);
		snprintf(next, sizeof(next), "%d", i - 1);
		assert_int_equal(add(f, NOW, body), 0);
		expect_next(f, NOW, next);
	}
	expect_next(f, NOW, "99");
}

static void damage(const char *path)
{
	int fd = open(path, O_WRONLY);

	assert_true(fd >= 0);
	assert_int_equal(pwrite(fd, "X", 1, 0), 1);
	close(fd);
}

static void cut(const char *path)
{
	assert_int_equal(truncate(path, 2), 0);
}

static void test_spool_take_drops_what_is_damaged(void **state)
{
	static void (*const harms[])(const char *) = { damage, cut, remove_file };

	for (size_t i = 0; i < sizeof(harms) / sizeof(harms[0]); i++) {
		struct fixture *f = *state;
		struct spool_stats stats;

		assert_int_equal(add(f, NOW, "body"), 0);
		for_each_file(f->folder, harms[i]);
		assert_int_equal(add(f, NOW, "whole"), 0);
		expect_next(f, NOW, "whole");
		expect_next(f, NOW, NULL);
		spool_stats(f->s, &stats);
		assert_int_equal(stats.lost_samples[SPOOL_DAMAGED], 4 * (i + 1));
		assert_int_equal(stats.bytes, 0);
	}
}

static void touch(const struct fixture *f, const char *name)
{
	char path[256];
	int fd;

	snprintf(path, sizeof(path), "%s/%s", f->folder, name);
	fd = open(path, O_WRONLY | O_CREAT, 0600);
	assert_true(fd >= 0);
	close(fd);
}

/* What a crash left half written goes; what is not ours stays, half written or not. */
static void test_spool_open_sorts_files(void **state)
{
	static const char *const others[] = { "notes.txt",     "1-1-1-00000000.otlp",
					      "-1-1-1-0.otlp", "download.partial",
					      ".partial",      "9-1-1-00000000.otlp.partial" };
	struct fixture *f = *state;
	char path[256];

	for (size_t i = 0; i < sizeof(others) / sizeof(others[0]); i++)
		touch(f, others[i]);
	touch(f, "0000000000000009-1-1-00000000.otlp.partial");
	touch(f, "0000000000000009-1-1-00000000.parca.partial");
	reopen(f, 1000);
	expect_next(f, NOW, NULL);
	for (size_t i = 0; i < sizeof(others) / sizeof(others[0]); i++) {
		snprintf(path, sizeof(path), "%s/%s", f->folder, others[i]);
		if (access(path, F_OK))
			fail_msg("%s is gone", others[i]);
		unlink(path); /* a name that begins with a dot too */
	}
	snprintf(path, sizeof(path), "%s/0000000000000009-1-1-00000000.otlp.partial", f->folder);
	assert_int_equal(access(path, F_OK), -1);
	snprintf(path, sizeof(path), "%s/0000000000000009-1-1-00000000.parca.partial", f->folder);
	assert_int_equal(access(path, F_OK), -1);
}

static void give_away(const char *path)
{
	assert_int_equal(lchown(path, 65534, 65534), 0);
}

static void count_file(const char *path)
{
	(void)path;
	noted[0]++;
}

static int count_files(const struct fixture *f)
{
	noted[0] = 0;
	for_each_file(f->folder, count_file);
	return noted[0];
}

/* Neither sent nor removed, with the right CRC too: whole, half written, or put in place of ours.
 */
static void test_spool_leaves_files_of_others(void **state)
{
	struct fixture *f = *state;
	struct spool_stats stats;

	if (geteuid())
		SKIP("only root gives files away");
	assert_int_equal(add(f, NOW, "theirs"), 0);
	touch(f, "0000000000000009-1-1-00000000.otlp.partial");
	for_each_file(f->folder, give_away);
	reopen(f, 1000);
	spool_stats(f->s, &stats);
	assert_int_equal(stats.entries + stats.bytes, 0);
	expect_next(f, NOW, NULL);
	assert_int_equal(count_files(f), 2);
	for_each_file(f->folder, remove_file);
	assert_int_equal(add(f, NOW, "ours"), 0);
	for_each_file(f->folder, give_away);
	expect_next(f, NOW, NULL);
	spool_stats(f->s, &stats);
	assert_int_equal(stats.lost_entries[SPOOL_DAMAGED], 1);
	assert_int_equal(count_files(f), 1);
}

/* They wait for theirs to come back, as long as any: then they go, counted. */
static void test_spool_keeps_what_is_of_another_engine(void **state)
{
	struct fixture *f = *state;
	struct spool_opts parca = { f->folder, "parca", 1000, 60 * SECOND };
	struct spool_stats stats;

	assert_int_equal(add(f, NOW - 30 * SECOND, "first"), 0);
	spool_configure(f->s, &parca);
	assert_int_equal(add(f, NOW, "second"), 0);
	spool_stats(f->s, &stats);
	assert_int_equal(stats.entries, 2);
	assert_int_equal(stats.foreign, 1);
	reopen(f, 1000); /* by the first engine */
	expect_next(f, NOW, "first");
	expect_next(f, NOW, NULL);
	expect_next(f, NOW + 61 * SECOND, NULL);
	spool_stats(f->s, &stats);
	assert_int_equal(stats.entries, 0);
	assert_int_equal(stats.lost_samples[SPOOL_EXPIRED], strlen("second"));
	assert_int_equal(add(f, NOW, "third"), 0);
	spool_configure(f->s, &parca);
	assert_int_equal(add(f, NOW, "fourth"), 0);
	expect_next(f, NOW, "fourth");
	spool_configure(f->s, &(struct spool_opts){ f->folder, "otlp", 8, 60 * SECOND });
	assert_int_equal(add(f, NOW, "fifth"), 0);
	spool_stats(f->s, &stats);
	assert_int_equal(stats.lost_samples[SPOOL_FULL], strlen("third"));
	expect_next(f, NOW, "fifth");
}

/* The file that another one has put at the name of the next entry is not written to. */
static void test_spool_add_makes_its_file(void **state)
{
	struct fixture *f = *state;
	char planted[160], elsewhere[160];
	struct stat st;

	assert_int_equal(add(f, NOW, "1"), 0);
	for_each_file(f->folder,
		      note_name); /* the next one, too, after reopen() of an empty spool */
	snprintf(planted, sizeof(planted), "%s.partial", noted);
	snprintf(elsewhere, sizeof(elsewhere), "%s/elsewhere", f->folder);
	for_each_file(f->folder, remove_file);
	reopen(f, 1000);
	touch(f, "elsewhere");
	assert_int_equal(link(elsewhere, planted), 0);
	assert_int_equal(add(f, NOW, "1"), 0);
	assert_int_not_equal(access(planted, F_OK), 0); /* its name was the right one */
	assert_int_equal(stat(elsewhere, &st), 0);
	assert_int_equal(st.st_size, 0);
}

static void test_spool_open_refuses_a_second(void **state)
{
	struct fixture *f = *state;
	struct spool_opts o = { f->folder, "otlp", 1000, SECOND };
	struct spool *second = NULL;

	assert_int_equal(spool_open(&o, &second), -EBUSY);
	assert_null(second);
}

/* A file system of 16 KiB: the oldest make room, the newest are there. */
static void test_spool_add_on_a_full_disk(void **state)
{
	struct fixture *f = *state;
	struct spool_stats stats;
	char body[3000];

	spool_free(f->s);
	f->s = NULL;
	if (unshare(CLONE_NEWNS) < 0 || mount(NULL, "/", NULL, MS_REC | MS_PRIVATE, NULL) < 0 ||
	    mount("none", f->folder, "tmpfs", 0, "size=16k") < 0) {
		open_spool(f, 1000);
		SKIP("no file system may be mounted here");
	}
	open_spool(f, 1 << 20);
	memset(body, 'x', sizeof(body));
	for (int i = 0; i < 20; i++)
		assert_int_equal(spool_add(f->s, NOW, 1, body, sizeof(body)), 0);
	spool_stats(f->s, &stats);
	assert_int_equal(stats.lost_samples[SPOOL_FULL] + stats.entries, 20);
	assert_in_range(stats.entries, 1, 4);
	assert_int_equal(stats.lost_samples[SPOOL_FAILED], 0);
	spool_free(f->s);
	f->s = NULL;
	assert_int_equal(umount2(f->folder, MNT_DETACH), 0);
	open_spool(f, 1000);
}

int main(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)
	const struct CMUnitTest tests[] = {
		TEST(test_spool_keeps_the_order_over_restarts),
		TEST(test_spool_add_makes_room),
		TEST(test_spool_take_drops_what_is_too_old),
		TEST(test_spool_take_drops_what_is_damaged),
		TEST(test_spool_take_gives_each_once),
		TEST(test_spool_add_spares_what_is_taken),
		TEST(test_spool_add_after_many),
		TEST(test_spool_open_sorts_files),
		TEST(test_spool_leaves_files_of_others),
		TEST(test_spool_keeps_what_is_of_another_engine),
		TEST(test_spool_add_makes_its_file),
		TEST(test_spool_open_refuses_a_second),
		TEST(test_spool_add_on_a_full_disk),
	};
#undef TEST

	return cmocka_run_group_tests(tests, NULL, NULL);
}
