# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""Code objects with long line tables, all of them new to a recorder that is there before GO.

    long_tables.py CASE SECONDS (of CPU time)

deep       a script of 400 lines calls into 40 callers of 30 lines each
module     the body of a module of 10,000 lines, in its own loop and in a call
function   a generated function of 10,000 lines, the same
statements the same with long statements: from 3.11 on a table of 600 KB
several    8 generated functions of 10,000 lines call each other, 5 callers between each two
in_turn    the same functions one after the other, each SECONDS / 8
mixed      small new functions all the time, below a script of 400 lines
dropped    like in_turn, but each function is forgotten when it has returned
too_long   a function whose line table is longer than any that is read
awaits     a coroutine, the same

Of each code object only the last lines run, none of them the def line. Truth:
{"lines": {file: [line...]}, "cpu"}: where samples may be, in the code of these files.
"""
import itertools
import json
import sys
import time

clock = time.process_time  # what others leave it of a CPU is not its time
LONG = 10000
LINES = {}  # file: those that run
END = [0.0]


def filler(count, indent):
    return ["%sx = x + %d * (x - 1) if x else 0" % (indent, i % 7) for i in range(count)]


def statements(count, indent):
    return ["%sif x == %d: x = clock(x, %d).real.other(y=x, w=1)[2:3] + [i for i in range(x)]"
            % (indent, i, i) for i in range(count)]


def make(name, count, body, fill=filler, word="def"):
    """A function of so many lines that do not run, then the lines of `body`."""
    source = ["%s %s(until):" % (word, name), "    x = 0", "    if not until:"] + fill(count, "        ")
    exec(compiled(name, source, body), globals())
    return globals()[name]


def compiled(name, source, body):
    path = "/srv/app/%s.py" % name
    LINES[path] = list(range(len(source) + 1, len(source + body) + 1))
    return compile("\n".join(source + body), path, "exec")


def spin(name, count, fill=filler):
    return make(name, count, ["    while clock() < until:",
                              "        x = x + 1"], fill)


def call(name, callee, count):
    return make(name, count, ["    while clock() < until:",
                              "        %s(clock() + 0.01)" % callee,
                              "        %s(clock() + 0.01)" % callee])


def chain(callee, name, count):
    """The outermost of so many callers of 30 lines."""
    for i in range(count):
        make("%s_%d" % (name, i), 30, ["    return %s(until)" % callee])
        callee = "%s_%d" % (name, i)
    return callee


def deep():
    spin("leaf", 3)
    return call("script", chain("leaf", "caller", 40), 400)


def module():
    spin("leaf", 3)
    source = ["x = 0", "if not until:"] + filler(LONG, "    ")
    body = ["while clock() < until:", "    x = x + 1 if x % 1000 else 1",
            "    if x % 1000 == 0: leaf(clock() + 0.001)"]
    code = compiled("module", source, body)
    return lambda until: exec(code, dict(globals(), until=until))


def both(fill):
    spin("leaf", 3)
    return make("generated", LONG, ["    while clock() < until:",
                                    "        x = x + 1",
                                    "        if x % 1000 == 0: leaf(clock() + 0.001)"], fill)


def function():
    return both(filler)


def long_statements():
    return both(statements)


def several():
    callee = spin("long_0", LONG).__name__
    for i in range(1, 8):
        callee = chain(callee, "caller_%d" % i, 5)
        callee = call("long_%d" % i, callee, LONG).__name__
    return globals()[callee]


def in_turn(drops=False):
    functions = [spin("turn_%d" % i, LONG) for i in range(8)]
    for function in functions:
        del globals()[function.__name__]

    def turns(until):
        share = (until - clock()) / len(functions)
        while functions:
            function = functions.pop()
            if not drops:
                KEPT.append(function)
            function(clock() + share)
    return turns


KEPT = []


def dropped():
    return in_turn(drops=True)


def with_lines_behind(code, more):
    """The code object, and so many bytes behind its line table that no instruction has."""
    if sys.version_info >= (3, 10):
        entry = b"\xf8" if sys.version_info >= (3, 11) else b"\0\0"
        return code.replace(co_linetable=code.co_linetable + entry * (more // len(entry)))
    lines = code.co_lnotab + bytes(more)
    if sys.version_info >= (3, 8):
        return code.replace(co_lnotab=lines)
    return type(code)(code.co_argcount, code.co_kwonlyargcount, code.co_nlocals, code.co_stacksize,
                      code.co_flags, code.co_code, code.co_consts, code.co_names, code.co_varnames,
                      code.co_filename, code.co_name, code.co_firstlineno, lines, code.co_freevars,
                      code.co_cellvars)


def too_long():
    function = spin("too_long", 3)
    function.__code__ = with_lines_behind(function.__code__, 2 << 20)
    return function


def awaits():
    global asyncio  # which only this case is to wait for
    import asyncio
    function = make("waits", 3, ["    await asyncio.sleep(until - clock())"], word="async def")
    function.__code__ = with_lines_behind(function.__code__, 2 << 20)
    return lambda until: asyncio.new_event_loop().run_until_complete(function(until))


def mixed():
    source = "def small(until):\n    while clock() < until:\n        pass\n"

    def fresh(until):
        while clock() < until:
            space = {"clock": clock}
            exec("\n" * next(number) + source, space)
            space["small"](clock() + 0.0005)

    number = itertools.count()
    globals()["fresh"] = fresh
    return call("script", "fresh", 400)


CASES = {"deep": deep, "module": module, "function": function, "statements": long_statements,
         "several": several, "in_turn": in_turn, "dropped": dropped, "mixed": mixed,
         "too_long": too_long, "awaits": awaits}


def main():
    work = CASES[sys.argv[1]]()
    sys.stdout.write("READY\n")
    sys.stdout.flush()
    sys.stdin.readline()
    start = time.process_time()
    work(clock() + float(sys.argv[2]))
    sys.stdout.write(json.dumps({"lines": LINES, "cpu": time.process_time() - start}) + "\n")
    sys.stdout.flush()
    sys.stdin.readline()


if __name__ == "__main__":
    main()
