#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""Compares user/symbolize/linetable.c with every CPython found, instruction by instruction.

Usage: linetable_oracle.py LIBRARY        runs itself in each interpreter; exit status 1 if one
                                          line differs, or if no interpreter is found
       linetable_oracle.py LIBRARY COUNT  in this interpreter (3.6 and later), COUNT instructions of
                                          the standard library and then all the generated code

The oracle is PyCode_Addr2Line() in every version, code.co_lines() from 3.10 on, and for columns
code.co_positions() from 3.11 on. Found: see
tests/tools/pythons.py; versions it has to fetch are used if they are there already.
PYEBPF_ORACLE_COUNT: instructions of the standard library for each interpreter (default 20000); below
that, 50 random tables instead of 200.
PYEBPF_TIER: with `check` and `test` two interpreters are compared of each format of line tables, the newest
of two minors that PYEBPF_SEED draws.
"""
import ast
import ctypes
import os
import random
import subprocess
import sys
import types

LNOTAB, DELTAS, LOCATIONS = range(3)  # enum lines_format, bpf/events.h


def format_of(version):
    return LNOTAB if version < (3, 10) else DELTAS if version < (3, 11) else LOCATIONS


FORMAT = format_of(sys.version_info)
ADDR2LINE_BYTES = 10 ** 7  # of one code object: it reads the table anew for each instruction


# --- In each interpreter: 3.6 syntax -------------------------------------------------------------


def walk(code):
    yield code
    for const in code.co_consts:
        if isinstance(const, types.CodeType):
            for inner in walk(const):
                yield inner


def table_of(code):
    return code.co_lnotab if FORMAT == LNOTAB else code.co_linetable


def with_table(code, table, first):
    """The code object with another line table."""
    if hasattr(code, "replace"):  # 3.8
        name = "co_lnotab" if FORMAT == LNOTAB else "co_linetable"
        return code.replace(co_firstlineno=first, **{name: table})
    return types.CodeType(
        code.co_argcount, code.co_kwonlyargcount, code.co_nlocals, code.co_stacksize,
        code.co_flags, code.co_code, code.co_consts, code.co_names, code.co_varnames,
        code.co_filename, code.co_name, first, table, code.co_freevars, code.co_cellvars)


def library_code(rng, with_tests):
    """Code objects of the standard library, files in an order that the generator chooses."""
    top = os.path.dirname(os.__file__)
    paths = []
    for folder, folders, files in os.walk(top):
        folders[:] = sorted(d for d in folders if d not in ("site-packages", "dist-packages")
                            and (with_tests or d not in ("test", "tests", "idle_test")))
        paths += [os.path.join(folder, f) for f in sorted(files) if f.endswith(".py")]
    rng.shuffle(paths)
    for path in paths:
        try:
            with open(path, "rb") as f:
                top_code = compile(f.read(), path, "exec", dont_inherit=True)
        except (SyntaxError, ValueError, RecursionError, OSError):
            continue  # files of lib2to3 and test that are wrong on purpose
        for code in walk(top_code):
            yield code


def generated_sources():
    yield "a function of 3000 lines", "def f(a):\n" + "    a = a + 1\n" * 3000
    yield "line jumps over 127 and 65535", "def f(a):\n" + "".join(
        "    a = a.b(a)\n" + "\n" * gap for gap in (0, 126, 127, 128, 129, 254, 255, 256, 70000, 1))
    for count in (40, 130, 300, 40000):
        yield "one line of %d items" % count, \
            "def f(a, b):\n    b = 1\n    a = [" + "a, " * count + "]\n    return b"
    yield "a call over many lines", "def f(g, a):\n    return g(\n" + "".join(
        "\n" * (i % 7) + "        a.x(\n            a,\n            *g(a\n            ),\n"
        "        ),\n" for i in range(100)) + "    )\n"
    yield "a chain of attributes", "def f(a):\n    return (a\n" + "        .b(a)\n" * 80 + "    )"
    yield "try, with, loops, lambdas", "def f(a):\n" + "".join(
        "    try:\n        with a as b:\n            for c in b:\n                if c:\n"
        "                    continue\n                yield (lambda: [c\n for d in a if d])\n"
        "    except KeyError as e:\n        raise ValueError(\n            e) from e\n"
        "    finally:\n        a = (\n            a or\n            b)\n" for _ in range(60))
    yield "async", "async def f(a):\n    async with a as b:\n        async for c in b:\n" \
        "            await c(\n                await a,\n                b)\n"
    yield "decorators and defaults", "@a(\n 1)\n@b\nclass A(\n  B,\n  C):\n  @a\n  @b(\n   2)\n" \
        "  def f(self,\n        a=[\n          1],\n        b=2): pass\n"
    yield "nothing", ""


def shifted_lines(rng, source):
    """The syntax tree of source with nodes on lines drawn at random: they jump back and forth."""
    tree = ast.parse(source)
    for node in ast.walk(tree):
        if hasattr(node, "lineno"):
            node.lineno = rng.choice((1, 2, 90, 200, 500, 5000, 100000)) + rng.randrange(140)
            node.col_offset = rng.choice((0, 7, 79, 80, 127, 128, 5000))
            node.end_lineno = node.lineno + rng.choice((0, 0, 1, 300))
            node.end_col_offset = node.col_offset + rng.choice((0, 15, 16, 400))
    return tree


def varint(value):
    out = []
    while value >= 64:
        out.append(value & 63 | 64)
        value >>= 6
    return out + [value]


def svarint(value):
    return varint(-value << 1 | 1 if value < 0 else value << 1)


def random_table(rng, size):
    """Any pairs up to 3.9, any well-formed entries later: CPython trusts them.

    In 3.10 lengths are even, and the last one is not 0, or CPython reads past the end.
    """
    out = []
    while len(out) < size:
        if FORMAT != LOCATIONS:
            longest = 255 if FORMAT == LNOTAB else 254
            out += [rng.choice((0, 2, 6, 20, longest)),
                    rng.choice((0, 1, 127, 128, 129, 255, rng.randrange(256)))]
            continue
        kind = rng.choice((0, 5, 9, 10, 11, 12, 13, 13, 14, 15))
        out.append(0x80 | kind << 3 | rng.randrange(8))
        if kind < 10:
            out.append(rng.randrange(128))
        elif kind < 13:
            out += [rng.randrange(128), rng.randrange(128)]
        elif kind < 15:
            out += svarint(rng.choice((0, 1, -1, 31, 32, -33, 3000, -2900, 100000)))
            if kind == 14:
                out += varint(rng.randrange(300)) + varint(rng.randrange(300)) + \
                    varint(rng.randrange(300))
    if FORMAT == DELTAS:
        out[-2] = out[-2] or 2
    return bytes(out)


def generated_code(rng, tables):
    for name, source in generated_sources():
        for code in walk(compile(source, name, "exec", dont_inherit=True)):
            yield code
        if len(source) < 20000:
            tree = shifted_lines(rng, source)
            for code in walk(compile(tree, name + ", shifted", "exec", dont_inherit=True)):
                yield code
    # PyCode_Addr2Line() only looks at the table, so any code object can carry it.
    carrier = compile("def f(a):\n" + "    a = a + 1\n" * 300, "random tables", "exec").co_consts[0]
    yield with_table(carrier, b"", 1)
    yield with_table(carrier, b"", 70000)
    for _ in range(tables):
        yield with_table(carrier, random_table(rng, rng.choice((2, 20, 200))), rng.randrange(5000))


def lines_wanted(code, instrs):
    """The line of each instruction, 0 where it has none, as CPython says."""
    address_to_line = ctypes.pythonapi.PyCode_Addr2Line
    address_to_line.argtypes = [ctypes.py_object, ctypes.c_int]
    if FORMAT == LNOTAB:
        return [max(address_to_line(code, instr), 0) for instr in instrs]
    by_instr = {}
    for start, end, line in code.co_lines():
        for instr in range(start, end, 2):
            by_instr[instr] = max(line or 0, 0)
    wanted = [by_instr.get(instr, 0) for instr in instrs]
    stride = 1 + len(instrs) * len(table_of(code)) // ADDR2LINE_BYTES
    for instr, line in list(zip(instrs, wanted))[::stride]:
        if max(address_to_line(code, instr), 0) != line:
            raise AssertionError("CPython disagrees with itself: %r at %d: %d, %d"
                                 % (code, instr, address_to_line(code, instr), line))
    return wanted


def compare(library, code):
    """(instructions, wrong answers)"""
    table = table_of(code)
    instrs = range(0, len(code.co_code), 2)
    wanted = lines_wanted(code, instrs)
    count = len(instrs)
    bad_index, bad_line = ctypes.c_uint32(), ctypes.c_int32()
    bad = library.linetable_oracle_compare(
        FORMAT, table, len(table), code.co_firstlineno, count,
        (ctypes.c_uint32 * count)(*instrs), (ctypes.c_int32 * count)(*wanted),
        ctypes.byref(bad_index), ctypes.byref(bad_line))
    if bad:
        print("%s: %s: instruction %d: line %d, wanted %d (first line %d)"
              % (code.co_filename, code.co_name, instrs[bad_index.value], bad_line.value,
                 wanted[bad_index.value], code.co_firstlineno))
    return count, bad


def compare_positions(library, code):
    """(instructions, wrong answers)"""
    wanted = []
    for position in code.co_positions():
        # Lines below 1 are none for us; what has no line has no columns.
        line = position[0] if position[0] and position[0] > 0 else None
        wanted += [-1 if number is None else number
                   for number in (line, position[1] if line else None, *position[2:])]
    count = len(wanted) // 4
    table = code.co_linetable
    bad_index, got = ctypes.c_uint32(), (ctypes.c_int32 * 4)()
    bad = library.linetable_oracle_positions(
        table, len(table), code.co_firstlineno, count, (ctypes.c_int32 * len(wanted))(*wanted),
        ctypes.byref(bad_index), got)
    if bad:
        print("%s: %s: instruction %d: position %r, wanted %r"
              % (code.co_filename, code.co_name, 2 * bad_index.value, list(got),
                 wanted[4 * bad_index.value:4 * bad_index.value + 4]))
    return count, bad


def check_this_interpreter(path, count):
    library = ctypes.CDLL(path)
    library.linetable_oracle_compare.argtypes = [
        ctypes.c_int, ctypes.c_char_p, ctypes.c_size_t, ctypes.c_int, ctypes.c_uint32,
        ctypes.c_void_p, ctypes.c_void_p, ctypes.c_void_p, ctypes.c_void_p]
    library.linetable_oracle_compare.restype = ctypes.c_uint32
    library.linetable_oracle_positions.argtypes = [
        ctypes.c_char_p, ctypes.c_size_t, ctypes.c_int, ctypes.c_uint32,
        ctypes.c_void_p, ctypes.c_void_p, ctypes.c_void_p]
    library.linetable_oracle_positions.restype = ctypes.c_uint32
    rng = random.Random(1)
    codes = instructions = generated = mismatches = positions = 0
    for code in library_code(rng, count > 1000000):
        n, bad = compare(library, code)
        codes += 1
        instructions += n
        mismatches += bad
        if FORMAT == LOCATIONS:
            n, bad = compare_positions(library, code)
            positions += n
            mismatches += bad
        if instructions >= count:
            break
    if not instructions:
        print("no standard library below " + os.path.dirname(os.__file__))
        return 1
    for code in generated_code(rng, 200 if count >= 20000 else 50):
        n, bad = compare(library, code)
        codes += 1
        generated += n
        mismatches += bad
        if FORMAT == LOCATIONS:
            n, bad = compare_positions(library, code)
            positions += n
            mismatches += bad
    print("%d code objects, %d + %d instructions, %d positions, %d mismatches"
          % (codes, instructions, generated, positions, mismatches))
    return 1 if mismatches else 0


# --- The one that starts the others --------------------------------------------------------------


def find_interpreters():
    """Interpreters that can load a library of this system: one of each version, or those that are drawn."""
    is_full = os.environ.get("PYEBPF_TIER", "all") == "all"
    sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "tools"))
    import pythons
    found = {}
    for python in pythons.find_all():
        if python.via != "chroot":
            found.setdefault((python.version, python.free_threaded, python.debug), python)
    if is_full:
        return [found[key] for key in sorted(found)]
    newest = {(version[:2], *abi): found[(version, *abi)] for version, *abi in sorted(found)}
    by_format = [[python for python in newest.values() if format_of(python.version) == kind]
                 for kind in (LNOTAB, DELTAS, LOCATIONS)]
    chance = random.Random(os.environ.get("PYEBPF_SEED", "0"))
    return [python for same in by_format for python in chance.sample(same, min(2, len(same)))]


def main():
    if len(sys.argv) == 3:
        return check_this_interpreter(sys.argv[1], int(sys.argv[2]))
    if len(sys.argv) != 2:
        print(__doc__, file=sys.stderr)
        return 2
    count = os.environ.get("PYEBPF_ORACLE_COUNT", "20000")
    interpreters = find_interpreters()
    failed = []
    for python in interpreters:
        done = subprocess.run(python.command + ["-B", "-W", "ignore", os.path.abspath(__file__),
                                                os.path.abspath(sys.argv[1]), count],
                              stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
                              universal_newlines=True)
        print("%-22s %s" % (python.name, done.stdout.strip()), flush=True)
        if done.returncode:
            failed.append(python.name)
    if not interpreters:
        print("no CPython found: set PYEBPF_PYTHONS to the interpreters to use")
    elif failed:
        print("failed: " + " ".join(failed))
    return 1 if failed or not interpreters else 0


if __name__ == "__main__":
    sys.exit(main())
