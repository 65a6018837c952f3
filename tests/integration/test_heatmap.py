# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""export -f heatmap: source as it was recorded, as text whatever it holds, with the values of jsonl."""
import collections
import html.parser
import json
import os
import subprocess

import pytest
from harness import PYEBPF, run

pytestmark = [pytest.mark.usefixtures("pyebpf"), pytest.mark.quick]
PROGRAM = '''\
# </td></table><script>pwned = 1</script> &amp; "quoted"
import time
def spin(seconds):
\tend, x = time.process_time() + seconds, 0
\twhile time.process_time() < end:  # a tab
\t\tx += 1
def main():
    spin(0.4)  # calls
main()
'''


class Source(html.parser.HTMLParser):
    """{line: text}, {line: title of its total}, and what links to where."""

    def __init__(self, text):
        super().__init__()
        self.lines, self.cells, self.links, self.tags = {}, collections.defaultdict(list), [], set()
        self.line = None
        self.feed(text)

    def handle_starttag(self, tag, attributes):
        attributes = dict(attributes)
        self.tags.add(tag)
        if tag == "tr":
            self.line = int(attributes["id"][5:]) if "id" in attributes else None
        if tag == "td" and self.line is not None:
            self.cells[self.line].append(attributes.get("title"))
            self.lines[self.line] = ""
        if tag == "a" and "#line-" in attributes["href"] and attributes["href"][0] != "#":
            self.links.append((self.line, attributes["href"]))

    def handle_endtag(self, tag):
        if tag == "table":
            self.line = None

    def handle_data(self, text):
        if self.line is not None:
            self.lines[self.line] += text


@pytest.fixture(name="recording")
def record(some_python, tmp_path):
    program, recording = tmp_path / "spinner.py", tmp_path / "x.pyebpf"
    program.write_text(PROGRAM)
    done = run("record", "-F", "997", "-o", recording, "--", *some_python.command, program)
    assert done.returncode == 0, done.stderr
    return recording


def page(recording):
    """Imports are not folded, as jsonl has them."""
    folder = recording.with_suffix(".heatmap")
    assert run("export", "--no-fold-imports", "-o", folder, recording).returncode == 0
    return folder, Source((folder / "spinner.html").read_text())


def test_source_is_text(recording, some_python):
    folder, source = page(recording)
    assert [text.rstrip("\n") for _, text in sorted(source.lines.items())] == \
        PROGRAM.splitlines()
    assert "img" not in source.tags and (folder / "index.html").exists()
    # The callee at its def, the caller at its line.
    assert (8, "spinner.html#line-3") in source.links and \
        (3, "spinner.html#line-8") in source.links, source.links
    hot = {line for line, cells in source.cells.items() if cells[1]}
    counted = collections.Counter()
    for line in run("export", "-f", "jsonl", recording).stdout.splitlines():
        places = [frame for frame in json.loads(line)["stack"] if frame[1]]
        if places and places[-1][1].endswith("spinner.py"):
            counted[places[-1][2]] += 1
    assert hot == set(counted) and {5, 6} & hot


def test_a_file_that_changed_is_not_shown(recording):
    program = recording.with_name("spinner.py")
    program.write_text("pass\n" + PROGRAM)
    _, source = page(recording)
    assert PROGRAM.splitlines()[0] not in "".join(source.lines.values())
    assert "in spin" in source.lines[6] or "in spin" in source.lines[5], source.lines


def test_where_it_goes(recording, tmp_path):
    done = run("export", "-f", "heatmap", recording)
    assert done.returncode == 2 and "writes a directory: use -o DIR" in done.stderr
    (tmp_path / "notes").mkdir()
    (tmp_path / "notes" / "todo.html").write_text("mine")
    done = run("export", "-f", "heatmap", "-o", tmp_path / "notes", recording)
    assert done.returncode == 1 and "contains todo.html, which pyebpf did not write" in done.stderr, done.stderr
    assert os.listdir(tmp_path / "notes") == ["todo.html"]
    page(recording)
    first = sorted(os.listdir(recording.with_suffix(".heatmap")))
    page(recording)
    assert sorted(os.listdir(recording.with_suffix(".heatmap"))) == first
    assert not list(tmp_path.glob("*.partial"))


def test_record_writes_it(some_python, tmp_path):
    program, folder = tmp_path / "spinner.py", tmp_path / "spun.heatmap"
    program.write_text(PROGRAM)
    subprocess.run([PYEBPF, "record", "-q", "-o", folder, "--", *some_python.command, program],
                   check=True)
    assert (folder / "spinner.html").exists()
    assert sorted(path.name for path in tmp_path.iterdir()) == ["spinner.py", "spun.heatmap"]
