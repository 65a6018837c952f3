# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""Spins on known lines of known functions and tells the exact stack of each place.

    lines.py [--selfcheck] SECONDS [SITE...]

A *site* is a callable that reaches one line and stays there: `while clock() < END[0] or mark()`.
mark(), called once on that very line when the time is over, writes down the stack as CPython
itself sees it there. Sites run one after the other, each several times, so that their bytecode is
also seen specialised. Prints READY, waits for a line, works, prints the truth, waits for a line:

    {"sites": [{"name", "cpu", "stacks": [[[qualname, file, line]...]...], "leaf_lines"}...],
     "lines": [[qualname, file, [line...]]...], "cpu", "way", "samples"}

stacks are root first; leaf_lines: lines the leaf may also be at, for loops over several lines;
lines: all lines of the functions involved; cpu: seconds of CPU time (each site's, and all of it);
way: those that sites took until they began to spin, which a slow machine stretches, as no clock ends them.
With --selfcheck a second thread samples sys._current_frames(): samples = [[stack, count]...].
Syntax of Python 3.6; newer syntax is in strings and left out where it does not compile.
"""
import ast
import asyncio
import contextlib
import functools
import json
import re
import sys
import threading
import time
import weakref

BURSTS = 3
clock = time.perf_counter
thread_cpu = getattr(  # 3.6 has no thread_time()
    time, "thread_time", None) or (lambda: time.clock_gettime(time.CLOCK_THREAD_CPUTIME_ID))
END = [0.0]
SITES = []
NOW = {"name": None, "quantum": 0.0, "start": float("inf"), "sampler": None, "way": 0.0}
TRUTH = {}
LINES = {}


def site(function):
    """Registers a site under its function's name; adds no frame."""
    SITES.append((function.__name__, function))
    return function


def begin():
    now = thread_cpu()
    NOW["way"] += max(0.0, now - NOW["start"])
    NOW["start"] = now
    END[0] = clock() + NOW["quantum"]


def ticks():
    """For places where only an expression fits: any(ticks()) spins in C until the end."""
    return map(END[0].__le__, iter(clock, None))


def code_lines(code):
    if hasattr(code, "co_lines"):
        return set(line for _, _, line in code.co_lines() if line is not None)
    import dis
    return set(line for _, line in dis.findlinestarts(code))


def qualname(code):
    return getattr(code, "co_qualname", code.co_name)


def stack_of(frame):
    stack = []
    while frame is not None:
        stack.append((qualname(frame.f_code), frame.f_code.co_filename, frame.f_lineno))
        frame = frame.f_back
    return tuple(reversed(stack))


def mark(leaf_lines=()):
    # Not more than the quantum: on a virtual machine the time that another one had may be in it.
    spent = min(max(0.0, thread_cpu() - NOW["start"]), NOW["quantum"])
    if threading.get_ident() == NOW["sampler"]:
        return False  # a __del__, because the sampler held the last reference
    truth = TRUTH.setdefault(NOW["name"], {"cpu": 0.0, "stacks": set(), "leaf_lines": set()})
    truth["cpu"] += spent
    NOW["start"] = float("inf")  # until begin()
    frame = sys._getframe(1)
    truth["stacks"].add(stack_of(frame))
    truth["leaf_lines"].update(frame.f_lineno + delta for delta in leaf_lines)
    while frame is not None:
        code = frame.f_code
        if id(code) not in LINES:  # kept alive there, so that the id stays its own
            LINES[id(code)] = code, sorted(code_lines(code) | {code.co_firstlineno})
        frame = frame.f_back
    return False


# --- Plain functions, closures, classes -----------------------------------------------------------


@site
def plain():
    while clock() < END[0] or mark(): pass


@site
def arithmetic():
    x = 1
    while clock() < END[0] or mark(): x = (x * 1103515245 + 12345) & 0x7fffffff; x += x >> 3


@site
def loop_over_lines():
    while (
        clock()
        < END[0]
        or mark((-3, -2, -1, 1, 2))
    ):
        pass


@site
def two_lines_of_one_function():
    while clock() < END[0] or mark(): pass
    begin()
    while clock() < END[0] or mark(): pass


@site
def closures():
    def outer():
        def middle():
            def inner():
                while clock() < END[0] or mark(): pass
            inner()
        middle()
    outer()


class Nest(object):
    class Inner(object):
        class Innermost(object):
            def method(self):
                while clock() < END[0] or mark(): pass

            @classmethod
            def of_class(cls):
                cls().method()

            @staticmethod
            def static():
                Nest.Inner.Innermost.of_class()


@site
def nested_classes():
    Nest.Inner.Innermost.static()


class Base(object):
    def method(self):
        while clock() < END[0] or mark(): pass


class Derived(Base):
    def method(self):
        super(Derived, self).method()


@site
def inherited():
    Derived().method()


@site
def class_body():
    class Body(object):
        attribute = 1
        while clock() < END[0] or mark(): pass


@site
def lambdas():
    pick = lambda f: f()
    pick(lambda: pick(lambda: any(ticks()) and mark()))


@site
def recursion_900():
    dive(900)


@site
def recursion_3000():
    old = sys.getrecursionlimit()
    sys.setrecursionlimit(5000)
    try:
        dive(3000)
    finally:
        sys.setrecursionlimit(old)


def dive(n):
    if n:
        return dive(n - 1)
    while clock() < END[0] or mark(): pass


@site
def mutual_recursion():
    even(40)


def even(n):
    return odd(n - 1) if n else leaf()


def odd(n):
    return even(n - 1) if n else leaf()


def leaf():
    while clock() < END[0] or mark(): pass


# --- Calls over several lines ---------------------------------------------------------------------


def value(*_, **__):
    while clock() < END[0] or mark(): pass
    return Chain()


class Chain(object):
    def step(self, *_):
        return self

    def spin(self, *_):
        return value()


def nothing(*_, **__):
    return None


@site
def call_over_lines():
    nothing(
        1,
        value(
            2,
            3,
        ),
        4,
    )


@site
def call_over_lines_closing():
    value(
        nothing(),
        nothing(1,
                2),
    )


@site
def method_chain():
    (Chain()
     .step(1)
     .step(
         2)
     .spin()
     .step(3))


@site
def keywords_over_lines():
    return nothing(first=1,
                   second=nothing(),
                   third=value(
                       a=1,
                       b=2),
                   fourth=4)


@site
def operators_over_lines():
    return (nothing() or
            nothing()
            or value()
            or nothing())


@site
def collection_over_lines():
    return {
        "a": nothing(),
        "b": [
            nothing(),
            value(),
        ],
        "c": nothing(),
    }


@site
def continued_line():
    return nothing() or \
        nothing() or \
        value(1,
              2)


@site
def subscript_over_lines():
    return {None: 1}.get(
        nothing(),
        value(),
    )


@site
def conditional_over_lines():
    return (nothing()
            if nothing()
            else
            value())


# --- Control flow ---------------------------------------------------------------------------------


@site
def finally_after_return():
    try:
        return 1
    finally:
        while clock() < END[0] or mark(): pass


@site
def finally_after_raise():
    try:
        try:
            raise KeyError(1)
        finally:
            while clock() < END[0] or mark(): pass
    except KeyError:
        pass


@site
def finally_after_continue():
    for _ in range(1):
        try:
            continue
        finally:
            value()


@site
def except_clause():
    try:
        {}[1]
    except (ValueError,
            KeyError):
        while clock() < END[0] or mark(): pass


@site
def else_clause():
    for _ in ():
        pass
    else:
        try:
            pass
        except KeyError:
            pass
        else:
            while clock() < END[0] or mark(): pass


class Manager(object):
    def __init__(self, on_exit):
        self.on_exit = on_exit

    def __enter__(self):
        if not self.on_exit:
            while clock() < END[0] or mark(): pass

    def __exit__(self, *_):
        if self.on_exit:
            while clock() < END[0] or mark(): pass
        return True


@site
def with_enter():
    with Manager(False):
        nothing()


@site
def with_body():
    with Manager(None), \
            contextlib.suppress(KeyError):
        begin()
        while clock() < END[0] or mark(): pass
        nothing()


@site
def with_exit():
    with Manager(True):
        nothing()
        nothing()


@site
def with_exit_raised():
    with Manager(True) as _:
        nothing()
        raise KeyError(1)


@contextlib.contextmanager
def managed():
    nothing()
    try:
        yield
    finally:
        while clock() < END[0] or mark(): pass


@site
def with_generator():
    with managed():
        nothing()


# --- Decorators -----------------------------------------------------------------------------------


def plain_decorator(function):
    def wrapper(*args, **kwargs):
        return function(*args, **kwargs)
    return wrapper


def wraps_decorator(function):
    @functools.wraps(function)
    def wrapper(*args, **kwargs):
        return function(*args, **kwargs)
    return wrapper


def slow_decorator(function):
    while clock() < END[0] or mark(): pass
    return function


def decorator_with_arguments(*_):
    return slow_decorator


@plain_decorator
@wraps_decorator
@plain_decorator
def decorated():
    while clock() < END[0] or mark(): pass


@site
def decorators():
    decorated()


@site
def decorating():
    @plain_decorator
    @decorator_with_arguments(
        1,
        2)
    @plain_decorator
    def function(a=1,
                 b=2):
        pass


@site
def defaults_over_lines():
    def function(a=nothing(),
                 b=value(),
                 c=nothing()):
        pass


@functools.lru_cache(maxsize=None)
def cached(_):
    while clock() < END[0] or mark(): pass


@site
def lru_cache():
    cached.cache_clear()
    cached(1)


@functools.singledispatch
def dispatched(_):
    raise AssertionError


@dispatched.register(int)
def dispatched_int(_):
    while clock() < END[0] or mark(): pass


@site
def singledispatch():
    dispatched(1)


# --- Generators -----------------------------------------------------------------------------------


def counting(n):
    for i in range(n):
        yield i
    while clock() < END[0] or mark(): pass


def delegating(n):
    yield 0
    yield from counting(n)
    yield 1


@site
def generator():
    for _ in counting(3):
        pass


@site
def generator_delegated():
    list(delegating(2))


@site
def generator_expression():
    return sum(1 for _ in (1,) if any(ticks()) and mark() or True)


@site
def nested_generator_expressions():
    return list(x for x in (y for y in (1,)
                            if any(ticks()) and mark()
                            or True))


@site
def list_comprehension():
    return [value()
            for _ in (1,)]


@site
def nested_comprehensions():
    return [[z for z in (1,) if any(ticks()) and mark() or True]
            for _ in (1,)]


@site
def dict_comprehension():
    return {k: value() for k in (1,)
            if k}


def receiving():
    while True:
        got = yield
        if got:
            while clock() < END[0] or mark(): pass


@site
def generator_send():
    g = receiving()
    next(g)
    g.send(True)
    g.close()


def catching():
    try:
        yield
    except KeyError:
        while clock() < END[0] or mark(): pass
    yield


@site
def generator_throw():
    g = catching()
    next(g)
    g.throw(KeyError())


def closing():
    try:
        yield
    finally:
        while clock() < END[0] or mark(): pass


@site
def generator_close():
    g = closing()
    next(g)
    g.close()


# --- Coroutines -----------------------------------------------------------------------------------


async def awaited(n):
    if n:
        return await awaited(n - 1)
    while clock() < END[0] or mark(): pass


@site
def await_chain():
    try:
        awaited(20).send(None)
    except StopIteration:
        pass


class Awaitable(object):
    def __await__(self):
        while clock() < END[0] or mark(): pass
        return iter(())


async def await_object():
    await Awaitable()


@site
def await_dunder():
    try:
        await_object().send(None)
    except StopIteration:
        pass


class AsyncThings(object):
    async def __aenter__(self):
        while clock() < END[0] or mark(): pass

    async def __aexit__(self, *_):
        begin()
        while clock() < END[0] or mark(): pass

    def __aiter__(self):
        self.left = 1
        return self

    async def __anext__(self):
        if not self.left:
            raise StopAsyncIteration
        self.left -= 1
        begin()
        while clock() < END[0] or mark(): pass


async def async_statements():
    async with AsyncThings() as _:
        async for _ in AsyncThings():
            pass


async def async_generator():
    yield 1
    begin()
    while clock() < END[0] or mark(): pass
    yield 2


async def async_generator_reader():
    return [x async for x in async_generator()]


@site
def coroutines_by_hand():
    for coroutine in (async_statements(), async_generator_reader()):
        try:
            coroutine.send(None)
        except StopIteration:
            pass


LOOP = []


async def task(n):
    await asyncio.sleep(0)
    await task_inner(n)


async def task_inner(n):
    if n == 1:
        begin()
        while clock() < END[0] or mark(): pass


async def gather():
    await asyncio.gather(*[task(n) for n in range(3)])


@site
def asyncio_loop():
    if not LOOP:
        LOOP.append(asyncio.new_event_loop())
    LOOP[0].run_until_complete(gather())


@site
def asyncio_callback():
    def callback():
        begin()
        while clock() < END[0] or mark(): pass
        LOOP[0].stop()
    LOOP[0].call_soon(callback)
    LOOP[0].run_forever()


# --- Python called by C ---------------------------------------------------------------------------


def spinning_key(x):
    if x == 2:
        while clock() < END[0] or mark(): pass
    return x


@site
def sorted_key():
    sorted([3, 2, 1], key=spinning_key)


@site
def map_filter_reduce():
    list(map(spinning_key, filter(None, [1, 2])))
    begin()
    functools.reduce(lambda a, b: a + spinning_key(b), [0, 1, 2])


@site
def partial():
    functools.partial(functools.partial(spinning_key), 2)()


@site
def regex_callback():
    re.sub("b", lambda match: str(spinning_key(2)), "abc")


class Operators(object):
    def __init__(self, spin=False):
        if spin:
            while clock() < END[0] or mark(): pass

    def __add__(self, other):
        return NotImplemented

    def __radd__(self, other):
        while clock() < END[0] or mark(): pass
        return 0

    def __eq__(self, other):
        while clock() < END[0] or mark(): pass
        return True

    def __hash__(self):
        while clock() < END[0] or mark(): pass
        return 1

    def __len__(self):
        while clock() < END[0] or mark(): pass
        return 1

    def __getattr__(self, name):
        while clock() < END[0] or mark(): pass
        return None

    def __setattr__(self, name, new):
        while clock() < END[0] or mark(): pass

    def __getitem__(self, key):
        if key:
            raise IndexError
        while clock() < END[0] or mark(): pass

    def __contains__(self, key):
        while clock() < END[0] or mark(): pass
        return True

    def __call__(self):
        while clock() < END[0] or mark(): pass

    def __format__(self, spec):
        while clock() < END[0] or mark(): pass
        return ""

    def __repr__(self):
        while clock() < END[0] or mark(): pass
        return ""

    def __lt__(self, other):
        while clock() < END[0] or mark(): pass
        return True


def operator_site(name, use):
    def operator():
        use(Operators())
    SITES.append(("operator_" + name, operator))


operator_site("radd", lambda x: 1 + x)
operator_site("sum", lambda x: sum([x]))
operator_site("eq", lambda x: [x].index(Operators()))
operator_site("hash", lambda x: {x: 1})
operator_site("bool", lambda x: 1 if x else 2)
operator_site("getattr", lambda x: x.absent)
operator_site("getattr_c", lambda x: getattr(x, "absent"))
operator_site("setattr", lambda x: setattr(x, "attribute", 1))
operator_site("iterate", lambda x: list(x))
operator_site("contains", lambda x: 1 in x)
operator_site("call", lambda x: x())
operator_site("format", lambda x: "{}".format(x))
operator_site("repr", lambda x: "%r" % (x,))
operator_site("lt", lambda x: sorted([x, Operators()]))
operator_site("init", lambda x: Operators(True))
operator_site("type_init", lambda x: type(x)(spin=True))


class Slow(object):
    def __new__(cls):
        while clock() < END[0] or mark(): pass
        return object.__new__(cls)

    @property
    def prop(self):
        while clock() < END[0] or mark(): pass

    def __del__(self):
        while clock() < END[0] or mark(): pass


class Descriptor(object):
    def __get__(self, instance, owner):
        while clock() < END[0] or mark(): pass


class Described(object):
    attribute = Descriptor()

    def __iter__(self):
        return self

    def __next__(self):
        begin()
        while clock() < END[0] or mark(): pass
        raise StopIteration


@site
def new_property_del():
    slow = Slow()
    begin()
    slow.prop
    begin()
    del slow


@site
def descriptor_and_iterator():
    Described().attribute
    for _ in Described():
        pass


class Meta(type):
    def __call__(cls, *args):
        nothing()
        return super(Meta, cls).__call__(*args)

    def __new__(mcs, name, bases, namespace):
        if name == "Late":
            while clock() < END[0] or mark(): pass
        return type.__new__(mcs, name, bases, namespace)


@site
def metaclass():
    made = Meta("Late", (Made,), {})
    begin()
    made()


class Made(metaclass=Meta):
    def __init__(self):
        while clock() < END[0] or mark(): pass

    def __init_subclass__(cls):
        begin()
        while clock() < END[0] or mark(): pass


class Weak(object):
    pass


@site
def weakref_callback():
    weak = Weak()
    reference = weakref.ref(weak, lambda _: value())
    del weak
    return reference


# --- Threads --------------------------------------------------------------------------------------


def thread_body():
    begin()
    while clock() < END[0] or mark(): pass


@site
def thread():
    t = threading.Thread(target=thread_body)
    t.start()
    t.join()


@site
def thread_subclass():
    class Worker(threading.Thread):
        def run(self):
            thread_body()
    t = Worker()
    t.start()
    t.join()


# --- Generated code -------------------------------------------------------------------------------

SPIN = "while clock() < END[0] or mark(): pass"


def generated(name, source, filename="<generated>", entry="entry", needs=(3, 0)):
    """A site out of source text that defines entry()."""
    if sys.version_info < needs:
        return
    namespace = dict(globals())
    exec(compile(source, filename, "exec"), namespace)
    SITES.append((name, namespace[entry]))


def filler(lines, indent):
    return "".join("%sx = %d\n" % (indent, i & 255) for i in range(lines))


# Deltas of more than one table entry, either way.
generated("gap_127", "def entry():\n" + "\n" * 126 + "    " + SPIN + "\n")
generated("gap_128", "def entry():\n    nothing()\n" + "\n" * 127 + "    " + SPIN + "\n")
generated("gap_300", "def entry():\n    nothing()\n" + "\n" * 300 + "    " + SPIN + "\n    nothing()\n")
generated("gap_70000", "def entry():\n    nothing()\n" + "\n" * 70000 + "    " + SPIN + "\n")
generated("first_line_100000", "\n" * 100000 + "def entry():\n    " + SPIN + "\n")
generated("function_of_1500_lines",
          "def entry():\n" + filler(700, "    ") + "    begin()\n    " + SPIN + "\n"
          + filler(800, "    ") + "    begin()\n    " + SPIN + "\n    nothing()\n")
generated("wide_jumps",
          "def entry():\n    for i in range(2):\n        if i:\n" + filler(400, "            ")
          + "            begin()\n            " + SPIN + "\n" + filler(400, "            ")
          + "        else:\n" + filler(300, "            "))
# Its line table is larger than the 64 KiB that the kernel sends.
generated("huge_table",
          "def entry():\n    if not nothing():\n        begin()\n        value()\n    else:\n"
          + filler(30000, "        ") + "    begin()\n    " + SPIN + "\n")


@site
def module_of_2000_lines():
    begin()
    exec(MODULE, dict(globals()))


MODULE = compile("".join("def function_%d():\n    x = %d\n    return x\n" % (i, i)
                         for i in range(660)) + "begin()\n" + SPIN + "\n" + "y = 1\n" * 40
                 + "if True:\n    begin()\n    " + SPIN + "\n", "generated/module 2000.py", "exec")


@site
def eval_and_exec():
    eval("any(ticks()) and mark()")
    begin()
    exec("def f():\n    any(ticks()) and mark()\nf()", dict(globals()))


class Shuffle(ast.NodeTransformer):
    """Gives the statements of a function the lines 5000, 40, 41000, 12, ... in this order."""
    ORDER = (5000, 40, 41000, 12, 13, 4, 900)

    def visit_FunctionDef(self, node):
        for statement, line in zip(node.body, self.ORDER):
            for part in ast.walk(statement):
                if hasattr(part, "lineno"):
                    part.lineno = line
                if hasattr(part, "end_lineno"):
                    part.end_lineno = line
        return node


@site
def backward_lines():
    backward()


def make_backward():
    source = "\n" * 99 + "def backward():\n    nothing()\n    " + SPIN + "\n    begin()\n    " \
        + SPIN + "\n    begin()\n    value()\n    nothing()\n"
    tree = Shuffle().visit(ast.parse(source, "backward.py"))
    namespace = dict(globals())
    exec(compile(tree, "backward.py", "exec"), namespace)
    return namespace["backward"]


backward = make_backward()

# Names of every string kind, also as file names. NFKC leaves these as they are.
KINDS = (("latin1", u"\xe9\xff"), ("bmp", u"\u0416\u6f22"), ("astral", u"\U00020000\U00010330"))
for kind, letters in KINDS:
    generated("name_" + kind, u"def f_%s():\n    %s\ndef entry():\n    f_%s()\n"
              % (letters, SPIN, letters), u"caf%s/%s.py" % (letters, letters))
    long = letters * 200
    generated("long_name_" + kind, u"def %s():\n    %s\ndef entry():\n    %s()\n"
              % (long, SPIN, long), u"/long/%s.py" % long)
    generated("class_name_" + kind, u"class %s(object):\n    class Inner(object):\n"
              u"        def method(self):\n            %s\nentry = %s.Inner().method\n"
              % (letters, SPIN, letters), "class_%s.py" % kind)
generated("long_name_ascii", "def %s():\n    %s\ndef entry():\n    %s()\n"
          % ("n" * 400, SPIN, "n" * 400), "/long/%s.py" % ("f" * 400))

# Everything that has a meaning in collapsed text.
for number, filename in enumerate((
        "semi;colon.py", "back\\slash.py", "a (b) c (d:1).py", "new\nline\ttab.py", "esc\x1b\x7f.py",
        "colon:12", "\\x3b.py", " lead and trail ", "")):
    generated("file_name_%d" % number, "def entry():\n    %s\n" % SPIN, filename)


def renamed_site(number, name):
    namespace = dict(globals())
    exec(compile("def inner():\n    %s\n" % SPIN, "renamed.py", "exec"), namespace)
    inner = namespace["inner"]
    changes = {"co_name": name}
    if hasattr(inner.__code__, "co_qualname"):
        changes["co_qualname"] = name
    inner.__code__ = inner.__code__.replace(**changes)
    SITES.append(("odd_name_%d" % number, lambda: inner()))


if sys.version_info >= (3, 8):
    for number, name in enumerate((
            "semi;colon", "a (b:1)", "back\\slash", "\\x3b", "line\nfeed", "two  spaces", "<odd>",
            "thread x (1)", "process x (1)", "ends 12")):
        renamed_site(number, name)

# Newer syntax.
generated("walrus", "def entry():\n    if (x := value()):\n        pass\n", needs=(3, 8))
generated("match", """def entry():
    match {"a": 1}:
        case {"b": _}:
            pass
        case {"a": x} if (
                value()):
            begin()
            %s
""" % SPIN, needs=(3, 10))
generated("exception_group", """def entry():
    try:
        raise ExceptionGroup("g", [KeyError(1), ValueError(2)])
    except* ValueError:
        nothing()
    except* KeyError:
        %s
""" % SPIN, needs=(3, 11))
generated("type_parameters", """def entry():
    class Generic[T]:
        a = value()
    def f[T](x: T = value_again()): pass
def value_again():
    begin()
    %s
""" % SPIN, needs=(3, 12))
generated("type_alias", "type Alias = value()\ndef entry():\n    Late.__value__\n"
          "def make():\n    global Late\n    type Late = value()\nmake()\n", needs=(3, 13))
generated("deferred_annotations", "def f(a: nothing(), b: (\n        value())): pass\n"
          "def entry():\n    f.__annotate__(1)\n", needs=(3, 14))


# --- Running them ---------------------------------------------------------------------------------


class Sampler(threading.Thread):
    """Samples the thread that works, the way a profiler should see it."""

    def __init__(self):
        super(Sampler, self).__init__(daemon=True)
        self.counts = {}
        self.stop = False

    def run(self):
        own = NOW["sampler"] = threading.get_ident()
        while not self.stop:
            time.sleep(0.0005)
            for ident, frame in sys._current_frames().items():
                if ident != own:
                    stack = stack_of(frame)
                    self.counts[stack] = self.counts.get(stack, 0) + 1


def work(sites, seconds):
    NOW["quantum"] = seconds / (BURSTS * len(sites))
    for _ in range(BURSTS):
        for name, function in sites:
            NOW["name"] = name
            begin()
            function()


def main():
    arguments = sys.argv[1:]
    sampler = None
    if arguments[0] == "--selfcheck":
        arguments.pop(0)
        sys.setswitchinterval(0.0001)
        sampler = Sampler()
    sites = [s for s in SITES if not arguments[1:] or s[0] in arguments[1:]]
    sys.stdout.write("READY\n")
    sys.stdout.flush()
    sys.stdin.readline()
    if sampler:
        sampler.start()
    start = time.process_time()
    work(sites, float(arguments[0]))
    if sampler:
        sampler.stop = True
        sampler.join()
    missing = [name for name, _ in sites if name not in TRUTH]
    if missing:
        raise AssertionError("sites that never spun: %r" % missing)
    text = json.dumps({
        "sites": [{"name": name, "cpu": truth["cpu"], "stacks": sorted(truth["stacks"]),
                   "leaf_lines": sorted(truth["leaf_lines"])} for name, truth in TRUTH.items()],
        "lines": [[qualname(code), code.co_filename, lines] for code, lines in LINES.values()],
        "way": NOW["way"], "samples": sorted(sampler.counts.items()) if sampler else []})
    # All of it, also what the text took.
    sys.stdout.write('{"cpu": %r, %s\n' % (time.process_time() - start, text[1:]))
    sys.stdout.flush()
    sys.stdin.readline()


if __name__ == "__main__":
    main()
