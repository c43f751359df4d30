"""The speed view: who takes part, what is said, and that text, page and picture say the same."""

from __future__ import annotations

import re
import sys
import types
import xml.etree.ElementTree as ET
from dataclasses import replace

import numpy as np
import pytest

import tensormagic as tm
from tensormagic.backend.compiling.messages import Code
from tensormagic.backend.cpu import loader as cpu_loader
from tensormagic.backend.planning.costs import Cost
from tensormagic.notebook.speeds import against, machine, measure
from tensormagic.notebook.speeds.against import Peer
from tensormagic.notebook.speeds.machine import Machine
from tensormagic.notebook.speeds.measure import Party, Speed
from tensormagic.notebook.speeds.panel import drawn
from tensormagic.notebook.speeds.profiled import Profile, profiled

LOSS = "z = X @ w + b\nloss = np.mean(np.log(1 + np.exp(-y * z)))\nloss"
CAN = Machine(50e9, 60e9, 20e9, "NumPy")


@pytest.fixture(autouse=True)
def known_machine(monkeypatch):
    """A machine that need not be measured."""
    monkeypatch.setattr(machine, "measured", lambda: CAN)


def shown(notebook, options, text=LOSS):
    return notebook.ok(f"%%tensor --show none {options}\n{text}").data


def figures(calls=(1e-3, 1e-4), **changes):
    """A view of figures that are given."""
    numpy = Party("NumPy", "", 1e-3, None, calls[0], 4000, "5 ops", 1e-16, 0.0)
    own = Party("tensormagic", "compiled", 2e-3, 0.09, calls[1], 100, "1 kernel", 1e-17, 2e-16)
    made = {
        "parties": (numpy, own),
        "by_numpy": Cost(100, 200, 4000),
        "by_plan": Cost(100, 200, 1000),
        "machine": CAN,
        "lines": Profile({2: 1e-4, 3: 3e-4}),
        "digits": 63,
        **changes,
    }
    return Speed(**made)


def test_everything_that_is_asked_for_is_there(notebook):
    data = shown(notebook, "-t")
    text = data["text/plain"]
    for part in (
        "a run",
        "first result",
        "compiling",
        "memory",
        "launches",
        "error",
        "9 ops",
        " ± ",
    ):
        assert part in text
    assert re.search(r"as in %%timeit: NumPy (.* ± .*, )?7 runs, ", text)  # with the mean where the runs vary
    assert "tensormagic, on NumPy" in text
    assert re.search(r"NumPy: [\d.]+ k flops, [\d.]+ kB moved, [\d.]+ flops a byte", text)
    assert "50 Gflop/s; 60 GB/s from the cache, 20 GB/s from memory" in text
    rows = [line for line in text.splitlines() if line.endswith((" 2 z = X @ w + b", " 4 loss")) or "np.mean" in line]
    shares = [int(found[1]) for row in rows if (found := re.search(r"(\d+) % ", row))]
    assert len(rows) == 3
    assert 98 <= sum(shares) <= 102


def test_page_and_picture_say_the_same(notebook):
    data = shown(notebook, "-t")
    picture = ET.fromstring(data["image/svg+xml"])
    words = "".join(picture.itertext())
    page = ET.fromstring(f"<root>{data['text/html']}</root>")
    for part in ("profiled run", "tensormagic", "z = X @ w + b"):
        assert part in words
    for part in ("first result", "roofline", "tensormagic", "z = X @ w + b"):
        assert part in "".join(page.itertext())
    assert "<script" not in data["text/html"] + data["image/svg+xml"]
    assert "http" not in data["text/html"].replace("http://www.w3.org/2000/svg", "")
    assert "prefers-color-scheme" not in data["image/svg+xml"]
    assert picture.find("{http://www.w3.org/2000/svg}title") is not None


def test_beside_a_graph_it_is_a_display_of_its_own(notebook):
    displays = notebook.ok(f"%%tensor -t\n{LOSS}").displays
    assert set(displays[0]) == {"text/plain", "text/html", "image/svg+xml"}
    assert " NumPy" in displays[0]["text/plain"].splitlines()[0]


def test_the_first_result_is_of_this_run(notebook):
    text = shown(notebook, "-t --grad w")["text/plain"]
    assert "captured and computed, with gradients" in text
    row = next(line for line in text.splitlines() if line.startswith("tensormagic, on NumPy"))
    assert row.split()[3:5][1] in {"s", "ms", "µs"}
    assert [line.split("  ")[0] for line in text.splitlines() if line.startswith(("NumPy, ", "tensormagic, "))] == [
        "NumPy, the cell as it is",
        "tensormagic, on NumPy",
        "tensormagic, with gradients",
    ]


def test_a_cell_that_prints_is_heard_once(notebook):
    ran = notebook.ok("%%tensor -t --show none\nfor k in range(3):\n    print(k, w.sum() * k)\nnp.sum(w)")
    assert ran.out.splitlines()[:3] == ["0 0.0", "1 0.0", "2 0.0"]
    assert "0.0" not in "".join(ran.out.splitlines()[3:])


def test_memory_is_what_is_allocated_at_a_time(notebook):
    notebook["v"] = np.ones(100_000)
    text = shown(notebook, "-t", "a = v + 1\nc = np.exp(a) * 2\nc")["text/plain"]
    row = next(line for line in text.splitlines() if line.startswith("NumPy, the cell as it is"))
    held = float(re.search(r"([\d.]+) MB", row)[1])
    # a and exp(a), in whose memory NumPy puts its product: two arrays of 0.8 MB, and some kB of Python itself
    assert 1.6 <= held < 1.65


def test_accuracy_is_against_more_digits(notebook):
    if np.finfo(np.longdouble).nmant <= 52:
        pytest.skip("NumPy has no more digits than float64 here")
    notebook["v"] = np.array([1e-17, 2e-17])
    text = shown(notebook, "-t", "np.sum(np.log(1 + v))")["text/plain"]
    by_numpy, own = (next(row for row in text.splitlines() if row.startswith(n)) for n in ("NumPy, ", "tensormagic, "))
    assert by_numpy.split()[-1] == "1.0e+00"  # it loses all of it
    assert "< 7.8e-03" in own  # 63 bits lose the most of it too: no more than that can be said
    notebook["v"] = np.array([1e-30])  # all of it, in both
    assert "error: not known" in shown(notebook, "-t", "np.sum(np.log(1 + v))")["text/plain"]
    notebook["v"] = np.array([0.1, 0.7])
    text = shown(notebook, "-t", "np.sum(np.log(1 + v))")["text/plain"]
    assert float(next(row for row in text.splitlines() if row.startswith("NumPy, ")).split()[-1]) < 1e-15
    text = shown(notebook, "-t", "np.sum(np.linalg.inv(X.T @ X))")["text/plain"]
    assert "error: not known" in text


def test_compiling_pays_after_so_many_runs():
    assert figures().pays_after == 101  # 0.09 s, and 0.9 ms saved by each
    assert figures((1e-4, 1e-3)).pays_after is None
    text = drawn(figures(), "\nz = x\nz + 1")[1]
    assert text.startswith("10 times faster than NumPy\n")
    assert "compiling took 90 ms and pays off after about 100 runs" in text
    assert "and does not pay" in drawn(figures((1e-4, 1e-3)), "\nz\nz")[1]


@pytest.mark.parametrize(("kept", "seconds"), [(("a", "b"), 0.75), (("a",), None), ((), None)])
def test_seconds_of_compiling_are_known_where_the_cache_has_each_kernel(monkeypatch, kept, seconds):
    """Where the cache cannot be written, nothing is said: it was "compiling took 0 ns"."""
    codes = {"a": Code("a", b"", 0.25), "b": Code("b", b"", 0.5)}
    monkeypatch.setattr(cpu_loader, "key_of", lambda source: source)
    monkeypatch.setattr(measure.native.cache, "read", lambda key: codes[key] if key in kept else None)
    assert measure._compile_seconds(types.SimpleNamespace(sources=("a", "b"))) == seconds


def test_a_ratio_has_the_digits_that_spreads_leave_it():
    def told(by_numpy: tuple[float, float, float], own: tuple[float, float, float]) -> str:
        both = zip(figures().parties, (by_numpy, own), strict=True)
        parties = tuple(
            replace(p, call=call, mean=mean, spread=spread, batches=7, runs=9) for p, (call, mean, spread) in both
        )
        return drawn(replace(figures(), parties=parties), "\nz = x\nz + 1")[1].splitlines()[0]

    assert told((1e-3, 1.052e-3, 1e-5), (1.3e-4, 1.35e-4, 2e-6)) == "7.79 times faster than NumPy"
    assert told((1e-3, 1.052e-3, 2e-4), (1.3e-4, 1.35e-4, 2e-6)) == "about 7.8 times faster than NumPy"
    assert (
        told((5e-4, 1.052e-3, 1.2e-3), (1e-4, 1.35e-4, 5e-5)) == "about 5 times faster than NumPy, by the fastest runs"
    )
    assert told((1e-3, 1.1e-3, 1e-3), (2e-3, 9e-4, 1e-3)) == (
        "1.2 times faster than NumPy by the means, 2 times slower by the fastest runs"
    )
    assert (
        told((2e-3, 2e-3, 1e-3), (1e-3, 2e-3, 1e-3))
        == "as fast as NumPy by the means, 2 times faster by the fastest runs"
    )
    assert told((2e-3, 4e-3, 3e-3), (1e-3, 2e-3, 1e-3)) == "about 2 times faster than NumPy, by the fastest runs"
    # all runs of the one were disturbed: their spread is small, and the fastest took a tenth of the mean
    assert (
        told((3e-5, 3.6e-4, 1.4e-4), (9e-6, 1.1e-5, 6e-7))
        == "3.3 times faster than NumPy by the fastest runs, 33 times faster by the means"
    )
    assert told((1e-4, 1e-4, 0.0), (1e-4, 1.01e-4, 0.0)) == "as fast as NumPy"
    assert told((1.0, 1.2345, 0.0), (1e-4, 1e-4, 0.0)) == "12,300 times faster than NumPy"


def test_bars_are_as_long_as_the_headline_says():
    """On a busy machine the headline told the fastest runs, and the bars the means."""
    given = ((1e-3, 4e-3, 4e-3), (5e-4, 5e-3, 5e-3))
    parties = [
        replace(p, call=call, mean=mean, spread=spread, batches=7, runs=9)
        for p, (call, mean, spread) in zip(figures().parties, given, strict=True)
    ]
    page, text = drawn(replace(figures(), parties=tuple(parties)), "\nz = x\nz + 1")
    assert text.startswith("1.2 times slower than NumPy by the means, 2 times faster by the fastest runs\n")
    wide = [float(found) for found in re.findall(r"width:([\d.]+)%", page)][:2]
    assert wide[0] == pytest.approx(2 * wide[1], rel=0.01)
    assert "NumPy 4 ms ± 4 ms, 7 runs, 9 loops each; tensormagic 5 ms ± 5 ms, 7 runs, 9 loops each" in text
    assert "compiling took 90 ms and pays off after about 180 runs" in text


def test_the_roof_is_that_of_the_memory_or_of_the_cache():
    # 0.2 flops a byte: 4 Gflop/s from memory, 12 from the cache
    work = Cost(10**6, 2 * 10**6, 10**7)
    text = drawn(figures((1e-2, 2e-3), by_plan=work), "\nz")[1]
    assert "tensormagic does 1 Gflop/s, 25 % of what one core can do with data in memory" in text
    text = drawn(figures((1e-2, 2 / 6e3), by_plan=work), "\nz")[1]
    assert "tensormagic does 6 Gflop/s, 50 % of what one core can do with data in the cache" in text
    assert "with data in the cache" in drawn(figures(), "\nz")[1]  # a thousand bytes
    assert "at least 200 flops" in drawn(figures(by_plan=Cost(100, 200, 1000, known=False)), "\nz")[1]


def test_a_cell_without_arithmetic_has_no_roof(notebook):
    data = shown(notebook, "-t", "X.T")
    assert "tensormagic does" not in data["text/plain"]
    ET.fromstring(data["image/svg+xml"])


def test_many_lines_are_left_out():
    source = "\n" + "\n".join(f"v = v + {k}" for k in range(100))
    lines = {k: float(k) for k in range(2, 102)}
    made = drawn(figures(lines=Profile(lines)), source)
    assert made[1].count("v = v + ") == 24
    assert "76 lines that take less are left out" in made.picture


def test_hostile_text_is_text(notebook):
    made = drawn(figures(), '\ns = "<script>alert(1)</script>" + "\u202e" + "x" * 100000\n😀 & "\'')
    for form in (made.picture, f"<root>{made[0]}</root>"):
        root = ET.fromstring(form)
        assert not [e for e in root.iter() if e.tag.endswith("script")]
        assert "<script>" in "".join(root.itertext())
    assert len(made.picture) < 40_000


# other packages -------------------------------------------------------------------------------------------------------


@pytest.fixture
def peers(monkeypatch):
    """Two packages: one has all that the cell needs, the other no logarithm."""
    whole = types.ModuleType("whole")
    vars(whole).update({name: getattr(np, name) for name in ("mean", "log", "exp", "sum")})
    part = types.ModuleType("part")
    part.mean, part.exp = np.mean, np.exp

    def compiled(program, given):
        assert all(isinstance(a, np.ndarray) for a in given)
        return lambda *arrays: program(*arrays)

    made = {
        "jax": Peer("Whole", "whole", lambda a: a, compiled),
        "torch": Peer("Part", "part", lambda a: a, lambda program, _: program),
        "pytensor": Peer("Absent", "no_such_package", lambda a: a, compiled),
    }
    monkeypatch.setattr(against, "PEERS", made)
    monkeypatch.setitem(__import__("sys").modules, "whole", whole)
    monkeypatch.setitem(__import__("sys").modules, "part", part)


@pytest.mark.usefixtures("peers")
def test_another_package_runs_the_cell_as_it_is_or_says_why_not(notebook):
    text = shown(notebook, "--against jax,torch,pytensor")["text/plain"]
    row = next(line for line in text.splitlines() if line.startswith("Whole"))
    assert row.split()[-1] != "–"  # it is as accurate as NumPy, whose functions these are
    assert "Part cannot run the cell unchanged: AttributeError: module 'part' has no attribute 'log'" in text
    assert "Absent cannot run the cell unchanged: is not installed" in text


@pytest.mark.usefixtures("peers")
@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("import numpy as np\nnp.sum(w)", "the cell imports NumPy itself"),
        ("np.sum(w * rng.normal(size=3))", "rng is a random generator of NumPy"),
    ],
)
def test_what_no_package_is_given(notebook, text, why):
    notebook["rng"] = np.random.default_rng(0)
    assert f"Whole cannot run the cell unchanged: {why}" in shown(notebook, "--against jax", text)["text/plain"]


def test_only_packages_that_are_known(notebook):
    ran = notebook(f"%%tensor --against tensorflow\n{LOSS}")
    assert type(ran.error).__name__ == "UsageError"
    assert "jax, pytensor, torch" in ran.out


# the machine ----------------------------------------------------------------------------------------------------------


def test_the_machine_is_measured_once(tmp_path, monkeypatch):
    monkeypatch.undo()
    monkeypatch.setattr(machine, "_known", {})
    monkeypatch.setattr(machine, "_LARGE", 100_000)
    with tm.config.using(cache_folder=tmp_path, tier="numpy"):
        found = machine.measured()
        assert found.by == "NumPy"
        assert 1e8 < found.flops < 1e13
        assert 1e8 < found.memory < 1e13
        monkeypatch.setattr(machine, "_known", {})
        monkeypatch.setattr(machine, "_by_numpy", lambda: pytest.fail("measured again"))
        assert machine.measured() == found
    assert len(list(tmp_path.glob("machine-*.json"))) == 1


def test_compiled_code_is_measured_where_it_runs(tmp_path, monkeypatch):
    pytest.importorskip("numba")
    monkeypatch.undo()
    monkeypatch.setattr(machine, "_known", {})
    monkeypatch.setattr(machine, "_LARGE", 100_000)
    found = machine._by_machine_code()
    assert found.by == "compiled code"
    assert 1e8 < found.flops < 1e13
    assert found.cached > 1e8


def test_lines_of_loops_and_of_the_notebooks_functions_are_apart(notebook):
    notebook.ok("def work(a):\n    b = np.sort(a)\n    return [np.sum(x) for x in (b, b)][0]")
    data = shown(notebook, "-t", "total = 0.0\nfor k in range(3):\n    z = X * k\n    total = total + work(z)\ntotal")
    text = data["text/plain"].partition("profiled run\n")[2].partition("\nspeed of")[0].splitlines()
    own, helper = text[:5], text[5:]
    assert [row.rpartition("  ")[2].strip() for row in own] == [
        "2 total = 0.0",
        "3 for k in range(3):",
        "z = X * k",
        "total = total + work(z)",
        "6 total",
    ]
    assert all(re.search(r"\d+ % +[\d.]+ [nµm]s", row) for row in (*own[1:4], *helper[1:]))
    assert own[4].split() == ["6", "total"]  # a name alone is no work
    assert re.fullmatch(r"  work, In\[\d+\]", helper[0])
    assert [row.split("  ")[-1].strip() for row in helper[1:]] == [
        "b = np.sort(a)",
        "return [np.sum(x) for x in (b, b)][0]",
    ]
    assert "work, In[" in data["text/html"]


def test_a_long_run_is_followed_for_its_first_seconds(monkeypatch):
    monkeypatch.setattr("tensormagic.notebook.speeds.profiled._MOST_SECONDS", 0.0)
    found = profiled("cell", lambda: exec(compile("a = 1\nb = 2", "cell", "exec"), {}))
    assert not found.whole
    assert sys.gettrace() is None
    assert "first seconds" in drawn(figures(lines=found), "a = 1\nb = 2")[1]


def test_what_runs_at_the_same_time_is_named(monkeypatch):
    monkeypatch.setattr(tm.config, "threads", 2)
    groups = (("svd", "svd"), ("@", "sort", "kernel 2"), ("fft", *["@"] * 7), ("a", "b"), ("c", "d"))
    text = drawn(figures(at_once=groups), "\nz")[1]
    assert "at the same time: svd and svd; @, sort and kernel 2; fft and 7 more; a and b; …" in text
    assert "at the same time" not in drawn(figures(), "\nz")[1]


@pytest.mark.parametrize(
    ("text", "first", "second"),
    [
        (
            "np.exp(np.linspace(0, 1, 1000)).sum()",
            "a run has nothing left to compute",
            "each result is an input or a constant, by what rewriting has found",
        ),
        (
            "w * 1",
            "a run has nothing left to compute",
            "each result is an input or a constant, by what rewriting has found",
        ),
        ("np.sort(w)", None, "nothing is compiled: the rewritten graph runs in NumPy"),
        ("w.reshape(3, 1)", None, "nothing is compiled: the rewritten graph runs in NumPy"),
    ],
)
def test_what_was_not_compiled_took_no_time_and_pays_off_at_no_run(notebook, text, first, second):
    """They were told as 2,200 times faster, and as compiled in 0 ns, which pays off after 1 run."""
    told = shown(notebook, "-t", text)["text/plain"].splitlines()
    assert first is None or first in told
    assert second in told
    assert not any("pays off" in line for line in told)
