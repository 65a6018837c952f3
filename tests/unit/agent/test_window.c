/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* What a window becomes: bodies within the limits of engines, which hold each tick once. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <cjson/cJSON.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <zlib.h>

#include "agent/origins.h"
#include "agent/push.h"
#include "agent/window.h"
#include "pprof.pb-c.h"

#define NO_PID 4194305 /* beyond PID_MAX_LIMIT */
#define SERIES_MAX 64
#define ENGINE_LABELS_MAX 30 /* Pyroscope's: its limit of label names a series */

/* One series of a request, unpacked. */
struct series {
	char service[64];
	char name[64], type[64], unit[64], period[64]; /* __name__; of the profile's only values, or
							  the last */
	size_t labels;
	uint64_t ticks;
	size_t samples, unpacked_bytes;
};

struct bodies {
	struct series series[SERIES_MAX];
	size_t count;
	uint64_t told; /* samples, as the bodies came with them */
};

static uint8_t *inflate_all(const void *packed, size_t packed_len, size_t *len)
{
	z_stream z = { .next_in = (uint8_t *)(uintptr_t)packed, .avail_in = (uint32_t)packed_len };
	size_t cap = 64u << 20;
	uint8_t *out = malloc(cap);

	assert_non_null(out);
	assert_int_equal(inflateInit2(&z, 15 + 16), Z_OK);
	z.next_out = out;
	z.avail_out = (uint32_t)cap;
	assert_int_equal(inflate(&z, Z_FINISH), Z_STREAM_END);
	*len = z.total_out;
	inflateEnd(&z);
	return out;
}

static uint8_t *decode_base64(const char *text, size_t *len)
{
	static const char digits[] =
		"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
	size_t n = strlen(text);
	uint8_t *out = malloc(n + 3);

	*len = 0;
	assert_non_null(out);
	assert_int_equal(n % 4, 0);
	for (size_t i = 0; i < n; i += 4) {
		uint32_t group = 0;

		for (size_t k = 0; k < 4; k++) {
			const char *digit =
				text[i + k] == '=' ? digits : strchr(digits, text[i + k]);

			assert_non_null(digit);
			group = group << 6 | (uint32_t)(digit - digits);
		}
		out[(*len)++] = (uint8_t)(group >> 16);
		out[(*len)++] = (uint8_t)(group >> 8);
		out[(*len)++] = (uint8_t)group;
		*len -= (size_t)(text[i + 2] == '=') + (text[i + 3] == '=');
	}
	return out;
}

static void read_profile(const char *text, struct series *s)
{
	size_t packed_len;
	uint8_t *packed = decode_base64(text, &packed_len);
	uint8_t *bytes = inflate_all(packed, packed_len, &s->unpacked_bytes);
	Pprof__Profile *p = pprof__profile__unpack(NULL, s->unpacked_bytes, bytes);

	assert_non_null(p);
	s->samples = p->n_sample;
	snprintf(s->type, sizeof(s->type), "%s",
		 p->string_table[p->sample_type[p->n_sample_type - 1]->type]);
	snprintf(s->unit, sizeof(s->unit), "%s",
		 p->string_table[p->sample_type[p->n_sample_type - 1]->unit]);
	if (p->period_type)
		snprintf(s->period, sizeof(s->period), "%s:%s",
			 p->string_table[p->period_type->type],
			 p->string_table[p->period_type->unit]);
	for (size_t i = 0; i < p->n_sample; i++)
		s->ticks += (uint64_t)p->sample[i]->value[0];
	pprof__profile__free_unpacked(p, NULL);
	free(bytes);
	free(packed);
}

/* A request to Pyroscope may hold several series. */
static int take_body(void *arg, uint64_t samples, const void *body, size_t len)
{
	struct bodies *b = arg;
	size_t text_len;
	bool is_packed = ((const uint8_t *)body)[0] == 0x1f; /* not so of Parca's */
	uint8_t *text =
		is_packed ? inflate_all(body, len, &text_len) : memcpy(malloc(len), body, len);
	cJSON *json;
	const cJSON *one, *labels, *label, *sample;

	if (!is_packed)
		text_len = len;
	json = cJSON_ParseWithLength((char *)text, text_len);

	assert_non_null(json);
	b->told += samples;
	cJSON_ArrayForEach(one, cJSON_GetObjectItem(json, "series"))
	{
		struct series *s = &b->series[b->count++];

		assert_true(b->count <= SERIES_MAX);
		labels = cJSON_GetObjectItem(one, "labels");
		if (!cJSON_IsArray(labels))
			labels = cJSON_GetObjectItem(labels, "labels");
		cJSON_ArrayForEach(label, labels)
		{
			const char *value = cJSON_GetObjectItem(label, "value")->valuestring;

			if (!strcmp(cJSON_GetObjectItem(label, "name")->valuestring, "__name__"))
				snprintf(s->name, sizeof(s->name), "%s", value);
			s->labels++;
			if (!strcmp(cJSON_GetObjectItem(label, "name")->valuestring,
				    "service_name"))
				snprintf(s->service, sizeof(s->service), "%s",
					 cJSON_GetObjectItem(label, "value")->valuestring);
		}
		cJSON_ArrayForEach(sample, cJSON_GetObjectItem(one, "samples"))
			read_profile(cJSON_GetObjectItem(sample, "rawProfile")->valuestring, s);
	}
	cJSON_Delete(json);
	free(text);
	return 0;
}

/* --- a window --------------------------------------------------------------------------------- */

static uint32_t intern(struct profile *p, const char *text)
{
	uint32_t id;

	assert_int_equal(strtab_intern(p->strings, text, strlen(text), &id), 0);
	return id;
}

/* A thread of a process that is called so, and nowhere else. */
static uint32_t add_service(struct profile *p, const char *name)
{
	struct process process = { .pid = NO_PID + (uint32_t)p->processes.len };
	struct thread thread = { 0 };
	char command[128];
	uint32_t index;

	snprintf(command, sizeof(command), "python3 /srv/%s.py", name);
	process.command_line = intern(p, command);
	assert_int_equal(profile_add_process(p, &process, &thread.process), 0);
	assert_int_equal(profile_add_thread(p, &thread, &index), 0);
	return index;
}

/* Samples of as many stacks of one frame, whose names are at least so long. */
static void add_stacks(struct profile *p, uint32_t thread, size_t count, size_t name_len,
		       uint32_t ticks)
{
	char *name = malloc(name_len + 32);

	assert_non_null(name);
	for (size_t i = 0; i < count; i++) {
		struct sample s = { .thread = thread, .value = ticks };
		struct frame f = { .kind = FRAME_PYTHON };
		uint32_t frame;

		memset(name, 'x', name_len);
		snprintf(name + name_len, 32, "%zu", i);
		f.name = intern(p, name);
		assert_int_equal(frametab_intern(p->frames, &f, &frame), 0);
		assert_int_equal(stacktab_intern(p->stacks, 0, frame, &s.stack), 0);
		assert_int_equal(profile_add_sample(p, &s), 0);
	}
	free(name);
}

static struct profile *new_window(void)
{
	struct profile *p;

	assert_int_equal(profile_new(&p), 0);
	profile_recording(p)->interval_ns = 10000000;
	profile_recording(p)->duration_ns = 15000000000;
	return p;
}

static struct config *new_config(const char *more)
{
	static struct config c;
	char text[4096];

	snprintf(text, sizeof(text), "output:\n  engine: pyroscope\n  url: http://localhost\n%s",
		 more);
	assert_int_equal(config_parse("test", text, strlen(text), &c), 0);
	return &c;
}

static struct window_stats encode(struct config *c, struct profile *p, struct bodies *b)
{
	struct window_stats stats;
	struct services *services;
	struct origins *origins;

	assert_int_equal(services_new(c->services_max, &services), 0);
	assert_int_equal(origins_new(c, NULL, &origins), 0);
	assert_int_equal(origins_look(origins, p), 0);
	assert_int_equal(window_encode(c, c->outputs.items[0].engine, origins, services, p,
				       take_body, b, &stats),
			 0);
	assert_int_equal(stats.samples, b->told);
	origins_free(origins);
	services_free(services);
	config_release(c);
	return stats;
}

static uint64_t ticks_of(const struct bodies *b, const char *service)
{
	uint64_t ticks = 0;

	for (size_t i = 0; i < b->count; i++)
		if (!strcmp(b->series[i].service, service))
			ticks += b->series[i].ticks;
	return ticks;
}

/* Pyroscope refuses a profile of more than 16,000 samples, or 4 MiB unpacked: none is larger. */
static void test_window_encode_splits_what_is_too_large(void **state)
{
	static const struct {
		const char *name;
		size_t stacks, name_len, series_least;
	} cases[] = {
		{ "fits", PUSH_PROFILE_SAMPLES_MAX, 1, 1 },
		{ "one sample too many", PUSH_PROFILE_SAMPLES_MAX + 1, 1, 2 },
		{ "many samples", 3 * PUSH_PROFILE_SAMPLES_MAX, 1, 3 },
		{ "long names", 1000, 10000, 3 },
		{ "long names, and many", 2 * PUSH_PROFILE_SAMPLES_MAX, 300, 3 },
	};

	(void)state;
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		struct bodies b = { 0 };
		struct profile *p = new_window();
		struct window_stats stats;
		size_t samples = 0;

		add_stacks(p, add_service(p, "shop"), cases[i].stacks, cases[i].name_len, 3);
		stats = encode(new_config(""), p, &b);
		if (b.count < cases[i].series_least || (cases[i].series_least == 1 && b.count > 1))
			fail_msg("%s: %zu series", cases[i].name, b.count);
		for (size_t k = 0; k < b.count; k++) {
			samples += b.series[k].samples;
			if (b.series[k].samples > PUSH_PROFILE_SAMPLES_MAX ||
			    b.series[k].unpacked_bytes > PUSH_BODY_MAX)
				fail_msg("%s: %zu samples, %zu bytes", cases[i].name,
					 b.series[k].samples, b.series[k].unpacked_bytes);
		}
		if (samples != cases[i].stacks || ticks_of(&b, "shop") != 3 * cases[i].stacks)
			fail_msg("%s: %zu samples", cases[i].name, samples);
		assert_int_equal(stats.samples, 3 * cases[i].stacks);
		assert_int_equal(stats.services, 1);
		profile_free(p);
	}
}

/* One stack whose name alone is beyond the limit cannot be split: it goes as it is, once. */
static void test_window_encode_ends_where_nothing_can_be_split(void **state)
{
	struct bodies b = { 0 };
	struct profile *p = new_window();
	struct sample s = { .thread = add_service(p, "shop"), .value = 6 };
	char *name = malloc(STRTAB_LEN_MAX);

	(void)state;
	assert_non_null(name);
	for (char letter = 'a'; letter <= 'e'; letter++) {
		struct frame f = { .kind = FRAME_PYTHON };
		uint32_t frame;

		memset(name, letter, STRTAB_LEN_MAX);
		assert_int_equal(strtab_intern(p->strings, name, STRTAB_LEN_MAX, &f.name), 0);
		assert_int_equal(frametab_intern(p->frames, &f, &frame), 0);
		assert_int_equal(stacktab_intern(p->stacks, s.stack, frame, &s.stack), 0);
	}
	assert_int_equal(profile_add_sample(p, &s), 0);
	encode(new_config(""), p, &b);
	assert_int_equal(b.count, 1);
	assert_int_equal(b.series[0].ticks, 6);
	assert_true(b.series[0].unpacked_bytes > PUSH_BODY_MAX);
	free(name);
	profile_free(p);
}

/* Of services without a place of their own one is made, and no tick is lost. Processes that have
 * ended are of one owner, who has a quarter of services.max. */
static void test_window_encode_merges_services_beyond_the_limit(void **state)
{
	static const struct {
		unsigned max, services, series, merged;
	} cases[] = { { 20, 4, 4, 0 }, { 16, 4, 4, 0 }, { 12, 4, 4, 1 }, { 4, 9, 2, 8 } };

	(void)state;
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		struct profile *p = new_window();
		struct bodies b = { 0 };
		struct window_stats stats;
		char name[32], limit[64];

		for (unsigned k = 0; k < cases[i].services; k++) {
			snprintf(name, sizeof(name), "shop-%u", k);
			add_stacks(p, add_service(p, name), 2, 1, 10 + k);
		}
		snprintf(limit, sizeof(limit), "services:\n  max: %u\n", cases[i].max);
		stats = encode(new_config(limit), p, &b);
		if (b.count != cases[i].series || stats.merged != cases[i].merged)
			fail_msg("at most %u of %u: %zu series, %u merged", cases[i].max,
				 cases[i].services, b.count, (unsigned)stats.merged);
		for (unsigned k = 0; k < cases[i].max / 4 && k < cases[i].services; k++) {
			snprintf(name, sizeof(name), "shop-%u", k);
			assert_int_equal(ticks_of(&b, name), 2 * (10 + k));
		}
		assert_int_equal(stats.samples, cases[i].services * (20 + cases[i].services - 1));
		assert_int_equal(ticks_of(&b, "other") > 0, cases[i].merged > 0);
		profile_free(p);
	}
}

/* Engines take 30 labels: of more the service's name stays. */
static void test_window_encode_cuts_labels(void **state)
{
	struct bodies b = { 0 };
	struct profile *p = new_window();
	char text[4096] = "labels:\n";

	(void)state;
	for (int i = 0; i < CONFIG_LABELS_MAX; i++)
		snprintf(text + strlen(text), sizeof(text) - strlen(text), "  a%d: x\n", i);
	snprintf(text + strlen(text), sizeof(text) - strlen(text), "relabel:\n");
	for (int i = 0; i < 20; i++)
		snprintf(text + strlen(text), sizeof(text) - strlen(text),
			 "  - {target_label: z%d, replacement: y}\n", i);
	add_stacks(p, add_service(p, "shop"), 1, 1, 7);
	encode(new_config(text), p, &b);
	assert_int_equal(b.count, 1);
	assert_string_equal(b.series[0].service, "shop");
	assert_int_equal(b.series[0].labels, ENGINE_LABELS_MAX);
	assert_int_equal(b.series[0].ticks, 7);
	profile_free(p);
}

/* --- kinds of samples ------------------------------------------------------------------------- */

static uint16_t add_kind(struct profile *p, const char *name, enum sample_unit unit,
			 uint64_t period)
{
	struct sample_kind kind = { .name = intern(p, name), .unit = unit, .period = period };
	uint16_t id;

	assert_int_equal(profile_add_kind(p, &kind, &id), 0);
	return id;
}

/* Of one stack each. */
static void add_samples(struct profile *p, uint32_t thread, uint16_t kind, size_t count,
			uint64_t value)
{
	for (size_t i = 0; i < count; i++) {
		struct sample s = { .thread = thread, .value = value, .kind = kind };
		struct frame f = { .kind = FRAME_PYTHON, .name = intern(p, "f") };
		uint32_t frame;

		assert_int_equal(frametab_intern(p->frames, &f, &frame), 0);
		assert_int_equal(stacktab_intern(p->stacks, 0, frame, &s.stack), 0);
		assert_int_equal(profile_add_sample(p, &s), 0);
	}
}

static const struct series *find_series(const struct bodies *b, const char *service,
					const char *name)
{
	for (size_t i = 0; i < b->count; i++)
		if (!strcmp(b->series[i].service, service) && !strcmp(b->series[i].name, name))
			return &b->series[i];
	fail_msg("no series %s of %s", name, service);
	return NULL;
}

/* Engines know a profile type by its series and what its only values are. */
static void test_window_encode_makes_a_series_of_each_kind(void **state)
{
	static const struct {
		const char *kind;
		enum sample_unit unit;
		uint64_t period, value, total; /* of two samples */
		const char *engine, *name, *type, *unit_name, *period_type;
	} cases[] = {
		{ "cpu", UNIT_NS, 1, 50000000, 100000000, "pyroscope", "process_cpu", "cpu",
		  "nanoseconds", "cpu:nanoseconds" },
		{ "off-cpu", UNIT_NS, 1, 3000000000, 6000000000, "pyroscope", "off_cpu", "off_cpu",
		  "nanoseconds", "" },
		{ "off-cpu", UNIT_NS, 1, 3000000000, 6000000000, "parca", "off_cpu", "wallclock",
		  "nanoseconds", "samples:count" },
		{ "gil-contention", UNIT_NS, 1, 5000000, 10000000, "pyroscope", "mutex", "delay",
		  "nanoseconds", "mutex:count" },
		{ "memory", UNIT_BYTES, 1, 4096, 8192, "pyroscope", "memory", "rss_growth", "bytes",
		  "memory:bytes" },
		{ "page-faults", UNIT_COUNT, 100, 1, 200, "pyroscope", "page_faults", "page_faults",
		  "count", "page_faults:count" },
	};

	(void)state;
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		struct profile *p = new_window();
		struct bodies b = { 0 };
		const struct series *s;
		struct window_stats stats;
		struct config *c;
		uint16_t kind = add_kind(p, cases[i].kind, cases[i].unit, cases[i].period);
		uint32_t shop = add_service(p, "shop"), bank = add_service(p, "bank");

		add_samples(p, shop, kind, 2, cases[i].value);
		add_samples(p, shop, KIND_TICKS, 3, 1);
		add_samples(p, bank, kind, 4, cases[i].value);
		c = new_config("");
		if (!strcmp(cases[i].engine, "parca"))
			c->outputs.items[0].engine = ENGINE_PARCA;
		stats = encode(c, p, &b);
		s = find_series(&b, "bank", cases[i].name);
		if (strcmp(s->type, cases[i].type) != 0 ||
		    strcmp(s->unit, cases[i].unit_name) != 0 ||
		    strcmp(s->period, cases[i].period_type) != 0 || s->ticks != 2 * cases[i].total)
			fail_msg("%s: %s %s %s, %lu", cases[i].kind, s->type, s->unit, s->period,
				 (unsigned long)s->ticks);
		assert_int_equal(find_series(&b, "shop", "process_cpu")->service[0], 's');
		assert_int_equal(b.count, 3);
		assert_int_equal(stats.samples, 2 + 3 + 4);
		assert_int_equal(stats.services, 2);
		profile_free(p);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_window_encode_splits_what_is_too_large),
		cmocka_unit_test(test_window_encode_ends_where_nothing_can_be_split),
		cmocka_unit_test(test_window_encode_merges_services_beyond_the_limit),
		cmocka_unit_test(test_window_encode_cuts_labels),
		cmocka_unit_test(test_window_encode_makes_a_series_of_each_kind),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
