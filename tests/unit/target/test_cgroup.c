/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <errno.h>
#include <sched.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/err.h"
#include "target/cgroup.h"
#include "target/cgroup_namespace.h"
#include "target/container_cgroup.h"
#include "tests/unit/skip.h"

/* clang-format off */
#define A "0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef"
#define B "fedcba9876543210fedcba9876543210fedcba9876543210fedcba9876543210"
#define ECS "0123456789abcdef0123456789abcdef-1234567890"
#define UID "1f2e3d4c-5b6a-7988-a7b6-c5d4e3f2a1b0"
#define UID_ "1f2e3d4c_5b6a_7988_a7b6_c5d4e3f2a1b0"
/* clang-format on */

static void test_cgroup_path_next_knows_the_names_of_engines(void **state)
{
	static const struct {
		const char *name;
		const char *path;
		const char *ids[3]; /* outermost first */
		const char *last;   /* the cgroup of the last */
	} cases[] = {
		{ "docker, cgroupfs", "/docker/" A, { A }, "/docker/" A },
		{ "docker, systemd",
		  "/system.slice/docker-" A ".scope",
		  { A },
		  "/system.slice/docker-" A ".scope" },
		{ "podman, a cgroup inside",
		  "/machine.slice/libpod-" A ".scope/container",
		  { A },
		  "/machine.slice/libpod-" A ".scope" },
		{ "podman, version 1",
		  "/libpod_parent/libpod-" A,
		  { A },
		  "/libpod_parent/libpod-" A },
		{ "podman's monitor", "/machine.slice/libpod-conmon-" A ".scope", { NULL }, NULL },
		{ "CRI-O's monitor", "/system.slice/crio-conmon-" A ".scope", { NULL }, NULL },
		{ "containerd, systemd",
		  "/kubepods.slice/kubepods-pod" UID_ ".slice/cri-containerd-" A ".scope",
		  { A },
		  "/kubepods.slice/kubepods-pod" UID_ ".slice/cri-containerd-" A ".scope" },
		{ "containerd, cgroupfs",
		  "/kubepods/besteffort/pod" UID "/" A,
		  { A },
		  "/kubepods/besteffort/pod" UID "/" A },
		{ "containerd, neither",
		  "/system.slice/containerd.service/kubepods-pod" UID_ ".slice:cri-containerd:" A,
		  { A },
		  "/system.slice/containerd.service/kubepods-pod" UID_ ".slice:cri-containerd:" A },
		{ "CRI-O",
		  "/kubepods.slice/crio-" A ".scope",
		  { A },
		  "/kubepods.slice/crio-" A ".scope" },
		{ "ECS", "/ecs/0123456789abcdef/" ECS, { ECS }, "/ecs/0123456789abcdef/" ECS },
		{ "one in another",
		  "/docker/" A "/docker/" B "/init.scope",
		  { A, B },
		  "/docker/" A "/docker/" B },
		{ "outside our namespace", "/../../docker/" A, { A }, "/../../docker/" A },
		{ "a service", "/system.slice/ssh.service", { NULL }, NULL },
		{ "the root", "/", { NULL }, NULL },
		{ "empty", "", { NULL }, NULL },
		{ "one digit too many", "/docker/0" A, { NULL }, NULL },
		{ "capitals", "/docker/" ECS "A", { NULL }, NULL },
		{ "another word around it", "/docker/x" A, { NULL }, NULL },
		{ "behind it", "/docker/" A "x", { NULL }, NULL },
		{ "only .scope", "/.scope", { NULL }, NULL },
		{ "ECS without number", "/ecs/0123456789abcdef0123456789abcdef-", { NULL }, NULL },
	};

	(void)state;
	for (size_t i = 0; i < sizeof(cases) / sizeof(*cases); i++) {
		const char *path = cases[i].path;
		struct cgroup_container c = { 0 };
		size_t at = 0, n = 0;

		while (cgroup_path_next(path, strlen(path), &at, &c)) {
			const char *want = n < 3 ? cases[i].ids[n] : NULL;

			if (!want || strlen(want) != c.id_len ||
			    memcmp(path + c.id, want, c.id_len))
				fail_msg("%s: id %zu is %.*s", cases[i].name, n, (int)c.id_len,
					 path + c.id);
			n++;
		}
		if (n < 3 && cases[i].ids[n])
			fail_msg("%s: %zu ids", cases[i].name, n);
		if (n && (c.end != strlen(cases[i].last) || memcmp(path, cases[i].last, c.end)))
			fail_msg("%s: cgroup %.*s", cases[i].name, (int)c.end, path);
	}
}

static void test_cgroup_open_container_explains(void **state)
{
	static const struct {
		const char *name;
		const char *id;
		int want;
		const char *says;
	} cases[] = {
		{ "too short", "0123456789a", -EINVAL, "12 hex digits" },
		{ "a name", "web-server-1", -EINVAL, "docker ps" },
		{ "a scheme alone", "containerd://", -EINVAL, "12 hex digits" },
		{ "too long", A A, -EINVAL, "not an id" },
		{ "unknown", "docker://" B, -ENOENT, "no process here" },
	};

	(void)state;
	for (size_t i = 0; i < sizeof(cases) / sizeof(*cases); i++) {
		struct cgroup c = CGROUP_INIT;
		int r = cgroup_open_container(cases[i].id, &c);

		if (r != cases[i].want || !strstr(err_message(r), cases[i].says) || c.fd >= 0)
			fail_msg("%s: got %d, %s", cases[i].name, r, err_message(r));
	}
}

static void test_cgroup_open_refuses_other_folders(void **state)
{
	static const char *const paths[] = { "/tmp", "/etc/passwd", "no/such/cgroup", "" };

	(void)state;
	for (size_t i = 0; i < sizeof(paths) / sizeof(*paths); i++) {
		struct cgroup c = CGROUP_INIT;

		/* "" is below any hierarchy its root, where one is mounted. */
		if (paths[i][0] && cgroup_open(paths[i], &c) != -ENOENT)
			fail_msg("\"%s\" is a cgroup", paths[i]);
		cgroup_release(&c);
	}
}

static bool has_pid(const struct pids *pids, pid_t pid)
{
	for (size_t i = 0; i < pids->len; i++)
		if (pids->items[i] == pid)
			return true;
	return false;
}

/* A process that waits in a cgroup until its standard input ends. */
static pid_t start_in(const char *folder, int *end)
{
	char path[256], byte;
	int fds[2], ready[2];
	pid_t pid;

	snprintf(path, sizeof(path), "%s/cgroup.procs", folder);
	assert_int_equal(pipe(fds), 0);
	assert_int_equal(pipe(ready), 0);
	pid = fork();
	if (!pid) {
		FILE *f = fopen(path, "w");

		close(fds[1]);
		if (!f || fputs("0", f) < 0 || fclose(f) || write(ready[1], "", 1) != 1 ||
		    read(fds[0], &byte, 1) < 0)
			_exit(1);
		_exit(0);
	}
	close(fds[0]);
	assert_int_equal(read(ready[0], &byte, 1), 1);
	close(ready[0]);
	close(ready[1]);
	*end = fds[1];
	return pid;
}

static void stop(pid_t pid, int end)
{
	int status;

	close(end);
	assert_int_equal(waitpid(pid, &status, 0), pid);
	assert_int_equal(status, 0);
}

/* A container's cgroup, with one inside it, as an engine would make them: listed and found by id.
 */
static void check_hierarchy(const char *root, bool is_v2)
{
	char name[128], folder[256], inner[300];
	struct cgroup c = CGROUP_INIT, d = CGROUP_INIT;
	struct pids pids = VEC_INIT;
	int end, inner_end;
	pid_t pid, inner_pid;

	snprintf(name, sizeof(name), "test-%056d%08x", 0, (unsigned)getpid());
	snprintf(folder, sizeof(folder), "%s/%s", root, name);
	snprintf(inner, sizeof(inner), "%s/inner", folder);
	assert_int_equal(mkdir(folder, 0755), 0);
	assert_int_equal(mkdir(inner, 0755), 0);
	pid = start_in(folder, &end);
	inner_pid = start_in(inner, &inner_end);

	assert_int_equal(cgroup_open(folder, &c), 0);
	assert_int_equal(c.is_v2, is_v2);
	assert_int_equal(cgroup_open(name, &d), 0);
	assert_string_equal(d.path, folder);
	cgroup_release(&d);
	assert_int_equal(cgroup_open_container(name + strlen("test-"), &d), 0);
	assert_string_equal(d.path, folder);
	cgroup_release(&d);

	assert_int_equal(cgroup_list(&c, &pids), 0);
	assert_int_equal(pids.len, 2);
	assert_true(has_pid(&pids, pid) && has_pid(&pids, inner_pid));
	assert_true(pids.items[0] < pids.items[1]);
	stop(inner_pid, inner_end);
	assert_int_equal(rmdir(inner), 0);
	pids.len = 0;
	assert_int_equal(cgroup_list(&c, &pids), 0);
	assert_int_equal(pids.len, 1);
	assert_false(cgroup_is_gone(&c));
	stop(pid, end);
	assert_int_equal(rmdir(folder), 0);
	assert_true(cgroup_is_gone(&c));
	pids.len = 0;
	assert_int_equal(cgroup_list(&c, &pids), 0);
	assert_int_equal(pids.len, 0);
	cgroup_release(&c);
	vec_release(&pids);
}

static void test_cgroup_lists_who_is_in_it(void **state)
{
	static const struct {
		const char *root;
		bool is_v2;
	} roots[] = {
		{ "/sys/fs/cgroup/unified", true },
		{ "/sys/fs/cgroup", true },
		{ "/sys/fs/cgroup/cpuacct", false },
	};
	size_t checked = 0;

	(void)state;
	for (size_t i = 0; i < sizeof(roots) / sizeof(*roots); i++) {
		struct cgroup c = CGROUP_INIT;
		bool is_there = !cgroup_open(roots[i].root, &c) && c.is_v2 == roots[i].is_v2 &&
				!access(roots[i].root, W_OK) && geteuid() == 0;

		/* A mere folder's name below a hierarchy is none of these. */
		is_there = is_there && !strcmp(c.path, roots[i].root);
		cgroup_release(&c);
		if (!is_there)
			continue;
		check_hierarchy(roots[i].root, roots[i].is_v2);
		checked++;
	}
	if (!checked)
		SKIP("no cgroup can be made here (not root, or read-only)");
}

static void test_cgroup_namespace_path_is_the_one_outside(void **state)
{
	static const struct {
		const char *name, *controllers, *root, *line, *want;
	} cases[] = {
		{ "at the root", "", "/pods/p/c", "0::/", "/pods/p/c" },
		{ "below it", "", "/pods/p/c", "0::/init.scope", "/pods/p/c/init.scope" },
		{ "beside it", "", "/pods/p/c", "0::/../d", "/pods/p/d" },
		{ "another pod", "", "/pods/p/c", "0::/../../q/d", "/pods/q/d" },
		{ "the host's root", "", "/pods/p/c", "0::/../../..", "/" },
		{ "above the host's", "", "/pods/p/c", "0::/../../../../x", "/x" },
		{ "names with dots", "", "/pods/p", "0::/..x/x../.", "/pods/p/..x/x../." },
		{ "another hierarchy", "", "/pods/p", "9:name=systemd:/../a", "/../a" },
		{ "version 1", "cpu,cpuacct", "/docker/c", "3:cpu,cpuacct:/", "/docker/c" },
		{ "colons in the path", "", "/a", "0::/b:c", "/a/b:c" },
		{ "no namespace", "", NULL, "0::/../a", "/../a" },
		{ "no path", "", "/a", "0::", "/a" },
		{ "no line", "", "/a", "0:", "" },
	};

	(void)state;
	for (size_t i = 0; i < sizeof(cases) / sizeof(*cases); i++) {
		struct cgroup_root roots[] = {
			{ (char *)"pids", (char *)"/wrong", NULL },
			{ (char *)cases[i].controllers, (char *)cases[i].root, NULL },
		};
		struct cgroup_namespace n = { roots, cases[i].root ? 2 : 0, 0 };
		struct strbuf got = STRBUF_INIT;

		assert_int_equal(strbuf_puts(&got, "before "), 0);
		assert_int_equal(
			cgroup_namespace_path(&n, cases[i].line, strlen(cases[i].line), &got), 0);
		if (strcmp(strbuf_str(&got) + strlen("before "), cases[i].want) != 0)
			fail_msg("%s: got \"%s\"", cases[i].name, strbuf_str(&got));
		strbuf_release(&got);
	}
}

static void test_cgroup_path_of_text_is_the_one_people_know(void **state)
{
	static const struct {
		const char *name, *text, *want;
	} cases[] = {
		{ "version 2", "0::/system.slice/web.service\n", "/system.slice/web.service" },
		{ "hybrid, version 2 is used",
		  "1:name=systemd:/user.slice\n0::/system.slice/a.service\n",
		  "/system.slice/a.service" },
		{ "hybrid, version 2 is not used",
		  "2:cpu:/x\n1:name=systemd:/system.slice/a.service\n0::/\n",
		  "/system.slice/a.service" },
		{ "version 1 without systemd", "3:pids:/\n2:cpu:/batch\n1:memory:/other\n",
		  "/batch" },
		{ "the root", "0::/\n", "/" },
		{ "colons in the path", "0::/a:b", "/a:b" },
		{ "a service with a name like systemd's", "1:name=systemdx:/a\n2:cpu:/b\n", "/a" },
		{ "nothing", "", "" },
		{ "no lines", "\n\nx\n", "" },
	};
	const struct cgroup_namespace none = { NULL, 0, 0 };

	(void)state;
	for (size_t i = 0; i < sizeof(cases) / sizeof(*cases); i++) {
		struct strbuf got = STRBUF_INIT;

		assert_int_equal(
			cgroup_path_of_text(&none, cases[i].text, strlen(cases[i].text), &got), 0);
		if (strcmp(strbuf_str(&got), cases[i].want) != 0)
			fail_msg("%s: got \"%s\"", cases[i].name, strbuf_str(&got));
		strbuf_release(&got);
	}
}

/* In the child: a container's cgroup of its own namespace. What it finds goes to the parent. */
static void look_from_within(const char *folder, int out)
{
	static const char line[] = "0::/../libpod-" B ".scope";
	struct strbuf got = STRBUF_INIT;
	struct cgroup_namespace n;
	char path[400];
	FILE *f;

	snprintf(path, sizeof(path), "%s/cgroup.procs", folder);
	f = fopen(path, "w");
	if (!f || fputs("0", f) < 0 || fclose(f) || unshare(CLONE_NEWCGROUP) < 0 ||
	    cgroup_namespace_find(&n) < 0 ||
	    cgroup_namespace_path(&n, line, strlen(line), &got) < 0 ||
	    write(out, got.bytes, got.len) != (ssize_t)got.len)
		_exit(1);
	strbuf_release(&got);
	cgroup_namespace_release(&n);
	_exit(0);
}

static void test_cgroup_namespace_find_names_its_root(void **state)
{
	struct cgroup root = CGROUP_INIT;
	struct cgroup_namespace ours;
	char slice[200], scope[300], beside[300], got[256] = "";
	int fds[2], status;
	pid_t pid;

	(void)state;
	if (geteuid() || (cgroup_open("/sys/fs/cgroup/unified", &root) < 0 &&
			  cgroup_open("/sys/fs/cgroup", &root) < 0))
		root.is_v2 = false;
	snprintf(slice, sizeof(slice), "%s/test-%d.slice", root.path ? root.path : "", getpid());
	if (!root.is_v2 || mkdir(slice, 0755) < 0) {
		cgroup_release(&root);
		SKIP("no version 2 cgroup can be made here");
	}
	snprintf(scope, sizeof(scope), "%s/crio-" A ".scope", slice);
	assert_int_equal(mkdir(scope, 0755), 0);
	assert_int_equal(pipe(fds), 0);
	pid = fork();
	if (!pid)
		look_from_within(scope, fds[1]);
	close(fds[1]);
	assert_int_equal(waitpid(pid, &status, 0), pid);
	assert_int_equal(rmdir(scope), 0);
	assert_int_equal(rmdir(slice), 0);
	assert_int_equal(status, 0);
	assert_true(read(fds[0], got, sizeof(got) - 1) > 0);
	close(fds[0]);
	snprintf(beside, sizeof(beside), "%s/libpod-" B ".scope", slice);
	assert_string_equal(got, beside + strlen(root.path));

	assert_int_equal(cgroup_namespace_find(&ours), 0);
	cgroup_namespace_release(&ours);
	cgroup_release(&root);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_cgroup_path_next_knows_the_names_of_engines),
		cmocka_unit_test(test_cgroup_open_container_explains),
		cmocka_unit_test(test_cgroup_open_refuses_other_folders),
		cmocka_unit_test(test_cgroup_lists_who_is_in_it),
		cmocka_unit_test(test_cgroup_namespace_path_is_the_one_outside),
		cmocka_unit_test(test_cgroup_path_of_text_is_the_one_people_know),
		cmocka_unit_test(test_cgroup_namespace_find_names_its_root),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
