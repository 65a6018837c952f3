/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#ifndef CMD_OPT_H
#define CMD_OPT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/vec.h"

/*
 * One row per option: parsing, --help, the man page and shell completion all read this table.
 * Rows that follow an OPT_GROUP stand under its title. Help texts are lower case, without full
 * stop, and end in the default where there is one: "samples per second (99)".
 *
 * Every table also has -h/--help, -v/--verbose and -q/--quiet: opt_common.
 */
struct opt {
	enum opt_kind {
		OPT_END_,
		OPT_GROUP_,
		OPT_ALIAS_,
		OPT_FLAG_,
		OPT_U32_,
		OPT_U64_,
		OPT_U32_LIST_,
		OPT_TIME_,
		OPT_FREQ_,
		OPT_BYTES_,
		OPT_SHARE_,
		OPT_PERCENT_,
		OPT_STR_,
		OPT_LIST_,
		OPT_ENUM_,
		OPT_ENUM_SET_,
		OPT_HELP_,
		OPT_VERBOSE_,
		OPT_QUIET_,
	} kind;
	char key; /* short name, 0 if none */
	const char *name, *arg, *help;
	union {
		bool *flag;
		uint32_t *u32;
		uint64_t *u64;
		double *percent;
		const char **str;
		unsigned int *choice;
		struct opt_list *list;
		struct opt_u32_list *u32_list;
	} to;
	uint64_t min, max;          /* of the value, in its unit; max 0: no limit */
	const char *const *choices; /* OPT_ENUM, OPT_ENUM_SET: its words, NULL last */
	/* OPT_ENUM: the index of what the option means without a value, which is given by "=" then;
	 * 0: it needs one. Without a key. */
	unsigned int bare;
};

static inline bool opt_has_choices(const struct opt *o)
{
	return o->kind == OPT_ENUM_ || o->kind == OPT_ENUM_SET_;
}

/* Borrowed strings of the command line, in order. Starts as { 0 }, ends in vec_release(). */
struct opt_list {
	const char **items;
	size_t len, cap;
};

struct opt_u32_list {
	uint32_t *items;
	size_t len, cap;
};

/*
 * The union member makes the compiler check the destination's type. Limits may follow the help:
 *	OPT_FREQ('F', "freq", &o.freq_hz, "samples per second (99)", .min = 1, .max = 100000)
 */
/* clang-format off */
#define OPT_GROUP(h) { .kind = OPT_GROUP_, .help = (h) }
#define OPT_END      { .kind = OPT_END_ }

/* Another name for the row above. */
#define OPT_ALIAS(k, n) { .kind = OPT_ALIAS_, .key = (k), .name = (n) }

#define OPT_ROW_(knd, k, n, a, h, ...) \
	{ .kind = (knd), .key = (k), .name = (n), .arg = (a), .help = (h), __VA_ARGS__ }

/* bool: set to true. */
#define OPT_FLAG(k, n, v, h) OPT_ROW_(OPT_FLAG_, k, n, NULL, h, .to.flag = (v))

/* Whole numbers without unit. */
#define OPT_U32(k, n, v, a, h, ...) OPT_ROW_(OPT_U32_, k, n, a, h, .to.u32 = (v), __VA_ARGS__)
#define OPT_U64(k, n, v, a, h, ...) OPT_ROW_(OPT_U64_, k, n, a, h, .to.u64 = (v), __VA_ARGS__)

/* struct opt_u32_list: "-p 1,2 -p 3" gives 1, 2, 3. */
#define OPT_U32_LIST(k, n, v, a, h, ...) \
	OPT_ROW_(OPT_U32_LIST_, k, n, a, h, .to.u32_list = (v), __VA_ARGS__)

/* uint64_t ns, uint32_t Hz, uint64_t bytes, uint64_t ppm, as base/units.h reads them. */
#define OPT_TIME(k, n, v, h, ...)  OPT_ROW_(OPT_TIME_, k, n, "TIME", h, .to.u64 = (v), __VA_ARGS__)
#define OPT_FREQ(k, n, v, h, ...)  OPT_ROW_(OPT_FREQ_, k, n, "HZ", h, .to.u32 = (v), __VA_ARGS__)
#define OPT_BYTES(k, n, v, h, ...) OPT_ROW_(OPT_BYTES_, k, n, "SIZE", h, .to.u64 = (v), __VA_ARGS__)
#define OPT_SHARE(k, n, v, h, ...) OPT_ROW_(OPT_SHARE_, k, n, "SHARE", h, .to.u64 = (v), __VA_ARGS__)

/* double: 0 to 100. */
#define OPT_PERCENT(k, n, v, h) OPT_ROW_(OPT_PERCENT_, k, n, "PERCENT", h, .to.percent = (v))

/* Borrowed from argv. An arg of FILE, PATH or DIR is completed as such. */
#define OPT_STR(k, n, v, a, h) OPT_ROW_(OPT_STR_, k, n, a, h, .to.str = (v))

/* struct opt_list: each use adds one string. */
#define OPT_LIST(k, n, v, a, h) OPT_ROW_(OPT_LIST_, k, n, a, h, .to.list = (v))

/* Index of the word in c (const char *const [], NULL last), into an unsigned int or enum. May be
 * followed by .bare = 1: "--locals" is word 1, "--locals=full" another. */
#define OPT_ENUM(k, n, v, a, c, h, ...) \
	OPT_ROW_(OPT_ENUM_, k, n, a, h, .to.choice = (v), .choices = (c), __VA_ARGS__)

/* Several of these words, "cpu,gil", and each use adds some: bit i of an unsigned int is word i. */
#define OPT_ENUM_SET(k, n, v, a, c, h) \
	OPT_ROW_(OPT_ENUM_SET_, k, n, a, h, .to.choice = (v), .choices = (c))
/* clang-format on */

/* What is left of the command line. */
struct operands {
	char **items; /* NULL after the last */
	int len;
	int dashed; /* how many of them, the last ones, came after "--"; -1: there was none */
};

/*
 * Reads argv (argv[0]: the command's name), fills the destinations, and gathers the operands, which
 * may stand between options, at the front of argv. -v and -q set the log level.
 *
 * Returns 1, or 0 at -h or --help (the rest is not read then); -EINVAL or -ERANGE with a message
 * that names the option, -ENOMEM. Destinations hold what was read before the error.
 */
int opt_parse(const struct opt *opts, int argc, char **argv, struct operands *operands);

/* The rows every table has, as a table of its own: for generators, after a command's rows. */
extern const struct opt opt_common[];

/*
 * The first mistake in a table (two rows with one name, an alias without row, a help text with a
 * capital...), or NULL. For tests.
 */
const char *opt_table_mistake(const struct opt *opts);

/*
 * The word (names end in NULL) that typed was likely meant to be, or NULL if none is near: it
 * starts with typed, or up to a third of its letters are wrong, missing, added or swapped.
 */
const char *opt_nearest(const char *typed, const char *const *names);

#endif
