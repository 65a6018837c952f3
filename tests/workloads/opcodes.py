# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""Lines that spend their time in one known bytecode instruction.

    opcodes.py SECONDS

Each function of HOT spins for SECONDS. Truth: {"hot": {function: [line, instruction, share]}, the
least share of the line's time that the instruction must take; "there": {function: [[line,
instruction]...]}, all that the function consists of, as this interpreter has it before and after}.
"""
import dis
import json
import sys
import time

clock = time.process_time  # a busy machine takes nothing away
MINOR = sys.version_info[1]
TEXT = "x" * 500000  # long: a copy takes a hundred times as long as to free it, whatever the caches hold
KEY = tuple(range(2000))
TABLE = {KEY: 1}


def add_ints(end):
    a, b = 1, 2
    while clock() < end:
        for _ in range(1000):
            a + b; a + b; a + b; a + b; a + b; a + b; a + b; a + b


def join_texts(end):
    a, b = TEXT, TEXT
    while clock() < end:
        for _ in range(100):
            a + b


def look_up(end):
    table, key = TABLE, KEY
    while clock() < end:
        for _ in range(100):
            table[key]


exec("def many_locals():\n    %s = range(500)\n    yield" % ", ".join("v%d" % i for i in range(500)))
SUSPENDED = many_locals()  # noqa: F821
next(SUSPENDED)

# Names that no argument byte can number stand in front of the one that takes time.
exec(compile("def extended(end):\n    frame = SUSPENDED.gi_frame\n    if not frame:\n"
             "        return [%s]\n    while clock() < end:\n        for _ in range(100):\n"
             "            frame.f_locals\n" % ", ".join("name%d" % i for i in range(300)),
             __file__, "exec"))


def fill():
    many = [[] for _ in range(2000)]
    return len(many)


def call(end):
    while clock() < end:
        for _ in range(10):
            fill()


# Line behind the def, share, and by the minor version from which on it is called so: instruction.
HOT = {
    add_ints: (4, 0.2, {6: "BINARY_ADD", 11: "BINARY_OP_ADD_INT"}),
    join_texts: (4, 0.8, {6: "BINARY_ADD", 11: "BINARY_OP_ADD_UNICODE"}),
    look_up: (4, 0.2, {6: "BINARY_SUBSCR", 11: "BINARY_SUBSCR_DICT", 14: "BINARY_OP_SUBSCR_DICT"}),
    extended: (6, 0.8, {6: "LOAD_ATTR", 11: "LOAD_ATTR_ADAPTIVE", 12: "LOAD_ATTR",
                         13: None}),  # noqa: F821 - made by exec(); from 3.13 on it is fast
    # From 3.12 on the list is freed when its frame is gone, by the instruction that called.
    call: (3, 0.8, {6: None, 12: "CALL_PY_EXACT_ARGS"}),
}


def instructions(function):
    """{(line, name)} as they stand in memory."""
    found, line = set(), function.__code__.co_firstlineno
    for i in dis.get_instructions(function, **({"adaptive": True} if MINOR >= 11 else {})):
        if MINOR >= 13:
            line = i.line_number
        else:
            line = i.starts_line or line
        if MINOR > 10 or i.opname != "EXTENDED_ARG":  # stands in front of what it belongs to
            found.add((line, i.opname))
    return found


def main():
    seconds = float(sys.argv[1])
    truth = {"hot": {}, "there": {}}
    there = {function: instructions(function) for function in HOT}
    print("READY")
    sys.stdout.flush()
    sys.stdin.readline()
    for function, (line, share, names) in HOT.items():
        function(clock() + seconds)
        hot = names[max(minor for minor in names if minor <= MINOR)]
        name, first = function.__name__, function.__code__.co_firstlineno
        if hot:
            truth["hot"][name] = [first + line, hot, share]
        truth["there"][name] = sorted(there[function] | instructions(function),
                                      key=lambda item: (item[0] or 0, item[1]))
    print(json.dumps(truth))
    sys.stdout.flush()
    sys.stdin.readline()


main()
