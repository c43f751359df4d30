"""Compiled functions as files: the graph as text, values as npy, and machine code for each machine; and how these are opened.

What is read runs nothing but graphs. Machine code is used if nobody else could have written the file, or this user
has written it or says that its author is trusted, and if this machine would compile the same; else the graph is
compiled here, or run by NumPy.
"""

from __future__ import annotations

import builtins
import hashlib
import io
import json
import platform
from collections.abc import Callable, Iterator, Mapping
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any

import numpy as np

from tensormagic import residence, session
from tensormagic.backend.compiling import native
from tensormagic.backend.compiling.messages import Code
from tensormagic.config import config, parted
from tensormagic.functions.calls.python_results import outward_of
from tensormagic.functions.compiled import archive
from tensormagic.functions.compiled.compiled_function import ARRAY, SYMBOL, Compiled
from tensormagic.functions.compiled.forms import Form, UnwritableError, form_of, tree_of
from tensormagic.functions.compiled.origin import made_here
from tensormagic.functions.compiled.small_sizes import sizes_text, small_sizes
from tensormagic.functions.reads.record import Record
from tensormagic.functions.tracing import Traced
from tensormagic.ir import errors
from tensormagic.ir.errors import CaptureError, FormatError, GuardError, ParseError
from tensormagic.ir.graph import Graph
from tensormagic.ir.node import Node
from tensormagic.ir.text import parse
from tensormagic.ops.declared import Declared
from tensormagic.ops.effects.outside import OUTSIDE
from tensormagic.ops.op import as_form, registry

FORMAT = 1
_RESULT = ["result"]
_NUMBERS = "biufc"
_SMALL = "small/"  # prefix of parts: the function for sizes of 0 and 1, as nested files
_ERRORS = {"builtins", errors.__name__}
_RAISES = "raises/"  # prefix of parts: NumPy's error for such sizes


def save(function: Compiled, path: str | Path) -> None:
    """Write a compiled function into a file: see :meth:`Compiled.save`."""
    archive.write(Path(path), written(function))


def load(path: str | Path, *, trusted: bool = False) -> Compiled:
    """Open a file that :meth:`Compiled.save` has written.

    Parameters
    ----------
    path
        The file.
    trusted
        Whether to trust the file's author like yourself: machine code that somebody else has compiled is then run. It is never
        run if others could have changed the file since.

    Returns
    -------
    Compiled
        As from :func:`compile`; ``.origin`` says whether the file's machine code is used. If not, the graph is compiled in the
        background, or run by NumPy if there is no compiler.

    Raises
    ------
    FormatError
        If the file is not such a file, was altered, or is from a later version.

    Examples
    --------
    >>> load("loss.tm").run(np.ones(3))  # doctest: +SKIP
    """
    data, others = archive.read(Path(path))
    return loaded(data, Path(path).name, others=others, trusted=trusted)


# writing --------------------------------------------------------------------------------------------------------------


def written(function: Compiled, *, codes: bool = True, small: bool = True) -> bytes:
    """Return the file of a compiled function; machine code, and variants for sizes 0 and 1, are optional."""
    function.refuse_changes()
    executable, name = function.executable, function.traced.name
    if function.traced.raising:
        raise CaptureError(
            f"{name} asks for floating-point errors by np.errstate, which cannot be saved in a file",
            "Put np.errstate around the call of what is loaded.",
        )
    for graph in (function.traced.graph, executable.graph):
        _refuse_outside(graph, name)
    values = [now() for now in function.traced.outside]
    parts = {
        "graph": function.traced.graph.text.encode(),
        "rewritten": executable.graph.text.encode(),
        **{f"values/{k}.npy": _npy(v) for k, v in enumerate(values)},
    }
    machines: dict[str, Any] = {}
    if codes and executable.device == "cpu":
        machines, own = _machine_code(executable)
        parts |= own
    if small:
        parts |= _small_files(function)
    about = {
        "format": FORMAT,
        "name": name,
        "versions": {"tensormagic": _version(), "numpy": np.__version__, "python": platform.python_version()},
        "math": function.math,
        "device": executable.device,
        "names": list(function.graph.names),
        "arguments": _written(function.arguments, _argument(function), name, "takes"),
        "results": _written(_marked(function), _result, name, "returns"),
        "machines": machines,
        "outward": function.traced.outward.written,
    }
    return archive.packed({archive.FIRST: json.dumps(about, indent=1).encode(), **parts})


def _small_files(function: Compiled) -> dict[str, bytes]:
    """Return the function's variants for sizes 0 and 1, if they are captured, and NumPy's errors for such sizes."""
    parts: dict[str, bytes] = {}
    for given in map(sizes_text, small_sizes(function)):
        try:
            small = function.with_sizes(given)
            if small is not None:
                parts[_SMALL + given] = written(small, codes=False, small=False)
        except CaptureError:  # these sizes cannot be captured
            continue
        except Exception as error:  # noqa: BLE001 (what NumPy, or the user's code, says of such a size)
            known = next(c for c in type(error).__mro__ if c.__module__ in _ERRORS)
            parts[_RAISES + given] = json.dumps([known.__name__, str(error)]).encode()
    return parts


def _raised(part: bytes) -> Exception:
    """Return the exception stored in a file for some sizes: of Python, or of this package."""
    kind, text = json.loads(part)
    found = vars(builtins).get(kind, vars(errors).get(kind))
    known = isinstance(found, type) and issubclass(found, Exception)
    return found(text) if known else GuardError(f"{kind}: {text}")


def _refuse_outside(graph: Graph, name: str) -> None:
    """Raise for what no file can hold: Python functions, and the user's exceptions."""
    for node in _every(graph):
        if node.op is OUTSIDE:
            raise CaptureError(
                f"{name} calls {str(node['call']).rstrip(',')} when it runs, which cannot be saved in a file", _SAVE
            )
        if isinstance(node.op, Declared):
            raise CaptureError(
                f"{name} calls {node.op.name}, of a rule of yours, which cannot be saved in a file", _SAVE
            )
        unknown = _unknown(node)
        if unknown:
            raise CaptureError(f"{name} uses {unknown}, which cannot be saved in a file", _SAVE)
    if parse(graph.text, registry).text != graph.text:
        raise CaptureError(f"the graph of {name} does not match its text", _SAVE)


_SAVE = "Send the function itself (it is pickled as source), or do this in the caller."


def _every(graph: Graph) -> Iterator[Node]:
    """Yield the nodes of a graph and of graphs inside it."""
    pending, seen = [graph], {graph}
    while pending:
        for node in pending.pop().nodes:
            yield node
            inner = [v for _, v in node.param_items if isinstance(v, Graph) and v not in seen]
            seen.update(inner)
            pending += inner


def _unknown(node: Node) -> str:
    """Return a name in a node that other processes do not have; empty if there is none."""
    names: Mapping[str, Callable[[Any], bool]] = getattr(node.op, "names", {})
    return next((str(node[k]).replace(":", ".") for k, holds in names.items() if not holds(node[k])), "")


def _npy(value: Any) -> bytes:
    stream = io.BytesIO()
    np.save(stream, np.asarray(value), allow_pickle=False)
    return stream.getvalue()


def _machine_code(executable: session.Executable) -> tuple[dict[str, Any], dict[str, bytes]]:
    """Return the code compiled on this machine: the machine's description, and the parts with the code."""
    if config.tier != "numpy":
        executable.compile().wait()
    found = native.codes(executable.plan.sources)
    if not found:
        return {}, {}
    from tensormagic.backend.cpu.loader import machine

    described = machine()
    number = _sum("\n".join(described.values()))
    listed = {_sum(source): [code.symbol, code.seconds] for source, code in found.items()}
    parts = {f"code/{number}/{_sum(source)}.o": code.data for source, code in found.items()}
    return {number: {"described": described, "code": listed}}, parts


def _sum(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()


def _written(tree: Any, leaf: Callable[[Any], Form | None], name: str, does: str) -> Form:
    try:
        return form_of(tree, leaf)
    except UnwritableError as error:
        raise CaptureError(
            f"{name} {does} {error}, which cannot be saved in a file",
            "Use arrays, numbers, texts, and tuples, lists and dictionaries of these.",
        ) from None


def _argument(function: Compiled) -> Callable[[Any], Form | None]:
    """Return a function that recognises values given as types, and returns these with the user's names of sizes."""
    types = iter(function.graph.parameters)
    called = (
        {str(size): name for size, name in function.size_names.items()} if function.executable.device == "cpu" else {}
    )
    marks = iter(function.fixed)

    def leaf(value: Any) -> Form | None:
        if value is None or type(value) in {dict, tuple, list} or isinstance(value, np.dtype):
            return None
        if next(marks, None) is not ARRAY:
            return None
        return ["array", SYMBOL.sub(lambda found: called.get(found[0], found[0]), str(next(types).type))]

    return leaf


class _Mark:
    """A placeholder for a result."""

    def __init__(self, number: int) -> None:
        self.number = number


def _marked(function: Compiled) -> Any:
    marks = [_Mark(k) for k in range(len(function.graph.results))]
    return function.traced.build(iter(marks))


def _result(value: Any) -> Form | None:
    return [*_RESULT, value.number] if isinstance(value, _Mark) else None


def _version() -> str:
    try:
        return version("tensormagic")
    except PackageNotFoundError:
        return ""


# reading --------------------------------------------------------------------------------------------------------------


def loaded(data: bytes, name: str = "", *, others: str = "", trusted: bool = False) -> Compiled:
    """Return the compiled function of a file's content.

    Parameters
    ----------
    data
        The content.
    name
        The name of the file; empty for a pickle.
    others
        Why others could have written it.
    trusted
        See :func:`load`.
    """
    parts = archive.unpacked(data)
    about = _about(parts)
    graph, rewritten = (_graph(parts, k, about) for k in ("graph", "rewritten"))
    executable = session.executable_as(graph, rewritten)
    executable.device = _device(about["device"])
    arguments = tree_of(about["arguments"], lambda form: form[1])
    _check(graph, rewritten, about, arguments)
    outside = [_value(parts, k, p) for k, p in enumerate(graph.parameters[_taken(about["arguments"]) :])]
    results = about["results"]

    def build(rest: Iterator[Any]) -> Any:
        given = list(rest)
        return tree_of(results, lambda form: given[form[1]])

    def small(_: Compiled, sizes: dict[str, str]) -> Compiled | None:
        given = ",".join(sorted(f"{k}={v}" for k, v in sizes.items()))
        if _RAISES + given in parts:
            raise _raised(parts[_RAISES + given])
        return loaded(parts[_SMALL + given]) if _SMALL + given in parts else None

    why = others or ("" if trusted or not name or archive.is_own(parts) else "it is not signed by you")
    used = _start(executable, parts, about, why)
    outward = outward_of(about["outward"], len(graph.results))
    return Compiled(
        graph.with_results(graph.results[: outward.count]),
        executable,
        about["math"],
        Traced(graph, build, [lambda v=v: v for v in outside], (), str(about["name"]), outward=outward),
        arguments,
        Record(()),
        f"{name or 'a pickle'}, {used}",
        small,
    )


def _about(parts: Mapping[str, bytes]) -> dict[str, Any]:
    try:
        about = json.loads(parts[archive.FIRST])
        format_ = int(about["format"])
        whole = {
            k: about[k] for k in ("name", "math", "device", "names", "arguments", "results", "machines", "versions")
        } | {"outward": about.get("outward")}
    except (LookupError, TypeError, ValueError) as error:
        raise FormatError(f"the file has no readable description: {error}") from None
    if format_ > FORMAT:
        raise FormatError(
            f"the file is of format {format_}, and this version reads {FORMAT}",
            "Open it with a later version of tensormagic.",
        )
    return whole


def _graph(parts: Mapping[str, bytes], part: str, about: Mapping[str, Any]) -> Graph:
    try:
        graph = parse(parts[part].decode(), registry)
    except (KeyError, UnicodeDecodeError, ParseError) as error:
        raise FormatError(
            f"the graph was written by another version ({about['versions']}), and cannot be read: {error}",
            "Save the function again with this version.",
        ) from None
    for node in _every(graph):
        unknown = _unknown(node) or next((str(t.dtype) for t in node.types if t.dtype.kind not in _NUMBERS), "")
        if unknown:
            raise FormatError(f"the graph uses {unknown}, which is never loaded from a file")
    names = tuple(map(str, about["names"]))
    return Graph(graph.parameters, graph.results, graph.guards, names if len(names) == len(graph.parameters) else ())


def _check(graph: Graph, rewritten: Graph, about: Mapping[str, Any], arguments: Any) -> None:
    """Raise FormatError unless the parts of a file are of one function."""
    same = graph.parameters == rewritten.parameters and len(graph.results) == len(rewritten.results)
    same = same and all(a.type.form == b.type.form for a, b in zip(graph.results, rewritten.results, strict=True))
    if not same or not isinstance(arguments, tuple) or parted(about["math"])[0] not in config.ALLOWED["math"]:
        raise FormatError("the parts of the file do not belong together")


def _device(saved: str) -> str:
    """Return the device that a function was saved for, if it exists here."""
    return saved if saved in {"gpu", "auto"} and residence.is_there() else "cpu"


def _taken(form: Form) -> int:
    """Return the number of arrays among the arguments."""
    count = 0

    def leaf(_: Form) -> None:
        nonlocal count
        count += 1

    tree_of(form, leaf)
    return count


def _value(parts: Mapping[str, bytes], number: int, parameter: Node) -> Any:
    """Return a value that a function reads beside its arguments, as it was when it was saved."""
    try:
        array = np.load(io.BytesIO(parts[f"values/{number}.npy"]), allow_pickle=False)
    except (KeyError, ValueError, OSError) as error:
        raise FormatError(f"a value in the file cannot be read: {error}") from None
    if array.dtype != parameter.type.dtype or array.ndim != parameter.type.ndim:
        raise FormatError(f"a value in the file is of {array.dtype} where the graph takes {parameter.type}")
    return as_form(array, parameter.type.form)


def _start(executable: session.Executable, parts: Mapping[str, bytes], about: Mapping[str, Any], why: str) -> str:
    """Start compiling, or take stored code, and return in words what was done."""
    if executable.device != "cpu" or config.tier == "numpy" or not executable.plan.sources:
        return made_here(executable)
    found, reason = ({}, why) if why or not about["machines"] else _own_code(executable, parts, about)
    here = "compiled here" if native.compiles() else "run by NumPy"
    native.lend(found)
    handle = executable.compile()
    if found and handle.wait():
        return "with its machine code"
    unused = reason or (handle.error if found else "")
    return f"{here}: its machine code is not used, as {unused}" if unused else here


def _own_code(
    executable: session.Executable, parts: Mapping[str, bytes], about: Mapping[str, Any]
) -> tuple[dict[str, Code], str]:
    """Return a file's code for this machine, by source, and the reason if there is none."""
    try:
        from tensormagic.backend.cpu.loader import runs_here
    except ImportError:
        return {}, "llvmlite, which loads it, is not installed"
    sources = {_sum(s): s for s in executable.plan.sources}
    for number, known in about["machines"].items():
        if runs_here(known["described"]) and sources.keys() <= known["code"].keys():
            listed = {sources[k]: (k, *known["code"][k]) for k in sources}
            return {
                source: Code(symbol, parts[f"code/{number}/{k}.o"], float(seconds))
                for source, (k, symbol, seconds) in listed.items()
            }, ""
    return {}, "it was compiled for another machine or by other versions"
