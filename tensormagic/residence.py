"""Where values lie: on the host, on the device, or on both; and running graphs on the device with what is told or refused of copies."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, MutableMapping, Sequence
from typing import Any
from weakref import WeakSet

import numpy as np

from tensormagic.backend.cuda import memory, transfers
from tensormagic.backend.cuda.arrivals import ordered
from tensormagic.backend.cuda.device import Device, DeviceArray, Event, current, is_there
from tensormagic.backend.cuda.streams import Arriving, copied_out
from tensormagic.backend.cuda.transfers import Hidden
from tensormagic.capture.errors import floating
from tensormagic.capture.python import usercode
from tensormagic.capture.values.value import Tensor
from tensormagic.config import config
from tensormagic.ir import site
from tensormagic.ir.graph import Graph
from tensormagic.ir.node import Node
from tensormagic.ops.draws.random import DRAW
from tensormagic.ops.leaf import INPUT
from tensormagic.ops.op import as_form


class Resident:
    """A value with its copies on the device and on the host, each made once.

    Parameters
    ----------
    host, device_array
        Where it lies already.
    done
        The moment at which the device has computed it.

    Attributes
    ----------
    stays
        Whether the device is where it belongs: it was computed there, or put there by name. What is computed from it follows it.
    policy
        What was said of copies where it was made.
    """

    __slots__ = ("__weakref__", "_done", "_host", "_on_device", "policy", "stays")

    def __init__(
        self,
        *,
        host: np.ndarray[Any, Any] | None = None,
        device_array: DeviceArray | None = None,
        done: Event | None = None,
    ) -> None:
        self._host = host
        self._on_device = device_array
        self._done = done
        self.stays = device_array is not None
        self.policy: str = config.transfers

    @property
    def _array(self) -> Any:
        return self._on_device if self._host is None else self._host

    @property
    def shape(self) -> tuple[int, ...]:
        """The shape."""
        return self._array.shape

    @property
    def dtype(self) -> np.dtype[Any]:
        """The dtype."""
        return self._array.dtype

    @property
    def ndim(self) -> int:
        """The number of axes."""
        return self._array.ndim

    @property
    def nbytes(self) -> int:
        """The bytes of one copy."""
        return int(self._array.nbytes)

    @property
    def on_device(self) -> bool:
        """Whether it lies on the device."""
        return self._on_device is not None

    @property
    def on_host(self) -> bool:
        """Whether it lies on the host."""
        return self._host is not None

    def device(self) -> DeviceArray:
        """The array on the device."""
        if self._on_device is None:
            device, host = current(), np.asarray(self._host)
            self._on_device = memory.with_room(device, lambda: device.put(host))
            _copies.add(self)
        return self._on_device

    def arrives(self, array: DeviceArray) -> None:
        """Set the copy on the device."""
        self._on_device = array
        _copies.add(self)

    def leave(self) -> int:
        """Give up the copy on the device, where the host has the value, too, and nobody has put it there: the bytes."""
        if self._on_device is None or self._host is None or self.stays:
            return 0
        self._on_device = None
        return self.nbytes

    def host(self) -> Any:
        """The array, or the number, on the host: not to be written into."""
        if self._host is None:
            device, array = current(), self.device()
            self._host = copied_out(device, array, self._done) if array.ndim else np.asarray(device.read(array))
            self._host.flags.writeable = False
        return self._host

    def finish(self) -> None:
        """Wait until the device has computed it."""
        if self._done is not None:
            current().finish(self._done)

    def __int__(self) -> int:
        return int(self.host())


_copies: WeakSet[Resident] = WeakSet()  # what has been copied to the device


def make_room() -> int:
    """Give up all copies on the device that can be made again: the bytes."""
    found = sum(one.leave() for one in list(_copies))
    _copies.clear()
    return found


memory.spare.append(make_room)


def device_in_force() -> str:
    """``"cpu"``, ``"gpu"``, or ``"auto"`` where there is a device to choose."""
    return "cpu" if config.device == "auto" and not is_there() else config.device


# what is told ---------------------------------------------------------------------------------------------------------


def name_of(node: Node) -> str:
    """The user's name of a value; empty if it is not known."""
    names = usercode.user_names(usercode.user_frame())
    held = (n for n, v in names.items() if isinstance(v, Tensor) and not n.startswith("_") and v.node is node)
    return next(held, "") or (str(node["source"]) if node.op is INPUT else "")


def at_call(_node: Node) -> tuple[site.Site, ...]:
    """Where the user's code is now."""
    frame = usercode.user_frame()
    here = frame is not None and not str(frame.f_globals.get("__name__")).startswith("IPython.")
    return (usercode.span(frame),) if frame is not None and here else ()


def hosted(value: Any, node: Node, name: str = "") -> Any:
    """A value on the host; one that is only on the device is copied, which is reported or refused."""
    if not isinstance(value, Resident):
        return value
    if not value.on_host:
        called = name or name_of(node)
        text = f"{called or 'a value'} ({transfers.type_text(value)})"
        mend = f"tm.to_host({called or 'the value'}) asks for it"
        spans = at_call(node)
        key = called or "".join(map(str, spans))
        with config.using(transfers=policy([value])):
            transfers.result(Hidden(key, text, "to the host", mend, spans), number=not value.shape)
    found = value.host()
    return found if node.type.shape else as_form(found, node.type.form)


def stays(value: Any) -> bool:
    """Whether a value belongs on the device."""
    return isinstance(value, Resident) and value.stays


def policy(values: Sequence[Any]) -> str:
    """The policy for copies of values computed from others: the strictest of theirs and the configured one."""
    said = {config.transfers, *(v.policy for v in values if stays(v))}
    return max(said, key=transfers.POLICIES.index)


def norm(value: Resident) -> float:
    """The Euclidean norm, computed on the device."""
    device = current()
    xp, array = device.library, value.device()
    return float(device.read(xp.sqrt(xp.sum(xp.square(xp.absolute(array))))))


# running --------------------------------------------------------------------------------------------------------------

Sites = Callable[[Node], Sequence[site.Site]]


def run(graph: Graph, values: Sequence[Any], names: Sequence[str], sites: Sites) -> list[Any]:
    """Run a rewritten graph on the device; results with axes are :class:`Resident`, and so are numbers that lie there.

    Parameters
    ----------
    graph
        The graph.
    values
        The values of its parameters, on the host or resident.
    names
        The user's names of the parameters.
    sites
        Gives the places where the user has written a node.
    """
    from tensormagic.backend.cuda import run as cuda  # with all kinds of kernels

    given = [resident(v) for v in values]
    told(graph, given, names, sites)
    device = current()
    with floating.watched():  # the numbers that stay on the host are NumPy's
        arriving = _sent(device, graph, given, names, sites)
        results = cuda.run(graph, [v.device() if isinstance(v, Resident) else v for v in given], device, arriving)
    done = device.record()
    return [_held(device, r, done) for r in results]


def told(graph: Graph, given: Sequence[Any], names: Sequence[str], sites: Sites) -> None:
    """Report the copies that a run makes, or refuse them; ``given`` arrays are resident."""
    from tensormagic.backend.cuda import run as cuda

    hidden = list(_inputs(graph, given, names, sites))
    fallen = cuda.offenders(graph, sites)
    if config.transfers == "refuse":
        transfers.inputs([*hidden, *fallen])
    transfers.inputs(hidden)
    transfers.fallbacks(fallen)


def _sent(device: Device, graph: Graph, given: Sequence[Any], names: Sequence[str], sites: Sites) -> Arriving:
    """Start copying arrays that are only on the host to the device, in the order of use, or most needed first."""
    away = [k for k, v in enumerate(given) if isinstance(v, Resident) and not v.on_device]
    order = ordered(graph, away, [np.shape(v) for v in given])
    arriving = Arriving(device, graph, order)
    sent: dict[Resident, _Input] = {}
    for k in order.parameters:
        sent.setdefault(given[k], _Input(graph, k, given[k], names, sites))
    with device.errors():
        arrays = [one.room(device) for one in sent.values()]
        arriving.copy(arrays, [np.asarray(v.host()) for v in sent])
    for value, array in zip(sent, arrays, strict=True):
        value.arrives(array)
    return arriving


class _Input:
    """A parameter of a run, as the user knows it."""

    def __init__(self, graph: Graph, number: int, value: Resident, names: Sequence[str], sites: Sites) -> None:
        parameter = graph.parameters[number]
        self.value = value
        self.called = (names[number] if number < len(names) else "") or f"argument {number + 1}"
        self.reader = next((n for n in graph.nodes if parameter in n.args), parameter)
        self.sites = tuple(sites(self.reader))[:1]
        self.text = f"{self.called} ({transfers.type_text(value)})"

    def room(self, device: Device) -> DeviceArray:
        """Memory for its copy."""
        value = self.value
        what = f"{self.text}{f', {self.sites[0]}' if self.sites else ''}"
        return memory.with_room(device, lambda: device.library.empty(value.shape, value.dtype), self.reader, what)


def chosen(graph: Graph, sizes: Mapping[Any, int], values: Sequence[Any]) -> tuple[bool, str]:
    """Whether a graph is to run on the device, and why: where a value belongs there, without a guess."""
    if any(map(stays, values)):
        return True, "on the device: a value lies there"
    from tensormagic.backend.cuda import choice

    copied = sum(
        v.nbytes for v in values if isinstance(v, Resident | np.ndarray) and not getattr(v, "on_device", False)
    )
    return choice.chosen(graph, sizes, copied)


def resident(value: Any) -> Any:
    """An array as a resident one; a number unchanged."""
    return Resident(host=value) if isinstance(value, np.ndarray) and value.ndim and value.dtype != object else value


def _held(device: Device, result: Any, done: Event) -> Any:
    if device.is_array(result):
        return Resident(device_array=result, done=done)
    return resident(result)


def _inputs(graph: Graph, given: Sequence[Any], names: Sequence[str], sites: Sites) -> Iterator[Hidden]:
    states = {n.args[0] for n in graph.nodes if n.op is DRAW}
    for k, (parameter, value) in enumerate(zip(graph.parameters, given, strict=True)):
        if not isinstance(value, Resident) or value.on_device or parameter in states:
            continue
        one = _Input(graph, k, value, names, sites)
        called = one.called
        mend = f"{called} = tm.to_gpu({called}) copies it once" if called.isidentifier() else "tm.to_gpu copies once"
        yield Hidden(called, one.text, "to the device", mend, one.sites)


def kept(leaf: Node, value: Any, table: MutableMapping[Node, Any]) -> Any:
    """The value of a leaf as a run on the device takes it: its copy there is kept with the leaf."""
    found = resident(value)
    if found is not value:
        table[leaf] = found
    return found
