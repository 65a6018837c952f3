# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""Holds a value of every kind in local variables, and says what they are.

Usage: values.py [hostile]      prints one JSON object, then waits for the end of its input

functions: {name: {variable: what is to be shown}}, repr() but for what is a shortening, of the
functions that are on the stack; frames: {name: [id of the frame object, id of the code object]},
for tools that have no unwinder. hostile: objects that lie about their sizes, and whatever else
would keep a reader busy. Runs on 3.6 to 3.15.
"""
import array
import collections
import ctypes
import datetime
import enum
import functools
import gc
import json
import os
import sys
import types


class Colour(enum.Enum):
    RED = 1
    GREEN = "green"


class Number(enum.IntEnum):
    TWO = 2


class Access(enum.Flag):
    READ = 1
    WRITE = 2


class Point(collections.namedtuple("Point", "x y")):
    __slots__ = ()


class Named(collections.namedtuple("Named", ["a"])):
    """With a dict of its own."""


class Words(list):
    pass


class Half(float):
    pass


class Text(str):
    pass


class Plain:
    """Its repr() is what is shown of it."""

    def __init__(self, **attributes):
        self.__dict__.update(attributes)

    def __repr__(self):
        return "<Plain%s>" % "".join(" %s=%r" % item for item in self.__dict__.items())


class Fresh:
    """Attributes as values, without a dict."""

    def __init__(self):
        self.first = 1
        self.second = "two"

    def __repr__(self):
        return "<Fresh first=1 second='two'>"


class Slots:
    __slots__ = ("left", "right", "unset")

    def __init__(self):
        self.left = [1]
        self.right = None

    def __repr__(self):
        return "<Slots left=[1] right=None>"


class Deep(Slots):
    """Slots of a base, and values."""

    def __init__(self):
        super().__init__()
        self.own = 5

    def __repr__(self):
        return "<Deep own=5 left=[1] right=None>"


class Failure(ValueError):
    pass


class float_(object):
    def __repr__(self):
        return "<float at %s>" % hex(id(self))


float_.__name__ = float_.__qualname__ = "float"

frames, functions = {}, {}


def remember(skipped=()):
    frame = sys._getframe(1)
    name = frame.f_code.co_name
    frames[name] = [id(frame), id(frame.f_code)]
    functions[name] = {key: repr(value) for key, value in frame.f_locals.items()
                       if key not in skipped}


def generator():
    yield 1


def numbers():
    zero, one, minus, big = 0, 1, -1, 2 ** 200
    edge, below, digit, digits = 2 ** 30, -2 ** 30, 2 ** 30 - 1, -(2 ** 60)
    huge = 10 ** 100 + 7
    true, false, nothing, dots, refused = True, False, None, ..., NotImplemented
    half, tiny, large, whole, third = 0.5, 5e-324, 1.7976931348623157e308, 1e16, 1 / 3
    plain, small, smaller, negative = 123456789012345.6, 0.0001, 0.00001, -0.0
    nan, infinite, minus_infinite, hundred = float("nan"), float("inf"), -float("inf"), 100.0
    imaginary, both, minus_zero = 2j, 1.5 - 2j, complex(-0.0, float("nan"))
    remember()
    return texts()


def texts():
    empty, ascii, latin, wide, wider = "", "abc", "caf\xe9", "\u20ac uro", "\U0001f40d"
    quote, quotes, line, escape = "it's", "'\"", "a\tb\nc\r\\", "\x1b[31m\x00\x7f"
    bidi, joiner, lone, private = "a\u202eb\u2066", "\u200b\ufeff\xad", "\udc80", "\ue000"
    separators, half_width = "\u2028\u3000\xa0", "\uff71"
    raw, raw_quote, buffer = b"\x00\xffabc\n", b"it's", bytearray(b"xyz")
    no_bytes, no_buffer, subclass = b"", bytearray(), Text("sub")
    buffer.extend(b"and more")
    del buffer[0]
    remember(("subclass",))
    functions["texts"]["subclass"] = "Text('sub')"
    return containers()


def containers():
    nothing, one, two = (), (1,), (1, "b")
    empty, items, nested = [], [1, [2, [3]]], {"a": {"b": {1: (2,)}}}
    mapping, numbered, mixed = {"a": 1, "b": 2}, {1: 2}, {"a": 1, 2: None}
    removed = {str(i): i for i in range(20)}
    for i in range(2, 20):
        del removed[str(i)]
    no_set, some, frozen = set(), {1}, frozenset(["x"])
    emptied = set(range(50))
    for i in range(1, 50):
        emptied.discard(i)
    span, step, cut = range(5), range(0, -10, -2), slice(1, None)
    cycle, round_trip = [1], {}
    cycle.append(cycle)
    round_trip["self"] = round_trip
    words, half = Words([1, 2]), Half(0.5)
    queue, short, ordered = collections.deque([1, 2]), collections.deque([1], 3), None
    long_queue = collections.deque(range(100))
    for i in range(98):
        long_queue.popleft()
    ordered = collections.OrderedDict([("z", 1)])
    default, counter = collections.defaultdict(list, {"k": [1]}), collections.Counter("a")
    names = array.array("i")
    del names, i
    remember(("words", "half", "ordered"))
    functions["containers"].update(words="Words([1, 2])", half="Half(0.5)",
                                   ordered="OrderedDict({'z': 1})")
    return objects(1)


def objects(argument, *rest, key="word", **others):
    point, named = Point(1, "two"), Named([1])
    colour, green, two, access = Colour.RED, Colour.GREEN, Number.TWO, Access.READ
    fresh, plain, empty, slots, deep = Fresh(), Plain(a=1, b=[2]), Plain(), Slots(), Deep()
    many = Plain(**{"a%d" % i: i for i in range(8)})
    disguised, error, failure = float_(), KeyError("key"), Failure("a", 2)
    function, method, builtin, bound = generator, fresh.__init__, len, [].append
    running, cls, exact, inner = generator(), Point, int, collections.OrderedDict
    day, moment = datetime.date(2024, 2, 29), datetime.datetime(2024, 2, 29, 23, 59, 58, 7)
    aware = datetime.datetime(2024, 1, 2, tzinfo=datetime.timezone.utc)
    zoned = datetime.timezone(datetime.timedelta(hours=1))
    clock, span = datetime.time(1, 2, 3), datetime.timedelta(-1, 5, 6)
    no_span, early = datetime.timedelta(), datetime.time(0, 0)
    space = types.SimpleNamespace(a=1, b="2")
    partial = functools.partial(len)
    remember(("empty", "method", "partial", "bound"))
    functions["objects"].update(
        empty="<Plain at %s>" % hex(id(empty)), space="<types.SimpleNamespace a=1 b='2'>",
        method="<bound method Fresh.__init__ of <Fresh at %s>>" % hex(id(fresh)),
        bound=repr(bound), error="KeyError('key')",  # 3.6 writes some otherwise
        span="datetime.timedelta(days=-1, seconds=5, microseconds=6)",
        zoned="datetime.timezone(datetime.timedelta(seconds=3600))")
    return cells("shared", "plain")


def cells(shared, plain):
    own, unset = [1], 5
    del unset
    late = None

    def inside():
        return shared, own, late

    def free(seen=4):
        own.append(shared)
        late
        remember()
        functions["cells"]["own"] = repr(own)
        return Worker().work(late)

    late = 7
    remember(("inside", "free"))
    return free()


class Worker:
    def __init__(self):
        self.jobs, self.secret = [1], "x"

    def work(self, late):
        remember(("self",))
        return secrets("x")


def secrets(password, token_count=3):
    api_key, tokenizer, cookies, secret_flag = "k3y", "fine", {"a": "b"}, True
    headers = {"Authorization": "Bearer abc", "Accept": "*/*"}
    raw_headers = [(b"cookie", b"x=y"), (b"host", b"h")]
    session = Plain(user="me", access_token="s3cret")
    remember(("password", "api_key", "cookies", "headers", "raw_headers", "session"))
    functions["secrets"].update(
        password="<masked str>", api_key="<masked str>", cookies="<masked dict>",
        headers="{'Authorization': <masked str>, 'Accept': '*/*'}",
        raw_headers="[(b'cookie', <masked bytes>), (b'host', b'h')]",
        session="<Plain user='me' access_token=<masked str>>")
    print(json.dumps({"functions": functions, "frames": frames}), flush=True)
    sys.stdin.read()


def lie(thing, field, value=2 ** 60):
    """Field so many words behind what every object has."""
    head = object.__basicsize__
    ctypes.c_ssize_t.from_address(id(thing) + head + 8 * field).value = value
    return thing


def hostile(left=100):
    """In each of so many calls."""
    if left:
        return hostile(left - 1)
    gc.disable()
    pair, text, number = lie([1, 2], 0), lie("".join(["ab", "c"]), 0), lie(10 ** 30, 0, 8 * 2 ** 57)
    keys, places, raw = lie({"a": 1}, 2, 8), lie({1, 2}, 2, 2 ** 60 - 1), lie(b"xy" * 2, 0)
    items, queue = lie([1, 2], 1, 8), lie(collections.deque([1]), 0)
    deep = []
    for _ in range(100000):
        deep = [deep]
    wide = {i: ["x" * 1000] * 1000 for i in range(1000)}
    family = [Plain() for _ in range(50)]
    for member in family:
        member.family = family
        member.others = {other: family for other in family}
    long, digits = "y" * 10 ** 7, 7 ** 100000
    controls = "\x1b]0;title\x07\u202e" * 1000
    print(json.dumps({}), flush=True)
    sys.stdin.read()
    os._exit(0)  # nothing of it is to be freed
    return pair, text, number, keys, places, raw, items, queue, deep, wide, long, digits, controls


if __name__ == "__main__":
    if sys.argv[1:] == ["hostile"]:
        hostile()
    numbers()
