# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""A shop before and after a change, run to its end.

    shop.py before|after ORDERS

Every function burns an exact amount of its thread's own CPU time for each order, so that what a
comparison must find does not depend on the machine or on its load:

    render        2.0 -> 2.6 ms   30 % slower
    parse         2.0 -> 1.0 ms   twice as fast
    legacy_tax    0.8 ms -> gone
    audit         new: 0.8 ms
    slugify       1.5 ms, moved from old_home.py to new_home.py
    price         1.5 ms, wrapped by the decorator `counted`
    stock, mail   1.5 ms each, as they were
"""
import sys

from burning import burn_ms, cpu


def render(ms):
    until = cpu() + ms
    while cpu() < until: pass


def parse(ms):
    until = cpu() + ms
    while cpu() < until: pass


def legacy_tax(ms):
    until = cpu() + ms
    while cpu() < until: pass


def audit(ms):
    until = cpu() + ms
    while cpu() < until: pass


def price(ms):
    until = cpu() + ms
    while cpu() < until: pass


def stock(ms):
    until = cpu() + ms
    while cpu() < until: pass


def mail(ms):
    until = cpu() + ms
    while cpu() < until: pass


def counted(function):
    calls = [0]

    def wrapper(ms):
        calls[0] += 1
        return function(ms)
    return wrapper


def handle(is_after, slugify):
    parse(burn_ms(1.0 if is_after else 2.0))
    render(burn_ms(2.6 if is_after else 2.0))
    slugify(burn_ms(1.5))
    price(burn_ms(1.5))
    stock(burn_ms(1.5))
    mail(burn_ms(1.5))
    if is_after:
        audit(burn_ms(0.8))
    else:
        legacy_tax(burn_ms(0.8))


def main(is_after, orders):
    global price
    if is_after:
        from new_home import slugify
        price = counted(price)
    else:
        from old_home import slugify
    for _ in range(orders):
        handle(is_after, slugify)


if __name__ == "__main__":
    main(sys.argv[1] == "after", int(sys.argv[2]))
