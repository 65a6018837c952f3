/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Every format of a profile that somebody else filled, names and numbers alike: what is text is
 * UTF-8, what is a message can be unpacked, and none loses a tick.
 */
#include <cjson/cJSON.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <zlib.h>

#include "base/utf8.h"
#include "export/export.h"
#include "export/heat.h"
#include "profile/select.h"
#include "otlp.pb-c.h"
#include "perfetto.pb-c.h"
#include "pprof.pb-c.h"
#include "tests/fuzz/hostile_profile.h"

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t len);

struct text {
	char *bytes;
	size_t len;
};

static bool is_utf8(const char *s, size_t len)
{
	bool is_plain = true;

	for (size_t i = 0; i < len && is_plain;) {
		uint32_t c;
		size_t n = utf8_decode(s + i, len - i, &c);

		is_plain = c != UTF8_REPLACEMENT || n == 3;
		i += n;
	}
	return is_plain;
}

static uint64_t ticks_of(const struct cube *c)
{
	uint64_t ticks = 0;

	for (size_t i = 0; i < c->all.cells.len; i++)
		ticks += c->all.cells.items[i].value;
	return ticks;
}

/* A line a stack, behind the last space its ticks. */
static void check_collapsed(const struct text *t, uint64_t ticks)
{
	require(is_utf8(t->bytes, t->len));
	for (size_t at = 0; at < t->len;) {
		const char *line = t->bytes + at, *end = memchr(line, '\n', t->len - at), *space;

		require(end != NULL);
		space = memrchr(line, ' ', (size_t)(end - line));
		require(space != NULL);
		if (at || *line != '#')
			ticks -= strtoull(space + 1, NULL, 10);
		at += (size_t)(end - line) + 1;
	}
	require(ticks == 0);
}

static struct text unpack_gzip(const struct text *packed)
{
	z_stream z = { .next_in = (uint8_t *)packed->bytes, .avail_in = (uint32_t)packed->len };
	struct text t = { 0 };
	size_t cap = 0;
	int r;

	require(inflateInit2(&z, 15 + 16) == Z_OK);
	do {
		cap = cap * 2 + 65536;
		t.bytes = realloc(t.bytes, cap);
		require(t.bytes != NULL);
		z.next_out = (uint8_t *)t.bytes + z.total_out;
		z.avail_out = (uint32_t)(cap - z.total_out);
		r = inflate(&z, Z_NO_FLUSH);
		require(r == Z_OK || r == Z_STREAM_END);
	} while (r != Z_STREAM_END);
	t.len = z.total_out;
	inflateEnd(&z);
	return t;
}

static void check_pprof(const struct text *packed, uint64_t ticks)
{
	struct text t = unpack_gzip(packed);
	Pprof__Profile *m = pprof__profile__unpack(NULL, t.len, (uint8_t *)t.bytes);

	require(m && m->n_string_table && !*m->string_table[0]);
	for (size_t i = 0; i < m->n_string_table; i++)
		require(is_utf8(m->string_table[i], strlen(m->string_table[i])));
	for (size_t i = 0; i < m->n_sample; i++)
		ticks -= (uint64_t)m->sample[i]->value[0];
	require(ticks == 0);
	pprof__profile__free_unpacked(m, NULL);
	free(t.bytes);
}

/* What a message has as bytes is a message of its own. */
#define UNPACK(type, bytes)                                                      \
	({                                                                       \
		__auto_type from = (bytes);                                      \
		__auto_type message = type##__unpack(NULL, from.len, from.data); \
		require(message != NULL);                                        \
		message;                                                         \
	})

static uint64_t sum_profile(ProtobufCBinaryData bytes, size_t stacks)
{
	Otlp__Profile *profile = UNPACK(otlp__profile, bytes);
	uint64_t ticks = 0;

	for (size_t i = 0; i < profile->n_samples; i++) {
		require(profile->samples[i]->n_values == 1);
		require((size_t)profile->samples[i]->stack_index < stacks);
		ticks += (uint64_t)profile->samples[i]->values[0];
	}
	otlp__profile__free_unpacked(profile, NULL);
	return ticks;
}

/* A profile a kind: of ticks alone. */
static uint64_t sum_resource(ProtobufCBinaryData bytes, size_t stacks)
{
	Otlp__ResourceProfiles *resource = UNPACK(otlp__resource_profiles, bytes);
	Otlp__ScopeProfiles *scope = UNPACK(otlp__scope_profiles, resource->scope_profiles);
	uint64_t ticks = 0;

	for (size_t i = 0; i < scope->n_profiles; i++)
		ticks += sum_profile(scope->profiles[i], stacks);
	otlp__scope_profiles__free_unpacked(scope, NULL);
	otlp__resource_profiles__free_unpacked(resource, NULL);
	return ticks;
}

static void check_otlp(struct text *t, uint64_t ticks)
{
	ProtobufCBinaryData all = { t->len, (uint8_t *)t->bytes };
	Otlp__ExportRequest *m = UNPACK(otlp__export_request, all);
	Otlp__Dictionary *d = UNPACK(otlp__dictionary, m->dictionary);

	for (size_t i = 0; i < d->n_string_table; i++)
		require(is_utf8(d->string_table[i], strlen(d->string_table[i])));
	for (size_t i = 0; i < m->n_resource_profiles; i++)
		ticks -= sum_resource(m->resource_profiles[i], d->n_stack_table);
	require(ticks == 0);
	otlp__dictionary__free_unpacked(d, NULL);
	otlp__export_request__free_unpacked(m, NULL);
}

/* Ticks are samples that were due. What has a unit and no period is a sum of values instead. */
static double ticks_of_json(const cJSON *json)
{
	const cJSON *kinds = cJSON_GetObjectItemCaseSensitive(json, "kinds");
	const cJSON *kind = cJSON_GetArrayItem(kinds, 0);
	const char *unit = cJSON_GetObjectItemCaseSensitive(kind, "unit")->valuestring;
	bool has_values = cJSON_GetObjectItemCaseSensitive(kind, "period")->valuedouble == 1 &&
			  strcmp(unit, "count") != 0;

	return cJSON_GetObjectItemCaseSensitive(kind, has_values ? "total" : "samples")
		->valuedouble;
}

static void check_json(const struct text *t, const struct export_opts *o, uint64_t ticks)
{
	cJSON *json = cJSON_ParseWithLength(t->bytes, t->len);
	size_t paths;

	require(json != NULL && is_utf8(t->bytes, t->len));
	require(ticks_of_json(json) == (double)ticks);
	paths = (size_t)cJSON_GetArraySize(cJSON_GetObjectItemCaseSensitive(json, "paths"));
	require(!o->limit || paths <= o->limit + 1); /* and the one of stacks without frames */
	cJSON_Delete(json);
}

/* A line a sample. */
static void check_jsonl(const struct text *t, uint64_t samples)
{
	require(is_utf8(t->bytes, t->len));
	for (size_t at = 0; at < t->len; samples--) {
		const char *line = t->bytes + at, *end = memchr(line, '\n', t->len - at);
		cJSON *json;

		require(end != NULL);
		json = cJSON_ParseWithLength(line, (size_t)(end - line));
		require(cJSON_IsArray(cJSON_GetObjectItemCaseSensitive(json, "stack")));
		cJSON_Delete(json);
		at += (size_t)(end - line) + 1;
	}
	require(samples == 0);
}

static void check_one_json(const struct text *t)
{
	cJSON *json = cJSON_ParseWithLength(t->bytes, t->len);

	require(json != NULL && is_utf8(t->bytes, t->len));
	cJSON_Delete(json);
}

/* A packet a sample, and others. */
static void check_perfetto(const struct text *t, uint64_t samples)
{
	Perfetto__Trace *m = perfetto__trace__unpack(NULL, t->len, (uint8_t *)t->bytes);

	require(m != NULL);
	for (size_t i = 0; i < m->n_packet; i++) {
		const Perfetto__InternedData *data = m->packet[i]->interned_data;

		samples -= m->packet[i]->perf_sample != NULL;
		for (size_t k = 0; data && k < data->n_function_names; k++)
			require(is_utf8((char *)data->function_names[k]->str.data,
					data->function_names[k]->str.len));
	}
	require(samples == 0);
	perfetto__trace__free_unpacked(m, NULL);
}

/* What takes samples, all the while. */
struct stream {
	const struct exporter *exporter;
	struct exporting x;
	struct text text;
	uint64_t samples;
};

/* One of those that take samples, all of which take long. */
static const struct exporter *pick_taker(size_t number)
{
	for (size_t i = 0;; i = exporters[i + 1] ? i + 1 : 0)
		if (exporter_takes_samples(exporters[i]) && !number--)
			return exporters[i];
}

static void stream_begin(struct stream *s, const struct profile *p, const struct export_opts *o)
{
	s->x = (struct exporting){ .p = p, .o = o };
	s->x.out = open_memstream(&s->text.bytes, &s->text.len);
	require(s->x.out && (!s->exporter->begin || s->exporter->begin(&s->x) == 0));
}

static void stream_take(struct stream *s)
{
	s->samples += s->x.p->samples.len;
	require(s->exporter->take(&s->x) == 0);
}

static void stream_end(struct stream *s)
{
	require(s->exporter->finish(&s->x) == 0 && fclose(s->x.out) == 0);
	if (s->exporter == &exporter_jsonl)
		check_jsonl(&s->text, s->samples);
	else if (s->exporter == &exporter_perfetto)
		check_perfetto(&s->text, s->samples);
	else if (s->exporter == &exporter_speedscope || s->exporter == &exporter_gecko)
		check_one_json(&s->text);
	else if (s->exporter == &exporter_script)
		require(is_utf8(s->text.bytes, s->text.len));
	if (s->exporter->release)
		s->exporter->release(&s->x);
	free(s->text.bytes);
}

static void export(const struct exporter *e, const struct profile *p, const struct cube *cube,
		   const struct export_opts *o)
{
	struct text t = { 0 };
	FILE *out = open_memstream(&t.bytes, &t.len);
	int r;

	require(out != NULL);
	r = exporter_write(e, p, cube, o, out);
	require(fclose(out) == 0 && r == 0);
	if (e == &exporter_collapsed)
		check_collapsed(&t, ticks_of(cube));
	else if (e == &exporter_pprof)
		check_pprof(&t, ticks_of(cube));
	else if (e == &exporter_otlp)
		check_otlp(&t, ticks_of(cube));
	else if (e == &exporter_json)
		check_json(&t, o, ticks_of(cube));
	else
		require(is_utf8(t.bytes, t.len));
	free(t.bytes);
}

/* All is the own of a line or of none, and no line or file has more than that. */
static void check_heat(const struct profile *p, const struct cube *cube)
{
	_cleanup_(heat_release) struct heat h = { 0 };
	uint64_t sum;

	require(heat_find(&h, p, cube) == 0);
	sum = h.placeless;
	for (size_t i = 0; i < h.lines.len; i++) {
		sum += h.lines.items[i].self;
		require(h.lines.items[i].self <= h.lines.items[i].total &&
			h.lines.items[i].total <= h.whole);
	}
	require(sum == h.whole);
	for (size_t i = 0; i < h.files.len; i++)
		require(h.files.items[i].self <= h.files.items[i].total &&
			h.files.items[i].total <= h.whole);
	for (size_t i = 0; i < h.calls.len; i++)
		require(h.calls.items[i].value <= h.lines.items[h.calls.items[i].line].total);
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t len)
{
	struct hostile h = { bytes, bytes + len };
	uint8_t how = (uint8_t)hostile_number(&h, 1);
	const struct export_opts o = {
		.no_lines = how & 1,
		.header = how & 2,
		.threads = how & 4,
		.processes = how & 8,
		.limit = how >> 5,
		.min_percent = how & 32 ? 7 : 0,
	};
	static const char *const patterns[] = { "*a*", "*:*", "[!a]*", "1", "a=*" };
	_cleanup_(select_release) struct select select = { .keeps_kinds = how & 16 };
	_cleanup_(cube_release) struct cube plain = { .axes = exporter_axes(&exporter_pprof, &o) };
	_cleanup_(cube_release) struct cube timed = { .axes = exporter_axes(&exporter_html, &o) };
	_cleanup_(profile_freep) struct profile *p = NULL;
	struct stream stream = { .exporter = pick_taker(len % 64) };
	bool is_more;

	require(profile_new(&p) == 0);
	stream_begin(&stream, p, &o);
	for (size_t i = 0; i < SELECT_KEYS && how & 64; i++)
		select.query.patterns[i] =
			(struct select_patterns){ patterns, hostile_pick(&h, 6) };
	do {
		require(cube_begin_run(&timed, CUBE_CURRENT, "run.pyebpf", 0,
				       how & 16 ? CUBE_NO_TIMES : hostile_number(&h, 8)) == 0);
		is_more = hostile_fill(&h, p);
		require(select_samples(&select, p) == 0);
		require(cube_add(&plain, p) == 0 && cube_add(&timed, p) == 0);
		stream_take(&stream);
		cube_run(&timed)->lost = hostile_number(&h, 8);
		profile_clear_samples(p);
	} while (is_more);
	stream_end(&stream);
	require(cube_finish(&plain, p) == 0 && cube_finish(&timed, p) == 0);
	check_heat(p, &plain);
	for (const struct exporter *const *e = exporters; *e; e++)
		if (!exporter_takes_samples(*e) && !exporter_makes_folders(*e))
			export(*e, p, (*e)->needs & CUBE_TIME ? &timed : &plain, &o);
	return 0;
}
