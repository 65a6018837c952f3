# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""Tests of a shop, as pytest runs them: what --group-by 'test_*' takes apart.

SHOP=after: parsing takes 1.6 times as long, rendering half as long. test_audit is new then,
test_tax gone.
"""
import os

import pytest

from burning import cpu

IS_AFTER = os.environ.get("SHOP") == "after"


def work(seconds):
    until = cpu() + seconds
    while cpu() < until: pass


def parse():
    work(0.32 if IS_AFTER else 0.2)


def render():
    work(0.1 if IS_AFTER else 0.2)


def test_parse():
    parse()


def test_render():
    render()


class TestOrders:
    def test_total(self):
        work(0.2)

    @pytest.mark.parametrize("country", ["de", "fr"])
    def test_shipping(self, country):
        work(0.1)


@pytest.mark.skipif(not IS_AFTER, reason="not yet")
def test_audit():
    work(0.15)


@pytest.mark.skipif(IS_AFTER, reason="no more")
def test_tax():
    work(0.15)
