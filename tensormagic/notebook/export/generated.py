"""Functions in plain NumPy, generated for the kinds of arguments that a notebook has called them with."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from tensormagic import session
from tensormagic.backend.numpy_tier.text import numpy_parts
from tensormagic.capture.random import generators
from tensormagic.capture.tree import Rest
from tensormagic.functions.calls.function import Function
from tensormagic.functions.reads.changed_containers import Run
from tensormagic.functions.reads.reading import is_moving
from tensormagic.ir.errors import CaptureError
from tensormagic.ir.graph import Graph
from tensormagic.notebook.export.observe import Call

KIND_OF = '''
def kind_of(value):
    """The type that generated code depends on: dtype and axes (``:`` for any length of at least 2), or the value itself."""
    if isinstance(value, np.ndarray):
        return f"{value.dtype}[{', '.join(str(n) if n < 2 else ':' for n in value.shape)}]"
    if isinstance(value, (float, complex, np.inexact)):
        return type(value).__name__
    return repr(value)
'''
MISSING = '''
def missing_from_globals(function):
    """Let arguments that a call leaves out be read from this program's variables."""
    signature = inspect.signature(function)

    @functools.wraps(function)
    def call(*arguments, **options):
        given = signature.bind_partial(*arguments, **options).arguments
        return function(**{name: given[name] if name in given else globals()[name] for name in signature.parameters})

    return call
'''


@dataclass
class Generated:
    """The source of generated functions, with the imports and helpers that they need.

    Parameters
    ----------
    imports, helpers
        Lines of imports, and functions that the generated ones call.
    lines
        The functions.
    """

    imports: set[str] = field(default_factory=set[str])
    helpers: dict[str, tuple[str, ...]] = field(default_factory=dict[str, tuple[str, ...]])
    lines: list[str] = field(default_factory=list[str])

    def graph(self, graph: Graph, name: str) -> None:
        """Write the function of a graph."""
        imports, helpers, lines = numpy_parts(graph, name)
        self.imports.update(imports)
        for helper in helpers:
            self.helpers[helper[0].removeprefix("def ").partition("(")[0]] = helper
        self.lines += [*lines, ""]

    def function(self, function: Function, calls: Sequence[Call], name: str, told: str, space: dict[str, Any]) -> None:
        """Write a function for the kinds of calls that it got.

        Raises
        ------
        CaptureError
            Where a kind has no text in NumPy, or reads what a program of its own does not have.
        """
        kinds = _distinct([_Kind(function, call, space) for call in calls])
        for k, kind in enumerate(kinds, 1):
            self.graph(kind.graph, f"{name}_{k}")
        names = kinds[0].parameters
        if any(kind.parameters != names for kind in kinds):
            raise CaptureError(f"{function.name} is called with different numbers of arguments")
        head = ["@missing_from_globals"] if function.fills else []
        self.lines += [*head, f"def {name}({', '.join(names)}):", f'    """{told}', ""]
        self.lines += ["    Generated for:", *(f"        {kind.told}" for kind in kinds), '    """']
        for k, kind in enumerate(kinds, 1):
            self.lines += [
                f"    if ({kind.tests}):" if len(kind.texts) != 1 else f"    if {kind.tests}:",
                f"        result = {name}_{k}({', '.join(kind.moving)})",
                f"        return {kind.result}",
            ]
        every = ", ".join(names)
        self.lines += [
            f'    raise TypeError(f"{name} was not generated for the types {{[kind_of(value) for value in ({every},)]}}")',
            "",
        ]


class _Kind:
    """One kind of call."""

    def __init__(self, function: Function, call: Call, space: dict[str, Any]) -> None:
        given, program = call.given, call.program
        _refuse_more_than_values(function, call, space)
        self.graph = session.executable(program.graph, function.math).graph
        self.graph = Graph(self.graph.parameters, self.graph.results, self.graph.guards, program.graph.names)
        self.texts = _paths(function, given)
        self.parameters = [*self.texts.names]
        leaves = list(zip(self.texts.leaves, given.leaves, given.moving, strict=True))
        reads = zip((name for name, _ in given.reads), (v for _, v in given.held if is_moving(v)), strict=True)
        moving = [*((text, value) for text, value, moves in leaves if moves), *reads]
        self.moving = [text for text, _ in moving]
        fixed = [(text, value) for text, value, moves in leaves if not moves]
        pairs = [(text, kind_of(value)) for text, value in moving + fixed if is_moving(value) or _is_told(value)]
        self.tests = " and ".join(f"kind_of({text}) == {kind!r}" for text, kind in pairs) or "True"
        self.told = ", ".join(f"{text}: {kind}" for text, kind in pairs) or "no arguments"
        count = len(program.graph.results)
        names = ["result"] if count == 1 else [f"result[{k}]" for k in range(count)]
        self.result = names[0] if program.single else arranged(program.build(Rest(names, Run(None, {}, bool))))


def _refuse_more_than_values(function: Function, call: Call, space: dict[str, Any]) -> None:
    """Refuse a call that has effects beyond computing values from its arguments and variables of the notebook."""
    given, program = call.given, call.program
    if program.stores or program.extra:
        what = "stores into its arguments" if program.stores else "depends on lazy values of the notebook"
        raise CaptureError(f"{function.name} {what}")
    if any(generators.is_generator(v) for v in given.objects):
        raise CaptureError(f"{function.name} draws random numbers")
    outside = [name for (name, where), value in given.held if is_moving(value) and where is not space]
    if outside:
        raise CaptureError(f"{function.name} reads {outside[0]}, which is not a variable of the notebook")


def _is_told(value: Any) -> bool:
    return value is None or isinstance(value, bool | int | str | np.integer | np.bool_)


def kind_of(value: Any) -> str:
    """As the function of this name in the program."""
    space: dict[str, Any] = {"np": np}
    exec(KIND_OF, space)  # noqa: S102 (one text of it)
    return space["kind_of"](value)


def _distinct(kinds: Sequence[_Kind]) -> list[_Kind]:
    found: dict[str, _Kind] = {}
    for kind in kinds:
        known = found.setdefault(kind.told, kind)
        if known.graph != kind.graph:
            raise CaptureError("a function is captured differently for equal types")
    return list(found.values())


@dataclass
class _Texts:
    """What arguments are called, and the text of each leaf in them."""

    names: list[str]
    leaves: list[str]

    def __len__(self) -> int:
        return len(self.leaves)


def _paths(function: Function, given: Any) -> _Texts:
    args, options = given.build(iter(range(len(given.leaves))))
    names = [function.parameters[k] if k < len(function.parameters) else f"argument{k}" for k in range(len(args))]
    found: dict[int, str] = {}
    for name, value in [*zip(names, args, strict=True), *options.items()]:
        _walk(value, name, found)
    return _Texts([*names, *options], [found[k] for k in range(len(given.leaves))])


def _walk(value: Any, text: str, found: dict[int, str]) -> None:
    if isinstance(value, int):
        found[value] = text
    elif isinstance(value, dict):
        for key, part in value.items():
            _walk(part, f"{text}[{key!r}]", found)
    elif isinstance(value, tuple | list):
        for k, part in enumerate(value):
            _walk(part, f"{text}[{k}]", found)
    elif value is not None:
        raise CaptureError(f"an argument is {type(value).__name__}", "Pass tuples, lists and dictionaries of arrays.")


def arranged(value: Any) -> str:
    """Return the text of a container whose leaves are texts."""
    if isinstance(value, str):
        return value
    if value is None:
        return "None"
    if type(value) is dict:
        return "{" + ", ".join(f"{key!r}: {arranged(part)}" for key, part in value.items()) + "}"
    if type(value) in {tuple, list}:
        parts = ", ".join(map(arranged, value))
        if isinstance(value, list):
            return f"[{parts}]"
        return f"({parts}{',' if len(value) == 1 else ''})"
    raise CaptureError(f"a result is {type(value).__name__}", "Return tuples, lists and dictionaries of arrays.")


def stable_rules(graph: Graph, level: str) -> list[str]:
    """Return the rules that change more than the order of operations when a graph is brought to normal form."""
    fired = session.executable(graph, level).rewritten.fired
    return list(dict.fromkeys(f.rule.name for f in fired if f.rule.level != "exact"))
