/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <elf.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/userfaultfd.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/clock.h"
#include "collect/look_budget.h"
#include "collect/looker.h"
#include "target/owner.h"
#include "tests/unit/child.h"
#include "tests/unit/skip.h"

#define PATIENCE_NS (30 * NS_PER_SECOND)
#define ATTEMPTS 100000
#define READ_BYTES (LOOK_BUDGET_BYTES / 16)
#define PAGE 65536 /* of any size */
#define BUDGET_WORDS \
	"looks at it, or at others of its user or container, take too long, or too much"

/* A reader process may get no CPU within the time of a look: then the caller asks again. */
static int read_there(struct looker *l, const char *there, char *copy, size_t len, size_t steady)
{
	uint64_t until_ns = monotonic_ns() + PATIENCE_NS;
	struct sighting late;
	int r;

	do {
		r = looker_read(l, getpid(), (uintptr_t)there, copy, len, steady);
		assert_false(looker_next(l, &late));
	} while ((r == -EBUSY || r == -ETIMEDOUT) && monotonic_ns() < until_ns);
	return r;
}

/* Our own process is the target. */
static void test_looker_read_copies_memory(void **state)
{
	_cleanup_(looker_freep) struct looker *l = NULL;
	const char there[] = "what is there";
	char copy[sizeof(there)];

	(void)state;
	assert_int_equal(looker_new(&l), 0);
	assert_int_equal(read_there(l, there, copy, sizeof(copy), 1), 0);
	assert_string_equal(copy, there);
	assert_int_equal(read_there(l, NULL, copy, sizeof(copy), 0), -EFAULT);
}

/* By bytes, or by time where the machine is slow. */
static void test_looker_refuses_what_is_beyond_a_budget(void **state)
{
	_cleanup_(looker_freep) struct looker *l = NULL;
	_cleanup_(freep) char *there = calloc(1, READ_BYTES);
	_cleanup_(freep) char *copy = malloc(READ_BYTES);
	struct sighting late;
	uint64_t refused;
	int r = 0;

	(void)state;
	assert_true(there && copy);
	assert_int_equal(looker_new(&l), 0);
	for (int i = 0; i < ATTEMPTS; i++) {
		refused = looker_refused(l);
		r = looker_read(l, getpid(), (uintptr_t)there, copy, READ_BYTES, 0);
		assert_false(looker_next(l, &late));
		if (r == -EBUSY && !strcmp(err_message(r), BUDGET_WORDS))
			break;
	}
	assert_int_equal(r, -EBUSY);
	assert_string_equal(err_message(r), BUDGET_WORDS);
	assert_int_equal(looker_refused(l), refused + 1);
}

/* --- targets that hang ------------------------------------------------------------------------ */

static bool make_silent(char *page)
{
	int fd = (int)syscall(SYS_userfaultfd, O_CLOEXEC);
	struct uffdio_api api = { .api = UFFD_API };
	struct uffdio_register page_of = { .range = { (uintptr_t)page, PAGE },
					   .mode = UFFDIO_REGISTER_MODE_MISSING };

	return fd >= 0 && !ioctl(fd, UFFDIO_API, &api) && !ioctl(fd, UFFDIO_REGISTER, &page_of);
}

/* Returns the address of a page that does not answer and one behind it that does; 0: it can have
 * none. */
static uintptr_t map_silent(const void *user)
{
	uid_t uid = *(const uid_t *)user;
	char *there =
		mmap(NULL, 2 * PAGE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	if (there == MAP_FAILED || !make_silent(there) || setresuid(uid, uid, uid))
		return 0;
	there[PAGE] = 'x';
	return (uintptr_t)there;
}

static struct child start(uid_t user)
{
	return child_start(map_silent, &user);
}

static int look_at(struct looker *l, const struct child *t, size_t offset)
{
	struct sighting late;
	char byte;
	int r = looker_read(l, t->pid, t->told + offset, &byte, 1, 0);

	assert_false(looker_next(l, &late));
	return r;
}

/* Until a reader of it hangs, on a machine that may be busy. */
static void hang(struct looker *l, const struct child *t)
{
	uint64_t until_ns = monotonic_ns() + PATIENCE_NS;
	int r;

	do
		r = look_at(l, t, 0);
	while (r != -ETIMEDOUT && monotonic_ns() < until_ns);
	assert_int_equal(r, -ETIMEDOUT);
}

/* Until looks at it end like that. */
static void await_look(struct looker *l, const struct child *t, int wanted, const char *words)
{
	uint64_t until_ns = monotonic_ns() + PATIENCE_NS;
	int r;

	do
		r = look_at(l, t, PAGE);
	while ((r != wanted || (words && strcmp(err_message(r), words) != 0)) &&
	       monotonic_ns() < until_ns);
	assert_int_equal(r, wanted);
	if (words)
		assert_string_equal(err_message(r), words);
}

static void test_looker_counts_a_second_look_at_one_that_hangs(void **state)
{
	_cleanup_(looker_freep) struct looker *l = NULL;
	struct child t = start(getuid());
	uint64_t refused;

	(void)state;
	if (!t.told) {
		child_end(&t);
		SKIP("no userfaultfd() here");
	}
	assert_int_equal(looker_new(&l), 0);
	hang(l, &t);
	assert_true(looker_has_late(l));
	refused = looker_refused(l);
	assert_int_equal(look_at(l, &t, PAGE), -EBUSY);
	assert_string_equal(err_message(-EBUSY), "another look at it has not come back");
	assert_int_equal(looker_refused(l), refused + 1);
	child_end(&t); /* what reads it comes back */
	while (looker_has_late(l))
		look_at(l, &t, PAGE);
}

enum { ALICE = 65534, MALLORY = 65533 };

static bool are_of_two(const struct child *a, const struct child *b)
{
	static const struct cgroup_namespace ours;
	struct owner of_a, of_b;

	return a->told && b->told && !owner_find(a->pid, &ours, &of_a) &&
	       !owner_find(b->pid, &ours, &of_b) && of_a.id != of_b.id;
}

/* A quarter of the readers hang for one owner: then others of hers are refused, and nobody else. */
static void test_looker_keeps_readers_for_other_owners(void **state)
{
	struct child hers[LOOK_OWNER_BLOCKED_MAX], another = start(MALLORY), his = start(ALICE);
	bool can = are_of_two(&another, &his);
	struct looker *l;

	(void)state;
	assert_int_equal(looker_new(&l), 0);
	for (size_t i = 0; i < LOOK_OWNER_BLOCKED_MAX && can; i++) {
		hers[i] = start(MALLORY);
		hang(l, &hers[i]);
	}
	if (can) {
		await_look(l, &another, -EBUSY,
			   "too many processes of its user or container do not answer");
		await_look(l, &his, 0, NULL);
		child_end(&hers[0]);
		await_look(l, &another, 0, NULL);
	}
	for (size_t i = 1; i < LOOK_OWNER_BLOCKED_MAX && can; i++)
		child_end(&hers[i]);
	child_end(&another);
	child_end(&his);
	looker_free(l);
	if (!can)
		SKIP("needs root outside of containers, and userfaultfd()");
}

/* --- looks that are late ---------------------------------------------------------------------- */

#define FILES 60
#define NAMES 64
#define TABLE_BYTES (64u << 20) /* of a file that has holes: there is nothing to be found in it */

/* A library with large tables of symbols, which take more CPU time than a target has of its own. */
static void write_library(int fd)
{
	static const char names[] = "\0.symtab\0.strtab", name[] = "_PyRuntime";
	const off_t end = 0x2000 + 2 * (off_t)TABLE_BYTES;
	const Elf64_Ehdr head = { .e_ident = { ELFMAG0, ELFMAG1, ELFMAG2, ELFMAG3, ELFCLASS64,
					       ELFDATA2LSB, EV_CURRENT },
				  .e_type = ET_DYN,
				  .e_machine = EM_X86_64,
				  .e_version = EV_CURRENT,
				  .e_phoff = sizeof(head),
				  .e_shoff = 0x1000,
				  .e_ehsize = sizeof(head),
				  .e_phentsize = sizeof(Elf64_Phdr),
				  .e_phnum = 1,
				  .e_shentsize = sizeof(Elf64_Shdr),
				  .e_shnum = 4,
				  .e_shstrndx = 3 };
	const Elf64_Phdr load = { .p_type = PT_LOAD,
				  .p_flags = PF_R | PF_X,
				  .p_filesz = 0x1000,
				  .p_memsz = 0x1000,
				  .p_align = 0x1000 };
	const Elf64_Shdr sections[] = {
		{ 0 },
		{ .sh_name = 1,
		  .sh_type = SHT_SYMTAB,
		  .sh_offset = 0x2000,
		  .sh_size = TABLE_BYTES,
		  .sh_link = 2,
		  .sh_entsize = sizeof(Elf64_Sym) },
		{ .sh_name = 9,
		  .sh_type = SHT_STRTAB,
		  .sh_offset = 0x2000 + TABLE_BYTES,
		  .sh_size = TABLE_BYTES },
		{ .sh_type = SHT_STRTAB, .sh_offset = 0x1800, .sh_size = sizeof(names) },
	};

	assert_int_equal(pwrite(fd, &head, sizeof(head), 0), sizeof(head));
	assert_int_equal(pwrite(fd, &load, sizeof(load), sizeof(head)), sizeof(load));
	assert_int_equal(pwrite(fd, sections, sizeof(sections), 0x1000), sizeof(sections));
	assert_int_equal(pwrite(fd, names, sizeof(names), 0x1800), sizeof(names));
	for (int i = 0; i < NAMES; i++)
		assert_int_equal(
			pwrite(fd, name, sizeof(name), end - (i + 1) * (off_t)sizeof(name)),
			sizeof(name));
	assert_int_equal(ftruncate(fd, end), 0);
}

/* Returns whether it has mapped some of them. */
static uintptr_t map_libraries(const void *arg)
{
	bool can = true;

	(void)arg;
	for (int i = 0; i < FILES; i++) {
		int fd = open("/tmp", O_RDWR | O_TMPFILE | O_CLOEXEC, 0600);

		write_library(fd);
		can &= mmap(NULL, 0x1000, PROT_READ | PROT_EXEC, MAP_PRIVATE, fd, 0) != MAP_FAILED;
		close(fd);
	}
	return can;
}

/* Late looks are charged when they come back: they do not go on for ever. */
static void test_looker_charges_searches_that_were_late(void **state)
{
	_cleanup_(looker_freep) struct looker *l = NULL;
	const struct child c = child_start(map_libraries, NULL);
	const struct task_record task = { .pid = (uint32_t)c.pid };
	uint64_t until_ns = monotonic_ns() + PATIENCE_NS;
	struct sighting seen;
	int r;

	(void)state;
	assert_true(c.told);
	assert_int_equal(looker_new(&l), 0);
	do { /* nobody waits for longer than a nanosecond */
		r = looker_find(l, &task, 1, &seen);
		if (r == -EBUSY && !strcmp(err_message(r), BUDGET_WORDS))
			break;
		if (r != -EBUSY && r != -ETIMEDOUT) { /* in time, and so charged at once: anew */
			looker_free(take_ptr(l));
			assert_int_equal(looker_new(&l), 0);
		}
		while (looker_has_late(l) && !looker_next(l, &seen))
			sched_yield();
	} while (monotonic_ns() < until_ns);
	assert_int_equal(r, -EBUSY);
	assert_string_equal(err_message(r), BUDGET_WORDS);
	child_end(&c);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_looker_read_copies_memory),
		cmocka_unit_test(test_looker_refuses_what_is_beyond_a_budget),
		cmocka_unit_test(test_looker_counts_a_second_look_at_one_that_hangs),
		cmocka_unit_test(test_looker_keeps_readers_for_other_owners),
		cmocka_unit_test(test_looker_charges_searches_that_were_late),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
