"""Run another project's tests of derivatives, those of HIPS autograd, through NumPy's own names: ``peer_derivatives.py FOLDER [--write]``.

The tests are fetched from PyPI into FOLDER where they are not there; nothing of theirs is kept in this repository. What they
import as ``autograd.numpy`` is NumPy, ``autograd.scipy`` SciPy, and ``check_grads`` is ``tm.check_grads``, which compares with
differences of plain NumPy. Of the combinations of arguments that a test goes through, ``--most`` are taken, evenly.
"""

from __future__ import annotations

import argparse
import builtins
import dataclasses
import datetime as dt
import functools
import itertools
import platform
import subprocess
import sys
import tarfile
import types
import warnings
from collections.abc import Callable
from importlib import import_module
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import scipy

ROOT = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT))

import tensormagic as tm  # noqa: E402 (found by the line above)

PAGE = ROOT / "benchmarks" / "results" / "peer_derivatives.md"
DISTRIBUTIONS = ("multivariate_normal", "norm", "t", "gamma", "beta", "dirichlet", "poisson", "chi2")
PROJECT = "autograd"
VERSION = "1.8.0"
PARTS = {
    "NumPy": ("numpy", "systematic", "scalar_ops", "binary_ops", "complex", "truediv", "jacobian"),
    "programs and containers": ("graphs", "list", "tuple", "dict"),
    "linear algebra": ("linalg",),
    "Fourier transforms": ("fft",),
    "SciPy": ("scipy",),
}
THEIRS = {  # what fails by what it asks for, and not by a derivative
    "test_make_diagonal": "NumPy has no make_diagonal",
    "test_diagonal": "NumPy has no make_diagonal",
    "test_pinv": "NumPy has no linalg._dot",
    "test_rfftn_odd_not_implemented": "asks for an error, since theirs has no derivative there; here there is one",
    "test_convolve_generalization": "SciPy's convolve has no axes",
    "test_convolve_ignore": "SciPy's convolve has no axes",
    "test_convolve_ignore_dot": "SciPy's convolve has no axes",
}


@dataclasses.dataclass
class Settings:
    """How many combinations of one test are taken; all where 0."""

    most: int = 0


SETTINGS = Settings()


def at(
    fun: Callable[..., Any], argnum: Any, args: tuple[Any, ...], options: dict[str, Any]
) -> tuple[Any, tuple[Any, ...]]:
    """A function of the arguments that are differentiated, and these."""
    numbers = (argnum,) if isinstance(argnum, int) else tuple(argnum)

    def of_some(*some: Any) -> Any:
        given = list(args)
        for number, value in zip(numbers, some, strict=True):
            given[number] = value
        return fun(*given, **options)

    return of_some, tuple(args[k] for k in numbers)


def floats(value: Any) -> Any:
    """Arguments as the tests mean them: whole numbers are differentiated, too."""
    if isinstance(value, tuple | list):
        return type(value)(map(floats, value))
    if isinstance(value, dict):
        return {k: floats(v) for k, v in value.items()}
    array = np.asarray(value)
    return value if array.dtype.kind not in "iu" else array.astype(float)[()]


def check_grads(fun: Any, argnum: Any = 0, modes: Any = ("fwd", "rev"), order: int = 2) -> Any:
    """Holds the derivatives of a function against differences, at the arguments that it is then called with."""

    def check(*args: Any, **options: Any) -> None:
        of_some, some = at(fun, argnum, args, options)
        tm.check_grads(of_some, tuple(map(floats, some)), order=order, modes=tuple(modes))

    return check


def combo_check(fun: Any, argnum: Any = 0, modes: Any = ("fwd", "rev"), order: int = 2) -> Any:
    """The same for each of several values of each argument and option."""

    def check(*values: Any, **options: Any) -> None:
        pairs = [[(k, v) for v in found] for k, found in options.items()]
        cases = [(args, dict(chosen)) for args in itertools.product(*values) for chosen in itertools.product(*pairs)]
        for args, chosen in cases[:: 1 + len(cases) // SETTINGS.most] if SETTINGS.most else cases:
            check_grads(fun, argnum, modes, order)(*args, **chosen)

    return check


def of_argument(derive: Any) -> Any:
    """A function that derives another one, as the tests call it: whole numbers are differentiated, too."""

    def make(fun: Any, argnum: Any = 0) -> Any:
        derived = derive(fun, argnum)

        @functools.wraps(fun)
        def call(*args: Any, **options: Any) -> Any:
            given = [floats(a) if isinstance(a, int | float) and not isinstance(a, bool) else a for a in args]
            return derived(*given, **options)

        return call

    return make


def of_one_element(fun: Any, argnum: Any = 0) -> Any:
    """The gradient of a result of one element, which theirs takes for a number whatever its axes are."""
    return tm.grad(lambda *args, **options: np.reshape(fun(*args, **options), ())[()], argnum)


def each(fun: Any, argnum: int = 0) -> Any:
    """The derivative of a function that works element by element."""
    return tm.grad(lambda *args, **options: np.sum(fun(*args, **options)), argnum)


def make_vjp(fun: Any, argnum: int = 0) -> Any:
    """A function that gives another one's value and what pulls cotangents back."""

    def call(*args: Any, **options: Any) -> Any:
        of_some, some = at(fun, argnum, args, options)
        value, pull = tm.vjp(of_some, *some)
        return (lambda cotangent: pull(cotangent)[0]), value

    return call


def install() -> None:
    """Have ``autograd`` be NumPy, SciPy and ours."""
    own = types.ModuleType("autograd")
    own.__dict__.update(
        __path__=[],
        grad=of_argument(of_one_element),
        holomorphic_grad=of_argument(of_one_element),
        jacobian=of_argument(tm.jacobian),
        hessian=of_argument(tm.hessian),
        value_and_grad=of_argument(tm.value_and_grad),
        elementwise_grad=each,
        deriv=each,
        make_vjp=make_vjp,
        tuple=builtins.tuple,
        list=builtins.list,
        dict=builtins.dict,
        isinstance=builtins.isinstance,
    )
    util = types.ModuleType("autograd.test_util")
    util.__dict__.update(
        check_grads=check_grads, combo_check=combo_check, scalar_close=lambda a, b: np.isclose(a, b, 1e-6, 1e-6)
    )
    own.__dict__.update(numpy=np, scipy=scipy, test_util=util)
    science = {n: import_module(f"scipy.{n}") for n in ("integrate", "linalg", "signal", "special", "stats")}
    named: dict[str, Any] = {"": own, ".test_util": util, ".numpy": np, ".scipy": scipy}
    named |= {f".numpy.{n}": getattr(np, n) for n in ("random", "linalg", "fft")}
    named |= {f".scipy.{n}": module for n, module in science.items()}
    named |= {f".scipy.stats.{n}": getattr(science["stats"], n) for n in DISTRIBUTIONS}
    for name, module in named.items():
        sys.modules[f"autograd{name}"] = module


class Ends:
    """What has become of each test."""

    def __init__(self) -> None:
        self.passed: dict[str, int] = {}
        self.failed: dict[str, str] = {}

    def pytest_runtest_logreport(self, report: Any) -> None:
        """Count a test."""
        name = report.nodeid.rpartition("/")[2]
        if report.failed:
            self.failed[name] = _said(report)
            sys.stdout.write(f"\n{name}: {_said(report)}\n")
        elif report.when == "call" and report.passed:
            file = name.partition("::")[0]
            self.passed[file] = self.passed.get(file, 0) + 1


def _said(report: Any) -> str:
    crash = getattr(report.longrepr, "reprcrash", None)
    return " ".join(str(getattr(crash, "message", report.longrepr)).split())[:300]


def fetched(folder: Path) -> Path:
    """Where their tests are, fetched where they are not there."""
    found = folder / f"{PROJECT}-{VERSION}" / "tests"
    if not found.is_dir():
        folder.mkdir(parents=True, exist_ok=True)
        wanted = ["download", "--no-deps", "--no-binary", ":all:", "-q", "-d", str(folder), f"{PROJECT}=={VERSION}"]
        subprocess.run([sys.executable, "-m", "pip", *wanted], check=True)
        with tarfile.open(folder / f"{PROJECT}-{VERSION}.tar.gz") as packed:
            packed.extractall(folder, filter="data")
    return found


def page(ends: Ends, most: int) -> str:
    """The results as a page."""
    total, bad = sum(ends.passed.values()), len(ends.failed)
    ours = {name: said for name, said in ends.failed.items() if _test(name) not in THEIRS}
    versions = f"Python {platform.python_version()}, NumPy {np.__version__}, SciPy {scipy.__version__}"
    taken = f", of each at most {most} combinations of arguments" if most else ""
    lines = [
        "# Another project's tests of derivatives",
        "",
        f"`scripts/peer_derivatives.py` runs the tests of {PROJECT} {VERSION} (HIPS) through NumPy's own names:",
        f"derivatives of order 1 and 2, forward and reverse, against differences{taken}.",
        f"{dt.datetime.now(tz=dt.UTC).date()}; {platform.machine()}, {versions}.",
        "",
        f"{total + bad} run, {total} passed, {len(ours)} failed that are ours, {bad - len(ours)} that are not.",
        "",
        "| part | run | passed | failed, ours | failed, not ours |",
        "|---|---:|---:|---:|---:|",
    ]
    for part, files in PARTS.items():
        names = {f"test_{f}.py" for f in files}
        passed = sum(n for file, n in ends.passed.items() if file in names)
        failed = [n for n in ends.failed if n.partition("::")[0] in names]
        own = sum(n in ours for n in failed)
        lines.append(f"| {part} | {passed + len(failed)} | {passed} | {own} | {len(failed) - own} |")
    for title, chosen in (("Ours", ours), ("Not ours", {n: s for n, s in ends.failed.items() if n not in ours})):
        lines += ["", f"## {title}", "", "| test | |", "|---|---|"]
        lines += [f"| `{n}` | {_row(THEIRS.get(_test(n), said))} |" for n, said in sorted(chosen.items())]
    return "\n".join(lines) + "\n"


def _test(name: str) -> str:
    return name.rpartition("::")[2].partition("[")[0]


def _row(text: str) -> str:
    return text.partition(" Hint:")[0].rpartition("errors.")[2].replace("|", "/")


def main() -> int:
    """Run the tests; prints what fails."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("folder", type=Path, help="where the tests are, or are put")
    parser.add_argument("-k", default="", help="only tests whose names have this")
    parser.add_argument("--part", action="append", choices=PARTS)
    parser.add_argument("--most", type=int, default=0, help="of the combinations of one test; all where 0")
    parser.add_argument("--write", action="store_true", help="write the page of results")
    options = parser.parse_args()
    SETTINGS.most = options.most
    tests = fetched(options.folder.resolve())
    install()
    tm.config.tier = "numpy"
    ends = Ends()
    warnings.simplefilter("ignore")
    files = [str(tests / f"test_{name}.py") for part in options.part or PARTS for name in PARTS[part]]
    more = ["-k", options.k, "--tb=short"] if options.k else ["--tb=no"]
    # assertions as they are written: code that pytest has changed is not read by line
    more += ["--assert=plain", "-c", "/dev/null", "--rootdir", str(tests)]
    pytest.main(["-q", "-p", "no:cacheprovider", *more, *files], plugins=[ends])
    text = page(ends, options.most)
    sys.stdout.write(f"\n{text}")
    if options.write:
        PAGE.write_text(text, "utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main())
