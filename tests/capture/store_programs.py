"""Random programs of stores and views on small arrays, grown statement by statement beside plain NumPy, and run both ways."""

from __future__ import annotations

import random
import warnings
from typing import Any

import numpy as np

import tensormagic as tm
from tensormagic import session
from tensormagic.ir.errors import CaptureError
from tests.capture.harness import KINDS, assert_equal, cell

LAYOUTS = ["x0", "np.asfortranarray(x0)", "x0[::-1]", "np.repeat(x0, 2, axis=1)[:, ::2]", "x0.T.copy().T"]
UNARY = [
    "{a}.T",
    "{a}.ravel()",
    "{a}.reshape(-1)",
    "{a}.reshape(2, -1)",
    "{a}.reshape(-1, 2)",
    "{a}.copy()",
    "{a} + 1",
    "-{a}",
    "np.flip({a})",
    "np.flip({a}, -1)",
    "{a}[None]",
    "{a}[..., None]",
    "{a}.squeeze()",
    "np.swapaxes({a}, 0, -1)",
    "np.moveaxis({a}, 0, -1)",
    "{a}.real",
    "np.atleast_2d({a})",
    "np.diagonal({a})",
    "np.broadcast_to({a}, (2, *{a}.shape))",
    "np.split({a}, 2, axis=-1)[1]",
    "np.array_split({a}, 2)[0]",
    "np.rot90({a})",
    "np.asarray({a})",
    "np.ascontiguousarray({a})",
    "{a}.astype(np.float32)",
    "{a}.astype(float, copy=False)",
    "{a}.flatten()",
    "np.where({a} > 3, {a}, 0)",
    "{a}.sum(axis=0)",
    "np.cumsum({a}, axis=-1)",
]
WHOLE = [
    "{a}.fill({n})",
    "{a}.sort()",
    "{a}.sort(axis=0)",
    "{a}.flat[{i}] = {n}",
    "{a}.flat[1:] = [{n}, {n}]",
    "{a}.flat = {b}.copy()",
    "np.put({a}, [{i}, {i}], [{n}, {n}])",
    "np.place({a}, {a} > {n}, [{n}, {n}])",
    "np.putmask({a}, {a} > {n}, {b})",
    "np.copyto({a}, {b}, casting='unsafe')",
    "np.copyto({a}, {n}, where={a} > {n})",
    "np.fill_diagonal({a}, {n})",
    "np.add({a}, {b}, out={a})",
    "np.multiply({a}, {n}, out={a}, where={a} > {n})",
    "np.cumsum({a}, axis=0, out={a})",
    "np.clip({a}, 1, {n}, out={a})",
    "np.add.at({a}, [{i}, {i}, 0], {n})",
    "np.maximum.at({a}, ([{i}, 0],), {n})",
    "{a}[{i}], {a}[{j}] = {a}[{j}], {a}[{i}]",
    "{a}[1:] = {a}[:-1]",
    "{a}[:-1] += {a}[1:]",
    "for row in {a}: row[...] = row * 2",
    "{a}.shape = -1",
]


class Grower:
    """Makes statements that fit the arrays that there are."""

    def __init__(self, draw: random.Random) -> None:
        self.draw = draw
        self.count = 0

    def pick(self, *values: Any) -> Any:
        return self.draw.choice(values)

    def number(self) -> str:
        return self.pick("1", "2", "-3", "0", "5.5", "0.5", "True", "7")

    def entry(self) -> str:
        bound = lambda: self.pick("", "", "0", "1", "2", "-1", "-2", "5")  # noqa: E731 (drawn anew each time)
        kind = self.draw.random()
        if kind < 0.5:
            return f"{bound()}:{bound()}{self.pick('', '', ':2', ':-1', ':-2')}"
        return (
            self.pick("0", "1", "-1", "...", "None", "2")
            if kind < 0.85
            else self.pick(
                "[0, -1]", "[1, 0, 1]", "[[0], [1]]", "[]", "k", "k[:2]", "u", "np.array([True, False, True])"
            )
        )

    def index(self, name: str) -> str:
        kind = self.draw.random()
        if kind < 0.08:
            return f"[{name} > {self.number()}]"
        if kind < 0.12:
            return f"[{name}[..., 0] > {self.number()}]"
        if kind < 0.15:
            return f"[np.argmax({name}) % 2]"
        return f"[{', '.join(self.entry() for _ in range(self.pick(1, 1, 2, 2, 3)))}]"

    def value(self, names: list[str], place: str) -> str:
        other = self.pick(*names)
        return self.pick(
            self.number(),
            self.number(),
            other,
            f"{place} * 2",
            f"{place} + {self.number()}",
            f"{place}[::-1]",
            f"{other}{self.index(other)}",
            f"np.arange({place}.size).reshape({place}.shape)",
            f"np.cos({other})",
        )

    def statement(self, names: list[str]) -> str:
        name = self.pick(*names)
        kind = self.draw.random()
        if kind < 0.3:
            self.count += 1
            made = self.pick(*UNARY).format(a=name) if kind < 0.15 else name + self.index(name)
            return f"v{self.count} = {made}"
        place = name + self.index(name)
        if kind < 0.6:
            return f"{place} = {self.value(names, place)}"
        if kind < 0.75:
            operator = self.pick("+", "-", "*", "/", "//", "+", "*")
            target = self.pick(place, place, name)
            return f"{target} {operator}= {self.value(names, target)}"
        form = self.pick(*WHOLE)
        return form.format(
            a=name, b=self.pick(*names), n=self.number(), i=self.pick("0", "1", "-1"), j=self.pick("0", "1")
        )


def inputs(seed: random.Random) -> dict[str, Any]:
    """Arrays of one to three axes, some of which share memory."""
    x0 = np.arange(12.0).reshape(3, 4)
    x = eval(seed.choice(LAYOUTS), {"x0": x0, "np": np})
    space = {
        "x": x,
        "y": np.arange(4.0) * 1.5,
        "z": np.arange(8).reshape(2, 2, 2),
        "k": np.array([2, 0, 2]),
        "u": np.array([1, 0], np.uint8),
    }
    shared = seed.choice([None, None, x[1:], x.T, x[:, ::2], x[0], x[::-1, 1:]])
    if shared is not None:
        space["w"] = shared
    return space


def grow(seed: int, length: int = 6) -> str:
    """A program whose statements run in NumPy, but for the last one perhaps."""
    draw = random.Random(seed)
    grower = Grower(draw)
    space = {**inputs(random.Random(seed)), "np": np}
    lines: list[str] = []
    for _ in range(draw.randint(1, length)):
        names = [n for n, v in space.items() if isinstance(v, np.ndarray) and n not in {"k", "u"} and v.size < 200]
        for _ in range(8):
            line = grower.statement(names)
            trial = {**copies(space), "np": np}
            try:
                run(line, trial)
                run(line, space)
            except Exception:  # noqa: BLE001 (whatever NumPy raises)
                if draw.random() < 0.05:
                    return "\n".join([*lines, line])
                continue
            lines.append(line)
            break
    return "\n".join(lines)


def copies(space: dict[str, Any]) -> dict[str, Any]:
    """Copies of arrays, for a trial of a statement that may fail halfway."""
    return {n: v.copy() if isinstance(v, np.ndarray) else v for n, v in space.items()}


def run(source: str, space: dict[str, Any]) -> None:
    """Run a program by NumPy."""
    with np.errstate(all="ignore"), warnings.catch_warnings():
        warnings.simplefilter("ignore")
        exec(source, space)


def _alike(ours: Exception, numpys: Exception) -> None:
    """Hold one error against another, where a statement may have several: NumPy and the capture look in different orders."""
    alike = any(isinstance(ours, k) and isinstance(numpys, k) for k in KINDS)
    several = isinstance(ours, IndexError) or isinstance(numpys, IndexError) or "read-only" in str(numpys)
    assert alike or several, f"{ours!r} for {numpys!r}"


def _unsigned(value: Any, plus: int | None) -> Any:
    return value + plus if plus is not None and isinstance(value, np.ndarray) else value


def compare(seed: int, source: str) -> str:
    """Hold a program against NumPy: every name, and the arrays it was given. Gives ``"same"``, ``"error"`` or ``"refused"``."""
    numpys = {**inputs(random.Random(seed)), "np": np}
    given = inputs(random.Random(seed))
    error: Exception | None = None
    try:
        run(source, numpys)
    except KINDS as raised:
        error = raised
    try:
        with np.errstate(all="ignore"), warnings.catch_warnings():
            warnings.simplefilter("ignore")
            found = cell(source, {**given, "np": np})
            values = session.compute([b.node for b in found.stores])
            outputs = {n: v.numpy() if isinstance(v, tm.Tensor) else v for n, v in found.outputs.items()}
    except CaptureError:
        return "refused"
    except KINDS as raised:
        if "Sizes that depend on data" in str(raised):
            return "refused"
        if "read-only" in str(raised) and ".at(" in source:  # NumPy's ufunc.at stores into read-only arrays
            return "refused"
        if error is None:
            raise
        _alike(raised, error)
        return "error"
    assert error is None, f"NumPy raises {error!r}"
    for buffer, value in zip(found.stores, values, strict=True):
        buffer.array[...] = value
    for name, value in numpys.items():
        if name not in {"np", "__builtins__", "row"}:
            plus = 0 if "diagonal" in source else None  # which does not keep the sign of zero
            assert_equal(_unsigned(outputs.get(name, given.get(name)), plus), _unsigned(value, plus), name)
    return "same"
