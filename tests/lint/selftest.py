# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""Proves that the lints next to this file, and tests/run.py, can fail: each gets a sample with
one mistake.

usage: selftest.py
"""
import contextlib
import importlib
import io
import pathlib
import subprocess
import sys
import tempfile

HERE = pathlib.Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parent))
import run as runner  # noqa: E402
LICENSE = "/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */\n"
TABLE = """| folder | may include |
|---|---|
| `base/` | nothing |
| `target/` | `base/` `bpf/` |
| `collect/` | `base/` `bpf/` `target/` |
| `cmd/` | everything but `bpf/` |

| folder | room | files |
|---|---|---|
| base | errors | err |
| target | files | elf |
| collect | the kernel side | session |
| cmd | recording | record |
"""
SOUND = {
    "user/README.md": TABLE,
    "user/main.c": LICENSE + '#include "cmd/cmd.h"\n',
    "user/base/err.h": LICENSE,
    "user/target/elf.c": LICENSE + '#include "base/err.h"\n#include "bpf/events.h"\n',
    "user/collect/session.c": LICENSE + '#include "pyebpf.skel.h"\n#include "target/elf.h"\n',
    "user/cmd/record.c": LICENSE + '#include "collect/session.h"\n',
    "bpf/sample.bpf.c": LICENSE + '#include "vmlinux.h"\n#include "bpf/events.h"\n',
    "CMakeLists.txt": "pyebpf_library(base)\npyebpf_library(target USES base PACKAGES LIBELF)\n",
    ".clang-format": (HERE.parent.parent / ".clang-format").read_text(),
}
BODY = LICENSE + "int f(void);\n"

# lint, name of the case, files that differ from SOUND, a piece of the message
CASES = [
    ("layers.py", "upwards", {"user/base/a.c": '#include "target/elf.h"\n'}, "base/ may not include target/"),
    ("layers.py", "indented", {"user/base/a.c": '#  include "cmd/opt.h"\n'}, "may not include cmd/"),
    ("layers.py", "cmd is nobody's", {"user/collect/a.c": '#include "cmd/opt.h"\n'}, "may not include cmd/"),
    ("layers.py", "cmd and bpf", {"user/cmd/a.c": '#include "bpf/events.h"\n'}, "cmd/ may not include bpf/"),
    ("layers.py", "more of bpf", {"user/target/a.c": '#include "bpf/maps.h"\n'}, "only bpf/events.h"),
    ("layers.py", "bpf to user", {"bpf/a.h": '#include "base/err.h"\n'}, 'may not include "base/err.h"'),
    ("layers.py", "bpf by detour", {"bpf/a.h": '#include "bpf/../user/base/err.h"\n'}, "bpf/ may not include"),
    ("layers.py", "relative", {"user/target/a.c": '#include "../base/err.h"\n'}, "not named by folder"),
    ("layers.py", "same folder", {"user/target/a.c": '#include "elf.h"\n'}, "not named by folder"),
    ("layers.py", "skeleton elsewhere", {"user/target/a.c": '#include "pyebpf.skel.h"\n'}, "not named by folder"),
    ("layers.py", "new folder", {"user/util/a.c": '#include "base/err.h"\n'}, "has no row"),
    ("layers.py", "link", {"CMakeLists.txt": "pyebpf_library(base USES target)\n"}, "may not link"),
    ("layers.py", "no room", {"user/base/a.c": LICENSE}, "user/base/a: in no room"),
    ("layers.py", "empty room", {"user/README.md": TABLE.replace("| err |", "| err b |")},
     "base/b is in a room, and not there"),
    ("layers.py", "two rooms", {"user/README.md": TABLE + "| base | more | err |\n"}, "base/err is in two rooms"),
    ("layers.py", "no table", {"user/README.md": "nothing\n"}, "no include table"),
    ("banned.py", "call", {"user/base/a.c": BODY + "int g(char *s) { return atoi(s); }\n"}, "a.c:3: atoi()"),
    ("banned.py", "call in a test", {"tests/a.c": BODY + 'int g(void) { return system ("x"); }\n'}, "system()"),
    ("banned.py", "behind a comment", {"user/base/a.c": BODY + "/* x */ gets(s);\n"}, "gets()"),
    ("banned.py", "open", {"user/base/a.c": BODY + "int g(const char *s) { return open(s, 0); }\n"},
     "a.c:3: opens a file"),
    ("banned.py", "openat2", {"user/base/a.c": BODY + "int n = SYS_openat2;\n"}, "a.c:3: opens a file"),
    ("banned.py", "to-do", {"user/base/a.c": BODY + "/* TO" + "DO: later */\n"}, "without an issue number"),
    ("banned.py", "to-do in Python", {"tests/a.py": "#" + LICENSE + "# FIX" + "ME\n"}, "without an issue number"),
    ("banned.py", "license", {"user/base/a.c": "int f(void);\n"}, "license line missing"),
    ("format.py", "spaces", {"user/base/a.c": LICENSE + "int   f( void );\n"}, "clang-format"),
]
# Look like mistakes, are none.
SOUND_TOO = {
    "user/README.md": TABLE.replace("| err |", "| err ok |"),
    "user/base/ok.c": BODY + '/* atoi(s) */\nconst char *s = "system(x)"; // popen(\nint my_atoi(int);\n'
                             "/* TO" + "DO(#12): known */\nint c = '\"'; int snprintf_(int);\n",
}

CMOCKA = """<system-out>[==========] Running 2 test(s).
[ RUN      ] test_b
[       OK ] test_b
[ RUN      ] test_c
SKIPPED: not root
[  SKIPPED ] test_c
[==========] 2 test(s) run.
[  PASSED  ] 1 test(s).
[  SKIPPED ] 1 test(s), listed below:
[  SKIPPED ] test_c
</system-out>"""
CMOCKA_FAILED = """<system-out>[ RUN      ] test_b
[  ERROR   ] --- 0x3 != 0x2
[   LINE   ] --- test.c:121: error: Failure!
[  FAILED  ] test_b
[ RUN      ] test_c
[       OK ] test_c
[ RUN      ] test_d
[  FAILED  ] test_d
[  FAILED  ] 2 test(s), listed below:
[  FAILED  ] test_b
[  FAILED  ] test_d
</system-out>"""

# report of a stage, exit code of its command; passed, failed, skipped
REPORTS = [
    ("passes", '<testcase name="a"/><testcase name="b" status="run"/>', 0, (2, 0, 0)),
    ("failure", '<testcase name="a"><failure/></testcase><testcase name="b"/>', 1, (1, 1, 0)),
    ("error in a fixture", '<testcase name="a"><error/></testcase>', 1, (0, 1, 0)),
    ("pytest skip", '<testcase name="a"><skipped message="why"/></testcase>', 0, (0, 0, 1)),
    ("ctest skip", '<testcase name="a" status="notrun"><skipped message="SKIP_RETURN_CODE=77"/></testcase>',
     0, (0, 0, 1)),
    ("program missing", '<testcase name="a" status="notrun"><skipped message="Unable to find executable"/>'
     '</testcase>', 8, (0, 1, 0)),
    ("nothing ran", "", 0, (0, 1, 0)),
    ("exit code alone", '<testcase name="a"/>', 3, (1, 1, 0)),
    ("no report", None, 0, (0, 1, 0)),
    ("torn report", "<testcase", 0, (0, 1, 0)),
    ("cmocka", f"<testcase name='a' status='run'>{CMOCKA}</testcase>", 0, (1, 0, 1)),
    ("cmocka, all skipped", "<testcase name='a' status='run'><system-out>[ RUN      ] test_b\n"
     "[  SKIPPED ] test_b</system-out></testcase>", 0, (0, 0, 1)),
    ("cmocka, failed", f"<testcase name='a' status='fail'><failure/>{CMOCKA_FAILED}</testcase>", 8,
     (1, 2, 0)),
    ("a leak at its end", f"<testcase name='a' status='fail'><failure/>{CMOCKA}</testcase>", 8,
     (1, 1, 1)),
    ("TAP", "<testcase name='a' status='run'><system-out>ok 1 - b\nok 2 - c # SKIP why\n    ok 1 - in c"
     "</system-out></testcase>", 0, (1, 0, 1)),
]

FAILS = '<testcase name="%s"><failure message="late">%s</failure></testcase>'
FAILED_LEAKS = FAILS % ("a", """
[ RUN      ] b
[  FAILED  ] b
==7==ERROR: LeakSanitizer: detected memory leaks
SUMMARY: AddressSanitizer: 8 byte(s) leaked in 1 allocation(s).
""")
# report of a stage, of what it says when it is judged alone; passed, failed, unsteady
AGAIN = [
    ("chance", FAILS % ("a", "") + '<testcase name="b"/>', '<testcase name="a"/>', (2, 0, 1)),
    ("fails again", FAILS % ("a", "") + FAILS % ("b", ""), '<testcase name="a"/>' + FAILS % ("b", ""),
     (1, 1, 1)),
    ("skipped alone", FAILS % ("a", ""), '<testcase name="a"><skipped message="why"/></testcase>',
     (0, 1, 0)),
    ("not there alone", FAILS % ("a", ""), "", (0, 1, 0)),
    ("a finding", FAILS % ("a", "AddressSanitizer: "), '<testcase name="a"/>', (0, 1, 0)),
    ("leaks of an assertion", FAILED_LEAKS, '<testcase name="a"/>', (1, 0, 1)),
    ("leaks, and a finding", FAILED_LEAKS.replace("[  FAILED  ] b", "runtime error: b\n[  FAILED  ] b"),
     '<testcase name="a"/>', (0, 1, 0)),
    ("leaks alone", FAILED_LEAKS.replace("[  FAILED  ] b", ""), '<testcase name="a"/>', (0, 1, 0)),
    ("too many", "".join(FAILS % (name, "") for name in "abcdefghi"),
     "".join('<testcase name="%s"/>' % name for name in "abcdefghi"), (0, 9, 0)),
]

# What a stage without a report says, exit code of its command; passed, failed, skipped
OUTPUTS = [
    ("succeeds", "built", 0, (1, 0, 0)),
    ("fails", "built", 2, (0, 1, 0)),
    ("tells its tests", "ok 1 - a\nok 2 - b # SKIP why\nnot ok 3 - c\n", 1, (1, 1, 1)),
]

ALLOWED = """# TIERS | TEST | REASON | WHY

check,test | stage::unit/*::test_[ab] | no zsh* | large
all | stage::* | * | of another tier
"""
# A test that was skipped, its reason; is it allowed?
SKIPS = [
    ("unit/cmd/x::test_a", "no zsh here", True),
    ("unit/cmd/x::test_c", "no zsh here", False),
    ("unit/cmd/x::test_a", "not root", False),
]


def stage_of(folder, text, status, again=None):
    """One that leaves this report, ended with this exit code."""
    report = pathlib.Path(folder) / "report.xml"
    writer = "exit %d" if text is None else 'printf %%s "$1" > "$0"; exit %d'
    command = ["sh", "-c", writer % status, str(report), f"<s>{text}</s>"]
    return runner.Stage("stage", "sample", command, report=report, again=again)


def read_report(text, status):
    with tempfile.TemporaryDirectory() as folder:
        stage = stage_of(folder, text, status)
        stage.run(pathlib.Path(folder) / "log")
        return stage.passed, len(stage.failed), len(stage.skipped)


def read_again(text, second):
    """Of a stage whose failed tests are judged once more."""
    with tempfile.TemporaryDirectory() as folder, contextlib.redirect_stdout(io.StringIO()):
        stage = stage_of(folder, text, 1, lambda ids: stage_of(folder, second, "<failure" in second))
        stage.run(pathlib.Path(folder) / "log")
        runner.RESULTS = pathlib.Path(folder)
        runner.judge_again([stage])
        return stage.passed, len(stage.failed), len(stage.unsteady)


def read_output(text, status):
    """Of a stage without a report."""
    with tempfile.TemporaryDirectory() as folder:
        stage = runner.Stage("stage", "sample", ["sh", "-c", 'printf %%s "$0"; exit %d' % status, text])
        stage.run(pathlib.Path(folder) / "log")
        return stage.passed, len(stage.failed), len(stage.skipped)


def judge(allowed, name, reason):
    """Whether a skipped test is still one after the list was asked."""
    stage = runner.Stage("stage", "sample", [])
    stage.skipped.append((name, reason))
    runner.judge_skips([stage], runner.read_allowed(allowed, "test"))
    return stage.skipped == [(name, reason)] and not stage.failed


def run_here(lint, root):
    """Runs a lint like run_program(), without a start of Python."""
    module, written = importlib.import_module(lint.removesuffix(".py")), io.StringIO()
    try:
        with contextlib.redirect_stdout(written):
            return module.main(root), written.getvalue()
    except SystemExit as said:
        return 1, str(said)


def run_program(lint, root):
    """(exit code, what it says)"""
    done = subprocess.run([sys.executable, "-B", HERE / lint, root], text=True,
                          stdout=subprocess.PIPE, stderr=subprocess.STDOUT, check=False)
    return done.returncode, done.stdout


def run(lint, files, how=run_program):
    with tempfile.TemporaryDirectory() as folder:
        root = pathlib.Path(folder)
        for name, text in files.items():
            path = root / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(text)
        return how(lint, root)


def main():
    failed, tried = 0, set()
    for lint in ("layers.py", "banned.py", "format.py"):
        files = SOUND if lint == "format.py" else {**SOUND, **SOUND_TOO}
        status, output = run(lint, files)
        if status not in (0, 77):
            failed += 1
            print(f"{lint}: sound sample refused:\n{output}")
    for lint, name, files, message in CASES:
        status, output = run(lint, {**SOUND, **files}, run_here if lint in tried else run_program)
        tried.add(lint)
        if status == 77:
            print(f"{lint}: {output.strip()}")
        elif status == 0 or message not in output:
            failed += 1
            print(f"{lint}: {name}: exit {status}, want {message!r} in:\n{output}")
    for name, text, status, want in REPORTS:
        got = read_report(text, status)
        if got != want:
            failed += 1
            print(f"run.py: {name}: got {got}, want {want}")
    for name, text, second, want in AGAIN:
        got = read_again(text, second)
        if got != want:
            failed += 1
            print(f"run.py: {name}: got {got}, want {want}")
    for name, text, status, want in OUTPUTS:
        got = read_output(text, status)
        if got != want:
            failed += 1
            print(f"run.py: {name}: got {got}, want {want}")
    for name, reason, want in SKIPS:
        if judge(ALLOWED, name, reason) != want:
            failed += 1
            print(f"run.py: {name}, {reason}: allowed: {not want}, want {want}")
    total = len(CASES) + 3 + len(REPORTS) + len(AGAIN) + len(OUTPUTS) + len(SKIPS)
    print(f"{total - failed} of {total} as wanted")
    return failed > 0


if __name__ == "__main__":
    sys.exit(main())
