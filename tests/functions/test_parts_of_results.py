"""What a captured function gives lies in memory as in NumPy: parts of one array share it, one part is one object, read-only stays so."""

import itertools
import linecache
import random
import warnings

import numpy as np
import pytest

import tensormagic as tm

WHOLES = (
    "x",
    "A",
    "x * 2",
    "A + 1",
    "np.outer(x, x)",
    "x.imag",
    "A.imag",
    "np.broadcast_to(x * 3, (3, 3))",
    "np.broadcast_to(x, (2, 3))",
    "np.broadcast_arrays(x, A)[0]",
    "np.broadcast_arrays(x + 1, A)[0]",
    "np.meshgrid(x, x, copy=False)[1]",
    "np.diag(A)",
    "(x * 1j).imag",
)
PARTS = (
    "{}[1:]",
    "{}[::-1]",
    "{}.T",
    "{}[None]",
    "{}.real",
    "{}",
    "{}.copy()",
    "{} + 0",
    "{}.reshape(-1)",
    "{}[..., 0:2]",
)


def program(rng: random.Random) -> tuple[str, int]:
    names = [f"v{k}" for k in range(rng.randint(3, 7))]
    lines = [f"{names[0]} = {rng.choice(WHOLES)}"]
    for k, name in enumerate(names[1:], 1):
        of = rng.choice(names[:k])
        lines.append(f"{name} = {rng.choice(WHOLES) if rng.random() < 0.3 else rng.choice(PARTS).format(of)}")
    given = rng.choices(names, k=rng.randint(2, 6))
    body = "\n    ".join([*lines, f"return ({', '.join(given)},)"])
    return f"def f(x, A):\n    {body}\n", len(given)


def told(results: tuple[np.ndarray, ...]) -> object:
    with warnings.catch_warnings(action="ignore"):  # NumPy's, where broadcast_arrays gives what may be stored into
        flags = [a.flags.writeable for a in results]
    pairs = list(itertools.combinations(results, 2))
    return (
        flags,
        [a is b for a, b in pairs],
        [np.shares_memory(a, b) for a, b in pairs],
        [a.tolist() for a in results],
        [a.dtype for a in results],
    )


@pytest.mark.parametrize("seed", range(80))
def test_results_lie_as_in_numpy(seed: int) -> None:
    text, _ = program(random.Random(seed))
    space = {"np": np}
    name = f"<parts of results {seed}>"
    linecache.cache[name] = len(text), None, text.splitlines(keepends=True), name
    exec(compile(text, name, "exec"), space)
    captured = tm.tensor(space["f"])
    for call in range(2):
        arguments = np.arange(3.0) + call, np.arange(9.0).reshape(3, 3)
        assert told(captured(*arguments)) == told(space["f"](*arguments)), text


class Box:
    pass


def test_parts_that_are_kept_and_given() -> None:
    box = Box()

    def keep(x):
        y = x * 2
        box.all, box.part = y[1:], y[2:]
        return box.part, y[::-1]

    for _ in range(2):
        part, turned = tm.tensor(keep)(np.arange(4.0))
        assert part is box.part
        assert type(part) is np.ndarray
        box.all[-1] = 9
        assert part[-1] == turned[0] == 9
