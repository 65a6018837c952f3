/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <errno.h>
#include <sched.h>
#include <string.h>
#include <unistd.h>

#include "tests/unit/child.h"
#include "tests/unit/skip.h"
#include "target/owner.h"

#define A "0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef"
#define B "fedcba9876543210fedcba9876543210fedcba9876543210fedcba9876543210"
#define SYSTEM "/system.slice/shop.service"
#define SESSION "/user.slice/user-1000.slice/user@1000.service"

enum { ROOT, ALICE = 1000, BOB = 1001, OF_ALICE = 100000 /* /etc/subuid */ };

static const struct cgroup_namespace ours;

struct facts {
	const char *cgroups;
	uid_t user, maker;
	uint64_t maker_namespace;
};

static struct owner owner_of_facts(const struct facts *f)
{
	const struct owner_facts of = { .cgroups = f->cgroups,
					.cgroups_len = strlen(f->cgroups),
					.user = f->user,
					.maker = f->maker,
					.maker_namespace = f->maker_namespace };
	struct owner owner;

	assert_int_equal(owner_of(&of, &ours, &owner), 0);
	return owner;
}

/* Returns true if two processes are of one owner. */
static void test_owner_of_is_who_cannot_be_invented(void **state)
{
	static const struct {
		const char *name;
		struct facts first, second;
		bool are_one;
	} cases[] = {
		{ "two users", { "0::" SYSTEM, ALICE, 0, 0 }, { "0::" SYSTEM, BOB, 0, 0 }, false },
		{ "a user in two cgroups",
		  { "0::" SYSTEM, ALICE, 0, 0 },
		  { "0::/x", ALICE, 0, 0 },
		  true },
		{ "a user and root",
		  { "0::" SYSTEM, ALICE, 0, 0 },
		  { "0::" SYSTEM, ROOT, 0, 0 },
		  false },
		{ "two containers, one user id",
		  { "0::/docker/" A, ALICE, 0, 0 },
		  { "0::/docker/" B, ALICE, 0, 0 },
		  false },
		{ "a container, two user ids",
		  { "0::/docker/" A, ALICE, 0, 0 },
		  { "0::/docker/" A, BOB, 0, 0 },
		  true },
		{ "a container, and root in it",
		  { "0::/docker/" A, ALICE, 0, 0 },
		  { "0::/docker/" A, ROOT, 0, 0 },
		  true },
		{ "a container in a container",
		  { "0::/docker/" A "/docker/" B, ROOT, 0, 0 },
		  { "0::/docker/" A, ROOT, 0, 0 },
		  true },
		{ "version 1, in one hierarchy only",
		  { "4:pids:/docker/" A "\n0::/\n", ROOT, 0, 0 },
		  { "0::/docker/" A, ROOT, 0, 0 },
		  true },
		{ "a user's user of a container",
		  { "0::/docker/" A SESSION, ALICE, 0, 0 },
		  { "0::/docker/" A, ROOT, 0, 0 },
		  true },
		{ "containers that a user names",
		  { "0::" SESSION "/docker-" A ".scope", ALICE, 0, 0 },
		  { "0::" SESSION "/docker-" B ".scope", ALICE, 0, 0 },
		  true },
		{ "a container of a user, and the user",
		  { "0::" SESSION "/libpod-" A ".scope", OF_ALICE, ALICE, 7 },
		  { "0::" SYSTEM, ALICE, 0, 0 },
		  true },
		{ "user ids of a user's namespace",
		  { "0::" SESSION, OF_ALICE, ALICE, 7 },
		  { "0::" SESSION, OF_ALICE + 1, ALICE, 8 },
		  true },
		{ "namespaces of two users",
		  { "0::" SESSION, OF_ALICE, ALICE, 7 },
		  { "0::" SESSION, OF_ALICE, BOB, 8 },
		  false },
		{ "user ids of a namespace that root made",
		  { "0::/lxc/x", OF_ALICE, ROOT, 7 },
		  { "0::/lxc/x", OF_ALICE + 1, ROOT, 7 },
		  true },
		{ "namespaces that root made",
		  { "0::/lxc/x", OF_ALICE, ROOT, 7 },
		  { "0::/lxc/y", OF_ALICE, ROOT, 8 },
		  false },
		{ "a namespace that a container's root made",
		  { "0::/docker/" A, ROOT, ROOT, 7 },
		  { "0::/docker/" A, ROOT, 0, 0 },
		  true },
		{ "root's services",
		  { "0::" SYSTEM, ROOT, 0, 0 },
		  { "0::/system.slice/cron.service", ROOT, 0, 0 },
		  false },
		{ "below one of root's services",
		  { "0::" SYSTEM "/a", ROOT, 0, 0 },
		  { "0::" SYSTEM "/b/c", ROOT, 0, 0 },
		  true },
		{ "a word that begins so",
		  { "0::/username.slice/docker-" A ".scope", ALICE, 0, 0 },
		  { "0::/docker/" A, BOB, 0, 0 },
		  true },
		{ "nothing known", { "", ROOT, 0, 0 }, { "0::\n:", ROOT, 0, 0 }, true },
	};

	(void)state;
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		const struct facts *two[] = { &cases[i].first, &cases[i].second };
		struct owner owners[2];

		for (int j = 0; j < 2; j++) {
			owners[j] = owner_of_facts(two[j]);
			assert_int_not_equal(owners[j].id, 0);
		}
		if ((owners[0].id == owners[1].id) != cases[i].are_one)
			fail_msg("%s: %s", cases[i].name,
				 cases[i].are_one ? "two owners" : "one owner");
	}
}

static void test_owner_of_root(void **state)
{
	static const struct {
		const char *cgroups;
		uid_t user;
		bool is_root;
	} cases[] = {
		{ "0::" SYSTEM, ROOT, true },
		{ "0::" SESSION "/docker-" A ".scope", ROOT, true },
		{ "0::/docker/" A, ROOT, false },
		{ "0::" SYSTEM, ALICE, false },
	};

	(void)state;
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		const struct facts f = { .cgroups = cases[i].cgroups, .user = cases[i].user };
		struct owner owner = owner_of_facts(&f);

		if (owner.is_root != cases[i].is_root)
			fail_msg("%s: %d", cases[i].cgroups, owner.is_root);
	}
}

/* --- processes -------------------------------------------------------------------------------- */

struct place {
	uid_t user;
	bool is_apart; /* in a user namespace of its own */
};

static uintptr_t take_place(const void *arg)
{
	const struct place *p = arg;

	return setresuid(p->user, p->user, p->user) == 0 &&
	       (!p->is_apart || unshare(CLONE_NEWUSER) == 0);
}

static struct child start(uid_t user, bool is_apart)
{
	return child_start(take_place, &(struct place){ user, is_apart });
}

static bool is_one(pid_t a, pid_t b)
{
	struct owner of_a, of_b;

	assert_int_equal(owner_find(a, &ours, &of_a), 0);
	assert_int_equal(owner_find(b, &ours, &of_b), 0);
	return of_a.id == of_b.id;
}

static void test_owner_find_tells_users_apart(void **state)
{
	struct child alice = start(ALICE, false), alices = start(ALICE, true),
		     bob = start(BOB, false);
	struct owner own;
	bool is_here = alice.told && alices.told && bob.told;

	(void)state;
	assert_int_equal(owner_find(getpid(), &ours, &own), 0);
	if (is_here && own.is_root) { /* in a container all would be of one owner */
		assert_true(is_one(alice.pid, alices.pid));
		assert_false(is_one(alice.pid, bob.pid));
		assert_false(is_one(alice.pid, getpid()));
	}
	child_end(&alice);
	child_end(&alices);
	child_end(&bob);
	if (!is_here || !own.is_root)
		SKIP("needs root outside of containers, and user namespaces");
}

static void test_owner_find_without_a_process(void **state)
{
	struct owner owner = { .id = 5 };

	(void)state;
	assert_int_equal(owner_find(4194304 + 1, &ours, &owner), -ESRCH);
	assert_int_equal(owner.id, 5);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_owner_of_is_who_cannot_be_invented),
		cmocka_unit_test(test_owner_of_root),
		cmocka_unit_test(test_owner_find_tells_users_apart),
		cmocka_unit_test(test_owner_find_without_a_process),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
