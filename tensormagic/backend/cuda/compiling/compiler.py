"""Compile kernels for a GPU to PTX, by the disk cache, a folder carried from another machine, or the compile worker.

Imports no compiler itself. Code compiled on another machine is keyed by that machine's versions, which its folder
states.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable
from contextlib import suppress
from functools import cache, lru_cache, partial
from importlib import metadata
from pathlib import Path
from typing import Any

import numpy as np

from tensormagic.backend.compiling import cache as disk
from tensormagic.backend.compiling.messages import Code, Request
from tensormagic.backend.compiling.service import Awaited, Service, service
from tensormagic.backend.cuda.compiling import machine_code
from tensormagic.backend.cuda.device import Device
from tensormagic.backend.cuda.kernels.launch import Launch, UnsupportedError
from tensormagic.config import config
from tensormagic.ir.errors import DeviceError

HOW = "pip install 'tensormagic[gpu]'"
MADE_BY = "made-by.json"  # in a folder of code: the versions that compiled it
MOST_KEPT = 512  # launches in memory that were requested one by one


class MissingCompilerError(DeviceError, ImportError):
    """No compiler for GPU kernels is installed."""


@cache
def versions() -> tuple[str, ...]:
    """Return the versions of the packages that compile kernels."""
    try:
        found = [metadata.version("numba-cuda")]
    except metadata.PackageNotFoundError:
        raise MissingCompilerError("the package numba-cuda is missing, which compiles for a GPU", HOW) from None
    for name in ("numba", "llvmlite", "cuda-bindings", "nvidia-nvvm"):  # NVVM may be part of an installed toolkit
        with suppress(metadata.PackageNotFoundError):
            found.append(f"{name} {metadata.version(name)}")
    return (*found, np.__version__)


def is_there() -> bool:
    """Return whether there is a compiler, or a folder of compiled code."""
    return not _lacks() or bool(carried_from())


def _lacks() -> str:
    """Return why there is no compiler, or "" if there is one."""
    try:
        versions()
    except MissingCompilerError as error:
        return error.message
    return ""


def carried_from() -> tuple[str, ...]:
    """Return the versions that compiled the carried code, or () if there is none."""
    return _carried_from(config.carried_folder) if config.carried_folder else ()


@lru_cache(8)
def _carried_from(folder: str) -> tuple[str, ...]:
    with suppress(ValueError):
        found = json.loads(disk.read_text(MADE_BY, Path(folder)))
        return tuple(map(str, found)) if isinstance(found, list) else ()
    return ()


def _kept(request: Request) -> Code | None:
    """Return the cached code for a request, of this machine or of the carried folder, or None."""
    found = None if _lacks() else disk.read(key_of(request))
    if found is None and carried_from():
        found = disk.read(key_of(request, carried_from()), Path(config.carried_folder))
    return found


@cache
def _own_text() -> str:
    """Return a digest of the source text that defines how kernels are compiled."""
    here = Path(__file__).parent
    own = hashlib.sha256()
    for path in sorted(
        [
            *(here.parents[1] / "vecmath").glob("*.py"),
            *here.glob("dialect*.py"),
            *(here / f"{name}.py" for name in ("front", "ptx")),
        ]
    ):
        own.update(path.read_bytes())
    return own.hexdigest()


def key_of(request: Request, by: tuple[str, ...] = ()) -> str:
    """Return the cache key of PTX: a digest of all that it depends on, with the compiler's versions (those here unless given)."""
    return "cuda-" + hashlib.sha256(repr((request, by or versions(), _own_text())).encode()).hexdigest()


class Codes(Awaited):
    """The compiled code of launches, requested once.

    Parameters
    ----------
    launches
        All that there may be.
    whole
        Whether one that does not compile makes the others useless.

    Attributes
    ----------
    errors
        Why there is no code, by launch.
    compiled
        How many kernels the worker was asked for: the others were there.
    """

    instead = "the library of the device"

    def __init__(self, launches: Iterable[Launch], *, whole: bool) -> None:
        super().__init__()
        self.errors: dict[Launch, str] = {}
        self.compiled = 0
        self._launches = tuple(dict.fromkeys(launches))
        self._whole = whole
        self._codes: dict[Launch, Code] = {}
        self._loaded: dict[Launch, Any] = {}
        self._cc: tuple[int, int] | None = None

    @property
    def is_asked_for(self) -> bool:
        """Return whether compilation has been requested."""
        return self._cc is not None

    def start(self, cc: tuple[int, int]) -> None:
        """Start compiling the launches for a GPU, unless that has been done; return at once."""
        if self._cc is not None:
            return
        self._cc = cc
        if is_there():
            service().submit(self)
        else:
            self.finish(_lacks())
            self.tell(_lacks())

    def begin(self, service: Service) -> None:
        """Take cached code, and have the rest compiled."""
        if not self._launches:
            self.finish("")
        for one in self._launches:
            request = one.request(self._cc or (0, 0))
            code, lacks = _kept(request), _lacks()
            if code is not None or lacks:
                self._take(one, code, lacks)
            else:
                self.compiled += 1
                service.compile(self, key_of(request), request, partial(self._take, one))

    def _take(self, one: Launch, code: Code | None, error: str) -> bool:
        """Record the code of one launch, or its error; after the last launch, finish."""
        if code is None:
            self.errors[one] = error
            self.tell(next((line.strip() for line in error.splitlines() if line.strip()), ""))
        else:
            self._codes[one] = code
        if len(self._codes) + len(self.errors) == len(self._launches):
            useless = bool(self.errors) and (self._whole or not self._codes)
            self.finish(next(iter(self.errors.values())) if useless else "")
        return code is not None

    def of(self, one: Launch) -> Code:
        """Return the code of a launch.

        Raises
        ------
        UnsupportedError
            Where the compiler refuses it.
        """
        found = self._codes.get(one)
        if found is None:
            raise UnsupportedError(f"the compiler refuses a kernel: {self.errors.get(one, self.error)}")
        return found

    def loaded(self, device: Device, one: Launch) -> Any:
        """Return a launch's kernel, loaded on the device."""
        found = self._loaded.get(one)
        if found is None:
            code = self.of(one)
            found = self._loaded[one] = machine_code.loaded(device, code)
        return found


def compiled(one: Launch, cc: tuple[int, int] = (9, 0)) -> Code:
    """Return the PTX of one launch, and the name of the entry in it, once they are compiled.

    Raises
    ------
    MissingCompilerError
        Where there is no compiler.
    UnsupportedError
        Where the compiler refuses it.
    """
    if not is_there():
        versions()
    codes = _codes_of(one, cc)
    codes.wait()
    return codes.of(one)


@lru_cache(MOST_KEPT)
def _codes_of(one: Launch, cc: tuple[int, int]) -> Codes:
    codes = Codes([one], whole=True)
    codes.start(cc)
    return codes
