"""The scripts for a card, without one: every class of kernels that they run, every line that measures, and every part there is to run."""

# tests named elsewhere

import subprocess
import sys
import time
from importlib import import_module
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import tensormagic as tm
from tensormagic.backend.cuda import device as devices
from tensormagic.backend.cuda.compiling import compiler
from tests.backend.cuda.emulated import compiles
from tests.backend.cuda.fake import FakeDevice
from tests.backend.cuda.stand_in import stand_in

ROOT = Path(__file__).parents[3]
FOLDERS = [str(ROOT / "scripts"), str(ROOT / "benchmarks")]
sys.path[:0] = FOLDERS
check_gpu: Any = import_module("check_gpu")
gpu: Any = import_module("gpu")
device_cells: Any = import_module("device_cells")
gpu_peers: Any = import_module("gpu_peers")
all_on_gpu: Any = import_module("all_on_gpu")
for _folder in FOLDERS:
    sys.path.remove(_folder)
TRIES = {f"{c.name}, {d}": (c, d) for c in check_gpu.CASES for d in c.dtypes}


@pytest.fixture
def cupy(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "cupy", stand_in())


@compiles
@pytest.mark.share(9)
@pytest.mark.parametrize("name", TRIES)
def test_each_class_that_is_checked_on_a_card(cupy: None, name: str):
    case, dtype = TRIES[name]
    smallest = min(case.shapes, key=lambda shapes: sum(int(np.prod(s)) for s in shapes))
    assert check_gpu.check(case, dtype, smallest) <= check_gpu.MOST_ULPS


@compiles
def test_what_is_measured_of_kernels(cupy: None, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]):
    few = {k: (f, [tuple(min(n, 33) for n in s) for s in shapes]) for k, (f, shapes) in gpu.PROGRAMS.items()}
    wanted = ("Black-Scholes 2^24", "running sum 2^26")
    monkeypatch.setattr(gpu, "PROGRAMS", {k: few[k] for k in wanted})
    monkeypatch.setattr(gpu, "current", FakeDevice)
    monkeypatch.setattr(gpu, "COPIED", 1 << 10)
    launch_costs = gpu.launch_costs
    monkeypatch.setattr(gpu, "launch_costs", lambda device: launch_costs(device, 3))
    gpu.main()
    said = capsys.readouterr().out
    assert "Error" not in said, said
    assert all(f"{k} {dtype}: host" in said for k in wanted for dtype in ("float32", "float64"))
    assert "a launch" in said
    assert "from the disk in" in said


@compiles
@pytest.mark.parametrize("name", ["four elements", "cumsum 2**24"])
def test_what_is_measured_of_programs(name: str, monkeypatch: pytest.MonkeyPatch, tmp_path: Path):
    function, make = device_cells.CASES[name]
    devices.use(FakeDevice())
    monkeypatch.setattr(device_cells, "CASES", {name: (function, lambda: [a[:40] for a in make()])})
    monkeypatch.setattr(sys, "argv", ["device_cells.py", "--write", str(tmp_path / "cells.md")])
    tier = tm.config.tier
    try:
        device_cells.main()
    finally:
        devices.use(None)
        tm.config.tier = tier
    assert name in (tmp_path / "cells.md").read_text(encoding="utf-8")


@pytest.mark.parametrize("name", device_cells.CASES)
def test_the_programs_have_a_graph_for_a_card(name: str):
    """None of it is a step of the host."""
    from tensormagic import session
    from tensormagic.backend.cuda import run as cuda

    function, make = device_cells.CASES[name]
    graph = session.executable(tm.trace(function, *make())).graph
    assert not cuda.offenders(graph)


def test_the_programs_of_peers_are_numpys(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]):
    """With NumPy in the place of a peer."""

    def by_numpy(f: Any, args: Any, wrt: Any) -> Any:
        return lambda: f(np, *args)

    few = {
        k: (f, [tuple(min(n, 30) for n in s) for s in shapes], wrt)
        for k, (f, shapes, wrt) in gpu_peers.PROGRAMS.items()
    }
    few["perceptron 4096x784x1024x10"] = (gpu_peers.perceptron, [(6, 5), (5, 10), (7, 6)], 0)
    monkeypatch.setattr(gpu_peers, "PROGRAMS", few)
    monkeypatch.setattr(gpu_peers, "peers", lambda: [("NumPy", by_numpy, lambda: None)])
    gpu_peers.main()
    said = capsys.readouterr().out.splitlines()
    assert len(said) == 2 * len(few)
    assert all(" us, first " in line for line in said), said


def test_every_part_is_there(monkeypatch: pytest.MonkeyPatch):
    """What is called exists, and all fits into the minutes that there are; what is measured has the card for itself."""
    monkeypatch.setattr(all_on_gpu.shutil, "which", lambda name: name)
    planned = all_on_gpu.stages(16)
    names = [part.name for parts in planned for part in parts]
    assert {"values 1", "tests", "kernels", "cells", "control flow", "peers", "memcheck", "racecheck of tests"} <= set(
        names
    )
    assert [p.name for p in planned[1]] == ["kernels"]
    for part in (p for parts in planned for p in parts):
        assert all((ROOT / word).exists() for word in part.command if word.endswith(".py"))
    assert sum(max(p.seconds for p in parts) for parts in planned[:-1]) < 60 * all_on_gpu.MINUTES


def _part(name: str, text: str, seconds: float = 60) -> Any:
    return all_on_gpu.Part(name, [sys.executable, "-u", "-c", text], seconds)


def test_what_fails_or_takes_too_long_is_told_and_what_was_said_is_kept(tmp_path: Path):
    waits = "import time, subprocess, sys\nprint('begun')\nsubprocess.run([sys.executable, '-c', 'import time; time.sleep(99)'])"
    planned = [[_part("good", "print(1)"), _part("bad", "print(2); exit(3)")], [_part("slow", waits, 1.5)]]
    assert all_on_gpu.run_all(tmp_path, None, 1, planned) == 2
    said = (tmp_path / "report.txt").read_text(encoding="utf-8")
    assert "good: ok" in said
    assert "bad: FAILED (3)" in said
    assert "    2\n" in said
    assert "slow: NOT DONE" in said
    assert "    begun\n" in said
    assert [p.name for p in tmp_path.iterdir()] == ["report.txt"]


def test_no_part_begins_when_the_time_is_over(tmp_path: Path):
    assert all_on_gpu.run_all(tmp_path, None, 0, [[_part("late", "print(1)")]]) == 1
    assert "late: NOT DONE: no time is left" in (tmp_path / "report.txt").read_text(encoding="utf-8")


@compiles
def test_code_that_was_compiled_ahead_is_not_compiled_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    """By a machine whose compiler has other versions, and by one that has none."""
    case, dtype = TRIES["maps, float32"]
    tries = [(case, dtype, case.shapes[1])]
    monkeypatch.setattr(tm.config, "cache_folder", tmp_path / "there")
    assert check_gpu.compile_ahead(tries, (9, 0)) == 0
    while not list((tmp_path / "there").glob("cuda-*.o")):  # kept once it has been handed out
        time.sleep(0.01)
    all_on_gpu.pack(tmp_path / "there", tmp_path / "codes.zip")
    here = tmp_path / "here"
    here.mkdir(mode=0o700)
    variables = all_on_gpu.unpacked(tmp_path / "codes.zip", here)
    monkeypatch.setattr(tm.config, "cache_folder", here / "cache")
    monkeypatch.setattr(tm.config, "carried_folder", variables["TENSORMAGIC_CARRIED_FOLDER"])
    none = compiler.MissingCompilerError("no compiler is here", "")

    def missing() -> tuple[str, ...]:
        raise none

    for versions in (lambda: ("another compiler",), missing):
        monkeypatch.setattr(compiler, "versions", versions)
        launches = check_gpu.lowered(case.function, [np.zeros(5, dtype)])[3]
        codes = compiler.Codes(launches, whole=True)
        codes.start((9, 0))
        assert codes.wait(), codes.error
        assert codes.compiled == 0
    other = compiler.Codes(check_gpu.lowered(lambda x: x * 7.25 + 1, [np.zeros(5, dtype)])[3], whole=True)
    other.start((9, 0))
    assert not other.wait()
    assert "no compiler is here" in other.error


def test_without_a_card_it_says_what_is_missing():
    told = subprocess.run(
        [sys.executable, str(ROOT / "scripts/check_gpu.py"), "--small"], capture_output=True, text=True, check=False
    )
    if devices.missing() is not None:
        assert told.returncode == 1
        assert "needs a card" in told.stdout
