# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""Where slugify lives after the change."""
from burning import cpu


def slugify(ms):
    until = cpu() + ms
    while cpu() < until: pass
