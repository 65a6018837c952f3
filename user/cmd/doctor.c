/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#include "cmd/doctor.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "base/err.h"
#include "cmd/cmd.h"

struct doctor_opts {
	uint32_t pid;
	bool events;
	bool json;
	struct kernel_opts kernel;
};

/* --- The machine ------------------------------------------------------------------------------ */

static int verdict(const struct terminal *t, int is_possible)
{
	struct line l = LINE_INIT(t);
	int r;

	if (is_possible)
		line_put(&l, STYLE_BOLD, "pyebpf can record here.");
	else
		line_put(&l, STYLE_HOT,
			 "pyebpf cannot record here. Fix the first row marked \"missing\".");
	r = line_end(&l);
	line_release(&l);
	return r;
}

static int run_machine(const struct call *call, const struct kernel_opts *kernel, bool as_json)
{
	_cleanup_(feature_probe_release) struct feature_probe probe = { .is_old = kernel->is_old,
									.btf = kernel->btf };
	struct terminal t;
	struct json j;
	int r, can_record;

	if (kernel->btf && (r = feature_kernel_types(&probe)) < 0) {
		cmd_fail(call, r);
		return r == -ENOMEM ? EXIT_RUNTIME : EXIT_DENIED;
	}
	if (as_json) {
		json_init(&j, stdout);
		json_object(&j);
		json_key(&j, "pyebpf");
		json_string(&j, PYEBPF_VERSION);
		can_record = doctor_machine_json(&j, &probe);
		json_end(&j);
		r = can_record < 0 ? can_record : json_finish(&j);
		putchar('\n');
	} else {
		terminal_init(&t, stdout);
		can_record = doctor_machine(&t, &probe);
		r = can_record < 0 ? can_record : verdict(&t, can_record);
	}
	if (r < 0)
		return cmd_fail(call, r);
	return can_record ? EXIT_OK : EXIT_DENIED;
}

static int run_events(const struct call *call, bool as_json)
{
	struct terminal t;
	struct json j;
	int r;

	if (as_json) {
		json_init(&j, stdout);
		json_object(&j);
		r = doctor_events_json(&j);
		json_end(&j);
		r = r < 0 ? r : json_finish(&j);
		putchar('\n');
	} else {
		terminal_init(&t, stdout);
		r = doctor_events(&t);
	}
	fflush(stdout);
	if (r == -EPERM || r == -EOPNOTSUPP) {
		cmd_fail(call, r);
		return EXIT_DENIED;
	}
	return r < 0 ? cmd_fail(call, r) : EXIT_OK;
}

/* --- One process ------------------------------------------------------------------------------ */

/* What there is to say, then what went wrong (r of doctor_process_look(), e of the test stack). */
static int print_process(const struct doctor_process *p, const struct doctor_stack *s, int e)
{
	struct terminal t;
	int r;

	terminal_init(&t, stdout);
	r = doctor_process_print(&t, p);
	return r < 0 || e < 0 ? r : doctor_stack_print(&t, s);
}

static int print_process_json(const struct doctor_process *p, const struct doctor_stack *s, int e,
			      const char *error)
{
	struct json j;
	int r;

	json_init(&j, stdout);
	json_object(&j);
	json_key(&j, "pyebpf");
	json_string(&j, PYEBPF_VERSION);
	doctor_process_json(&j, p);
	json_key(&j, "test_stack");
	if (e < 0)
		json_null(&j);
	else
		doctor_stack_json(&j, s);
	json_key(&j, "error");
	if (e < 0)
		json_string(&j, error);
	else
		json_null(&j);
	json_end(&j);
	r = json_finish(&j);
	putchar('\n');
	return r;
}

/* e: the error of the look or of the test stack, which came after it. */
static int exit_code(const struct call *call, bool has_runtime, int e)
{
	int code = cmd_fail(call, e);

	if (e == -ENOMEM)
		return code;
	if (e == -EPERM || e == -EACCES || (has_runtime && e != -ESRCH)) {
		cmd_try("pyebpf doctor");
		return EXIT_DENIED;
	}
	return EXIT_NOTHING;
}

static int run_process(const struct call *call, const struct doctor_opts *o)
{
	pid_t pid = (pid_t)o->pid;
	struct doctor_process p;
	struct doctor_stack s = { 0 };
	char error[ERR_BYTES];
	int e, r, code = EXIT_OK;

	e = doctor_process_look(pid, &p);
	if (e >= 0)
		e = doctor_stack_record(pid, &o->kernel, &s);
	snprintf(error, sizeof(error), "%s", e < 0 ? err_message(e) : "");
	r = o->json ? print_process_json(&p, &s, e, error) : print_process(&p, &s, e);
	fflush(stdout);
	if (r < 0) {
		code = cmd_fail(call, r);
	} else if (e < 0) {
		err_set(e, "%s", error);
		code = exit_code(call, p.has_runtime, e);
	}
	doctor_process_release(&p);
	doctor_stack_release(&s);
	return code;
}

static int run(struct call *call)
{
	struct doctor_opts o = { 0 };
	const struct opt opts[] = {
		OPT_U32('p', "pid", &o.pid, "PID",
			"explain this process instead, with a test stack", .min = 1,
			.max = 1 << 22),
		OPT_FLAG(0, "events", &o.events, "list what record -e can name here instead"),
		OPT_FLAG(0, "json", &o.json, "print one JSON object (docs/json.md)"),
		KERNEL_OPTIONS(&o.kernel),
		OPT_END,
	};
	int status;

	if (!cmd_options(call, opts, &status))
		return status;
	if (call->operands.len)
		return cmd_usage(call, "unexpected argument %s: to examine a process, use -p PID",
				 call->operands.items[0]);
	if (o.events && o.pid)
		return cmd_usage(call, "--events and -p cannot be combined");
	if (o.events && (o.kernel.is_old || o.kernel.btf))
		return cmd_usage(call, "--events does not depend on --old-kernel and --btf");
	if (o.events)
		return run_events(call, o.json);
	return o.pid ? run_process(call, &o) : run_machine(call, &o.kernel, o.json);
}

const struct command command_doctor = {
	.name = "doctor",
	.summary = "check whether this machine can record, or explain one process",
	.usage = "[OPTION]...\n-p PID [OPTION]...\n--events [--json]",
	.about =
		"Prints one row per feature of this kernel, these permissions and this machine: "
		"ok, limited (recording works, with the stated restriction), missing, or unknown "
		"(see another row), and a fix for each row that is not ok. Exits with 0 if this "
		"machine can record, else with 4.\n\nWith -p, explains one process: which Python "
		"it runs, where that was found and how its threads are read. Records it until the "
		"first sample, for at most one second. Exits with 3 if it runs no Python that can "
		"be recorded.\n\nWith --btf or --old-kernel, shows what record does with these "
		"options.\n\nWith --events, lists the events that record -e accepts: those of "
		"perf, some of which this machine may lack, and all tracepoints of the "
		"kernel.\n\nThe keys of --json do not change: pyebpf, rows (each with name, state, "
		"required, found, problem, remedy) and can_record; with -p pyebpf, pid, own_pid, "
		"comm, program, program_deleted, command_line, root, other_mount_namespace, "
		"other_pid_namespace, threads, python (null, or an object), test_stack (null, or "
		"load_ns, wait_ns, ticks, thread, frames: root first) and error (null, or a text); "
		"with --events events (each with name, available, words) and tracepoints (texts).",
	.examples = "pyebpf doctor\tcan I record here?\n"
		    "pyebpf doctor --events\twhat can record -e name?\n"
		    "pyebpf doctor -p 412\twhy is nothing recorded of process 412?",
	.operands = "",
	.run = run,
};
