"""A device without a GPU: a memory of its own, NumPy in place of its libraries, and a count of every byte that is copied.

An array of it is no ``ndarray`` and cannot be taken for one: NumPy refuses it, and its own functions refuse NumPy's arrays, as CuPy does.
"""

from __future__ import annotations

import operator
import weakref
from collections.abc import Callable, Generator, Sequence
from contextlib import contextmanager
from typing import Any

import numpy as np

from tensormagic.backend.cuda.device import Copied, LaunchError
from tensormagic.backend.cuda.library import signatures
from tensormagic.ops.op import AWAY


class FakeArray:
    """An array in the memory of a fake device; what has no axes stays an array."""

    __slots__ = ("__weakref__", "_held", "device")
    __array_ufunc__ = None

    def __init__(self, held: np.ndarray[Any, Any], device: FakeDevice) -> None:
        self._held = held
        self.device = device
        device.holds(self)

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> Any:
        raise TypeError("Implicit conversion to a NumPy array is not allowed.")

    @property
    def shape(self) -> tuple[int, ...]:
        """The shape."""
        return self._held.shape

    @property
    def dtype(self) -> np.dtype[Any]:
        """The dtype."""
        return self._held.dtype

    @property
    def ndim(self) -> int:
        """The number of axes."""
        return self._held.ndim

    @property
    def size(self) -> int:
        """The number of elements."""
        return self._held.size

    @property
    def nbytes(self) -> int:
        """The bytes of the elements."""
        return self._held.nbytes

    @property
    def strides(self) -> tuple[int, ...]:
        """Bytes from one element to the next."""
        return self._held.strides

    @property
    def flags(self) -> Any:
        """How it lies in memory."""
        return self._held.flags

    @property
    def base(self) -> Any:
        """What it is a part of."""
        return self._held.base

    @property
    def real(self) -> FakeArray:
        """The real part: a view."""
        return FakeArray(self._held.real, self.device)

    @real.setter
    def real(self, value: Any) -> None:
        self.device.does("real", lambda x, v: setattr(x, "real", v), self, value, stores=True)

    @property
    def imag(self) -> FakeArray:
        """The imaginary part: a view."""
        return FakeArray(self._held.imag, self.device)

    @imag.setter
    def imag(self, value: Any) -> None:
        self.device.does("imag", lambda x, v: setattr(x, "imag", v), self, value, stores=True)

    @property
    def __cuda_array_interface__(self) -> dict[str, Any]:
        interface = dict(self._held.__array_interface__)
        return interface | {"version": 3, "stream": 1}

    def __dlpack__(self, stream: Any = None, max_version: Any = None) -> Any:
        """What stands for a capsule: the array itself."""
        return self

    def __dlpack_device__(self) -> tuple[int, int]:
        return 2, 0

    def _call(self, name: str, function: Callable[..., Any], *args: Any, stores: bool = False) -> Any:
        return self.device.does(name, function, self, *args, stores=stores)

    def astype(self, dtype: Any, copy: bool = True) -> Any:
        """As NumPy's."""
        return self._call("astype", lambda x: x.astype(dtype, copy=copy))

    def copy(self) -> Any:
        """As NumPy's, in C order."""
        return self._call("copy", lambda x: np.array(x, order="C"))

    def view(self, dtype: Any) -> Any:
        """As NumPy's."""
        return self._call("view", lambda x: x.view(dtype))

    def __getitem__(self, index: Any) -> Any:
        return self._call("getitem", lambda x, k: x[k], index)

    def __setitem__(self, index: Any, value: Any) -> None:
        self._call("setitem", operator.setitem, index, value, stores=True)

    def __len__(self) -> int:
        return len(self._held)

    def __bool__(self) -> bool:
        return bool(self.device.read(self))

    def __int__(self) -> int:
        return int(self.device.read(self))

    def __float__(self) -> float:
        return float(self.device.read(self))

    def __index__(self) -> int:
        return int(self.device.read(self))


def _operator(name: str) -> Callable[..., Any]:
    def method(self: FakeArray, *others: Any) -> Any:
        return self._call(name, lambda x, *rest: getattr(x, name)(*rest), *others, stores=name == "__iadd__")  # pyright: ignore[reportPrivateUsage]

    return method


for _name in (
    *("add", "radd", "iadd", "sub", "rsub", "mul", "rmul", "truediv", "rtruediv", "neg", "and", "or", "invert"),
    *("lt", "le", "gt", "ge"),
):
    setattr(FakeArray, f"__{_name}__", _operator(f"__{_name}__"))


class _Library:
    """NumPy's functions, on arrays of the device alone, where CuPy has them, and as it takes them."""

    def __init__(self, device: FakeDevice, module: Any, prefix: str = "") -> None:
        self._device = device
        self._module = module
        self._prefix = prefix

    def __getattr__(self, name: str) -> Any:
        found = getattr(self._module, name)
        if isinstance(found, type) or not callable(found):
            return _Library(self._device, found, f"{name}.") if type(found) is type(np) else found

        def function(*args: Any, **options: Any) -> Any:
            self._device.refuse_while_recording(name)
            signatures.hold(self._prefix + name, args, options)
            return self._device.does(name, lambda given, values: found(*given, **values), args, options)

        return function


class FullError(MemoryError):
    """No more memory: as CuPy's OutOfMemoryError, with the bytes that were asked for under its name."""

    def __init__(self, asked: int) -> None:
        super().__init__(f"out of memory allocating {asked} bytes")
        self._size = asked


class FakeDevice:
    """A device in the memory of this process.

    Parameters
    ----------
    limit
        The bytes that it has.

    Attributes
    ----------
    used
        The bytes of arrays that are there, where there is a limit.
    broken
        Which launches fail: called with the number of each.
    """

    def __init__(self, limit: int = 1 << 40) -> None:
        self.limit = limit
        self.used = 0
        self.broken: Callable[[int], bool] = lambda _: False
        self.name = "a device without a card"
        self.capability = (9, 0)
        self.driver = 13000
        self.assembles = False  # whether it gives machine code that can be kept
        self.loads: list[str] = []  # what kernels were loaded of
        self.copied = Copied()
        self._recording: list[Any] | None = None
        self.library = _Library(self, np)
        AWAY.add(FakeArray)

    @property
    def special(self) -> Any:
        """SciPy's functions."""
        import scipy.special

        return _Library(self, scipy.special, "special.")

    def inside(self, value: Any) -> Any:
        """What a function of the device computes with; an array of the host is refused."""
        if isinstance(value, FakeArray):
            return value._held  # pyright: ignore[reportPrivateUsage]
        if isinstance(value, np.ndarray):
            raise TypeError("Unsupported type <class 'numpy.ndarray'>")
        if isinstance(value, dict):
            return {k: self.inside(v) for k, v in value.items()}
        if isinstance(value, tuple | list):
            return type(value)(map(self.inside, value))
        return value

    def outside(self, value: Any) -> Any:
        """What a function of the device gives."""
        if isinstance(value, np.ndarray | np.generic):
            return FakeArray(self._counted(np.asarray(value)), self)
        if isinstance(value, tuple):
            return tuple(map(self.outside, value))
        return value

    def does(self, name: str, function: Callable[..., Any], *args: Any, stores: bool = False) -> Any:
        """What a function of NumPy's gives for arrays of the device; all that is done here is done by this.

        Parameters
        ----------
        name
            What it is called.
        stores
            Whether it stores into its first operand.
        """
        del name, stores
        with np.errstate(all="ignore"):
            return self.outside(function(*map(self.inside, args)))

    def holds(self, array: FakeArray) -> None:
        """There is an array more."""

    def _counted(self, array: np.ndarray[Any, Any]) -> np.ndarray[Any, Any]:
        """An array, whose memory is taken until it goes, where it is its own."""
        if self.limit < 1 << 40 and array.base is None:
            if self.used + array.nbytes > self.limit:
                raise FullError(array.nbytes)
            self.used += array.nbytes
            weakref.finalize(array, self._given_back, array.nbytes)
        return array

    def _given_back(self, count: int) -> None:
        self.used -= count

    def is_array(self, value: Any) -> bool:
        """Whether a value lies here."""
        return isinstance(value, FakeArray)

    def refuse_while_recording(self, what: str) -> None:
        """What a GPU cannot record: memory that is asked for, copies, and reading."""
        if self._recording is not None:
            raise AssertionError(f"{what} while launches are recorded")

    def put(self, array: np.ndarray[Any, Any]) -> FakeArray:
        """A copy here."""
        self.refuse_while_recording("put")
        self.copied.to_device += array.nbytes
        kept = np.array(array, order="C")
        return self.does("put", lambda: kept.copy())

    def fetch(self, array: FakeArray) -> np.ndarray[Any, Any]:
        """A copy on the host."""
        self.refuse_while_recording("fetch")
        self.copied.to_host += array.nbytes
        return self.inside(self.does("fetch", lambda x: np.array(x, order="C"), array))

    def read(self, array: FakeArray) -> np.generic:
        """The number that an array without axes holds."""
        self.refuse_while_recording("read")
        self.copied.reads += 1
        return self.inside(self.does("read", lambda x: x.copy(), array))[()]

    def adopt(self, value: Any) -> FakeArray | None:
        """Its own arrays, and those of other libraries that have them."""
        found = value if isinstance(value, FakeArray) or not hasattr(value, "__dlpack__") else value.__dlpack__()
        return found if isinstance(found, FakeArray) else None

    @contextmanager
    def errors(self) -> Generator[None]:
        """NumPy raises what it raises."""
        yield

    def scatter(self, name: str, array: FakeArray, places: Any, values: Any) -> None:
        """By NumPy."""
        function: np.ufunc = {"add": np.add, "max": np.maximum}[name]
        self.does(name, function.at, array, places, values, stores=True)

    def synchronize(self) -> None:
        """Everything is done."""

    @contextmanager
    def on(self, stream: str) -> Generator[None]:
        """All is done at once, whatever the stream."""
        del stream
        yield

    def fill(self, array: FakeArray, source: np.ndarray[Any, Any]) -> None:
        """By NumPy."""
        self.refuse_while_recording("fill")
        self.copied.to_device += source.nbytes
        kept = np.array(source, order="C")
        self.does("fill", lambda x: np.copyto(x, kept), array, stores=True)

    def record(self) -> Any:
        """No moment: everything is done."""

    def wait(self, event: Any) -> None:
        """Nothing to wait for."""

    def finish(self, event: Any) -> None:
        """Nothing to wait for."""

    def memory(self) -> tuple[int, int]:
        """What its arrays have left."""
        return self.limit - self.used, self.limit

    def free(self) -> None:
        """Nothing is kept for later."""

    def address(self, array: FakeArray) -> int:
        """On a boundary that kernels like: the emulator has addresses of its own."""
        return 0

    def load(self, image: bytes, name: str) -> Any:
        """A kernel for the emulator."""
        from tests.backend.cuda.emulator import parse

        own = f"sm_{self.capability}\n".encode()
        if image.startswith(b"sm_") and not image.startswith(own):
            raise RuntimeError("CUDA_ERROR_NO_BINARY_FOR_GPU")
        self.loads.append("machine code" if image.startswith(own) else "PTX")
        return parse(image.removeprefix(own).decode())

    def assembled(self, image: bytes) -> bytes | None:
        """The PTX itself, with what stands for an architecture."""
        return f"sm_{self.capability}\n".encode() + image if self.assembles else None

    def launch(
        self, kernel: Any, grid: tuple[int, ...], block: tuple[int, ...], args: Sequence[Any], shared: int = 0
    ) -> None:
        """By the emulator, which raises for every access that a GPU would not have survived."""
        if self._recording is not None:
            self._recording.append((kernel, grid, block, list(args), shared))
            return
        self.copied.launches += 1
        if self.broken(self.copied.launches):
            raise LaunchError("the device does not start a kernel: it was told not to")
        self._launch(kernel, grid, block, args, shared)

    def recorded(self, function: Callable[[], None]) -> Callable[[], None]:
        """The launches of a function, which are made when the result is called; nothing else may be done in it."""
        found: list[Any] = []
        self._recording = found
        try:
            function()
        finally:
            self._recording = None

        def replay() -> None:
            self.copied.replays += 1
            for one in found:
                self._launch(*one)

        return replay

    def _launch(
        self, kernel: Any, grid: tuple[int, ...], block: tuple[int, ...], args: Sequence[Any], shared: int
    ) -> None:
        from tests.backend.cuda.emulator import launch

        def run(given: Sequence[Any]) -> None:
            values = [a.reshape(-1) if isinstance(a, np.ndarray) else a for a in given]
            report = launch(kernel, grid[0], block[0], shared, values)
            if report.issues:
                raise AssertionError(report.issues)

        self.does("launch", run, args, stores=True)
