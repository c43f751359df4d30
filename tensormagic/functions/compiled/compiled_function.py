"""Functions compiled ahead of time for types: the results of ``tm.compile``."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from contextlib import nullcontext
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np

from tensormagic import session
from tensormagic.capture.errors import errstate, floating
from tensormagic.capture.tree import flatten, structure
from tensormagic.capture.values.value import Tensor
from tensormagic.functions.array_members import code_of
from tensormagic.functions.calls.out_arguments import arrays_for, check_shapes, filled, fits, usable
from tensormagic.functions.calls.quick_key import Calls
from tensormagic.functions.compiled.memory_and_cost import Memory, Sizes, Work, memory_of, numbers_of, sizes_of, work_of
from tensormagic.functions.compiled.origin import made_here
from tensormagic.functions.reads.record import Record, same
from tensormagic.functions.tracing import COMPILE, Traced, stands_for_array
from tensormagic.functions.travel import Made, sealed
from tensormagic.ir.errors import ArgumentError, DeviceError, GuardError, MemoryShortError
from tensormagic.ir.graph import Graph

if TYPE_CHECKING:
    from tensormagic.functions.compiled.exporting import Exported

Again = Callable[["Compiled", dict[str, str]], "Compiled | None"]


@sealed
@dataclass(frozen=True, eq=False)
class Compiled(Made):
    """A function, compiled ahead of time for types.

    Parameters
    ----------
    graph
        The graph as it was traced.
    executable
        What runs it: the rewritten graph, and its machine code.
    math
        Which rewrites were used.
    read_from
        The file that it was read from, and whether its machine code is used; empty where it was made here.

    Examples
    --------
    >>> import numpy as np
    >>> from tensormagic import compile as compiled
    >>> double = compiled(lambda x: x + x, "float64[n]")
    >>> double.run(np.array([1.0, 2.0]))
    array([2., 4.])
    """

    offered: ClassVar[tuple[str, ...]] = (
        "code",
        "cost",
        "export_c",
        "graph",
        "kernels",
        "math",
        "memory",
        "origin",
        "run",
        "save",
        "source",
    )

    graph: Graph
    executable: session.Executable
    math: str
    traced: Traced = field(repr=False)
    arguments: tuple[Any, ...] = field(repr=False)  # the types, and the values given in place of types
    _record: Record
    read_from: str = ""
    again: Again = field(default=lambda _made, _sizes: None, repr=False)
    named: Callable[[tuple[Any, ...], dict[str, Any]], tuple[Any, ...]] | None = field(default=None, repr=False)
    _small: dict[str, Compiled | None] = field(default_factory=dict[str, "Compiled | None"], repr=False)
    _calls: Calls = field(default_factory=Calls, repr=False)

    def __post_init__(self) -> None:
        _ = self.fixed, self._structure  # computed now, before the arguments can change

    def __repr__(self) -> str:
        """Return ``Compiled(loss of x: float64[n0], w: float64[3]; 2 kernels)`` and the like."""
        count = len(self.kernels)
        names = self.graph.names or [f"argument {k}" for k in range(len(self.graph.parameters))]
        given = ", ".join(f"{n}: {p.type}" for n, p in zip(names, self.graph.parameters, strict=True))
        kernels = f"{count} kernel{'s' * (count != 1)}"
        return f"Compiled({self.traced.name}{f' of {given}' if given else ''}; {kernels})"

    def __reduce_ex__(self, protocol: Any) -> Any:
        if self.made is not None and not any(isinstance(v, Graph) for v in self.made[1][:1]):
            return super().__reduce_ex__(protocol)
        from tensormagic.functions.compiled.saving import loaded, written

        return loaded, (written(self, codes=False),)

    @cached_property
    def fixed(self) -> list[Any]:
        """The arguments that were not types, one by one; a mark for each type."""
        return [ARRAY if stands_for_array(v) else v for v in flatten(self.arguments)[0]]

    @cached_property
    def _structure(self) -> Any:
        return structure(self.arguments)

    @cached_property
    def _single(self) -> bool:
        marker = object()
        return len(self.graph.results) == 1 and self.traced.build(iter([marker])) is marker

    @cached_property
    def _straight(self) -> bool:
        """Whether the graph's result is the function's result without further assembly."""
        return self._single and not self.traced.outward

    @cached_property
    def memory(self) -> Memory:
        """The bytes that a run needs: its peak, by kernel, and of results, arguments and constants, as formulas in the sizes.

        ``f.memory(x, w)`` gives numbers for arguments, and runs nothing. It is of the machine code that runs on the CPU.

        Examples
        --------
        >>> import tensormagic as tm
        >>> f = tm.compile(lambda x: np.cumsum(x)[::-1] * 2, "float64[n]")
        >>> f.memory.results, int(f.memory(np.ones(1000)).results)
        (8*n, 8000)
        """
        return self._memory(self._named_sizes, None)

    @cached_property
    def cost(self) -> Work:
        """The work of a run: operations, floating-point operations and bytes moved, by kernel, as formulas in the sizes.

        ``f.cost(x, w)`` gives numbers for arguments, and runs nothing. It is of the machine code that runs on the CPU.

        Examples
        --------
        >>> import tensormagic as tm
        >>> f = tm.compile(lambda x: np.cumsum(x)[::-1] * 2, "float64[n]")
        >>> f.cost.operations, f.cost(np.ones(1000)).intensity
        (2*n, 0.0625)
        """
        return work_of(self.executable.plan, self._named_sizes, self.traced.name, self._cost_at)

    def _cost_at(self, *args: Any) -> Work:
        made, _, sizes = self._known(args)
        return work_of(made.executable.plan, sizes, made.traced.name, made._cost_at)  # noqa: SLF001 (of the same class)

    @cached_property
    def _named_sizes(self) -> Sizes:
        if self.executable.device != "cpu":
            raise DeviceError("memory and cost are known for code on the CPU, but this was compiled for the GPU")
        leaves = flatten(self.arguments)[0]
        return sizes_of(
            self.graph, self.executable.graph, [v for v, f in zip(leaves, self.fixed, strict=True) if f is ARRAY]
        )

    def _memory(self, sizes: Sizes, args: Sequence[Any] | None) -> Memory:
        return memory_of(self.executable.plan, sizes, len(self.traced.outside), self._memory_at, args)

    def _memory_at(self, *args: Any) -> Memory:
        made, values, sizes = self._known(args)
        return made._memory(sizes, values)  # noqa: SLF001 (of the same class)

    def _known(self, args: tuple[Any, ...]) -> tuple[Compiled, Sequence[Any], Sizes]:
        """Return the function to run for arguments, the arguments' values, and the sizes."""
        try:
            values, sizes = self.bound_to(args)
        except GuardError:
            small = self._where_small(args)
            if small is None:
                raise
            return small._known(args)  # noqa: SLF001 (of the same class)
        named = self._named_sizes
        return self, values, Sizes(named.called, numbers_of(self.executable.graph, sizes, values))

    def _where_small(self, args: tuple[Any, ...]) -> Compiled | None:
        """Return the variant for arguments with sizes 0 or 1, or None if there is none, or nothing to capture."""
        given = self._small_sizes(args)
        return self.with_sizes(given) if given else None

    def with_sizes(self, given: str) -> Compiled | None:
        """Return the variant with sizes of 0 or 1, such as ``"n0=1"``, captured on first use, or None if there is nothing to capture."""
        if given not in self._small:
            self._small[given] = self.again(self, dict(part.split("=") for part in given.split(",")))
        return self._small[given]

    def _small_sizes(self, args: tuple[Any, ...]) -> str:
        """Return the sizes of arguments that are 0 or 1, if others were captured; empty if there are none, or they contradict."""
        if structure(args) != self._structure:
            return ""
        found: dict[str, int] = {}
        for node, value in zip(self.graph.parameters, _picked(args, self.fixed), strict=False):
            for size, extent in zip(node.type.shape, np.shape(value), strict=False):
                if str(size).isidentifier() and found.setdefault(str(size), extent) != extent:
                    return ""
        return ",".join(f"{name}={extent}" for name, extent in sorted(found.items()) if extent in {0, 1})

    @property
    def origin(self) -> str:
        """Where it comes from: ``"compiled here"``, who runs it where nothing is compiled, or the file, and whether its code is used."""
        return self.read_from or made_here(self.executable)

    @property
    def kernels(self) -> tuple[Any, ...]:
        """The kernels, in the order of their runs."""
        return self.executable.plan.kernels

    @property
    def code(self) -> str:
        """The Python source of the kernels, and of the function that runs them where it was compiled for the processor."""
        return code_of(self.executable)

    def by_position(self, args: tuple[Any, ...], named: dict[str, Any]) -> tuple[Any, ...]:
        """Return arguments given partly by name, by position: as the function takes them, or by the names in a file."""
        if self.named is not None:
            return self.named(args, named)
        names = [str(name) for name in self.graph.names[: len(self.arguments)]]
        order = names[len(args) :]
        if len(self.fixed) != len(self.arguments) or len(names) != len(self.arguments) or set(order) != named.keys():
            raise ArgumentError(
                f"{', '.join(named)}: {self.traced.name} takes {', '.join(names)}", "Give its arguments by position."
            )
        return (*args, *(named[name] for name in order))

    def run(self, *args: Any, out: Any = None, **named: Any) -> Any:
        """Call the function with arguments of the types that it was compiled for.

        Parameters
        ----------
        args, named
            The arguments, by position or by name.
        out
            An array for the result, or a tuple with an array or None for each result. These are returned; compiled code computes
            in them, and allocates nothing for results. They may be arguments, too: the result is as if they shared no memory.

        Returns
        -------
        array, number, or a container of these
            The function's result; ``out``, if given.

        Raises
        ------
        GuardError
            If the arguments are of other types, or other values that the function reads have changed.

        Examples
        --------
        >>> import numpy as np
        >>> import tensormagic as tm
        >>> tm.compile(lambda x: x + 1, "float64[n]").run(np.zeros(2))
        array([1., 1.])
        """
        if named:
            args = self.by_position(args, named)
        if not self._record.holds():
            self.refuse_changes()
        if self._asks():
            return self._first(args, out)
        last = self._calls.last
        values = last.match(args)
        try:
            if values is None:
                try:
                    last, values = self._calls.known(args)
                except (KeyError, TypeError):
                    return self._first(args, out)
            if out is not None:
                return self._filled(values, last.sizes, out)
            if last.bound is None:
                last.bound = self.executable.bound(last.sizes)
            results = self.executable.plainly(last.sizes, values) if last.bound is None else last.bound(values)
            if results is None:
                results = self.executable.run(last.sizes, *values)
        except MemoryShortError as error:
            self._place(error)
            raise
        return results[0] if self._straight else self.built(results)

    def _place(self, error: MemoryShortError) -> None:
        """Make an error name only lines of this function, as other functions may share the program."""
        node = getattr(error, "tensor_node", None)
        if node is not None:
            error.tensor_sites = self.traced.lens.of(node)  # type: ignore[attr-defined]
            error.place(error.tensor_sites)  # type: ignore[attr-defined]

    def refuse_changes(self) -> None:
        """Raise if anything the function reads beside its arguments has changed."""
        if not self._record.holds():
            raise GuardError(
                f"{self._record.changed()}, which {self.traced.name} reads, has changed since it was compiled",
                COMPILE,
            )

    def save(self, path: str | Path) -> None:
        """Write it into a file that :func:`tensormagic.load` opens, without the source and without a compiler.

        Parameters
        ----------
        path
            The file. An existing one is replaced when the new one is complete.

        Raises
        ------
        CaptureError
            If it calls Python functions when it runs, raises exceptions, or returns objects of the user's own: no file holds these.
        GuardError
            If other values that it reads have changed since it was compiled.

        Examples
        --------
        >>> import tensormagic as tm
        >>> f = tm.compile(lambda x: x + 1, "float64[n]")
        >>> f.save("/tmp/f.tm")  # doctest: +SKIP
        """
        from tensormagic.functions.compiled.saving import save

        save(self, path)

    def export_c(self, folder: str | Path, name: str = "") -> Exported:
        """Write a header, and a shared library with one C function that needs neither Python nor NumPy.

        Symbolic sizes are arguments, arrays are pointers, and results are written where the caller says. The library is built by
        the system's C compiler; if there is none, its sources are written.

        Parameters
        ----------
        folder
            Where the files are written.
        name
            The name of the C function; by default the function's own.

        Returns
        -------
        Exported
            ``.header``, ``.source``, ``.objects``, ``.library`` (None without a compiler of C), and the ``.command`` that builds it.

        Raises
        ------
        CaptureError
            If Python libraries compute a part (solvers, sorting, random numbers), or the shape of a result is data-dependent.

        Examples
        --------
        >>> import tensormagic as tm
        >>> f = tm.compile(lambda x: x + 1, "float64[n]")
        >>> f.export_c("/tmp/f", name="plus_one")  # doctest: +SKIP
        """
        from tensormagic.functions.compiled.exporting import export_c

        return export_c(self, folder, name)

    @property
    def size_names(self) -> dict[Any, str]:
        """What the user calls sizes."""
        return dict(self._named_sizes.called)

    def _first(self, args: tuple[Any, ...], out: Any) -> Any:
        """Return the result for arguments of kinds and shapes that were not seen before."""
        try:
            values, sizes = self.bound_to(args)
        except GuardError:
            small = self._where_small(args)
            if small is None:
                raise
            return small.run(*args, out=out)
        self._calls.note(args, values, sizes)
        if out is not None:
            return self._filled(values, sizes, out)
        return self.built(self.computed(sizes, values))

    def _asks(self) -> bool:
        """Return whether floating-point errors are to raise: in the function, or around its call."""
        return self.traced.raising or errstate.raises()

    def computed(self, sizes: dict[Any, int], values: Sequence[Any]) -> list[Any]:
        """Return the results of the graph, by the tier that is ready; by NumPy if floating-point errors are to be raised."""
        if not self._asks():
            return self.executable.run(sizes, *values)
        with floating.inside(self.traced.lens) if self.traced.raising else nullcontext():
            return self.executable.by_numpy(sizes, *values)

    def _into(self, sizes: dict[Any, int], values: Sequence[Any], arrays: Sequence[Any]) -> list[Any]:
        return self.computed(sizes, values) if self._asks() else self.executable.into(sizes, values, arrays)

    def bound_to(self, args: tuple[Any, ...]) -> tuple[Sequence[Any], dict[Any, int]]:
        """Return the values of the graph's parameters for arguments, and the sizes."""
        if len(args) == len(self._structure[1]) and structure(args) != self._structure:
            raise GuardError("the arguments have a different structure from those that the function was compiled for")
        given = _picked(args, self.fixed)
        for parameter, value in zip(self.graph.parameters, given, strict=False):
            if np.asarray(value).dtype != parameter.type.dtype:
                raise GuardError(f"an argument of dtype {np.asarray(value).dtype} where {parameter.type} was compiled")
        values = [*given, *(now() for now in self.traced.outside)]
        if len(values) != len(self.graph.parameters):
            count = len(values) - len(self.traced.outside)
            raise TypeError(f"{len(given)} arrays were given, but the function was compiled for {count}")
        return values, self.graph.bind([np.shape(v) for v in values])

    def _filled(self, values: Sequence[Any], sizes: dict[Any, int], out: Any) -> Any:
        if self._single and type(out) is np.ndarray and fits(out, self.graph.results[0].type, sizes, values):
            result, *_ = self._into(sizes, values, [out, *self._unasked])
            return out if result is out else filled([out], [result])[0]
        types = [node.type for node in self.graph.results]
        arrays = arrays_for(out, types, single=self._single)
        check_shapes(arrays, types, sizes)
        results = self._into(sizes, values, [*usable(arrays, types, values), *self._unasked])
        return self.built(filled([*arrays, *self._unasked], results), arrays)

    @cached_property
    def _unasked(self) -> list[None]:
        """None for each additional result of the graph, which the user does not see."""
        return [None] * (len(self.executable.graph.results) - len(self.graph.results))

    def built(self, results: Sequence[Any], arrays: Sequence[Any] = ()) -> Any:
        """Return the function's return value from the graph's results, some of which are the caller's ``arrays``."""
        if self.traced.outward:
            results = self.traced.outward.given(results, arrays)
        return results[0] if self._single else self.traced.build(iter(results))

    __call__ = run


SYMBOL = re.compile(r"\bn\d+\b")


ARRAY: Any = object()


def _picked(args: tuple[Any, ...], fixed: list[Any]) -> list[Any]:
    """Return the arrays among the arguments; raise GuardError unless the others are as they were at capture."""
    leaves = flatten(args)[0]
    if len(leaves) != len(fixed):
        raise TypeError(f"{len(leaves)} values were given, but the function was compiled for {len(fixed)}")
    for k, (value, before) in enumerate(zip(leaves, fixed, strict=True), 1):
        if before is not ARRAY and not same(value, before):
            raise GuardError(f"value {k} is {value!r} where {before!r} was compiled for", COMPILE)
    return [v.numpy() if isinstance(v, Tensor) else v for v, f in zip(leaves, fixed, strict=True) if f is ARRAY]
