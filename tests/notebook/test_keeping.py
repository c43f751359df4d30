"""A failed cell leaves nothing changed; a plain cell runs once; what is compared draws the same numbers."""

import random

import numpy as np
import pytest

FAIL = "\nX @ y"


class Holder:
    """An object of a library."""

    def __init__(self) -> None:
        self.value = 1


CHANGES = {
    "a list": ("items.append(X.sum())", "items", [1, 2]),
    "a list in a dictionary": ("box['items'].append(3)", "box", {"items": [0], "n": 1}),
    "a dictionary": ("box['n'] = 2; box['new'] = X.sum(); del box['items']", "box", {"items": [0], "n": 1}),
    "a set": ("seen.add(3); seen.discard(1)", "seen", {1, 2}),
    "a list in a tuple": ("pair[0].append(3)", "pair", ([],)),
    "a list of a function": ("note(X.sum())", "notes", []),
    "a name of a function": ("count()", "counter", 0),
    "a closure": ("closed()", "inside", [5]),
}


@pytest.mark.parametrize("what", CHANGES)
def test_a_failed_cell_takes_back(notebook, what):
    notebook.ok(
        "items, box, seen, pair, notes, counter, inside = [1, 2], {'items': [0], 'n': 1}, {1, 2}, ([],), [], 0, [5]\n"
        "def note(v): notes.append(v)\n"
        "def count():\n    global counter\n    counter += 1\n"
        "def closing(held):\n    return lambda: held.append(1)\n"
        "closed = closing(inside)"
    )
    cell, name, expected = CHANGES[what]
    held = notebook[name]
    assert notebook(f"%%tensor\n{cell}{FAIL}").error is not None
    assert notebook[name] == expected
    assert notebook[name] is held
    notebook.ok(f"%%tensor\n{cell}")
    assert notebook[name] != expected


def test_attributes_of_objects_are_taken_back(notebook):
    notebook["library"] = Holder()
    notebook.ok("class Own:\n    shared = 1\n    __slots__ = ('a', '__dict__')\nown = Own(); own.a, own.b = 1, [1]")
    failed = "own.a = 2; own.b.append(2); own.c = 3; Own.shared = 5; library.value = 7; library.more = X.sum()"
    assert notebook(f"%%tensor\n{failed}{FAIL}").error is not None
    own = notebook["own"]
    assert (own.a, own.b, vars(own), type(own).shared) == (1, [1], {"b": [1]}, 1)
    assert vars(notebook["library"]) == {"value": 1}
    notebook.ok(f"%%tensor\n{failed}")
    assert (own.a, own.b, own.c, type(own).shared, notebook["library"].value) == (2, [1, 2], 3, 5, 7)


def test_columns_and_arrays_in_containers_are_taken_back(notebook):
    pandas = pytest.importorskip("pandas")
    notebook["df"] = pandas.DataFrame({"a": [1.0, 2.0]})
    notebook["held"] = [np.zeros(2)]
    notebook.ok("def fill():\n    held[0][:] = 9")
    assert notebook(f"%%tensor\ndf['b'] = 1.0\ndf.loc[0, 'a'] = 5.0\nfill(){FAIL}").error is not None
    assert list(notebook["df"].columns) == ["a"]
    assert notebook["df"]["a"].tolist() == [1, 2]
    assert notebook["held"][0].tolist() == [0, 0]


def test_a_failed_cell_gives_draws_back(notebook):
    notebook.ok("rng = np.random.default_rng(3); box = {'rng': np.random.default_rng(4)}; import random")
    np.random.seed(5)  # noqa: NPY002 (what is tested)
    random.seed(6)
    states = [notebook["rng"].bit_generator.state, notebook["box"]["rng"].bit_generator.state, random.getstate()]
    assert notebook(f"%%tensor\nrng.normal(); box['rng'].normal(); random.random(){FAIL}").error is not None
    now = [notebook["rng"].bit_generator.state, notebook["box"]["rng"].bit_generator.state, random.getstate()]
    assert now == states


def test_deleting_a_name(notebook):
    notebook.ok("a = np.ones(3); c = 1")
    assert notebook(f"%%tensor\ndel a{FAIL}").error is not None
    assert "a" in notebook
    notebook.ok("%%tensor\ns = a.sum()\ndel a, c")
    assert "a" not in notebook
    assert "c" not in notebook
    assert float(notebook["s"]) == 3.0


def test_a_plain_cell_with_gradients_runs_once(notebook, tmp_path):
    notebook.ok(
        f"calls, n, file = [], 0, open({str(tmp_path / 'log')!r}, 'w')\niterations = iter([1.0, 2.0, 3.0])\n"
        "rng = np.random.default_rng(0); expected = np.random.default_rng(0).normal(size=3)\n"
        "def once():\n    global n\n    n += 1\n    return n"
    )
    ran = notebook.ok(
        "%%tensor --plain --grad w\ncalls.append(1); print('told')\nfile.write('x'\n    'y'); first = next(iterations)\nonce()\n"
        "u = rng.normal(size=3)\nif True:\n    file.write('z')\nq = np.sum(u * w) * first"
    )
    notebook["file"].close()
    assert notebook["calls"] == [1]
    assert notebook["n"] == 1
    assert notebook["first"] == 1.0
    assert next(notebook["iterations"]) == 2.0
    assert (tmp_path / "log").read_text() == "xyz"
    assert ran.out.count("told") == 1
    assert notebook["u"].tolist() == notebook["expected"].tolist() == notebook["grad_w"].tolist()


def test_a_plain_cell_with_gradients_refuses_a_generator(notebook):
    notebook.ok("iterations = (k for k in range(3))")
    ran = notebook("%%tensor --plain --grad w\nnp.sum(w) * next(iterations)")
    assert type(ran.error).__name__ == "UsageError"
    assert "iterations is a generator" in ran.out
    assert next(notebook["iterations"]) == 0


@pytest.mark.parametrize("draw", ["rng.normal(size=3)", "box['rng'].normal(size=3)", "old.normal(size=3)", "legacy(3)"])
def test_comparisons_draw_the_same_numbers(notebook, draw):
    notebook.ok(
        "rng, old = np.random.default_rng(1), np.random.RandomState(2)\nbox = {'rng': np.random.default_rng(3)}\n"
        "legacy = np.random.standard_normal\nnp.random.seed(4); history = []"
    )
    ran = notebook.ok(
        f"%%tensor --grad w --check -t --show none\nhistory.append(1.0)\nu = {draw}\nnp.sum(u * w) + u[0] * len(history)"
    )
    text = ran.data["text/plain"]
    assert text.count("agrees") == 2, text
    assert "differs" not in text
    assert (
        text.splitlines()[-1].split()[-1].startswith("0")
        or "the results are equal to the last digit" in text
        or "largest relative difference" in text
    )
    drawn = notebook["u"].tolist() if hasattr(notebook["u"], "tolist") else notebook["u"]
    assert notebook["history"] == [1.0]
    notebook.ok(f"%%tensor -q\nv = {draw}")
    assert np.asarray(notebook["v"]).tolist() != drawn
