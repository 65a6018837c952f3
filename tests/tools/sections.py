# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""Sections of a Markdown page that several programs write, each its own: "## TITLE" up to the next one."""
import re


def split(text):
    """{title: text with its title line}; what is before the first one has the title None."""
    parts = re.split(r"^(?=## )", text, flags=re.M)
    return {None: parts[0], **{part.partition("\n")[0][3:]: part for part in parts[1:]}}


def put(path, title, body):
    """Replaces the section, or puts it at the end."""
    sections = split(path.read_text(encoding="utf-8"))
    sections[title] = f"## {title}\n\n{body}"
    path.write_text("\n".join(part.rstrip("\n") + "\n" for part in sections.values()), encoding="utf-8")


def keep_others(path, text):
    """The page as it is now written, with the sections of the old one that it does not have."""
    new = split(text)
    old = split(path.read_text(encoding="utf-8")) if path.exists() else {}
    others = [part.rstrip("\n") + "\n" for title, part in old.items() if title not in new]
    return "\n".join([text, *others])
