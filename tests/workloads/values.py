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
import decimal
import enum
import functools
import gc
import json
import os
import sys
import types

import _pydecimal


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


class Money(decimal.Decimal):
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
    return views()


def views():
    mapping, ordered = {"a": 1, 2: None}, collections.OrderedDict([("z", 1)])
    keys, values, items, nothing = mapping.keys(), mapping.values(), mapping.items(), {}.keys()
    ordered_keys, ordered_values, ordered_items = ordered.keys(), ordered.values(), ordered.items()
    cycle = {}
    cycle["self"] = cycle.values()
    users = {"password": "s3cret", "user": "me"}
    user_values, user_items = users.values(), users.items()
    raw, buffer = memoryview(b"ab\0"), memoryview(bytearray(b"xyz"))[1:]
    numbers = memoryview(array.array("i", [1, 2]))
    grid, every = memoryview(bytes(6)).cast("B", [2, 3]), memoryview(b"abcdef")[::2]
    no_bytes = memoryview(b"")
    single, released = memoryview(b"abcd").cast("i", []), memoryview(b"gone")
    released.release()
    remember(("ordered", "cycle", "users"))
    functions["views"].update(
        ordered="OrderedDict({'z': 1})", cycle="{'self': dict_values([...])}",
        users="{'password': <masked str>, 'user': 'me'}",
        user_values="dict_values([<masked str>, 'me'])",
        user_items="dict_items([('password', <masked str>), ('user', 'me')])",
        raw="<memoryview of bytes shape=(3,) format='B' b'ab\\x00'>",
        buffer="<memoryview of bytearray shape=(2,) format='B' b'yz'>",
        numbers="<memoryview of array.array shape=(2,) format='i' b'\\x01%s\\x02%s'>" % (
            r"\x00" * 3, r"\x00" * 3),
        grid="<memoryview of bytes shape=(2, 3) format='B' b'%s'>" % (r"\x00" * 6),
        every="<memoryview of bytes shape=(3,) format='B' strides=(2,)>",
        no_bytes="<memoryview of bytes shape=(0,) format='B' b''>",
        single="<memoryview of bytes shape=() format='i' b'abcd'>",
        released="<released memoryview at %s>" % hex(id(released)))
    for name in "ordered_keys", "ordered_values", "ordered_items":  # 3.6 to 3.15 write them alike
        functions["views"][name] = repr(locals()[name])
    return arrays()


def arrays():
    none, signed, raw = array.array("i"), array.array("b", [-128, 127]), array.array("B", [0, 255])
    short, shorts = array.array("h", [-2, 3]), array.array("H", [65535])
    whole, wholes = array.array("i", [1, -2 ** 31]), array.array("I", [2 ** 32 - 1])
    long, longs = array.array("l", [-1]), array.array("L", [2 ** 64 - 1])
    wide, wides = array.array("q", [-2 ** 63]), array.array("Q", [2 ** 63])
    single, double = array.array("f", [0.5, 0.1]), array.array("d", [0.1, 1e300, float("nan")])
    many = array.array("i", range(64))
    text = array.array("u" if sys.version_info < (3, 13) else "w", "caf\xe9 \u20ac'")
    newest = [array.array(code, [1.5, -0.25]) for code in ("e", "Zf", "Zd")
              if code in getattr(array, "typecodes", "")]
    newest = newest or [none]
    halves = array.array("e", [65504.0, 6e-8, float("-inf")]) if len(newest) > 1 else none
    nested = {"a": array.array("i", [1])}
    remember()
    return decimals()


def decimals():
    zero, minus_zero, price = (decimal.Decimal(text) for text in ("0", "-0.00", "123.450"))
    whole, small, smaller = (decimal.Decimal(text) for text in ("-42", "0.000001", "1E-7"))
    power, powers, tiny = (decimal.Decimal(text) for text in ("1E+30", "-1.50E+3", "1.23E-400"))
    words = decimal.Decimal("12345678901234567890123456789012345678.000000000000000001")
    edge, edges = decimal.Decimal("9999999999999999999"), decimal.Decimal("10000000000000000000")
    nan, infinite, minus_infinite = (decimal.Decimal(text) for text in ("NaN", "inf", "-inf"))
    payload, signaling = decimal.Decimal("-NaN12"), decimal.Decimal("sNaN")
    money, long = Money("1.5"), decimal.Decimal("7" * 500 + ".25")
    python_words, python_power = _pydecimal.Decimal("-1234567890.50"), _pydecimal.Decimal("1E+30")
    python_zero, python_small = _pydecimal.Decimal("-0.00"), _pydecimal.Decimal("1.5E-20")
    python_nan, python_signaling = _pydecimal.Decimal("NaN12"), _pydecimal.Decimal("-sNaN")
    python_infinite, python_long = _pydecimal.Decimal("-inf"), _pydecimal.Decimal("7" * 500 + ".25")
    remember(("money", "long", "python_long"))
    functions["decimals"].update(money="Money(Decimal('1.5'))",
                                 long="Decimal('7.%s...+342E+499')" % ("7" * 159),
                                 python_long="Decimal('7.%s...+342E+499')" % ("7" * 159))
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


class DataFrame:
    """Says that it is of pandas, and has labels in itself."""

    def __init__(self):
        self._mgr, self._data, self._ndarray = Plain(axes=[self, self]), self, self


DataFrame.__module__ = "pandas"


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
    many, nowhere = lie(array.array("d", [1.0]), 0), lie(array.array("i", [1]), 1, 8)
    dimensions, exponent = memoryview(b"xy"), lie(decimal.Decimal("1.5"), 2, 2 ** 63 - 1)
    lie(dimensions, 9, 2 ** 31 - 1)
    coefficient, precision = lie(decimal.Decimal("1.5"), 4), lie(decimal.Decimal("1.5"), 3, -1)
    python_exponent = _pydecimal.Decimal("1.5")
    python_exponent._exp, view = deep, lie({}.values(), 0, 8)
    endless = _pydecimal.Decimal("1")
    endless._exp = endless
    foreign = _pydecimal.Decimal("1")
    foreign._int = "\x1b\u20ac'" * 1000
    frame, manager = DataFrame(), DataFrame()
    manager._mgr = manager
    print(json.dumps({}), flush=True)
    sys.stdin.read()
    os._exit(0)  # nothing of it is to be freed
    return pair, text, number, keys, places, raw, items, queue, deep, wide, long, digits, controls, \
        many, nowhere, dimensions, exponent, coefficient, precision, view, endless, foreign, frame


if __name__ == "__main__":
    if sys.argv[1:] == ["hostile"]:
        hostile()
    numbers()
