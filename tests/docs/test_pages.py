"""Every example of the documentation is run, in the order of its page, as cells of one notebook.

A block marked ``ipython`` or ``python`` is a cell. A block marked ``text`` right behind it is what the cell shows: what it
prints and its value, or its error; ``...`` stands for anything.
"""

# tests named elsewhere

import doctest
import re
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from benchmarks.comparison import FACTS

ROOT = Path(__file__).parents[2]
PAGES = sorted(
    page for page in [*ROOT.glob("docs/*.md"), ROOT / "README.md"] if re.search(r"```i?python\n", page.read_text())
)
GIVEN = {"README.md", "index.md"}  # these speak of arrays X, y, w, b that a notebook has already
FENCE = re.compile(r"^```(\w*)\n(.*?)^```\n", re.MULTILINE | re.DOTALL)
LOOSE = doctest.ELLIPSIS | doctest.NORMALIZE_WHITESPACE


@dataclass
class Example:
    """A cell of a page, and what the page says that it shows (None: nothing is said)."""

    line: int
    cell: str
    shown: str | None = None


def examples(text: str) -> list[Example]:
    found: list[Example] = []
    end = 0
    for fence in FENCE.finditer(text):
        language, body = fence.groups()
        if language in {"python", "ipython"}:
            found.append(Example(text.count("\n", 0, fence.start()) + 1, body))
        elif language == "text" and found and not text[end : fence.start()].strip():
            found[-1].shown = body
        end = fence.end()
    return found


def shown(ran: Any) -> str:
    """What a cell shows, as text, without the prompt."""
    if ran.error is not None:
        return f"{type(ran.error).__name__}: {ran.error}"
    values = "".join(data.get("text/plain", "") for data in ran.displays)
    return re.sub(r"^Out\[\d+\]: ", "", ran.out + values, flags=re.MULTILINE)


def fault(example: Example, ran: Any) -> str:
    """How what a cell shows differs from what its page says; empty where it does not."""
    found = shown(ran)
    if example.shown is None:
        return "" if ran.error is None else found
    return "" if doctest.OutputChecker().check_output(example.shown, found, LOOSE) else found


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_every_example_shows_what_its_page_says(page, clean):
    if page.name not in GIVEN:
        for name in ("X", "y", "w", "b", "np", "tm"):
            del clean.shell.user_ns[name]
    faults = [(e.line, found) for e in examples(page.read_text()) if (found := fault(e, clean(e.cell)))]
    assert faults == [], "\n".join(f"{page.name}, line {line} shows:\n{found}" for line, found in faults)


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_a_page_that_uses_magics_loads_them_first(page):
    """Somebody types it into a notebook of another kernel, from the first block on."""
    cells = [e.cell for e in examples(page.read_text())]
    loads = next((k for k, cell in enumerate(cells) if "%load_ext tensormagic" in cell), len(cells))
    uses = next((k for k, cell in enumerate(cells) if re.search(r"^%%?(?:tensor|rewrite)", cell, re.MULTILINE)), None)
    assert uses is None or loads < uses


def test_what_contributing_quotes_is_in_the_package():
    quoted = [e.cell for e in examples((ROOT / "CONTRIBUTING.md").read_text())]
    package = [path.read_text() for path in (ROOT / "tensormagic").rglob("*.py")]
    assert len(quoted) >= 3
    assert [q for q in quoted if not any(q in text for text in package)] == []


def test_what_is_said_of_other_libraries_was_asked_of_them():
    page, found = [(ROOT / name).read_text() for name in ("docs/from-others.md", "benchmarks/results/comparison.md")]
    said = page.partition("## Seven sentences")[2]
    assert re.findall(r"^(\d)\. \*", said, re.MULTILINE) == list("1234567")
    rows = dict(re.findall(r"^\| (.*?) \| (.+?) \|$", found.partition("say of themselves")[2], re.MULTILINE))
    assert rows.keys() >= FACTS.keys()
    assert all(rows[asked].strip() for asked in FACTS)
    assert "a fork of Aesara" in rows["PyTensor: where it comes from"]
