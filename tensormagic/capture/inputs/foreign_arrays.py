"""Arrays that no graph can hold, in cells: their contents are saved and restored; and lazy arrays whose memory NumPy exposes as one.

NumPy computes with them as the code runs (:func:`tensormagic.capture.inputs.door.stays_numpys`), and also with arrays that
share the memory of one.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import numpy as np

from tensormagic.capture import context
from tensormagic.capture.context import Capture
from tensormagic.capture.errors.refusal import refuse, values_are_there
from tensormagic.capture.foreign.lending import as_numpy_lies
from tensormagic.capture.hooks import hooks
from tensormagic.capture.inputs import snapshots
from tensormagic.capture.inputs.snapshots import Snapshot, same_bits
from tensormagic.capture.stores.lent import record_overwritten
from tensormagic.capture.stores.overlap import share
from tensormagic.capture.stores.place import Buffer, Place, serials
from tensormagic.capture.stores.state import State
from tensormagic.capture.values.value import Tensor
from tensormagic.ir.errors import CaptureError, SharedError
from tensormagic.ir.node import Node
from tensormagic.ir.type import Size, hint
from tensormagic.ops.leaf import INPUT

Array = np.ndarray[Any, Any]


class Shown(Buffer):
    """A buffer whose memory NumPy shares with another array: stores are visible in both directions."""

    _own: Node  # its content when it was last seen
    _state: State
    _number: int

    @classmethod
    def become(cls, buffer: Buffer) -> None:
        """Turn a buffer into one whose memory is shared, in place."""
        own, version = buffer.node, buffer.version
        for name in ("node", "version"):
            vars(buffer).pop(name, None)
        buffer.__class__ = cls
        buffer.__dict__.update(_own=own, _number=version, _state=State(buffer.array))

    @property
    def node(self) -> Node:
        """Return the current value; no derivative flows through NumPy's stores."""
        if self._state.changed:
            record_overwritten(self._own)
            self._own, self._state, self._number = (
                snapshots.of_array(self.array, self.name or "the array"),
                State(self.array),
                next(serials),
            )
        return self._own

    @node.setter
    def node(self, node: Node) -> None:  # type: ignore[override]
        self._own = node

    def put(self, node: Node) -> None:
        """Replace the value, in memory too."""
        if context.current() is not None and not values_are_there():
            refuse("a store into an array that another object shares", "Work on a copy of it.")
        capture = context.current()
        if capture is not None:  # an earlier cell may have made the other object
            capture.outside.shown.append(self._state)
        np.copyto(self.array, hooks.compute([node])[0])
        self._own, self._state, self._number = node, State(self.array), next(serials)

    @property
    def version(self) -> int:
        """Return a number that is different for each value that it is seen to have."""
        return self._number if self.node is self._own else 0

    @version.setter
    def version(self, version: int) -> None:  # type: ignore[override]
        self._number = version


def memory_of(value: Tensor, capture: Capture) -> Array:
    """Return the array in whose memory a lazy one lies: the notebook's, or one made for it, which the cell leaves behind."""
    buffer = value.place.buffer
    if not isinstance(buffer, Shown):
        together = _connected(buffer)
        if any(b.alias.depends for b in together):
            raise SharedError(
                "a function that returns the memory of a changed array as another object is not captured",
                "Pass a copy, x.copy().",
            )
        if buffer.array is None:
            whole = Tensor(Place(buffer))
            buffer.array = as_numpy_lies(np.asarray(whole.numpy()), whole)
        for one in together:
            capture.outside.shown.append(State(one.array))
        for one in together:
            if one.version:  # otherwise, what the code has stored so far waits for its end
                np.copyto(one.array, hooks.compute([one.node])[0])
        for one in together:
            Shown.become(one)
    found = value.place.within(buffer.array, _known)
    if found is None:
        refuse("a function that returns a part of an array's memory as another object", "Pass a copy, x.copy().")
    return found


def _connected(buffer: Buffer) -> list[Buffer]:
    """Return a buffer, and those whose arrays share memory with its own, directly or through others."""
    found = [buffer]
    for one in found:
        found += [other for other, _ in one.shared if all(other is not f for f in found)]
    return found


def _known(size: Size) -> int:
    known = hint(size)
    if known is None:
        raise SharedError("a part whose size depends on data cannot be passed as another object", "Pass a copy.")
    return known


def put_back(capture: Capture) -> None:
    """Restore arrays whose memory NumPy has exposed as another object: the cell has failed."""
    for state in reversed(capture.outside.shown):
        state.restore()


def checked(capture: Capture, read: Iterable[Tensor]) -> None:
    """Raise if NumPy stored into the memory of arrays that the code has ``read``, which would not have seen that.

    Raises
    ------
    CaptureError
        With the array's name.
    """
    for tensor in read if capture.outside.strangers else ():
        buffer = tensor.place.buffer
        if isinstance(buffer, Shown) or "make" in vars(buffer) or buffer.array is None or buffer.first.op is not INPUT:
            continue
        source = buffer.first["source"]
        known = isinstance(source, Snapshot) and source.fingerprint is None
        if (
            known
            and not same_bits(source.value, buffer.array)
            and any(share(buffer.array, s) for s in capture.outside.strangers)
        ):
            raise CaptureError(
                f"{buffer.name} is changed through another array that shares its memory, which %%tensor does not follow",
                f"Store into {buffer.name} itself, or work on a copy of it; or run the cell with --plain.",
            )
