"""Names of the arguments and the results of a call: ``x``, ``p["w"]``, ``grad_w``."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any

from tensormagic.capture.tree import flatten
from tensormagic.capture.values.value import Tensor
from tensormagic.distributed.sources import is_split
from tensormagic.functions.calls.callables import of_callable
from tensormagic.functions.reads.reading import is_input
from tensormagic.ir.plain_texts import key_text


def parameter_names(
    function: Callable[..., Any], args: Sequence[Any], usual: Sequence[str], named: Sequence[str] = ()
) -> tuple[str, ...]:
    """Return the names of a graph's parameters: those of the arguments; values read from outside have their ``usual`` names.

    The last arguments were given by the names in ``named``.
    """
    first = len(args) - len(named)
    positional = [*of_callable(function).parameters[:first]]
    names = [*positional, *(f"[{k}]" for k in range(len(positional), first)), *named]
    own = [name for k, value in enumerate(args) for name in _inputs(names[k], value)]
    return (*own, *usual[len(own) :])


def result_names(function: Callable[..., Any], args: Sequence[Any], count: int) -> tuple[str, ...]:
    """Return the names of the results; a gradient is named after its variable."""
    usual = tuple(f"result {k + 1}" for k in range(count)) if count > 1 else ("result",)
    made: Any = of_callable(function).made
    if made is None or made[0] not in {"grad", "value_and_grad"}:
        return usual
    (_, *rest), options = made[1:]
    wrt: Any = rest[0] if rest else options.get("argnums", 0)
    places = wrt if isinstance(wrt, tuple | list) else (wrt,)
    names = of_callable(function).parameters
    if not all(type(k) is int and -len(args) <= k < min(len(args), len(names)) for k in places):
        return usual
    slopes = [f"grad_{name}" for k in places for name in _inputs(names[k], args[k])]
    found = (*(["value"] if made[0] == "value_and_grad" else []), *slopes)
    return found if len(found) == count else usual


def _inputs(name: str, value: Any) -> Iterator[str]:
    """Yield the names of the numbers and arrays in an argument, in the order in which they are flattened."""
    if is_split(value):
        yield name
        return
    items = _items(value)
    for key, part in items or ():
        yield from _inputs(f"{name}[{key}]", part)
    if items is None:
        count = sum(isinstance(v, Tensor) or is_input(v) for v in flatten(value)[0])
        yield from [name] if count == 1 else [f"{name}, {k + 1} of {count}" for k in range(count)]


def _items(value: Any) -> list[tuple[Any, Any]] | None:
    """Return the items of a dict, list or tuple, each with its key in brackets, or None for other values."""
    if type(value) is dict:
        return [(key_text(key), part) for key, part in value.items()]
    return list(enumerate(value)) if type(value) in {list, tuple} else None
