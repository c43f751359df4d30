"""``copy.deepcopy`` in captured functions: an object that the caller has once is copied once, though capture holds several for it."""

from __future__ import annotations

import copy
from typing import Any

from tensormagic.capture import context
from tensormagic.capture.stores.outside import one_of_callers
from tensormagic.capture.values.value import Tensor


class Memo(dict[int, Any]):
    """A memo for ``copy.deepcopy`` whose keys are the identities of the caller's objects, where capture has an object for one.

    Parameters
    ----------
    capture
        Which knows the caller's containers, and notes that it matters which of them are one.
    """

    def __init__(self, capture: context.Capture) -> None:
        super().__init__()
        self._capture = capture
        self._met = set[int]()
        self._arrays: list[tuple[Tensor, Tensor]] = []
        self._others = False  # whether it has met containers that are no arguments

    def _of_caller(self, key: int) -> int:
        given = self._capture.callers.containers.get(key)
        if given is None:
            return key
        self._met.add(key)
        self._capture.callers.alike |= len(self._met) > 1
        self._capture.callers.identities |= self._others  # objects that may contain one of the caller's
        return id(given)

    def get(self, key: int, default: Any = None) -> Any:
        """Return an item, as ``dict.get`` does."""
        return super().get(self._of_caller(key), default)

    def __getitem__(self, key: int) -> Any:
        return super().__getitem__(self._of_caller(key))

    def __setitem__(self, key: int, value: Any) -> None:
        if not (key in self._capture.callers.containers or key == id(self) or isinstance(value, tuple | Tensor)):
            self._others = True
            self._capture.callers.identities |= bool(self._met)
        super().__setitem__(self._of_caller(key), value)

    def copy_of(self, value: Tensor) -> Tensor:
        """Return the copy of a lazy array: one for each array of the caller."""
        for of, made in self._arrays:
            if one_of_callers(of, value):
                return made
        made = value.copy("K")
        self._arrays.append((value, made))
        return made


def copied(value: Any, memo: Any = None, *rest: Any) -> Any:
    """Return what ``copy.deepcopy`` gives."""
    capture = context.current()
    return copy.deepcopy(value, Memo(capture) if memo is None and capture is not None else memo, *rest)
