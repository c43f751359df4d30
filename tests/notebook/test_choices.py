"""Options are part of every key: a cell that is asked again at another level, or with other options, gives what those say."""

import random

import numpy as np
import pytest

import tensormagic as tm
from tensormagic.notebook.options import OPTIONS

SMALL = 1e-18
SEEN = {"exact": 0.0, "stable": SMALL, "real": SMALL}
TEXT = "np.log(1 + small)"


@pytest.fixture(autouse=True)
def _variables(notebook):
    notebook["small"] = np.array([SMALL, SMALL])
    before = tm.config.math
    yield
    tm.config.math = before


def shown(ran):
    return ran.data["text/plain"]


def test_a_cell_at_each_level_in_iteration(notebook):
    for level in ("stable", "exact", "real", "exact", "stable", ""):
        ran = notebook.ok(f"%%tensor {'--math ' * bool(level)}{level}\n{TEXT}")
        wanted = SEEN[level or "stable"]
        assert ran.value.numpy().tolist() == [wanted] * 2
        assert ("log1p" in shown(ran)) == bool(wanted), shown(ran)
        assert f"{wanted:g}" in shown(ran).replace("0.", "0").replace("1.e", "1e"), shown(ran)


def test_variables_keep_the_level_of_their_cell(notebook):
    for name, level in (("a", "exact"), ("b", "stable"), ("c", "real"), ("d", "exact")):
        notebook.ok(f"%%tensor -q --math {level}\n{name} = {TEXT}")
    for _ in range(2):
        found = {name: notebook[name].numpy()[0] for name in "abcd"}
        assert found == {"a": 0, "b": SMALL, "c": SMALL, "d": 0}
    assert "1.e-18" not in notebook.ok("a").data["text/plain"]
    assert "log1p" not in notebook.ok("a").data["text/plain"]
    assert "log1p" in notebook.ok("b").data["text/plain"]
    assert "log1p" not in notebook["a"].explain()


def test_a_variable_that_a_cell_asks_for_again(notebook):
    notebook.ok(f"%%tensor\ny = {TEXT}")
    for level in ("exact", "stable", "exact"):
        ran = notebook.ok(f"%%tensor --math {level}\ny")
        assert ran.value.numpy().tolist() == [SEEN[level]] * 2
    assert notebook["y"].numpy().tolist() == [SMALL] * 2
    ran = notebook.ok("%%tensor --math exact\nz = y * 2\nz")
    assert ran.value.numpy().tolist() == [0, 0]


def test_the_setting_between_cells(notebook):
    for level in ("exact", "stable", "real", "exact"):
        tm.config.math = level
        assert notebook.ok(f"%%tensor\n{TEXT}").value.numpy().tolist() == [SEEN[level]] * 2
        assert notebook.ok(f"%%tensor NAME\n{TEXT}").value.numpy().tolist() == [SEEN[level]] * 2
        assert notebook["NAME"](small=np.array([SMALL, SMALL])).tolist() == [SEEN[level]] * 2


def test_gradients_have_the_level_of_their_cell(notebook):
    notebook["w"] = np.array([1000.0])
    for level, wanted in (("stable", 1.0), ("exact", np.nan), ("stable", 1.0)):
        with np.errstate(all="ignore"):
            notebook.ok(
                f"%%tensor -q --math {level} --grad w\nwith np.errstate(all='ignore'): z = np.sum(np.log(1 + np.exp(w)))\nz"
            )
            assert np.array_equal(notebook["grad_w"].numpy(), [wanted], equal_nan=True), level


OTHER = {  # options that change what is shown, bound or asked of the machine, each with what it is tried with
    "--name": "NAME", "--input": "small", "--output": "y", "--grad": "small", "--of": "y", "--device": "cpu",
    "--show": "none", "--annotate": None, "--check": None, "--plain": None, "--quiet": None, "--force": None,
    "--verbose": None, "--time": None,
}  # fmt: skip
LEFT = {"--math", "--without", "--dtype", "--live", "--transfers", "--exclusive", "--async", "--against"}


def test_every_option_is_tried():
    assert {o for o in OPTIONS if o.startswith("--")} == {*OTHER, *LEFT}


def test_what_is_left_out_is_part_of_what_decides_a_value(notebook):
    for without, level in (
        ("", "stable"),
        ("--without rules", "exact"),
        ("", "stable"),
        ("--without fusion", "stable"),
    ):
        with np.errstate(all="ignore"):
            notebook.ok(f"%%tensor --math stable {without}\ny = {TEXT}")
        assert np.asarray(notebook["y"])[0] == SEEN[level], without


@pytest.mark.parametrize("option", OTHER)
def test_other_options_leave_values_alone(notebook, option):
    given = f"{option} {OTHER[option] or ''}"
    for level in ("exact", "stable", "exact"):
        with np.errstate(all="ignore"):
            notebook.ok(f"%%tensor --math {level} {given}\ny = {TEXT}\nloss = np.sum(y)")
        plain = option == "--plain"
        assert np.asarray(notebook["y"])[0] == (0 if plain else SEEN[level]), (option, level)
        if option == "--output":
            assert "loss" not in notebook.shell.user_ns


def test_dtypes_in_iteration(notebook):
    notebook["third"] = np.array([1.0, 2.0]) / 3
    for dtype in ("float32", "float64", "float32", ""):
        value = notebook.ok(f"%%tensor {'--dtype ' * bool(dtype)}{dtype}\nthird * 2").value.numpy()
        assert value.dtype == (dtype or "float64")
        assert value.tolist() == (notebook["third"].astype(value.dtype) * 2).tolist()


@pytest.mark.parametrize("seed", range(12))
def test_drawn_orders(notebook, seed):
    """Cells, lines, settings and names in whatever order: each value is that of its level."""
    rng = random.Random(seed)
    kept: dict[str, str] = {}
    for k in range(8):
        level, kind = rng.choice(list(SEEN)), rng.choice(["cell", "line", "setting", "bound", "again"])
        if kind == "setting":
            tm.config.math = level
            value = notebook.ok(f"%%tensor\n{TEXT}").value
        elif kind == "line":
            value = notebook.ok(f"%tensor --math {level} {TEXT}").value
        elif kind == "bound":
            notebook.ok(f"%%tensor -q --math {level}\nv{k} = {TEXT}")
            kept[f"v{k}"], value = level, notebook[f"v{k}"]
        elif kind == "again" and kept:
            value = notebook.ok(f"%%tensor --math {level}\n{rng.choice(list(kept))}").value
        else:
            value = notebook.ok(f"%%tensor --math {level}\n{TEXT}").value
        assert value.numpy().tolist() == [SEEN[level]] * 2, (kind, level)
        for name, own in kept.items():
            assert notebook[name].numpy().tolist() == [SEEN[own]] * 2
