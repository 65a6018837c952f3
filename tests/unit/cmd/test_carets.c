/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#include "cmd/carets.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

/*
 * What is marked, under the line: ~ and ^, as CPython 3.13 prints it (Lib/traceback.py); "" where
 * that prints nothing. The columns are those from the first mark of `columns` to its last.
 */
static const struct {
	const char *name;
	const char *line;
	const char *columns; /* x: the expression that runs; NULL: not known */
	const char *want;
} cases[] = {
	/* clang-format off */
	{ "a call", "    f(a, g(b))",
	  "    xxxxxxxxxx",
	  "    ~^^^^^^^^^" },
	{ "an inner call", "x = f(a, g(b))",
	  "         xxxx ",
	  "         ~^^^ " },
	{ "a method", "a.b.c(1).d(2)",
	  "xxxxxxxxxxxxx",
	  "~~~~~~~~~~^^^" },
	{ "all of an assignment", "x = f(a)", "    xxxx", "" },
	{ "all of an annotated one", "x: int = f(a)",
	  "         xxxx",
	  "         ~^^^" },
	{ "with a comment behind", "x = f(a)  # why", "    xxxx       ", "" },
	{ "all of an augmented one", "x += f(a)",
	  "     xxxx",
	  "     ~^^^" },
	{ "all of a return of a name's call", "  return f(a)", "         xxxx", "" },
	{ "of a method's", "return a.f(b)",
	  "       xxxxxx",
	  "       ~~~^^^" },
	{ "an operator", "x = a + b * c",
	  "    xxxxxxxxx",
	  "    ~~^~~~~~~" },
	{ "the last of equals", "a - b - c",
	  "xxxxxxxxx",
	  "~~~~~~^~~" },
	{ "the first of powers", "a ** b ** c",
	  "xxxxxxxxxxx",
	  "~~^^~~~~~~~" },
	{ "two characters", "a//b",
	  "xxxx",
	  "~^^~" },
	{ "one in brackets does not count", "(a + b) * c",
	  "xxxxxxxxxxx",
	  "~~~~~~~~^~~" },
	{ "one in a string does not", "'a + b' % c",
	  "xxxxxxxxxxx",
	  "~~~~~~~~^~~" },
	{ "a sign is none", "a * -b",
	  "xxxxxx",
	  "~~^~~~" },
	{ "a sign alone", "-a + 1",
	  "xx    ",
	  "^^    " },
	{ "a sign of a power", "x = [-a ** b]",
	  "     xxxxxxx ",
	  "     ^^^^^^^ " },
	{ "a subscript", "a[b][c + 1]",
	  "xxxxxxxxxxx",
	  "~~~~^^^^^^^" },
	{ "a list is none", "x = f([a, b])",
	  "      xxxxxx ",
	  "      ^^^^^^ " },
	{ "a comparison", "if a < f(b):",
	  "   xxxxxxxx ",
	  "   ^^^^^^^^ " },
	{ "words bind less", "x = y if a else f(b)",
	  "    xxxxxxxxxxxxxxxx",
	  "    ^^^^^^^^^^^^^^^^" },
	{ "await", "x = [await f(a)]",
	  "     xxxxxxxxxx ",
	  "     ^^^^^^^^^^ " },
	{ "an attribute", "x = a.b.c",
	  "    xxx  ",
	  "    ^^^  " },
	{ "a line as it is says enough", "  raise_it", "  xxxxxxxx", "" },
	{ "a comment is more", "  raise_it  # why",
	  "  xxxxxxxx       ",
	  "  ^^^^^^^^       " },
	{ "blanks behind", "a.b  ", "xxxxx", "" },
	{ "not known", "f(a)", NULL, "" },
	{ "a string without end", "f('a) + b",
	  "xxxxxxxx ",
	  "~^^^^^^^ " },
	{ "brackets without end", "f((a) + b",
	  "  xxxxxxx",
	  "  ~~~~^~~" },
	/* clang-format on */
};

static void marks_of(const char *line, const struct carets *c, char *out)
{
	size_t len = strlen(line);

	memset(out, ' ', len);
	memset(out + c->start, '~', c->end - c->start);
	memset(out + c->hot_start, '^', c->hot_end - c->hot_start);
	out[len] = '\0';
}

static void test_carets_are_those_of_python(void **state)
{
	char got[128];

	(void)state;
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		struct code_position at = {
			.line = 1, .end_line = 1, .column = -1, .end_column = -1
		};
		const char *columns = cases[i].columns;
		struct carets c;

		if (columns) {
			at.column = (int)(strchr(columns, 'x') - columns);
			at.end_column = (int)(strrchr(columns, 'x') - columns) + 1;
		}
		*got = '\0';
		if (carets_find(cases[i].line, strlen(cases[i].line), &at, &c))
			marks_of(cases[i].line, &c, got);
		if (strcmp(got, cases[i].want) != 0)
			fail_msg("%s:\n%s\n%s, wanted\n%s", cases[i].name, cases[i].line, got,
				 cases[i].want);
	}
}

static void test_several_lines_are_marked_to_the_end_of_the_first(void **state)
{
	static const char line[] = "    x = f(  ";
	const struct code_position at = { .line = 1, .end_line = 3, .column = 8, .end_column = 5 };
	struct carets c;

	(void)state;
	assert_true(carets_find(line, strlen(line), &at, &c));
	assert_int_equal(c.start, 8);
	assert_int_equal(c.end, 10);
	assert_int_equal(c.hot_end - c.hot_start, 2);
}

/* The file is not the one that was compiled. */
static void test_columns_outside_of_the_line_mark_nothing(void **state)
{
	static const int columns[][2] = {
		{ 3, 9 }, { 9, 12 }, { 2, 2 }, { 3, 1 }, { INT32_MAX, 1 }
	};
	struct carets c;

	(void)state;
	for (size_t i = 0; i < sizeof(columns) / sizeof(columns[0]); i++)
		assert_false(carets_find("f(abcd)", 7,
					 &(struct code_position){ .line = 1,
								  .end_line = 1,
								  .column = columns[i][0],
								  .end_column = columns[i][1] },
					 &c));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_carets_are_those_of_python),
		cmocka_unit_test(test_several_lines_are_marked_to_the_end_of_the_first),
		cmocka_unit_test(test_columns_outside_of_the_line_mark_nothing),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
