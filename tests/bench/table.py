# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""Rows of measurements by column, as plain text, Markdown or JSON."""
import os


def write_markdown(path, name, text):
    """Into the file between its two markers of that name if it has them, else it is the whole file."""
    start, end = ("<!-- %s: %s -->\n" % (name, word) for word in ("start", "end"))
    before = after = ""
    if os.path.exists(path):
        with open(path, encoding="utf-8") as f:
            old = f.read()
        if start in old and end in old:
            before = old[:old.index(start) + len(start)]
            after = old[old.index(end):]
    with open(path, "w", encoding="utf-8") as f:
        f.write(before + text + after)


class Table:
    """Rows, and columns beyond the given ones, appear in the order of their first cell."""

    def __init__(self, title, corner, columns=()):
        self.title = title
        self.corner = corner
        self.columns = list(columns)
        self.rows = {}
        self.goals = {}
        self.values = []
        self.misses = []

    def put(self, row, column, text, values=None, goal=None, value=None):
        """goal: the most that value may be; the row shows it, a miss is marked and listed."""
        if column not in self.columns:
            self.columns.append(column)
        if goal is not None:
            self.goals[row] = goal
            if value > goal:
                text += " !"
                self.misses.append("%s, %s: %s (goal: at most %g)" % (
                    row, column, text[:-2], goal))
        self.rows.setdefault(row, {})[column] = text
        self.values.append(dict(values or {}, row=row, column=column, text=text))

    def cells(self):
        """Lines of cells, the header first."""
        goal = ["goal"] if self.goals else []
        yield [self.corner] + self.columns + goal
        for row, cells in self.rows.items():
            line = [row] + [cells.get(column, "") for column in self.columns]
            if goal:
                line.append("%g" % self.goals[row] if row in self.goals else "")
            yield line

    def plain(self):
        lines = list(self.cells())
        widths = [max(map(len, column)) for column in zip(*lines)]
        out = [self.title, ""]
        for i, line in enumerate(lines):
            first, rest = line[0].ljust(widths[0]), zip(line[1:], widths[1:])
            out.append("  ".join([first] + [cell.rjust(width) for cell, width in rest]).rstrip())
            if not i:
                out.append("  ".join("-" * width for width in widths))
        return "\n".join(out)

    def markdown(self):
        out = ["**%s**" % self.title, ""]
        for i, line in enumerate(self.cells()):
            out.append("| %s |" % " | ".join(cell.replace("|", "\\|") for cell in line))
            if not i:
                out.append("|---|%s" % ("---:|" * (len(line) - 1)))
        return "\n".join(out)
