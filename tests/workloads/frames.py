# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""Holds values of NumPy and pandas in local variables, and says what they are.

Usage: frames.py       prints one JSON object, then waits for the end of its input

functions: {name: {variable: what is to be shown}}, as values.py. NumPy 1.19 and pandas 1.1 on.
"""
import json
import sys

import numpy
import pandas

functions = {}
DATES = {
    "Y": "2024", "M": "1969-12", "W": "2024-02-29", "D": "1600-02-29", "h": "2024-02-29T23",
    "m": "1969-12-31T23:59", "s": "1970-01-01T00:00:00", "ms": "2024-02-29T01:02:03.004",
    "us": "1969-12-31T23:59:59.999999", "ns": "2024-02-29T01:02:03.000000004",
    "ps": "1970-01-01T01:02:03.000000000004", "fs": "1970-01-01T00:00:03.000000000000004",
    "as": "1969-12-31T23:59:58.000000000000000004"}


def told(value):
    """NumPy 2 names itself np."""
    return repr(value).replace("numpy.", "np.")


def scalars():
    year, month, week, day, hour, minute, second, milli, micro, nano, pico, femto, atto = (
        numpy.datetime64(text, unit) for unit, text in DATES.items())
    far, before, end = (numpy.datetime64(value, "Y") for value in (10000, -70000, 2 ** 62))
    last, first = numpy.datetime64(2 ** 63 - 1, "D"), numpy.datetime64(-2 ** 63 + 1, "ns")
    several, weeks = numpy.datetime64(5, "3D"), numpy.datetime64(-3, "2W")
    span, spans, back = (numpy.timedelta64(5, unit) for unit in ("ms", "3s", "Y"))
    back = -back
    functions["scalars"] = {name: told(value) for name, value in locals().items()}
    no_time, no_span = numpy.datetime64("NaT", "s"), numpy.timedelta64("NaT", "ns")
    nothing = numpy.datetime64("NaT")
    functions["scalars"].update(no_time="np.datetime64('NaT','s')", nothing="np.datetime64('NaT')",
                                no_span="np.timedelta64('NaT','ns')")
    return arrays()


def arrays():
    names = ["f8", ">f4", "?", "u1", "c16", "f2", "O", "U5", ">U2", "S3", "V8", "M8[ns]", "M8[25s]",
             "m8[D]", ">M8[us]", "q", "l"]
    found = {"a%d" % i: numpy.zeros((2, 3), name) for i, name in enumerate(names)}
    (a0, a1, a2, a3, a4, a5, a6, a7, a8, a9, a10, a11, a12, a13, a14, a15, a16) = found.values()
    none, single, empty = numpy.array(1.5), numpy.zeros(5, "i2"), numpy.zeros((0, 2))
    table = numpy.zeros(2, [("key", "i4"), ("value", "U3")])
    functions["arrays"] = {
        name: "<numpy.ndarray shape=%r dtype=%s>" % (value.shape, value.dtype)
        for name, value in dict(found, none=none, single=single, empty=empty).items()}
    functions["arrays"]["table"] = "<numpy.ndarray shape=(2,) dtype=void fields=('key', 'value')>"
    return frames()


class Table(pandas.DataFrame):
    pass


def frames():
    text = pandas.DataFrame({"a": [1, 2, 3], "b": ["x", "y", "z"]})
    days = pandas.DataFrame({"x": [1.5] * 4}, index=pandas.date_range("2024-01-01", periods=4))
    numbered = pandas.DataFrame(numpy.zeros((5, 3)))
    keyed = pandas.DataFrame(numpy.zeros((2, 2)), columns=[10, 20], index=["p", "q"])
    levels = text.set_index(["a", "b"])
    kinds = pandas.DataFrame({"c": [1]}, index=pandas.CategoricalIndex(["k"]))
    mixed = pandas.DataFrame([[1, 2]], columns=["a", 7])
    empty, wide = pandas.DataFrame(), pandas.DataFrame([range(100)])
    part, table = text[text["a"] > 1], Table({"a": [1]})
    every = pandas.DataFrame([[1, 2, 3, 4]], columns=list("abcd"))
    every = every[every.columns[::2]]
    timed = pandas.DataFrame([[1]], columns=pandas.to_datetime(["2024-01-02"]))
    top = pandas.DataFrame([[1]], columns=pandas.MultiIndex.from_tuples([("a", "b")]))
    many = pandas.DataFrame({"column %d" % i: [1] for i in range(200)})
    nothing = pandas.NaT
    functions["frames"] = {
        name: "<pandas.DataFrame shape=%r columns=%s>" % (value.shape, columns)
        for name, value, columns in (
            ("text", text, ["a", "b"]), ("days", days, ["x"]), ("numbered", numbered, range(3)),
            ("keyed", keyed, [10, 20]), ("levels", levels, []), ("kinds", kinds, ["c"]),
            ("mixed", mixed, ["a", 7]), ("part", part, ["a", "b"]), ("every", every, ["a", "c"]),
            ("wide", wide, range(100)), ("top", top, "<MultiIndex>"))}
    functions["frames"].update(nothing="NaT",
                               table="Table(<pandas.DataFrame shape=(1, 1) columns=['a']>)")
    starts = {"empty": "<pandas.DataFrame shape=(0, 0) columns=",
              "timed": "<pandas.DataFrame shape=(1, 1) columns=",
              "many": "<pandas.DataFrame shape=(1, 200) columns=['column 0', 'column 1', "}
    print(json.dumps({"functions": functions, "starts": {"frames": starts},
                      "versions": [numpy.__version__, pandas.__version__]}), flush=True)
    sys.stdin.read()
    return timed, empty, many


if __name__ == "__main__":
    scalars()
