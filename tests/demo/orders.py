# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""The demo's workload: a shop that parses, prices and prints orders.

orders.py before|after SECONDS. Between the two versions one function became slower, one faster,
one is new and one is gone:

    parse_line      slower in "after"   (a regular expression instead of str.split)
    render_receipt  faster in "after"   (join instead of +=)
    audit           new in "after"
    legacy_tax      gone in "after"
"""
import json
import random
import re
import sys
import time

LINE = re.compile(r"^(?P<sku>\w+)\s*,\s*(?P<count>\d+)\s*,\s*(?P<cents>\d+)$")


def make_order(rnd):
    return "\n".join(
        "sku%d, %d, %d" % (rnd.randrange(5000), rnd.randrange(1, 9), rnd.randrange(50, 9999))
        for _ in range(60)
    )


class Shop(object):
    def __init__(self, is_after):
        self.is_after = is_after
        self.stock = {"sku%d" % i: i % 97 for i in range(5000)}

    def parse_line(self, line):
        if self.is_after:
            for _ in range(3):
                m = LINE.match(line)
            return m.group("sku"), int(m.group("count")), int(m.group("cents"))
        sku, count, cents = line.split(",")
        return sku.strip(), int(count), int(cents)

    def parse(self, text):
        return [self.parse_line(line) for line in text.splitlines()]

    def discount(self, sku, count):
        return 10 if count > 5 else self.stock.get(sku, 0) % 5

    def legacy_tax(self, cents):
        tax = 0
        for digit in str(cents):
            tax += int(digit) * 19
        return tax

    def price(self, lines):
        total = 0
        for sku, count, cents in lines:
            cents = cents * count * (100 - self.discount(sku, count)) // 100
            total += cents
            if not self.is_after:
                total += self.legacy_tax(cents)
        return total

    def render_receipt(self, lines, total):
        rows = ["%-10s %3d x %8.2f" % (sku, count, cents / 100.0) for sku, count, cents in lines]
        if self.is_after:
            return "\n".join(rows + ["total %d" % total])
        text = ""
        for row in rows:
            for char in row:
                text += char
            text += "\n"
        return text + "total %d" % total

    def audit(self, lines, total):
        return json.dumps({"lines": lines, "total": total, "skus": sorted(l[0] for l in lines)})

    def handle(self, text):
        lines = self.parse(text)
        total = self.price(lines)
        if self.is_after:
            self.audit(lines, total)
        return self.render_receipt(lines, total)


def main():
    shop = Shop(sys.argv[1] == "after")
    orders = [make_order(random.Random(i)) for i in range(50)]
    end = time.time() + float(sys.argv[2])
    handled = 0
    while time.time() < end:
        for order in orders:
            shop.handle(order)
            handled += 1
    print("%s: %d orders handled" % (sys.argv[1], handled))


if __name__ == "__main__":
    main()
