"""Chains of plain and captured cells, drawn: variables, values, texts and errors are those of the same cells without the magic."""

from __future__ import annotations

import random
from typing import Any

import numpy as np
import pytest

from tests.notebook.chain_programs import program
from tests.notebook.conftest import Notebook
from tests.notebook.sameness import Form, difference, form, names_of, text_difference

Row = tuple[BaseException | None, str, Form, dict[str, Form]]


def ran(notebook: Notebook, cells: list[tuple[bool, str]], *, captured: bool) -> list[Row]:
    """What each cell has given: its error, what it printed, its value and the variables after it."""
    first = {*notebook.shell.user_ns}
    rows: list[Row] = []
    random.seed(0)
    for magic, cell in cells:
        got = notebook(f"%%tensor --show none\n{cell}" if magic and captured else cell)
        printed = "" if got.error is not None else got.out.partition("Out[")[0]
        space = {n: form(v) for n, v in names_of(notebook.shell.user_ns, first).items()}
        rows.append((got.error, printed, form(got.value), space))
    for name in names_of(notebook.shell.user_ns, first):
        del notebook.shell.user_ns[name]
    return rows


def differences(notebook: Notebook, cells: list[tuple[bool, str]]) -> list[str]:
    """How a chain differs, up to the first captured cell that fails behind its first line: Python keeps what stands above."""
    plain, other = ran(notebook, cells, captured=False), ran(notebook, cells, captured=True)
    found: list[str] = []
    for k, ((error, printed, value, space), (theirs, text, result, names)) in enumerate(zip(plain, other, strict=True)):
        if (repr(type(error).__name__), str(error)) != (repr(_numpys(theirs, error)), str(theirs)):
            found.append(f"{k}: {error!r} | {theirs!r}")
        if error is not None and cells[k][0] and k and _apart(plain[k - 1][3], space):
            break
        changed = (*text_difference(printed, text), *difference(value, result, "value"), *_apart(space, names))
        found += [f"{k}: {d}" for d in changed if not d.startswith("digits")]
    return found


def _apart(left: dict[str, Form], right: dict[str, Form]) -> list[str]:
    missing = ("missing",)
    return [d for n in sorted({*left, *right}) for d in difference(left.get(n, missing), right.get(n, missing), n)]


def _numpys(error: BaseException | None, wanted: BaseException | None) -> str:
    """The class of an error, which is NumPy's where it is derived from that."""
    return type(wanted if isinstance(error, type(wanted)) else error).__name__


@pytest.mark.filterwarnings("ignore::RuntimeWarning")
@pytest.mark.filterwarnings("ignore:.*Conversion of an array")
@pytest.mark.share(6)
@pytest.mark.parametrize("seed", range(60))
def test_chains(notebook: Notebook, seed: int) -> None:
    notebook["np"] = np
    cells: Any = program(seed)
    assert differences(notebook, cells) == []
