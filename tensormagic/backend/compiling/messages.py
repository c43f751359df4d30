"""Messages between the session and the process that compiles: JSON behind its length, and code in it."""

from __future__ import annotations

import base64
import io
import json
import struct
from dataclasses import asdict, dataclass
from typing import Any, Literal

_LENGTH = struct.Struct(">I")


@dataclass(frozen=True)
class Request:
    """A kernel to be compiled.

    Parameters
    ----------
    source
        Its text.
    kind
        The target: the processor, or a GPU.
    types, written
        On a GPU, for each parameter ``"*float32"``, a pointer, or ``"int64"``, a number; and whether the kernel stores
        there. A pointer it does not write to is not aliased by another one.
    cc
        The compute capability of the GPU.
    """

    source: str
    kind: Literal["processor", "card"] = "processor"
    types: tuple[str, ...] = ()
    written: tuple[bool, ...] = ()
    cc: tuple[int, int] = (0, 0)

    def message(self, key: str) -> dict[str, Any]:
        """Return the message to send; the answer has the same key."""
        return {"key": key, **asdict(self)}


@dataclass(frozen=True)
class Code:
    """The code of one kernel.

    Parameters
    ----------
    symbol
        The function's name.
    data
        The object file; for a GPU PTX.
    seconds
        The compile time.
    """

    symbol: str
    data: bytes
    seconds: float


def send(stream: io.RawIOBase, message: dict[str, Any]) -> None:
    """Write one message."""
    data = json.dumps(message).encode()
    left = memoryview(_LENGTH.pack(len(data)) + data)
    while left:
        left = left[stream.write(left) or 0 :]


def receive(stream: io.RawIOBase) -> dict[str, Any] | None:
    """Read one message; None at the end of the stream."""
    head = _exactly(stream, _LENGTH.size)
    if head is None:
        return None
    data = _exactly(stream, _LENGTH.unpack(head)[0])
    return None if data is None else json.loads(data)


def _exactly(stream: io.RawIOBase, count: int) -> bytes | None:
    parts: list[bytes] = []
    while count:
        part = stream.read(count)
        if not part:
            return None
        parts.append(part)
        count -= len(part)
    return b"".join(parts)


def code_of(message: dict[str, Any]) -> Code | None:
    """Return the code in an answer, or None if it is an error."""
    if message["error"]:
        return None
    return Code(message["symbol"], base64.b64decode(message["data"]), message["seconds"])
