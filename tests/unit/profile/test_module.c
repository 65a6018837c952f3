/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <string.h>

#include "base/cleanup.h"
#include "base/strbuf.h"
#include "profile/module.h"
#include "profile/profile.h"

static const struct {
	const char *path, *root, *name;
} files[] = {
	{ "/usr/lib/python3.12/json/decoder.py", "/usr/lib/python3.12/", "json.decoder" },
	{ "/usr/lib64/python3.13t/re/__init__.py", "/usr/lib64/python3.13t/", "re" },
	{ "/usr/lib/python312.zip/encodings/utf_8.pyc", "/usr/lib/python312.zip/",
	  "encodings.utf_8" },
	{ "/usr/lib/python3/dist-packages/yaml/loader.py", "/usr/lib/python3/dist-packages/",
	  "yaml.loader" },
	{ "/v/lib/python3.12/site-packages/x/lib/python3.9/y.py",
	  "/v/lib/python3.12/site-packages/", "x.lib.python3.9.y" },
	{ "/a/site-packages/b/site-packages/c.py", "/a/site-packages/b/site-packages/", "c" },
	{ "/usr/lib/python-apt/apt.py", "", "apt" },
	{ "/usr/lib/python3.12", "", "python3.12" },
	{ "/srv/shop/cart.py", "", "cart" },
	{ "shop/cart.py", "", "shop.cart" },
	{ "/__init__.py", "", "__init__" },
	{ "<frozen importlib._bootstrap>", "", "importlib._bootstrap" },
	{ "<frozen ", "", "" },
	{ "<string>", "", "" },
	{ "", "", "" },
	{ "/", "", "" },
};

static void test_roots_and_names(void **state)
{
	(void)state;
	for (size_t i = 0; i < sizeof(files) / sizeof(files[0]); i++) {
		_cleanup_(strbuf_releasep) struct strbuf name = STRBUF_INIT;
		size_t len = strlen(files[i].path);
		size_t root_len = module_library_root(files[i].path, len);

		assert_int_equal(root_len, strlen(files[i].root));
		assert_memory_equal(files[i].path, files[i].root, root_len);
		assert_int_equal(module_put_name(files[i].path, len, root_len, &name), 0);
		assert_string_equal(strbuf_str(&name), files[i].name);
	}
}

static uint32_t add(struct profile *p, uint32_t parent, const char *name, const char *file)
{
	struct frame f = { .kind = FRAME_PYTHON, .line = 1 };
	uint32_t frame, stack;

	assert_int_equal(strtab_intern(p->strings, name, strlen(name), &f.name), 0);
	assert_int_equal(strtab_intern(p->strings, file, strlen(file), &f.file), 0);
	assert_int_equal(frametab_intern(p->frames, &f, &frame), 0);
	assert_int_equal(stacktab_intern(p->stacks, parent, frame, &stack), 0);
	return stack;
}

/* The path below its root of a file that has a frame. */
static void assert_below(const struct modules *m, const char *file, const char *below)
{
	uint32_t id;

	assert_int_equal(strtab_intern(m->p->strings, file, strlen(file), &id), 0);
	assert_string_equal(module_path(m, module_of(m, id)), below);
}

static void assert_name(const struct modules *m, const char *file, const char *wanted)
{
	_cleanup_(strbuf_releasep) struct strbuf name = STRBUF_INIT;
	uint32_t id;

	assert_int_equal(strtab_intern(m->p->strings, file, strlen(file), &id), 0);
	assert_int_equal(modules_put_name(m, id, &name), 0);
	assert_string_equal(strbuf_str(&name), wanted);
}

static void test_scripts_are_roots(void **state)
{
	_cleanup_(profile_freep) struct profile *p = NULL;
	_cleanup_(modules_release) struct modules m = { 0 };
	uint32_t script, runner;

	(void)state;
	assert_int_equal(profile_new(&p), 0);
	runner = add(p, 0, "_run_code", "<frozen runpy>");
	script = add(p, runner, "<module>", "/srv/shop/main.py");
	add(p, script, "pay", "/srv/shop/till/pay.py");
	add(p, script, "loads", "/usr/lib/python3.12/json/__init__.py");
	add(p, 0, "f", "/opt/other.py");
	assert_int_equal(modules_find(&m, p, NULL, NULL), 0);
	assert_below(&m, "/srv/shop/main.py", "main.py");
	assert_below(&m, "/srv/shop/till/pay.py", "till/pay.py");
	assert_below(&m, "/usr/lib/python3.12/json/__init__.py", "json/__init__.py");
	assert_below(&m, "/opt/other.py", "/opt/other.py");
	assert_name(&m, "/srv/shop/till/pay.py", "till.pay");
	assert_name(&m, "/usr/lib/python3.12/json/__init__.py", "json");
	assert_name(&m, "/opt/other.py", "other");
	assert_name(&m, "<frozen runpy>", "runpy");
}

static void test_files_stay_apart(void **state)
{
	_cleanup_(profile_freep) struct profile *p = NULL;
	_cleanup_(modules_release) struct modules m = { 0 };

	(void)state;
	assert_int_equal(profile_new(&p), 0);
	add(p, 0, "<module>", "/srv/a/main.py");
	add(p, 0, "<module>", "/srv/b/main.py");
	add(p, 0, "<module>", "/srv/b/json/decoder.py");
	add(p, 0, "loads", "/usr/lib/python3.12/decoder.py");
	add(p, 0, "loads", "/opt/lib/python3.13/decoder.py");
	assert_int_equal(modules_find(&m, p, NULL, NULL), 0);
	assert_below(&m, "/srv/a/main.py", "a/main.py");
	assert_below(&m, "/srv/b/main.py", "b/main.py");
	assert_below(&m, "/srv/b/json/decoder.py", "json/decoder.py");
	assert_below(&m, "/usr/lib/python3.12/decoder.py", "python3.12/decoder.py");
	assert_name(&m, "/srv/a/main.py", "a.main");
	assert_name(&m, "/usr/lib/python3.12/decoder.py", "decoder");
	assert_name(&m, "/opt/lib/python3.13/decoder.py", "decoder");
}

static void test_whose_code(void **state)
{
	static const struct {
		const char *name, *file;
		uint8_t kind;
		enum origin want;
	} cases[] = {
		{ "f", "/srv/shop/orders.py", FRAME_PYTHON, ORIGIN_OWN },
		{ "f", "<string>", FRAME_PYTHON, ORIGIN_OWN },
		{ "f", "/usr/lib/python3.11/json/decoder.py", FRAME_PYTHON, ORIGIN_STDLIB },
		{ "f", "/usr/lib/python312.zip/json/decoder.py", FRAME_PYTHON, ORIGIN_STDLIB },
		{ "f", "<frozen os>", FRAME_PYTHON, ORIGIN_STDLIB },
		{ "f", "/venv/lib/python3.12/site-packages/django/__init__.py", FRAME_PYTHON,
		  ORIGIN_LIBRARY },
		{ "f", "/usr/lib/python3/dist-packages/yaml/nodes.py", FRAME_PYTHON,
		  ORIGIN_LIBRARY },
		{ "f", "<frozen importlib._bootstrap>", FRAME_PYTHON, ORIGIN_IMPORT },
		{ "f", "<frozen zipimport>", FRAME_PYTHON, ORIGIN_IMPORT },
		{ "f", "/usr/lib/python3.6/importlib/_bootstrap_external.py", FRAME_PYTHON,
		  ORIGIN_IMPORT },
		{ "f", "/usr/lib/python3.6/importlib/__init__.py", FRAME_PYTHON, ORIGIN_IMPORT },
		{ "f", "/usr/lib/python3.12/importlib/metadata/__init__.py", FRAME_PYTHON,
		  ORIGIN_STDLIB },
		{ "f", "", FRAME_PYTHON, ORIGIN_MARKER },
		{ "<GC>", "~", FRAME_PYTHON, ORIGIN_MARKER },
		{ "schedule [kernel]", "", FRAME_PYTHON, ORIGIN_KERNEL },
		{ "memcpy [libc.so.6]", "", FRAME_PYTHON, ORIGIN_NATIVE },
		{ "memcpy", "", FRAME_NATIVE, ORIGIN_NATIVE },
		{ "schedule", "", FRAME_KERNEL, ORIGIN_KERNEL },
		{ "<GIL>", "", FRAME_MARKER, ORIGIN_MARKER },
		{ "worker", "", FRAME_TASK, ORIGIN_TASK },
	};
	struct profile *p;

	(void)state;
	assert_int_equal(profile_new(&p), 0);
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		uint32_t name, file;
		enum origin found;

		assert_int_equal(
			strtab_intern(p->strings, cases[i].name, strlen(cases[i].name), &name), 0);
		assert_int_equal(
			strtab_intern(p->strings, cases[i].file, strlen(cases[i].file), &file), 0);
		found = origin_of(p, name, file, cases[i].kind);
		if (found != cases[i].want)
			fail_msg("%s of %s: %d", cases[i].name, cases[i].file, (int)found);
	}
	profile_free(p);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_roots_and_names),
		cmocka_unit_test(test_scripts_are_roots),
		cmocka_unit_test(test_files_stay_apart),
		cmocka_unit_test(test_whose_code),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
