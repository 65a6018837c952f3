# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""Each mode loads the BPF programs and makes the maps that it needs, and no others."""
import re
import sys

import pytest
from harness import run

pytestmark = pytest.mark.usefixtures("pyebpf")

MODES = {
    "cpu": ["--mode", "cpu"],
    "gil": ["--mode", "gil"],
    "wall": ["--mode", "wall"],
    "memory": ["--mode", "memory"],
    "events": ["-e", "page-faults"],
    "async": ["--async"],
    "otel": ["--label", "otel"],
}
ALL = set(MODES)
TICKS = ALL - {"memory", "events"}
# Program or map: the modes that need it.
NEEDED = {
    **dict.fromkeys(("on_fork", "on_exec", "on_exit", "list_tasks", "list_cpu_time"), ALL),
    **dict.fromkeys(("procs", "binaries", "events", "scratch", "cpu_states", "pyebpf.bss", "pyebpf.rodata"), ALL),
    **dict.fromkeys(("task_samples", "task_slots"), ALL),
    **dict.fromkeys(("sample", "cpu_ticks"), TICKS),
    **dict.fromkeys(("on_switch", "on_switched", "on_thread", "on_free", "on_migrate", "on_exec_times",
                     "list_thread_times", "note_waited", "visit_thread"), {"wall"}),
    **dict.fromkeys(("thread_times", "times_slots", "gil_counts"), {"wall"}),
    **dict.fromkeys(("on_rss", "rss_sizes"), {"memory"}),
    "on_perf_event": {"events"},
    "event_slots": {"memory", "events"},
    "asyncio_rows": {"async"},
    "thread_contexts": {"otel"},
}
# Not on all kernels: see bpf/README.md.
BY_KERNEL = {"on_switched", "on_free", "on_migrate", "times_slots"}
WALKS_MIN = 8  # work spaces of samples that threads take themselves: for half of the CPUs, at least
SMALL = 7 << 20  # bytes of all maps but the ring, where no waits are recorded, beside
SCRATCH = 1 << 17  # bytes for each CPU
LISTED = re.compile(r"map (\S+): (\d+) entries, (\d+) bytes")


@pytest.fixture(scope="module")
def said(tmp_path_factory):
    """{mode: what -vv says}."""
    output = tmp_path_factory.mktemp("loaded") / "x.pyebpf"
    return {mode: run("record", "-vv", "-o", output, *options, "--", sys.executable, "-S", "-c", "pass").stderr
            for mode, options in MODES.items()}


@pytest.mark.parametrize("mode", MODES)
def test_what_the_mode_needs(said, mode):
    text = said[mode]
    loaded = set(re.findall(r"prog '(\w+)': -- BEGIN PROG LOAD LOG", text)) | {m[1] for m in LISTED.finditer(text)}
    needed = {name for name, modes in NEEDED.items() if mode in modes}
    assert loaded <= needed, (loaded - needed, text)
    assert needed - BY_KERNEL <= loaded, (needed - loaded, text)


@pytest.mark.parametrize("mode", ["cpu", "gil", "memory", "events"])
def test_memory(said, mode):
    sizes = {m[1]: int(m[3]) for m in LISTED.finditer(said[mode])}
    cpus = int(re.search(r"map cpu_ticks: (\d+) entries", said["cpu"])[1])
    assert all(sizes[name] for name in ("procs", "scratch", "cpu_states")), sizes
    assert sum(sizes.values()) - sizes["events"] < SMALL + SCRATCH * cpus, sizes


def test_work_spaces(said):
    entries = {m[1]: int(m[2]) for m in LISTED.finditer(said["cpu"])}
    cpus = entries["cpu_ticks"]
    assert entries["task_slots"] == 1 or entries["scratch"] - cpus >= max(WALKS_MIN, min(cpus // 2, 512)), entries
