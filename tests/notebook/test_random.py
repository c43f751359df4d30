"""Random draws in cells: NumPy's own numbers, and generators of the notebook that are advanced once, when the cell has worked."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest


def test_a_cell_draws_from_a_generator_of_the_notebook_and_advances_it(notebook: Any) -> None:
    notebook.ok("import numpy as np\nrng = np.random.default_rng(3)\nx = np.ones(3)")
    value = notebook.ok("%%tensor\ny = x + rng.normal(size=3)\ny + rng.uniform()").value
    expected = np.random.default_rng(3)
    first = 1 + expected.normal(size=3)
    second = first + expected.uniform()
    assert np.array_equal(np.asarray(value), second)
    space = notebook.shell.user_ns
    assert space["rng"].bit_generator.state == expected.bit_generator.state
    assert np.array_equal(np.asarray(space["y"]), first)
    assert type(space["rng"]) is np.random.Generator


def test_running_a_cell_again_goes_on_with_the_stream(notebook: Any) -> None:
    notebook.ok("import numpy as np\nrng = np.random.default_rng(3)")
    cell = "%%tensor\nrng.normal(size=2) * 2"
    found = [np.asarray(notebook.ok(cell).value) for _ in range(3)]
    expected = np.random.default_rng(3)
    assert all(np.array_equal(v, expected.normal(size=2) * 2) for v in found)
    assert notebook.shell.user_ns["rng"].bit_generator.state == expected.bit_generator.state


def test_lazy_values_keep_their_numbers_when_the_generator_goes_on(notebook: Any) -> None:
    notebook.ok("import numpy as np\nrng = np.random.default_rng(3)")
    notebook.ok("%%tensor\nz = rng.normal(size=2)\nNone")
    notebook.ok("w = rng.normal(size=2)")
    expected = np.random.default_rng(3)
    first, second = expected.normal(size=2), expected.normal(size=2)
    assert np.array_equal(np.asarray(notebook.shell.user_ns["z"]), first)
    assert np.array_equal(notebook.shell.user_ns["w"], second)


@pytest.mark.parametrize(
    "fault", ["raise ValueError('no')", "y.reshape(7)", "rng.normal(0, -1.0, size=2)", "np.zeros(3)[5]"]
)
def test_a_cell_that_fails_leaves_generators_as_they_were(notebook: Any, fault: str) -> None:
    notebook.ok("import numpy as np\nrng = np.random.default_rng(3)\nnp.random.seed(4)")
    ran = notebook(f"%%tensor\ny = rng.normal(size=2) + np.random.rand()\n{fault}\ny")
    assert ran.error is not None
    space = notebook.shell.user_ns
    assert space["rng"].bit_generator.state == np.random.default_rng(3).bit_generator.state
    assert np.random.rand() == np.random.RandomState(4).rand()  # noqa: NPY002 (the legacy stream is what is tested)


def test_the_global_generator(notebook: Any) -> None:
    notebook.ok("import numpy as np\nfrom numpy.random import randint\nnp.random.seed(4)")
    value = notebook.ok("%%tensor\nnp.random.rand(2) + randint(3, 10, size=2) * np.random.normal()").value
    after = np.random.rand()  # noqa: NPY002 (as above)
    expected = np.random.RandomState(4)
    assert np.array_equal(np.asarray(value), expected.rand(2) + expected.randint(3, 10, size=2) * expected.normal())
    assert after == expected.rand()


def test_a_seed_in_a_cell_begins_anew(notebook: Any) -> None:
    notebook.ok("import numpy as np")
    found = [
        np.asarray(notebook.ok("%%tensor\nnp.random.seed(9)\nnp.random.standard_normal(3) + 0.0").value)
        for _ in range(2)
    ]
    expected = np.random.RandomState(9)
    assert np.array_equal(found[0], expected.standard_normal(3))
    assert np.array_equal(found[0], found[1])
    assert np.random.rand() == expected.rand()  # noqa: NPY002 (as above)


def test_a_rolled_loop_draws_in_order(notebook: Any) -> None:
    notebook.ok("import numpy as np\nrng = np.random.default_rng(3)\nx = np.zeros(2)\nn = 40")
    cell = """%%tensor
y = x
for k in range(n):
    if rng.random() < 0.5:
        y = y + rng.normal(size=2)
    else:
        y = y - 1
y"""
    ran = notebook.ok(cell)
    expected, y = np.random.default_rng(3), np.zeros(2)
    for _ in range(40):
        y = y + expected.normal(size=2) if expected.random() < 0.5 else y - 1
    assert np.array_equal(np.asarray(ran.value), y)
    assert any(n.op.name == "loop" for n in notebook.shell.user_ns["y"].graph.nodes)
    assert notebook.shell.user_ns["rng"].bit_generator.state == expected.bit_generator.state


def test_a_generator_that_the_cell_makes_is_numpys_afterwards(notebook: Any) -> None:
    notebook.ok("import numpy as np")
    notebook.ok(
        "%%tensor\nown = np.random.default_rng(8)\nz = own.normal(size=3)\npair = [own, np.random.RandomState(1)]\nz"
    )
    space = notebook.shell.user_ns
    expected = np.random.default_rng(8)
    assert np.array_equal(np.asarray(space["z"]), expected.normal(size=3))
    assert type(space["own"]) is np.random.Generator
    assert space["own"].normal() == expected.normal()
    assert type(space["pair"][1]) is np.random.RandomState


def test_two_names_of_one_generator_are_one_stream(notebook: Any) -> None:
    notebook.ok("import numpy as np\nrng = np.random.default_rng(3)\nother = rng\nholder = {'g': rng}")
    value = notebook.ok("%%tensor\nrng.normal() + 2 * other.normal() + 4 * holder['g'].normal()").value
    expected = np.random.default_rng(3)
    assert float(value) == expected.normal() + 2 * expected.normal() + 4 * expected.normal()
    assert notebook.shell.user_ns["rng"].bit_generator.state == expected.bit_generator.state


def test_a_function_of_the_notebook_draws_in_the_cell(notebook: Any) -> None:
    notebook.ok("import numpy as np\nrng = np.random.default_rng(3)\ndef noise(x):\n    return x + rng.normal(size=2)")
    value = notebook.ok("%%tensor\nnoise(1.0) * noise(2.0)").value
    expected = np.random.default_rng(3)
    assert np.array_equal(np.asarray(value), (1.0 + expected.normal(size=2)) * (2.0 + expected.normal(size=2)))
    assert notebook.shell.user_ns["rng"].bit_generator.state == expected.bit_generator.state


def test_a_shuffle_stores_into_the_notebooks_array(notebook: Any) -> None:
    notebook.ok("import numpy as np\nrng = np.random.default_rng(3)\nx = np.arange(6.0)")
    notebook.ok("%%tensor\nrng.shuffle(x)\nx.sum()")
    expected, x = np.random.default_rng(3), np.arange(6.0)
    expected.shuffle(x)
    assert np.array_equal(notebook.shell.user_ns["x"], x)
    assert notebook.shell.user_ns["rng"].bit_generator.state == expected.bit_generator.state


def test_gradients_of_a_cell_that_draws(notebook: Any) -> None:
    notebook.ok("import numpy as np\nrng = np.random.default_rng(3)\nw = np.array([0.5, 2.0])")
    notebook.ok("%%tensor --grad w\nloss = np.sum(rng.normal(w[0], w[1], size=5) ** 2)\nloss")

    def loss(w: Any) -> Any:
        return np.sum(np.random.default_rng(3).normal(w[0], w[1], size=5) ** 2)

    w, steps = np.array([0.5, 2.0]), 1e-6 * np.eye(2)
    slopes = [(loss(w + s) - loss(w - s)) / 2e-6 for s in steps]
    assert np.allclose(np.asarray(notebook.shell.user_ns["grad_w"]), slopes, rtol=1e-6)
    assert float(notebook.shell.user_ns["loss"]) == loss(w)


def test_a_named_cell_draws_at_every_call(notebook: Any) -> None:
    notebook.ok("import numpy as np\nrng = np.random.default_rng(3)\nx = np.ones(2)")
    notebook.ok("%%tensor walk\nx + rng.normal(size=2)")
    found = notebook.ok("[np.asarray(walk()) for _ in range(2)]").value
    expected = np.random.default_rng(3)
    expected.normal(size=2)  # the cell's own run
    assert all(np.array_equal(v, 1 + expected.normal(size=2)) for v in found)
    assert notebook.shell.user_ns["rng"].bit_generator.state == expected.bit_generator.state


def test_a_generator_in_an_object_is_drawn_from_in_a_loop(notebook: Any) -> None:
    notebook.ok("import numpy as np\nclass Holder: pass\nh = Holder()\nh.rng = np.random.default_rng(3)\nn = 30")
    value = notebook.ok("%%tensor\ny = 0.0\nfor k in range(n):\n    y = 0.5 * y + h.rng.normal()\ny").value
    expected, y = np.random.default_rng(3), 0.0
    for _ in range(30):
        y = 0.5 * y + expected.normal()
    assert float(value) == y
    assert notebook.shell.user_ns["h"].rng.bit_generator.state == expected.bit_generator.state


def test_names_that_are_imported_in_the_cell(notebook: Any) -> None:
    cell = "%%tensor\nfrom numpy.random import default_rng, Generator, PCG64\ndefault_rng(1).normal() + Generator(PCG64(2)).normal()"
    expected = np.random.default_rng(1).normal() + np.random.Generator(np.random.PCG64(2)).normal()
    assert float(notebook.ok(cell).value) == expected


def test_comparing_with_numpy_draws_the_same_and_only_once(notebook: Any) -> None:
    notebook.ok("import numpy as np\nrng = np.random.default_rng(3)\nx = np.ones(50)")
    value = notebook.ok("%%tensor --time\nnp.sum(x * rng.normal(size=50) ** 2)").value
    expected = np.random.default_rng(3)
    assert np.isclose(float(value), np.sum(expected.normal(size=50) ** 2), rtol=1e-14)
    assert notebook.shell.user_ns["rng"].bit_generator.state == expected.bit_generator.state


def test_draws_that_are_captured_and_draws_that_are_not_do_not_mix(notebook: Any) -> None:
    notebook.ok("import numpy as np\nfrom scipy import stats\nrng = np.random.default_rng(3)")
    notebook.ok(
        "class Mine:\n    def __init__(self, rng):\n        self.draw = eval('lambda: rng.normal()', {'rng': rng})\nm = Mine(rng)"
    )
    ran = notebook("%%tensor\na = rng.normal()\nb = m.draw()\na + b")
    assert "code that is not captured" in str(ran.error)
    assert notebook.shell.user_ns["rng"].bit_generator.state == np.random.default_rng(3).bit_generator.state


SEEDED = {
    "by name": "from numpy.random import seed, rand, ranf, sample\ndef draw(n):\n    seed(3)\n    return rand(n).sum() + ranf() + sample()",
    "by a module of another name": "import numpy.random as own\ndef draw(n):\n    own.seed(3)\n    return own.rand(n).sum() + own.ranf()",
}


@pytest.mark.parametrize("elsewhere", [False, True])
@pytest.mark.parametrize("name", SEEDED)
def test_the_generator_begins_anew_wherever_it_is_seeded(
    notebook: Any, tmp_path: Any, monkeypatch: Any, name: str, elsewhere: bool
) -> None:
    """In functions of other files too, whose names are not replaced."""
    start = f"import numpy as np\n{SEEDED[name]}"
    space: dict[str, Any] = {}
    exec(start, space)
    want = [space["draw"](2), space["draw"](3), space["draw"](2), np.random.rand(), np.random.rand()]  # noqa: NPY002 (what cells draw from)
    if elsewhere:
        file = f"seeded_{list(SEEDED).index(name)}"
        (tmp_path / f"{file}.py").write_text(start)
        monkeypatch.syspath_prepend(str(tmp_path))
        start = f"import numpy as np\nfrom {file} import draw"
    notebook.ok(start)
    notebook.ok("%%tensor -q\nfound = [draw(n) for n in (2, 3, 2)]\nlater = np.random.rand()")
    found = [float(v) for v in (*notebook["found"], notebook["later"], notebook.ok("np.random.rand()").value)]
    assert found == want
