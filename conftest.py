"""How tests are collected: what ``-k`` cannot select is not imported, and of tables only the rows that it selects are made.

Of 34,000 tests nearly all are rows of tables, in 350 files, and a run that asks for a few of them by ``-k`` took its time for the rest.
The names of a file's tests stand in its text without the bodies of tests, or in those of the files of tests that it imports; where they
do not, the file says so (``NAMED_ELSEWHERE``). ``tests/test_collecting.py`` holds that.
"""

from __future__ import annotations

import gc
import re
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import Any

import pytest
from _pytest.doctest import DoctestModule
from _pytest.mark import KeywordMatcher
from _pytest.mark.expression import Expression

ROOT = Path(__file__).parent
NAMED_ELSEWHERE = "# tests named elsewhere"  # a line of a file of tests whose names come from what it tests
TEST = re.compile(
    r"^( *)((?:async )?def test_.*)(?:\n(?:\1[ )\]].*| *$))*", re.MULTILINE
)  # its first line, and its body
IMPORT = re.compile(r"^\s*(?:from|import) +tests\.([\w.]+)(?: +import +(\([^)]*\)|.*))?", re.MULTILINE)

gc.disable()  # what is collected stays to the end: there is no garbage to look for, and looking took a sixth of the time


class Unread(pytest.File):
    """A file of tests none of which can be selected."""

    def collect(self) -> list[pytest.Item]:
        return []


@cache
def text_of(path: Path) -> str:
    """The text of a file, in small letters, as ``-k`` compares."""
    return path.read_text(encoding="utf-8").lower()


@cache
def named_in(path: Path) -> str:
    """The text of a file without the bodies of its tests: what names tests stands before these, in decorators and tables."""
    return TEST.sub(r"\1\2", text_of(path))


@cache
def imported(path: Path) -> list[Path]:
    """The files of tests that a file imports."""
    found: list[Path] = []
    for module, names in IMPORT.findall(text_of(path)):
        base = ROOT.joinpath("tests", *module.split("."))
        files = [base.with_suffix(".py"), *(base / f"{name}.py" for name in re.findall(r"\w+", names))]
        found += [file for file in files if file.is_file()]
    return found


def sources(path: Path) -> list[Path]:
    """A file of tests, those files of tests that it imports, and what is there for all (``conftest.py``)."""
    found = [path, *(folder / "conftest.py" for folder in path.parents if folder.is_relative_to(ROOT))]
    found = [file for file in found if file.is_file()]
    for file in found:
        found += [other for other in imported(file) if other not in found]
    return found


def words(name: str) -> list[str]:
    """What of a test's name its file's text holds: numbers are counted by pytest, escapes are what it writes for other letters."""
    plain = re.sub(r"\\(?:u[0-9a-f]{4}|U[0-9a-f]{8}|x[0-9a-f]{2}|[ntr])", " ", name)
    return [word.lower() for word in re.findall(r"[^\W\d]+", plain)]


def reachable(path: Path) -> str | None:
    """The text that holds the names of a file's tests; None for names that come from elsewhere.

    Hypothesis gives its tests an attribute, ``is_hypothesis_test``, which ``-k`` compares, too.
    """
    if NAMED_ELSEWHERE in text_of(path):
        return None
    return "\n".join([path.relative_to(ROOT).as_posix().lower(), *map(named_in, sources(path))])


def may_be_selected(path: Path, keyword: str) -> bool:
    """Whether ``-k`` may select a test of a file, as far as texts tell."""
    if not keyword or re.search(r"\bnot\b|\\", keyword) or (text := reachable(path)) is None:
        return True
    return Expression.compile(keyword).evaluate(lambda term, /, **_: all(word in text for word in words(term)))


@pytest.hookimpl(wrapper=True)
def pytest_collect_file(file_path: Path, parent: pytest.Collector) -> Iterator[None]:
    """Leave out examples where a file has no prompt, and files of which ``-k`` selects nothing."""
    found: Any = yield
    if file_path.suffix == ".py":
        found = [node for node in found if not isinstance(node, DoctestModule) or ">>>" in text_of(file_path)]
        if found and not may_be_selected(file_path, parent.config.option.keyword.strip()):
            return [Unread.from_parent(parent, path=file_path)]
    return found


@pytest.hookimpl(wrapper=True)
def pytest_generate_tests(metafunc: pytest.Metafunc) -> Iterator[None]:
    """Leave out the rows of a table that ``-k`` does not select; one stays at least, without which there would be no table."""
    done = yield
    calls, keyword = metafunc._calls, metafunc.config.option.keyword.strip()
    if len(calls) > 1 and keyword:
        wanted, name = Expression.compile(keyword), metafunc.definition.name
        shared = KeywordMatcher.from_item(metafunc.definition)._names
        rows = ((call, {f"{name}[{call.id}]", *(mark.name for mark in call.marks)}) for call in calls)
        calls[:] = [call for call, own in rows if wanted.evaluate(KeywordMatcher(shared | own))] or calls[:1]
    return done


def pytest_collection_finish() -> None:
    """What is there now stays to the end: garbage is not looked for among twenty thousand tests."""
    gc.collect()
    gc.freeze()
    gc.enable()


@pytest.hookimpl(wrapper=True)
def pytest_runtest_teardown(item: pytest.Item, nextitem: pytest.Item | None) -> Iterator[None]:
    """What a file of tests has left, imports and caches above all, stays: traces that look for garbage look at it again and again."""
    done = yield
    if nextitem is not None and nextitem.path != item.path:
        gc.collect()
        gc.freeze()
    return done
