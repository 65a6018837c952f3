# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""imports.py FILE MODULE...: imports them, and writes collapsed text of all that ran meanwhile.

A line each tenth call of a Python function: its stack. FILE.truth has the same stacks as they are to be
folded: what a module is called is its own __name__, and not guessed from paths.
"""
import collections
import itertools
import sys

MACHINERY = ("<frozen importlib._bootstrap>", "<frozen importlib._bootstrap_external>",
             "<frozen zipimport>")
written, folded, calls = collections.Counter(), collections.Counter(), itertools.count()


def text(code, line, name):
    return "%s (%s:%d)" % (name.replace(";", "_"), code.co_filename, line)


def on_call(frame, event, _):
    if event != "call" or next(calls) % 10:
        return
    stack = []
    while frame:
        stack.append((frame.f_code, frame.f_lineno or 0, frame.f_globals.get("__name__", "")))
        frame = frame.f_back
    stack.reverse()
    plain, told, is_inside = [], [], False
    for code, line, module in stack:
        plain.append(text(code, line, code.co_name))
        if code.co_filename in MACHINERY:
            if not is_inside:
                told.append("import")
            is_inside = True
        elif is_inside and code.co_name == "<module>":
            told[-1] = text(code, line, "import " + module)
            is_inside = False
        else:
            told.append(plain[-1])
            is_inside = False
    written[";".join(plain)] += 1
    folded[";".join(told)] += 1


def main(path, *modules):
    sys.setprofile(on_call)
    try:
        for module in modules:
            __import__(module)
    finally:
        sys.setprofile(None)
    for name, stacks in (path, written), (path + ".truth", folded):
        with open(name, "w") as f:
            f.writelines("%s %d\n" % item for item in sorted(stacks.items()))


if __name__ == "__main__":
    main(*sys.argv[1:])
