"""Closes suspended generators of an abandoned capture, which would otherwise finish later and repeat their effects."""

from __future__ import annotations

import gc
from collections.abc import Callable, Generator, Iterable
from contextlib import contextmanager, suppress
from types import CodeType, GeneratorType, SimpleNamespace
from typing import Any

from tensormagic.capture.hooks import run_time
from tensormagic.capture.staging.trials.attributes import is_users_class

_MOST = 10_000  # objects that are visited, at most
_PLAIN = {list, tuple, dict, set, zip, map, filter, enumerate, reversed}


@contextmanager
def ending_generators(given_up: Callable[[Exception], bool]) -> Generator[None]:
    """Close generators that the block has left unfinished, if its error means that it is ``given_up``.

    They end within the capture, so that their prints and changes are abandoned with it.
    """
    try:
        yield
    except Exception as error:
        if given_up(error):
            for one in _left_by(error):
                with suppress(BaseException):  # errors that nobody would see
                    one.close()
        raise


def _left_by(error: Exception) -> list[GeneratorType[Any, Any, Any]]:
    """Return the suspended generators of staged code that the failed code's variables reach, the innermost code's last."""
    found: list[GeneratorType[Any, Any, Any]] = []
    seen: dict[int, Any] = {}
    pending = [*_held_by(error)]
    while pending and len(seen) < _MOST:
        one = pending.pop()
        if id(one) in seen:
            continue
        seen[id(one)] = one
        if type(one) is GeneratorType:
            if one.gi_suspended and _is_staged(one.gi_code):
                found.append(one)
        elif type(one) in _PLAIN or hasattr(type(one), "__next__"):
            pending += gc.get_referents(one)
        elif isinstance(one, SimpleNamespace) or is_users_class(type(one)):
            pending += getattr(one, "__dict__", {}).values()
    return found


def _held_by(error: Exception) -> Iterable[Any]:
    trace = error.__traceback__
    while trace is not None:
        yield from trace.tb_frame.f_locals.values()
        trace = trace.tb_next


def _is_staged(code: CodeType) -> bool:
    return any(c is run_time.module for c in code.co_consts)
