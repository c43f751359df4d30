"""Whole sessions, drawn: variables, values, ``_``, texts and errors after every cell are those of the same cells without the magic."""

from __future__ import annotations

import contextlib

import pytest

from tests.notebook.conftest import Notebook
from tests.notebook.sameness import Form, difference, form, names_of, text_difference
from tests.notebook.session_programs import program

Row = tuple[BaseException | None, str, Form, Form, dict[str, Form]]


def ran(notebook: Notebook, cells: list[tuple[str | None, str]], *, captured: bool) -> list[Row]:
    """What each cell has given: its error, what it printed, its value, what ``_`` is, and the variables after it."""
    space = notebook.shell.user_ns
    for name in [n for n in names_of(space, set()) if not n.startswith("__")]:
        del space[name]
    notebook.ok("0")  # what ``_`` is
    first = {*space}
    rows: list[Row] = []
    for options, text in cells:
        got = notebook(f"%%tensor{options}\n{text}" if captured and options is not None else text)
        printed = "" if got.error is not None else got.out.partition("Out[")[0]
        known = {n: form(v) for n, v in names_of(space, first).items() if not n.startswith("_")}
        rows.append((got.error, printed, form(got.value), form(space.get("_")), known))
        with contextlib.suppress(KeyError):
            space["plt"].close("all")
    return rows


def differences(notebook: Notebook, cells: list[tuple[str | None, str]]) -> list[str]:
    """How a session differs, up to the first captured cell that fails behind its first line."""
    plain, other = ran(notebook, cells, captured=False), ran(notebook, cells, captured=True)
    for k, (wanted, given) in enumerate(zip(plain, other, strict=True)):
        (error, printed, value, last, space), (theirs, text, result, under, names) = wanted, given
        if str(error) != str(theirs) or (error is not None and not isinstance(theirs, type(error))):
            return [f"{k}: {error!r} | {theirs!r}", cells[k][1]]
        if error is not None and cells[k][0] is not None and _apart(plain[k - 1][4], space):
            return []
        changed = (
            *text_difference(printed, text),
            *difference(value, result, "value"),
            *difference(last, under, "_"),
            *_apart(space, names),
        )
        found = [f"{k}: {d}" for d in changed if not d.startswith("digits")]
        if found:
            return [*found, cells[k][1]]
    return []


def _apart(left: dict[str, Form], right: dict[str, Form]) -> list[str]:
    missing = ("missing",)
    return [d for n in sorted({*left, *right}) for d in difference(left.get(n, missing), right.get(n, missing), n)]


@pytest.mark.filterwarnings("ignore")
@pytest.mark.share(6)
@pytest.mark.parametrize("seed", range(60))
def test_sessions(notebook: Notebook, seed: int) -> None:
    pytest.importorskip("pandas")
    pytest.importorskip("matplotlib")
    assert differences(notebook, program(seed)) == []
