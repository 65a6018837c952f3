/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <stdio.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/strbuf.h"
#include "profile/imports.h"

/* What importlib does down to the module's code, of CPython 3.12, as NAME@FILE. */
#define BOOTSTRAP "<frozen importlib._bootstrap>"
#define EXTERNAL "<frozen importlib._bootstrap_external>"
#define FIND "_find_and_load@" BOOTSTRAP ";_find_and_load_unlocked@" BOOTSTRAP
#define LOAD                                                       \
	FIND ";_load_unlocked@" BOOTSTRAP ";exec_module@" EXTERNAL \
	     ";_call_with_frames_removed@" BOOTSTRAP
#define LIB "/usr/lib/python3.12/"

static uint32_t text_id(struct profile *p, const char *text, size_t len)
{
	uint32_t id;

	assert_int_equal(strtab_intern(p->strings, text, len, &id), 0);
	return id;
}

/* NAME@FILE;...: root first; without @ a marker. Line and first line are the frame's length. */
static uint32_t make_stack(struct profile *p, const char *frames)
{
	uint32_t stack = 0, id;

	for (const char *at = frames; *at;) {
		size_t len = strcspn(at, ";"), name_len = strcspn(at, "@;");
		struct frame f = { .kind = FRAME_MARKER };

		f.name = text_id(p, at, name_len);
		if (name_len < len) {
			f.kind = FRAME_PYTHON;
			f.file = text_id(p, at + name_len + 1, len - name_len - 1);
			f.line = f.first_line = (uint32_t)len;
		}
		assert_int_equal(frametab_intern(p->frames, &f, &id), 0);
		assert_int_equal(stacktab_intern(p->stacks, stack, id, &stack), 0);
		at += len + (at[len] == ';');
	}
	return stack;
}

static void put_stack(const struct profile *p, uint32_t stack, struct strbuf *out)
{
	const struct stack_entry *e = &stacktab_entries(p->stacks)[stack];
	const struct frame *f;

	if (!stack)
		return;
	put_stack(p, e->parent, out);
	f = frametab_get(p->frames, e->frame);
	strbuf_appendf(out, "%s%s", out->len ? ";" : "", strtab_get(p->strings, f->name));
	if (f->kind == FRAME_PYTHON)
		strbuf_appendf(out, "@%s", strtab_get(p->strings, f->file));
}

static const struct {
	const char *name;
	const char *stack;
	const char *want;
} cases[] = {
	{ "no imports", "<module>@/a.py;f@/a.py", "<module>@/a.py;f@/a.py" },
	{ "nothing", "", "" },
	{ "a module of the standard library",
	  "<module>@/a.py;" LOAD ";<module>@" LIB "json/decoder.py;f@/b.py",
	  "<module>@/a.py;import json.decoder@" LIB "json/decoder.py;f@/b.py" },
	{ "a package", "<module>@/a.py;" LOAD ";<module>@" LIB "json/__init__.py",
	  "<module>@/a.py;import json@" LIB "json/__init__.py" },
	{ "an import within an import",
	  "<module>@/a.py;" LOAD ";<module>@" LIB "json/__init__.py;" LOAD ";<module>@" LIB "re.py",
	  "<module>@/a.py;import json@" LIB "json/__init__.py;import re@" LIB "re.py" },
	{ "site-packages below lib", "f@/a.py;" LOAD ";<module>@" LIB "site-packages/flask/app.py",
	  "f@/a.py;import flask.app@" LIB "site-packages/flask/app.py" },
	{ "dist-packages",
	  "f@/a.py;" LOAD ";<module>@/usr/lib/python3/dist-packages/yaml/__init__.py",
	  "f@/a.py;import yaml@/usr/lib/python3/dist-packages/yaml/__init__.py" },
	{ "compiled, without its source", "f@/a.py;" LOAD ";<module>@/srv/cart.pyc",
	  "f@/a.py;import cart@/srv/cart.pyc" },
	{ "of a package that is being imported",
	  "f@/a.py;" LOAD ";<module>@/srv/shop/__init__.py;" LOAD ";<module>@/srv/shop/cart.py",
	  "f@/a.py;import shop@/srv/shop/__init__.py;import shop.cart@/srv/shop/cart.py" },
	{ "further down in it",
	  "f@/a.py;" LOAD ";<module>@/srv/shop/__init__.py;" LOAD
	  ";<module>@/srv/shop/db/__init__.py;"
	  "g@/srv/shop/db/__init__.py;" LOAD ";<module>@/srv/shop/db/sql.py",
	  "f@/a.py;import shop@/srv/shop/__init__.py;import shop.db@/srv/shop/db/__init__.py;"
	  "g@/srv/shop/db/__init__.py;import shop.db.sql@/srv/shop/db/sql.py" },
	{ "of a folder that is no package", "f@/a.py;" LOAD ";<module>@/srv/shop/cart.py",
	  "f@/a.py;import cart@/srv/shop/cart.py" },
	{ "a frozen module", "f@/a.py;" LOAD ";<module>@<frozen os>",
	  "f@/a.py;import os@<frozen os>" },
	{ "no module yet: it is looked for", "f@/a.py;" FIND ";find_spec@" EXTERNAL,
	  "f@/a.py;import" },
	{ "C on the way to a module",
	  "f@/a.py;<native>;" FIND ";<native>;_load_unlocked@" BOOTSTRAP ";<native>;<module>@" LIB
	  "re.py;<native>",
	  "f@/a.py;import re@" LIB "re.py;<native>" },
	{ "C below importlib", "f@/a.py;" FIND ";<native>", "f@/a.py;import" },
	{ "C of who imports nothing", "f@/a.py;<native>;g@/a.py;" FIND,
	  "f@/a.py;<native>;g@/a.py;import" },
	{ "collected while it imports", "f@/a.py;" FIND ";<GC>", "f@/a.py;import;<GC>" },
	{ "a C extension's own code", "f@/a.py;" LOAD, "f@/a.py;import" },
	{ "a frame below of nobody's module",
	  "f@/a.py;" FIND ";find_spec@/srv/hook.py;g@/srv/hook.py",
	  "f@/a.py;import;find_spec@/srv/hook.py;g@/srv/hook.py" },
	{ "a hook that imports",
	  "f@/a.py;" FIND ";find_spec@/srv/hook.py;" LOAD ";<module>@" LIB "re.py",
	  "f@/a.py;import;find_spec@/srv/hook.py;import re@" LIB "re.py" },
	{ "importlib from its files",
	  "f@/a.py;_find_and_load@" LIB "importlib/_bootstrap.py;<module>@" LIB "re.py",
	  "f@/a.py;import re@" LIB "re.py" },
	{ "import_module is a call as any",
	  "f@/a.py;import_module@" LIB "importlib/__init__.py;" LOAD ";<module>@" LIB "re.py",
	  "f@/a.py;import_module@" LIB "importlib/__init__.py;import re@" LIB "re.py" },
	{ "runpy starts a module, and imports none", "run_path@<frozen runpy>;<module>@/a.py",
	  "run_path@<frozen runpy>;<module>@/a.py" },
	{ "at the root, where the rest was cut off", "<truncated>;" LOAD ";<module>@/srv/x.py",
	  "<truncated>;import x@/srv/x.py" },
	{ "an empty name", "f@/a.py;" LOAD ";<module>@", "f@/a.py;import @" },
	{ "a path that is only slashes", "f@/a.py;" LOAD ";<module>@//", "f@/a.py;import @//" },
	{ "only __init__", "f@/a.py;" LOAD ";<module>@__init__.py",
	  "f@/a.py;import __init__@__init__.py" },
};
#define CASES (sizeof(cases) / sizeof(cases[0]))

static void check(const struct profile *p, size_t i, const struct sample *s)
{
	_cleanup_(strbuf_releasep) struct strbuf got = STRBUF_INIT;

	put_stack(p, s->stack, &got);
	if (strcmp(strbuf_str(&got), cases[i].want))
		fail_msg("%s: got %s, want %s", cases[i].name, strbuf_str(&got), cases[i].want);
	assert_int_equal(s->value, 3 + i);
	assert_int_equal(s->time_ns, i);
}

/* One after another, as chunks of a file come, in one profile: what is known stays right. */
static void test_import_fold_samples_rows(void **state)
{
	struct import_fold fold = { 0 };
	_cleanup_(profile_freep) struct profile *p = NULL;
	struct process process = { .pid = 1 };
	struct thread t = { .tid = 1 };
	uint32_t index;

	(void)state;
	assert_int_equal(profile_new(&p), 0);
	assert_int_equal(profile_add_process(p, &process, &t.process), 0);
	assert_int_equal(profile_add_thread(p, &t, &index), 0);
	for (size_t round = 0; round < 2; round++) {
		for (size_t i = 0; i < CASES; i++) {
			struct sample s = { .time_ns = i, .value = (uint32_t)(3 + i) };

			s.stack = make_stack(p, cases[i].stack);
			assert_int_equal(profile_add_sample(p, &s), 0);
			if (round == 0) {
				assert_int_equal(import_fold_samples(&fold, p), 0);
				check(p, i, &p->samples.items[0]);
				profile_clear_samples(p);
			}
		}
	}
	/* The second round: all at once, with a fold that knows nothing; then what it made again.
	 */
	import_fold_release(&fold);
	for (int again = 0; again < 2; again++) {
		assert_int_equal(import_fold_samples(&fold, p), 0);
		assert_int_equal(p->samples.len, CASES);
		for (size_t i = 0; i < CASES; i++)
			check(p, i, &p->samples.items[i]);
	}
	import_fold_release(&fold);
}

/* The module's own line and first line are those of its code. */
static void test_import_fold_samples_keeps_lines(void **state)
{
	_cleanup_(profile_freep) struct profile *p = NULL;
	struct import_fold fold = { 0 };
	struct process process = { .pid = 1 };
	struct thread t = { .tid = 1 };
	struct sample s = { .value = 1 };
	const struct frame *f;
	uint32_t index;

	(void)state;
	assert_int_equal(profile_new(&p), 0);
	assert_int_equal(profile_add_process(p, &process, &t.process), 0);
	assert_int_equal(profile_add_thread(p, &t, &index), 0);
	s.stack = make_stack(p, "f@/a.py;" LOAD ";<module>@/srv/x.py");
	assert_int_equal(profile_add_sample(p, &s), 0);
	assert_int_equal(import_fold_samples(&fold, p), 0);
	f = frametab_get(p->frames, stacktab_entries(p->stacks)[p->samples.items[0].stack].frame);
	assert_int_equal(f->line, strlen("<module>@/srv/x.py"));
	assert_int_equal(f->first_line, f->line);
	import_fold_release(&fold);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_import_fold_samples_rows),
		cmocka_unit_test(test_import_fold_samples_keeps_lines),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
