"""Interrupts that arrive where Python ignores them."""

from __future__ import annotations

import sys

import pytest

WAIT = "import time\nend = time.monotonic() + 20\nwhile time.monotonic() < end:\n    pass"


@pytest.mark.parametrize(
    "cell",
    [
        "import weakref\nclass Held: pass\nheld = Held()\ndef stop(_): raise KeyboardInterrupt\nr = weakref.ref(held, stop)\ndel held\n",
        "class Held:\n    def __del__(self): raise KeyboardInterrupt\nHeld()\n",
    ],
)
def test_one_in_a_finaliser_is_not_lost(notebook, cell):
    before = sys.unraisablehook
    ran = notebook(cell + WAIT)
    assert isinstance(ran.error, KeyboardInterrupt)
    assert sys.unraisablehook is before


def test_one_before_the_cell_is_not_lost(notebook, monkeypatch):
    def stop() -> None:
        monkeypatch.undo()
        raise KeyboardInterrupt

    monkeypatch.setattr("tensormagic.capture.inputs.snapshots.secure_all", stop)
    assert isinstance(notebook(WAIT).error, KeyboardInterrupt)


def test_other_errors_that_are_ignored_are_told_as_ever(notebook, monkeypatch):
    told: list[object] = []
    monkeypatch.setattr(sys, "unraisablehook", lambda found: told.append(found.exc_type))
    notebook.ok("class Held:\n    def __del__(self): raise ValueError\nHeld();")
    assert told == [ValueError]
