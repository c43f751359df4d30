"""What a call stores into a container that it then takes out of an object: the container, which others may hold, has numbers and arrays."""

import threading
from collections import deque
from typing import Any

import numpy as np
import pytest

import tensormagic as tm


class Logbook:
    def __init__(self) -> None:
        self.log: Any = []
        self.named: dict[str, Any] = {}
        self.recent: Any = deque([0.5], maxlen=3)


class Locked(Logbook):
    def __init__(self) -> None:
        super().__init__()
        self.lock = threading.Lock()


def _flushed(o: Any, x: float) -> Any:
    o.log.append(x)
    found, o.log = o.log, []
    return found


def _unnamed(o: Any, x: float) -> Any:
    o.log.append(x * np.ones(2))
    o.log = None


def _copied(o: Any, x: float) -> Any:
    o.log.append([x, x + 1])
    found, o.log = list(o.log), []
    return found


def _of_dictionaries(o: Any, x: float) -> Any:
    o.named["k"] = x / 2
    found, o.named = o.named, {"older": x}
    return found


def _of_deques(o: Any, x: float) -> Any:
    o.recent.append(x)
    found, o.recent = o.recent, deque()
    return {"found": found, "sum": sum(found)}


def _in_loop(o: Any, x: float) -> Any:
    for k in range(3):
        o.log.append(k * x)
    found = o.log
    del o.log
    return found


def _moved(o: Any, x: float) -> None:
    o.log.append(x)
    o.named["old"], o.log = o.log, []


def _nested(o: Any, x: float) -> Any:
    o.named.setdefault("all", []).append(o.log)
    o.log.append((x, 2.0))
    found = o.named.pop("all")
    o.log = []
    return found


FUNCTIONS = [_flushed, _unnamed, _copied, _of_dictionaries, _of_deques, _in_loop, _moved, _nested]


def _form(value: Any) -> Any:
    if isinstance(value, list | tuple | deque):
        return type(value).__name__, [_form(v) for v in value]
    if isinstance(value, dict):
        return {k: _form(v) for k, v in value.items()}
    return type(value).__name__, repr(value)


@pytest.mark.parametrize("make", [Logbook, Locked])
@pytest.mark.parametrize("function", FUNCTIONS)
def test_no_lazy_value_is_left(function: Any, make: Any) -> None:
    random = np.random.default_rng(7)
    captured = tm.tensor(function)
    for _ in range(4):
        x = float(random.normal())
        own, other = make(), make()
        held = [[o.log, o.named, o.recent] for o in (own, other)]
        assert _form(captured(own, x)) == _form(function(other, x))
        assert _form(held[0]) == _form(held[1])
        left = [{n: _form(v) for n, v in vars(o).items() if n != "lock"} for o in (own, other)]
        assert left[0] == left[1]
