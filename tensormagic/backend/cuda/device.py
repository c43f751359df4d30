"""The interface to a GPU that everything else uses. CuPy is imported only here, and only when a GPU is asked for.

There are two implementations: :class:`Card`, and a fake for the tests (``tests/backend/cuda/fake.py``) for machines
without a GPU, which has a memory of its own and counts what is copied. An array on a device is no ``ndarray``, and
no ``ndarray`` is one.
"""

from __future__ import annotations

import ctypes
import importlib.util
from collections.abc import Callable, Generator, Sequence
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass
from importlib import import_module
from typing import Any, Protocol

import numpy as np

from tensormagic.backend.running.thread_warnings import tell_once
from tensormagic.ir.errors import DeviceError
from tensormagic.ops.op import AWAY

DeviceArray = (
    Any  # CuPy's array, or the fake device's: shape, dtype, strides, base, indexing, astype, copy, reshape, view
)

PIECE = 1 << 24  # bytes copied at a time
Event = Any  # a point in a stream that other streams can wait for

INSTALL = "pip install 'tensormagic[gpu]'"


class LaunchError(DeviceError, told_as=DeviceError):
    """Raised where a kernel does not start; the library then computes its nodes."""


BROKEN = "A GPU that has failed stays so for this process: restart the kernel. tm.config.tier = 'numpy' keeps to the library."


@dataclass
class Copied:
    """Counts of what has been copied between the host and a device, and of launches.

    Parameters
    ----------
    to_device, to_host
        Bytes of arrays.
    reads
        How many numbers and flags were read by the host, each of at most 16 bytes.
    launches
        How many kernels of our own were started.
    replays
        How many recordings of launches were.
    """

    to_device: int = 0
    to_host: int = 0
    reads: int = 0
    launches: int = 0
    replays: int = 0


class Device(Protocol):
    """The interface of a device.

    Attributes
    ----------
    name
        What it is called.
    library, special
        Functions on its arrays, under the names of NumPy's and of ``scipy.special``.
    copied
        What has been copied.
    """

    name: str
    copied: Copied

    @property
    def library(self) -> Any: ...

    @property
    def special(self) -> Any: ...

    def is_array(self, value: Any) -> bool:
        """Return whether a value is an array on this device."""
        ...

    def put(self, array: np.ndarray[Any, Any]) -> DeviceArray:
        """Return a copy on the device of an array of the host."""
        ...

    def fetch(self, array: DeviceArray) -> np.ndarray[Any, Any]:
        """Return a copy on the host of an array of the device."""
        ...

    def read(self, array: DeviceArray) -> np.generic:
        """Return the number in a 0-d array."""
        ...

    def adopt(self, value: Any) -> DeviceArray | None:
        """Return the array that another library has on this device, without a copy, or None if there is none."""
        ...

    def errors(self) -> Any:
        """Return a context in which the library raises what NumPy's linear algebra raises."""
        ...

    def scatter(self, name: str, array: DeviceArray, places: Any, values: Any) -> None:
        """Combine values into elements of an array by ``"add"`` or ``"max"``; repeated indices are all applied."""
        ...

    def synchronize(self) -> None:
        """Wait until all work on the device is done."""
        ...

    def on(self, stream: str) -> AbstractContextManager[Any]:
        """Return a context in which work goes into the named stream instead of the compute stream."""
        ...

    def fill(self, array: DeviceArray, source: np.ndarray[Any, Any]) -> None:
        """Copy an array of the host into one of the device; the host may change its own at once."""
        ...

    def record(self) -> Event:
        """Record and return an event for all work that the current stream has been given so far."""
        ...

    def wait(self, event: Event) -> None:
        """Make later work in the current stream wait for an event of another stream."""
        ...

    def finish(self, event: Event) -> None:
        """Block the host until an event has happened."""
        ...

    def memory(self) -> tuple[int, int]:
        """Return the number of free bytes and of all bytes."""
        ...

    @property
    def capability(self) -> tuple[int, int]:
        """Return the compute capability that kernels are compiled for."""
        ...

    def free(self) -> None:
        """Return cached, unused memory of the pool to the driver."""
        ...

    def address(self, array: DeviceArray) -> int:
        """Return the address of an array on the device."""
        ...

    @property
    def driver(self) -> int:
        """Return the version of the driver that translates PTX into machine code."""
        ...

    def assembled(self, image: bytes) -> bytes | None:
        """Return the machine code of PTX for this device, or None where the driver makes it only when a kernel is loaded."""
        ...

    def load(self, image: bytes, name: str) -> Any:
        """Return the kernel of this name from PTX or machine code."""
        ...

    def launch(
        self, kernel: Any, grid: tuple[int, ...], block: tuple[int, ...], args: Sequence[Any], shared: int = 0
    ) -> None:
        """Start a kernel: arrays are passed as their addresses, NumPy's scalars by value; raise LaunchError where it does not start."""
        ...

    def recorded(self, function: Callable[[], None]) -> Callable[[], None] | None:
        """Return a function that repeats the launches of ``function``, recorded without launching now, or None if unsupported."""
        ...


class Card:
    """A GPU through CuPy: its memory pool, its current stream, its libraries."""

    def __init__(self) -> None:
        self._cupy = cupy = _cupy()
        number = cupy.cuda.Device().id
        properties: Any = cupy.cuda.runtime.getDeviceProperties(number)
        self.name: str = properties["name"].decode()
        major, minor = divmod(int(cupy.cuda.Device().compute_capability), 10)
        self.capability: tuple[int, int] = major, minor
        self.copied = Copied()
        self._streams: dict[str, Any] = {}
        self._pinned: list[tuple[Event, Any]] = []  # pinned buffers, kept until they have been copied
        AWAY.add(cupy.ndarray)

    @property
    def library(self) -> Any:
        """Return CuPy."""
        return self._cupy

    @property
    def special(self) -> Any:
        """Return CuPy's version of ``scipy.special``."""
        return import_module("cupyx.scipy.special")

    def is_array(self, value: Any) -> bool:
        """Return whether a value is an array of CuPy's."""
        return isinstance(value, self._cupy.ndarray)

    def put(self, array: np.ndarray[Any, Any]) -> DeviceArray:
        """Return a copy on the GPU of an array of the host."""
        self.copied.to_device += array.nbytes
        return self._cupy.asarray(np.ascontiguousarray(array).reshape(array.shape))

    def fetch(self, array: DeviceArray) -> np.ndarray[Any, Any]:
        """Return a copy on the host of an array of the GPU."""
        self.copied.to_host += array.nbytes
        return self._cupy.asnumpy(array, order="C")

    def read(self, array: DeviceArray) -> np.generic:
        """Return the number in a 0-d array."""
        self.copied.reads += 1
        return self._cupy.asnumpy(array)[()]

    def adopt(self, value: Any) -> DeviceArray | None:
        """Return the GPU array of another library, by ``__cuda_array_interface__`` or DLPack."""
        if self.is_array(value):
            return value
        if hasattr(value, "__cuda_array_interface__"):
            return self._cupy.asarray(value)
        return self._cupy.from_dlpack(value)

    @contextmanager
    def errors(self) -> Generator[None]:
        """Raise LinAlgError where NumPy does, and turn errors of the driver into DeviceError within the context."""
        with import_module("cupyx").errstate(linalg="raise"):
            try:
                yield
            except self._cupy.cuda.runtime.CUDARuntimeError as error:
                raise DeviceError(f"the GPU has failed: {error}", BROKEN) from error

    def scatter(self, name: str, array: DeviceArray, places: Any, values: Any) -> None:
        """Combine values into elements of an array by atomic operations."""
        {"add": self._cupy.add, "max": self._cupy.maximum}[name].at(array, places, values)

    def synchronize(self) -> None:
        """Wait for the current stream."""
        self._cupy.cuda.get_current_stream().synchronize()

    @contextmanager
    def on(self, stream: str) -> Generator[None]:
        """Make a stream current that waits for no other; it is created at its first use."""
        if stream not in self._streams:
            self._streams[stream] = self._cupy.cuda.Stream(non_blocking=True)
        with self._streams[stream]:
            yield

    def fill(self, array: DeviceArray, source: np.ndarray[Any, Any]) -> None:
        """Copy an array in pieces through pinned memory: while one piece is copied, the host prepares the next."""
        self.copied.to_device += source.nbytes
        stream = self._cupy.cuda.get_current_stream()
        target, flat = array.reshape(-1), np.ascontiguousarray(source).reshape(-1)
        step = max(1, PIECE // source.itemsize)
        for begin in range(0, flat.size, step):
            part = flat[begin : begin + step]
            pinned = import_module("cupyx").empty_pinned(part.shape, part.dtype)
            pinned[...] = part
            target[begin : begin + step].set(pinned, stream=stream)
            self._pinned = [(e, p) for e, p in self._pinned if not e.done]
            self._pinned.append((self.record(), pinned))

    def record(self) -> Event:
        """Record and return an event in the current stream."""
        event = self._cupy.cuda.Event(disable_timing=True)
        event.record()
        return event

    def wait(self, event: Event) -> None:
        """Make the current stream wait for an event."""
        self._cupy.cuda.get_current_stream().wait_event(event)

    def finish(self, event: Event) -> None:
        """Block the host until an event has happened."""
        event.synchronize()

    def memory(self) -> tuple[int, int]:
        """Return the free bytes, those cached in the pool included, and all bytes, as the driver reports them."""
        free, total = self._cupy.cuda.runtime.memGetInfo()
        return int(free) + int(self._cupy.get_default_memory_pool().free_bytes()), int(total)

    def free(self) -> None:
        """Return the unused blocks of the pool to the driver."""
        self._cupy.get_default_memory_pool().free_all_blocks()

    def address(self, array: DeviceArray) -> int:
        """Return the CUDA address of an array."""
        return int(array.data.ptr)

    @property
    def driver(self) -> int:
        """Return the newest CUDA version that the driver supports."""
        return int(self._cupy.cuda.runtime.driverGetVersion())

    def assembled(self, image: bytes) -> bytes | None:
        """Return the machine code that the driver's linker makes of PTX, or None where the linker fails."""
        try:
            linker = self._cupy.cuda.function.LinkState()
            linker.add_ptr_data(image.rstrip(b"\0") + b"\0", "kernel.ptx")
            return bytes(linker.complete())
        except Exception as error:  # noqa: BLE001 (whatever a driver says: it translates what is loaded, too)
            tell_once(f"the driver gives no machine code that could be kept: {type(error).__name__}: {error}")
            return None

    def load(self, image: bytes, name: str) -> Any:
        """Load PTX or machine code by the driver, which translates PTX for the GPU, and return the kernel of this name."""
        module = self._cupy.cuda.function.Module()
        module.load(image)
        return module.get_function(name)

    def launch(
        self, kernel: Any, grid: tuple[int, ...], block: tuple[int, ...], args: Sequence[Any], shared: int = 0
    ) -> None:
        """Launch a kernel on the current stream."""
        self.copied.launches += 1
        try:
            kernel(grid, block, tuple([a.data.ptr if self.is_array(a) else a for a in args]), shared_mem=shared)
        except self._cupy.cuda.driver.CUDADriverError as error:
            raise LaunchError(f"the GPU does not start a kernel: {error}") from error

    def recorded(self, function: Callable[[], None]) -> Callable[[], None] | None:
        """Return the launches of ``function`` as a CUDA graph replayed on the current stream, or None on failure."""
        stream = self._cupy.cuda.Stream()
        try:
            with stream:
                stream.begin_capture()
                try:
                    function()
                finally:  # a stream left capturing would refuse the work of others
                    graph = stream.end_capture()
        except Exception as error:  # noqa: BLE001 (whatever a driver says: the kernels are launched one by one)
            tell_once(f"the GPU records no launches, which are made one by one: {type(error).__name__}: {error}")
            return None
        return lambda: graph.launch()


def _cupy() -> Any:
    return import_module("cupy")


_device: list[Device] = []
in_use: Sequence[Device] = _device
"""The device, where one has been asked for."""


def use(device: Device | None) -> None:
    """Use this device from now on; None selects the machine's own GPU."""
    _device[:] = [] if device is None else [device]


def current() -> Device:
    """Return the device in use.

    Raises
    ------
    DeviceError
        Where there is none: one sentence that says what is missing, and how to get it.
    """
    if not _device:
        why = missing()
        if why is not None:
            raise DeviceError(*why)
        _device.append(Card())
    return _device[0]


def is_there() -> bool:
    """Return whether there is a device; unlike ``current``, never raise."""
    return bool(_device) or missing() is None


_missing: list[tuple[str, str] | None] = []


def missing() -> tuple[str, str] | None:
    """Return what a GPU needs and this machine lacks, with a remedy, or None where nothing is missing."""
    if not _missing:
        _missing.append(_looked())
    return _missing[0]


def _looked() -> tuple[str, str] | None:
    try:
        driver = ctypes.CDLL("libcuda.so.1")
    except OSError:
        return "this machine has no CUDA driver", "Use --device cpu, or install NVIDIA's driver where there is a GPU."
    if status := driver.cuInit(0):
        return f"the CUDA driver finds no GPU that works (error {status})", "Use --device cpu; nvidia-smi says more."
    version = ctypes.c_int()
    driver.cuDriverGetVersion(ctypes.byref(version))
    if version.value < 12000:
        text = f"{version.value // 1000}.{version.value % 1000 // 10}"
        return f"the CUDA driver is for CUDA {text}, and 12 or newer is needed", "Update NVIDIA's driver."
    if importlib.util.find_spec("cupy") is None:
        return "CuPy is not installed, by which the GPU is reached", INSTALL
    try:
        count = int(_cupy().cuda.runtime.getDeviceCount())
    except Exception as error:  # noqa: BLE001 (whatever a broken installation raises is what there is to say)
        return f"CuPy does not find its libraries ({type(error).__name__}: {error})", INSTALL
    return None if count else ("CUDA finds no GPU", "Use --device cpu.")
