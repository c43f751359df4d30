"""Functions sent to other processes and kept in files, against themselves: ``python scripts/check_travel.py [COUNT]``.

Takes the programs of the tests, their gradients, and drawn programs, COUNT functions in all (default 200). Each runs here, in a
process that is spawned, in one of joblib's, in one that is forked, and in one that opens its file without Numba; results are
compared by their bits, errors by class and text. Ends with the counts; the exit status is 1 where anything differs. A last
round has the programs compiled: their files' machine code runs without Numba.
"""

from __future__ import annotations

import copy
import multiprocessing
import sys
import tempfile
import warnings
from collections import Counter
from collections.abc import Callable, Iterator
from concurrent.futures import ProcessPoolExecutor
from importlib import import_module
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

import cloudpickle
import joblib
import numpy as np

import tensormagic as tm

Case = tuple[
    str, Callable[..., Any], Callable[..., Any], tuple[Any, ...]
]  # its name, what was made, what of, and arguments


def told(value: Any) -> Any:
    """A result by its types and bits."""
    if isinstance(value, tuple | list):
        return [told(v) for v in value]
    if value is None or isinstance(value, str):
        return value
    array = np.asarray(value)
    return type(value).__name__, array.dtype.str, array.shape, array.tobytes()


def outcome(function: Any, arguments: tuple[Any, ...]) -> Any:
    """What a call gives and stores, or how it fails."""
    arguments = copy.deepcopy(arguments)
    try:
        with np.errstate(all="ignore"), warnings.catch_warnings():
            warnings.simplefilter("ignore")
            return [told(function(*arguments)), told(list(arguments))]
    except Exception as error:  # noqa: BLE001 (errors are compared)
        return [type(error).__name__, str(error)]


def arrived(data: bytes) -> Any:
    """The outcome of what was sent."""
    tm.config.tier = "numpy"
    return outcome(*cloudpickle.loads(data))


def handed(function: Callable[..., Any], given: tuple[Any, ...]) -> Any:
    """The outcome of what joblib has brought, by the tier that is asked here."""
    tm.config.tier = "numpy"
    return outcome(function, given)


def opened(path: str, tier: str, data: bytes) -> Any:
    """The outcome of a file, with what it says of itself, in a process that has no Numba."""
    tm.config.tier = tier  # type: ignore[assignment]
    function = tm.load(path)
    return outcome(function, cloudpickle.loads(data)), function.origin


def without_numba() -> None:
    """Begin a process that has none."""
    sys.modules["numba"] = None  # type: ignore[assignment]


def on_copies(function: Callable[..., Any]) -> Callable[..., Any]:
    """A function that stores into no argument."""

    def copied(*values: Any) -> Any:
        return function(*(v.copy() if hasattr(v, "copy") else v for v in values))

    return copied


def cases(count: int) -> Iterator[Case]:
    """The functions."""
    import_module("tests.programs.test_programs")  # which has them all entered
    from tests.programs.growing import compiled
    from tests.programs.program import PROGRAMS
    from tests.programs.random_programs import arguments, program

    for one in PROGRAMS.values():
        given, plain = one.make(one.small), one.function
        yield one.name, tm.tensor(plain), plain, given
        if one.derivative:
            apart = on_copies(plain)

            def total(*values: Any, apart: Any = apart) -> Any:
                found = apart(*values)
                return sum((p * p).sum() for p in (found if isinstance(found, tuple) else (found,)))

            slope = tm.value_and_grad(total, one.derivative)
            yield f"gradient of {one.name}", slope, slope, given
            count -= 1
        count -= 1
    for seed in range(10_000):
        if count <= 0:
            return
        drawn = program(seed, function=True)
        given = arguments(seed, shared=False)
        space: dict[str, Any] = {"np": np, "__name__": "__main__"}
        text = drawn.helpers + "\n\n" + drawn.function(tuple(given))
        exec(compiled(text, f"sent {seed}"), space)  # noqa: S102 (drawn)
        yield f"drawn {seed}", tm.tensor(space["f"]), space["f"], tuple(given.values())
        count -= 1


def main() -> int:
    """Send, keep, compare, and count."""
    tm.config.tier = "numpy"
    found = list(cases(int((*sys.argv[1:], "200")[0])))
    spawn, fork = multiprocessing.get_context("spawn"), multiprocessing.get_context("fork")
    counts: Counter[str] = Counter()

    def count(route: str, name: str, ours: Any, theirs: Any) -> None:
        counts[f"{route}: {'same' if ours == theirs else 'other'}"] += 1
        if ours != theirs:
            print(f"{route}: {name}: {str(theirs)[:300]} where {str(ours)[:300]}")

    expected = [outcome(f, a) for _, f, _, a in found]
    names = [name for name, *_ in found]
    counts["results"] = sum(not isinstance(e[1], str) for e in expected)
    counts["errors"] = len(expected) - counts["results"]
    sent = [cloudpickle.dumps((f, a)) for _, f, _, a in found]
    with ProcessPoolExecutor(1, mp_context=fork) as pool:
        routes = {"forked": list(pool.map(arrived, sent))}
    with ProcessPoolExecutor(1, mp_context=spawn) as pool:
        routes["spawned"] = list(pool.map(arrived, sent))
    routes["joblib"] = joblib.Parallel(n_jobs=2)(joblib.delayed(handed)(f, a) for _, f, _, a in found)  # type: ignore[assignment]
    for route, theirs in routes.items():
        for (name, *_), a, b in zip(found, expected, theirs, strict=True):
            count(route, name, a, b)
    with (
        tempfile.TemporaryDirectory() as folder,
        ProcessPoolExecutor(1, mp_context=spawn, initializer=without_numba) as pool,
    ):
        for tier in ("numpy", "numba"):
            tm.config.tier = tier
            for name, _, plain, given in found if tier == "numpy" else [c for c in found if c[1] is not c[2]][:54]:
                path = str(Path(folder, "f.tm"))
                try:
                    function = tm.compile(on_copies(plain), *given)
                    function.save(path)
                except Exception as error:  # noqa: BLE001 (errors of drawn programs, too: those of a call are counted above)
                    fails = isinstance(expected[names.index(name)][1], str)
                    why = (
                        "fails, as its call does" if fails else f"{type(error).__name__}: {str(error).splitlines()[0]}"
                    )
                    counts[f"file, {tier}: not compiled for types or not saved: {why[:160]}"] += 1
                    continue
                ours = outcome(function, given)
                theirs, origin = pool.submit(opened, path, tier, cloudpickle.dumps(given)).result()
                count(f"file, {tier}", name, ours, theirs)
                kernels = "kernels" if function.executable.plan.sources else "library calls alone"
                counts[f"file, {tier}, {kernels}: {origin.partition(', ')[2]}"] += 1
    for what, number in counts.items():
        print(f"{number:5} {what}")
    return int(any(what.endswith("other") for what in counts))


if __name__ == "__main__":
    sys.exit(main())
