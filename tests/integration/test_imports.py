# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""Import statements are one frame: against what the interpreter itself says of its modules."""
import os
import subprocess

import collapsed
import pytest
from harness import WORKLOADS, export, run
from htmlpage import Page

pytestmark = pytest.mark.usefixtures("pyebpf")
MODULES = ["asyncio", "concurrent.futures", "email.mime.text", "http.server", "logging.config",
           "multiprocessing.pool", "pydoc", "unittest", "xml.etree.ElementTree"]


def import_modules(python, folder):
    """Collapsed text of what an interpreter does to import MODULES, and the file of its truth."""
    path = folder / (python.name + ".collapsed")
    subprocess.run([*python.command, os.path.join(WORKLOADS, "imports.py"), path, *MODULES],
                   check=True, timeout=60)
    return path, path.with_suffix(".collapsed.truth")


@pytest.fixture(scope="module")
def imports(some_python, tmp_path_factory):
    return import_modules(some_python, tmp_path_factory.mktemp("imports"))[0]


def test_names_and_counts(request, tmp_path):
    """What runs while modules are imported has the stack that their __name__s give it."""
    pythons = [p for p in request.config.few_pythons if p.via == "direct"]
    assert pythons
    for python in pythons:
        path, truth = import_modules(python, tmp_path)
        want = collapsed.parse(truth.read_text())
        assert sum(want.values()) > 500, python.name
        assert export(path, "--fold-imports") == want, python.name


def test_export_keeps_them(imports):
    assert export(imports) == collapsed.parse(imports.read_text())


def test_report_folds_them(imports):
    folded = run("report", "--tree", "--min-percent", "0", imports)
    kept = run("report", "--tree", "--min-percent", "0", "--no-fold-imports", imports)
    assert folded.returncode == kept.returncode == 0, (folded, kept)
    assert "import logging.config" in folded.stdout and "_find_and_load" not in folded.stdout
    assert "import logging.config" not in kept.stdout and "_find_and_load" in kept.stdout


def test_diff_folds_them(imports):
    other = imports.with_name("other.collapsed")
    lines = imports.read_text().splitlines()
    other.write_text("".join("%s %d\n" % (line.rpartition(" ")[0], 900) for line in lines))
    folded = run("diff", "-f", "json", "-o", "-", imports, other).stdout
    assert "import logging.config" in folded and "importlib._bootstrap>" not in folded
    for option in "--no-fold-imports", "--compat=3.15":
        kept = run("diff", "-f", "json", "-o", "-", option, imports, other).stdout
        assert "import logging.config" not in kept and "importlib._bootstrap>" in kept


def test_each_command_folds_or_keeps_them(imports, tmp_path):
    page = tmp_path / "x.html"
    for folds, arguments in [
            (False, ["export", "-f", "collapsed"]), (True, ["export", "-f", "collapsed", "--fold-imports"]),
            (True, ["export", "-f", "html"]), (False, ["export", "-f", "html", "--no-fold-imports"]),
            (True, ["report", "--fold-imports"]), (True, ["report"]), (False, ["report", "--no-fold-imports"])]:
        output = ["-o", page, imports] if "-f" not in arguments or "html" in arguments else [imports]
        done = run(*arguments, *output)
        assert done.returncode == 0, done
        names = Page(page).strings if page.exists() else done.stdout
        assert ("import logging.config" in names) == folds, arguments
        assert ("_find_and_load" in names) != folds, arguments
        page.unlink(missing_ok=True)
    done = run("report", "--fold-imports", "--no-fold-imports", imports)
    assert done.returncode == 2 and "--fold-imports and --no-fold-imports cannot be combined" in done.stderr, done
    done = run("diff", "--compat=3.15", "--fold-imports", imports, imports)
    assert done.returncode == 2 and "--fold-imports" in done.stderr, done


def test_page_has_the_source_of_modules(some_python, tmp_path):
    """A module that is imported has no def where it begins, and its lines are shown all the same."""
    (tmp_path / "busy.py").write_text("x = 0\nfor i in range(3000000):\n    x += i\n")
    (tmp_path / "main.py").write_text("import busy\n")
    page = tmp_path / "page.html"
    done = run("record", "-F", "997", "-o", page, "--", *some_python.command,
               tmp_path / "main.py")
    assert done.returncode == 0, done.stderr
    shown = Page(page)
    busy = str(tmp_path / "busy.py")
    assert "import busy" in shown.strings
    assert shown.status[busy] == "embedded", shown.status
    assert "    x += i" in shown.source[busy].values()
