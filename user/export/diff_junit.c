/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */

/*
 * A comparison as a test report, in the XML of Apache Ant's JUnit task, which every CI server
 * reads: one test case for each function above the gate's floor, and one for the whole. A function
 * that would fail the gate is a failure, whether or not the gate was asked for; one that cannot be
 * judged is skipped.
 */
#include <errno.h>
#include <math.h>
#include <string.h>
#include <time.h>

#include "base/strbuf.h"
#include "export/diff_export.h"
#include "export/diff_words.h"
#include "base/escape.h"

struct suite {
	const struct diff_report *r;
	struct strbuf text;
	size_t failures, errors, skipped;
};

static void suite_release(struct suite *s)
{
	strbuf_release(&s->text);
}

/* Of what escape_append() lets through only U+FFFE and U+FFFF are no characters of XML. */
static int put_xml(struct strbuf *out, const char *bytes, size_t len)
{
	_cleanup_(strbuf_releasep) struct strbuf text = STRBUF_INIT;
	int r = escape_append(&text, bytes, len, "");

	for (size_t i = 0; i < text.len && !r; i++) {
		const char *at = text.bytes + i;

		if (strchr("&<>\"'", *at)) {
			r = strbuf_appendf(out, "&#%d;", *at);
		} else if (text.len - i >= 3 && !memcmp(at, "\xef\xbf", 2) &&
			   (at[2] == '\xbe' || at[2] == '\xbf')) {
			r = strbuf_appendf(out, "\\xef\\xbf\\x%02x", (unsigned char)at[2]);
			i += 2;
		} else {
			r = strbuf_putc(out, *at);
		}
	}
	return r;
}

static int put_xml_text(struct strbuf *out, const char *s)
{
	return put_xml(out, s, strlen(s));
}

static double seconds(const struct diff *d, double ticks)
{
	double s = ticks * diff_ms_per_tick(d) / 1e3;

	return s > 0 ? s : 0;
}

/* Its head; the caller closes it. */
static void open_case(struct suite *s, const struct diff_function *f, double ticks)
{
	size_t name_len = 0, module_len = 0;
	const char *name = f ? diff_name(s->r->diff, f, &name_len) : "total";
	const char *module = f ? diff_module(s->r->diff, f, &module_len) : "";

	strbuf_puts(&s->text, "    <testcase name=\"");
	put_xml(&s->text, name, f ? name_len : strlen(name));
	strbuf_puts(&s->text, "\" classname=\"");
	if (module_len)
		put_xml(&s->text, module, module_len);
	else
		strbuf_puts(&s->text, "pyebpf");
	strbuf_appendf(&s->text, "\" time=\"%.6f\">\n", seconds(s->r->diff, ticks));
}

static void put_function(struct suite *s, const struct gate_row *row)
{
	const struct diff *d = s->r->diff;
	const struct diff_function *f = &d->functions[row->function];
	struct diff_row amounts = diff_row(d, f, DIFF_KEY_TOTAL);

	open_case(s, f, amounts.after);
	switch (row->verdict) {
	case GATE_SLOWER:
		s->failures++;
		strbuf_appendf(&s->text, "      <failure type=\"slower\" message=\"%s -&gt; %s, ",
			       diff_amount(d, amounts.before).s, diff_amount(d, amounts.after).s);
		strbuf_appendf(&s->text, "%s (%s)\">%s</failure>\n", diff_change(row->ratio).s,
			       diff_interval(row->low, row->high).s, diff_amount_words(d).s);
		break;
	case GATE_UNDETERMINED:
		s->skipped++;
		strbuf_appendf(&s->text,
			       "      <skipped message=\"inconclusive: %s; the smallest change "
			       "that would be found is %s\"/>\n",
			       diff_interval(row->low, row->high).s,
			       diff_change(row->detectable).s);
		break;
	}
	strbuf_puts(&s->text, "    </testcase>\n");
}

static void put_total(struct suite *s)
{
	const struct gate *g = s->r->gate;

	open_case(s, NULL, s->r->diff->total.value);
	if (g->total == GATE_SLOWER) {
		const struct diff *d = s->r->diff;

		s->failures++;
		strbuf_appendf(
			&s->text,
			"      <failure type=\"slower\" message=\"%s -&gt; %s\">%s</failure>\n",
			diff_amount(d, d->total.baseline).s, diff_amount(d, d->total.value).s,
			diff_amount_words(d).s);
	} else if (g->result == GATE_INCONCLUSIVE) {
		s->errors++;
		strbuf_puts(&s->text, "      <error type=\"inconclusive\" message=\"");
		put_xml_text(&s->text, g->reason ? g->reason : "");
		strbuf_puts(&s->text, "\"/>\n");
	}
	strbuf_puts(&s->text, "    </testcase>\n");
}

static uint64_t start_ns(const struct diff_report *r)
{
	for (size_t i = 0; i < r->input->cube.runs.len; i++)
		if (r->input->cube.runs.items[i].side == DIFF_CURRENT)
			return diff_run_recording(r->input, &r->input->cube.runs.items[i])
				->start_realtime_ns;
	return 0;
}

static const char *host(const struct diff_report *r)
{
	for (size_t i = 0; i < r->input->cube.runs.len; i++) {
		const struct cube_run *run = &r->input->cube.runs.items[i];
		const char *found = diff_run_recording(r->input, run)->host;

		if (run->side == DIFF_CURRENT && found)
			return found;
	}
	return "localhost";
}

/* The schema wants it all, and the time without a zone. */
static void put_head(struct suite *s, struct strbuf *out)
{
	const struct diff_report *r = s->r;
	time_t start = (time_t)(start_ns(r) / 1000000000);
	char stamp[32] = "1970-01-01T00:00:00";
	struct tm tm;

	if (gmtime_r(&start, &tm))
		strftime(stamp, sizeof(stamp), "%Y-%m-%dT%H:%M:%S", &tm);
	strbuf_puts(out,
		    "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n<testsuites>\n"
		    "  <testsuite name=\"pyebpf diff\" package=\"pyebpf\" id=\"0\" hostname=\"");
	put_xml_text(out, host(r));
	strbuf_appendf(out, "\" timestamp=\"%s\" tests=\"%zu\" failures=\"%zu\" errors=\"%zu\"",
		       stamp, r->gate->row_count + 1, s->failures, s->errors);
	strbuf_appendf(out, " skipped=\"%zu\" time=\"%.6f\">\n", s->skipped,
		       seconds(r->diff, r->diff->total.value));
	strbuf_appendf(out, "    <properties>\n      <property name=\"threshold\" value=\"%g\"/>\n",
		       r->gate->threshold);
	strbuf_appendf(out, "      <property name=\"floor\" value=\"%g\"/>\n", r->gate->floor);
	strbuf_appendf(out, "      <property name=\"result\" value=\"%s\"/>\n",
		       gate_result_names[r->gate->result]);
	for (size_t i = 0; i < r->environment->len; i++) {
		const struct difference *d = &r->environment->items[i];

		strbuf_appendf(out, "      <property name=\"different %s\" value=\"", d->what);
		put_xml_text(out, d->value[DIFF_BASE]);
		strbuf_puts(out, " -&gt; ");
		put_xml_text(out, d->value[DIFF_CURRENT]);
		strbuf_puts(out, "\"/>\n");
	}
	strbuf_puts(out, "    </properties>\n");
}

static int write_junit(const struct diff_report *r, FILE *out)
{
	_cleanup_(suite_release) struct suite s = { .r = r };
	_cleanup_(strbuf_releasep) struct strbuf head = STRBUF_INIT;

	put_total(&s);
	for (size_t i = 0; i < r->gate->row_count; i++)
		put_function(&s, &r->gate->rows[i]);
	strbuf_puts(&s.text, "    <system-out>");
	for (size_t i = 0; i < r->notes->len; i++) {
		put_xml_text(&s.text, r->notes->items[i]);
		strbuf_putc(&s.text, '\n');
	}
	strbuf_puts(&s.text, "</system-out>\n    <system-err/>\n  </testsuite>\n</testsuites>\n");
	put_head(&s, &head);
	if (strbuf_error(&head) || strbuf_error(&s.text))
		return -ENOMEM;
	fwrite(head.bytes, 1, head.len, out);
	fwrite(s.text.bytes, 1, s.text.len, out);
	return 0;
}

const struct diff_exporter diff_exporter_junit = {
	.name = "junit",
	.suffix = ".xml",
	.help = "a test report: functions that would fail the gate are failures",
	.write = write_junit,
};
