"""The values of names while a function's text is read to find what rules would match: an array is one number, for its elements.

Some numbers are unknown: arguments, what a loop carries, a part of an array of which other parts have been stored.
"""

from __future__ import annotations

import ast
from collections.abc import Callable, Collection, Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any, NamedTuple, cast

import numpy as np

from tensormagic.capture.staging.analysis import numpy_functions
from tensormagic.capture.staging.analysis.text_folds import SAME, Folded, UnseenError, arrays_of
from tensormagic.capture.staging.analysis.text_places import Place, adds_axes, within
from tensormagic.capture.staging.syntax.syntax_trees import children
from tensormagic.ir.node import Node, substitute, topological
from tensormagic.ir.type import Type, python
from tensormagic.ops.leaf import CONSTANT, PARAMETER, constant, parameter
from tensormagic.ops.scalars.comparison import maximum, minimum
from tensormagic.ops.scalars.scalar import exp, exp2, tanh

_BENT = frozenset(
    (exp, exp2, maximum, minimum, tanh)
)  # picking functions: no rule takes their result for one of its operands
_PICKED = frozenset(SAME.values())  # functions that add up nothing
_FOLDED = "folded"  # a part of a fold over removed axes: assumed to be no other part of the array
_MOST = 2000  # unknown numbers, at most: examining more takes longer than capturing the function


class Content(NamedTuple):
    """Represents what an array holds: one element of it, and of parts that have been stored, by their place.

    ``whole`` is None where it is one or another, depending on a branch; ``parts`` are these then.
    """

    whole: Node | None
    parts: Mapping[Any, Node]

    @property
    def nodes(self) -> list[Node]:
        """Return all nodes that it may hold."""
        return [n for n in (self.whole, *self.parts.values()) if n is not None]


class Array:
    """Represents an array or a number that names are bound to."""


@dataclass(frozen=True)
class View:
    """Represents a view of an array, or the array with its axes in another order."""

    element: Node
    of: Array


@dataclass
class State:
    """Represents the bindings of names, and the contents of arrays."""

    names: dict[str, Any] = field(default_factory=dict[str, Any])
    content: dict[Array, Content] = field(default_factory=dict[Array, Content])

    def copy(self) -> State:
        """Return an independent copy."""
        return State(dict(self.names), dict(self.content))

    def join(self, other: State) -> None:
        """Merge with another state: either may be the current one."""
        for name in self.names.keys() | other.names.keys():
            mine, theirs = self.names.get(name), other.names.get(name)
            if mine is not theirs:
                self.names[name] = Array()
                self.content[self.names[name]] = _either(self._held(mine), other._held(theirs))
        for array, content in other.content.items():
            if self.content.setdefault(array, content) != content:
                self.content[array] = _either(self.content[array], content)

    def _held(self, value: Any) -> Content | None:
        return self.content.get(value) if isinstance(value, Array) else None


def _reached(nodes: list[Node], inside: Callable[[Node], list[Node]]) -> list[Node]:
    """Return the nodes that ``nodes`` are computed from, including those that ``inside`` gives for each."""
    found = dict.fromkeys(topological(nodes))
    pending = [*found]
    while pending:
        own = inside(pending.pop())
        more = [n for n in topological(own) if n not in found] if own else []
        found.update(dict.fromkeys(more))
        pending += more
    return [*found]


def _above(stop: Collection[Any], nodes: list[Node], inside: Callable[[Node], list[Node]]) -> list[Node]:
    """Return the nodes that ``nodes`` are computed from, stopping at some functions; ``inside`` adds further operands."""
    found = dict.fromkeys(nodes)
    pending = [*found]
    while pending:
        node = pending.pop()
        more = [] if node.op in stop else [n for n in (*node.args, *inside(node)) if n not in found]
        found.update(dict.fromkeys(more))
        pending += more
    return [*found]


def _either(*contents: Content | None) -> Content:
    return Content(None, dict(enumerate(n for c in contents if c for n in c.nodes)))


class Values:
    """Holds unknown numbers, and the values of names. ``numbers``: whether known Python numbers are constants."""

    def __init__(self, *, numbers: bool) -> None:
        self.state = State()
        self.results: list[Node] = []
        self.made_of: dict[Node, list[Node]] = {}  # the nodes that an unknown number depends on
        self.sums: dict[Node, Node] = {}  # for each sum, or part of one: the sum that it is a part of
        self.folded: dict[Node, Folded] = {}  # the sums that are examined by rules
        self.viewed: set[Array] = set()
        self.read: set[tuple[Array, Any]] = set()  # arrays read in the loop, with the place; None: all of it
        self.stored: set[tuple[Array, Any]] = set()
        self.constants: set[Node] = set()
        self.ranks: dict[Array, int] = {}  # known numbers of axes
        self.thin: set[Array] = set()  # arrays that have axes of one element
        self._thin: set[Node] = set()  # the elements of these arrays
        self._are_constants = numbers
        self._known: dict[Any, Node] = {}  # unknown numbers by their key
        self._data: set[Node] = set()  # those that captured code has no value of
        self._numbers: set[Node] = set()  # those that are the same for all elements
        self.sizes: set[Node] = set()
        self._roots: dict[Node, Node] = {}  # the unknown array that a part belongs to
        self._ways: dict[Node, tuple[Node, Any]] = {}  # what a part belongs to, and at which place
        self._shaped: set[Node] = set()  # parts that may equal other parts, written in another way
        self._flipped: set[Node] = set()  # slices in reverse order

    def needed(self) -> list[Node]:
        """Return the results, and the nodes that unknown numbers in them depend on."""
        return self._needed(self.results)[0]

    def as_rules_see(self, results: list[Node]) -> list[Node]:
        """Return the results with arrays where something is folded, as rules see them."""
        return arrays_of(results, self.folded, self._numbers) if self.folded else results

    def depends_on_data(self, value: Node) -> bool:
        """Return whether a value is unknown in captured code."""
        return not self._data.isdisjoint(self._needed([value])[1])

    def _needed(self, pending: list[Node]) -> tuple[list[Node], set[Node]]:
        found, seen = dict[Node, None](), set[Node]()
        while pending:
            found.update(dict.fromkeys(n for n in pending if n.args or n in self.folded))
            leaves = [n for n in self.through(pending) if n.op is PARAMETER and n not in seen]
            seen.update(leaves)
            pending = [n for leaf in leaves if leaf not in self.folded for n in self.made_of[leaf]]
        return [*found], seen

    def through(self, nodes: list[Node]) -> list[Node]:
        """Return the nodes that ``nodes`` are computed from, also through folds."""
        return _reached(nodes, lambda n: self.made_of[n] if n in self.folded else [])

    def sums_are_apart(self, nodes: list[Node]) -> bool:
        """Return whether sums that are not examined match no known form: sums of exponentials, or two sums of one array."""
        found = [self.sums[n] for n in nodes if n in self.sums and n not in self.folded]
        parts = [self._summed(whole) for whole in found]
        if any(n.op.name in numpy_functions.EXPONENTIALS for own in parts for n in own):
            return False
        summed = [w for own in parts for w in self._wholes(own)]
        if not self._thin.isdisjoint(summed):
            return False  # if they have one element, there may be none
        added = [n for n in nodes if n in self.folded and self.folded[n].name not in _PICKED]
        asked = {w for n in added for w in self._wholes(self._summed(n))}
        return len(asked.union(summed)) == len(asked) + len(summed) and len(found) == len(set(found))

    def _wholes(self, parts: Iterable[Node]) -> set[Node]:
        """Return the arrays that the elements ``parts`` belong to."""
        return {self._roots.get(n, n) for n in parts if n.op is PARAMETER and n not in self._numbers}

    def _summed(self, whole: Node) -> list[Node]:
        """Return the nodes a sum is made of, including inner sums, but not below functions other than sums."""
        straight = _above(_BENT, self.made_of[whole], lambda n: self.made_of[self.sums[n]] if n in self.sums else [])
        return _reached(straight, lambda _: [])

    def parts_are_apart(self, nodes: list[Node]) -> bool:
        """Return whether parts of arrays that differ here surely differ in captured code."""
        leaves = [n for n in nodes if n.op is PARAMETER]
        shaped = {self._roots[n] for n in leaves if n in self._shaped}
        roots = [self._roots.get(n, n) for n in leaves]
        flipped = [self._roots[n] for n in leaves if n in self._flipped]
        others = {self._roots.get(n, n) for n in leaves if n not in self._flipped and not self._is_sliced(n)}
        once = len(set(flipped)) == len(flipped) and others.isdisjoint(flipped)
        return once and all(roots.count(root) == 1 for root in shaped)

    def _is_sliced(self, leaf: Node) -> bool:
        """Return whether a leaf is an array, or a part of it by integers and slices of step 1."""
        return leaf not in self._ways or isinstance(self._ways[leaf][1], Place)

    # unknown numbers

    def any(
        self, key: Any, dtype: Any = np.float64, *, of: Iterable[Node] = (), number: bool = False, within: Any = None
    ) -> Node:
        """Return an unknown number, the same for the same key; ``of`` is what it is computed from."""
        found = self._known.get(key)
        if found is None:
            t = dtype if isinstance(dtype, Type) else Type(np.dtype(dtype), (), "scalar")
            found = self._known[key] = parameter(len(self._known), t, within)
            self.made_of[found] = [*of]
            if number:
                self._numbers.add(found)
        if len(self._known) > _MOST:
            raise UnseenError
        return found

    def size(self, key: Any) -> Node:
        """Return the unknown number for a size."""
        found = self.any(key, python(int), number=True, within=(0, None))
        self.sizes.add(found)
        return found

    def sum(self, key: Any, args: list[Node], *, number: bool = False) -> Node:
        """Return the unknown number for a sum of other numbers, or for one picked from them."""
        kind = np.result_type(np.float32, *[a.type.dtype for a in args]) if args else np.dtype(float)
        found = self.any((key, *args), kind, of=args, number=number)
        self.sums[found] = found
        return found

    def fold(self, what: Folded, *, number: bool) -> Node:
        """Return the unknown number for a fold that is examined."""
        found = self.sum(what, [what.element], number=number)
        self.folded[found] = what
        return found

    def given(self, value: Any) -> Array:
        """Return the value of an argument."""
        if isinstance(value, np.ndarray):
            found = self.any(object(), cast("np.ndarray[Any, Any]", value).dtype)
            self._data.add(found)
            made = self.array(found)
            self.ranks[made] = value.ndim
            if 1 in value.shape:
                self.thin.add(made)
                self._thin.add(found)
            return made
        return self.array(self.number(object(), value))

    def number(self, key: Any, value: Any) -> Node:
        """Return a number from outside: Python integers are constants in captured code, and operands in formulas of numbers."""
        kind = type(value)
        if kind is int or kind is bool or issubclass(kind, np.integer | np.bool_):
            return self._operand(constant(value))
        t = python(kind) if kind in {float, complex} else Type(np.dtype(kind), (), "scalar")
        found = self.any(key, t, number=True)
        self._data.add(found)
        return found

    def _operand(self, known: Node) -> Node:
        self.constants.add(known)
        return known if self._are_constants else self.any(known, python(float), number=True)

    # the contents of names

    def array(self, element: Node) -> Array:
        """Return a new array."""
        made = Array()
        self.state.content[made] = Content(element, {})
        return made

    def element(self, value: Any) -> Node:
        """Return an element of an expression's value."""
        if isinstance(value, Node):
            return value
        if isinstance(value, View):
            return value.element
        whole, parts = self._held(value)
        self.read.add((value, None))
        return self.any((value, *parts.values()), whole.type.dtype, of=(whole, *parts.values())) if parts else whole

    def part(self, array: Array, place: Any, *, item: bool = False) -> Node:
        """Return an element of a part of an array; ``item``: the part has no axes."""
        whole, parts = self._held(array)
        if place in parts:
            return parts[place]
        self.read.add((array, place))
        if parts:
            found = self.any((array, place, *parts.values()), whole.type.dtype, of=(whole, *parts.values()))
        else:
            found = self.moved(whole, place)
        if item:
            self._numbers |= {n for n in topological([found]) if n.op is PARAMETER}
        return found

    def store(self, array: Any, place: Any, element: Node) -> None:
        """Store into a part of an array; into all of it, where ``place`` is None."""
        whole, parts = self._held(array)
        if array in self.viewed:
            raise UnseenError
        self.stored.add((array, place))
        self.state.content[array] = Content(element, {}) if place is None else Content(whole, {**parts, place: element})

    def _held(self, array: Any) -> tuple[Node, Mapping[Any, Node]]:
        whole, parts = self.state.content[array] if isinstance(array, Array) else (None, {})
        if whole is None:
            raise UnseenError
        return whole, parts

    def moved(self, element: Node, place: Any) -> Node:
        """Return an element at another place: everything that is no number becomes another value there."""
        leaves = [n for n in topological([element]) if n.op is PARAMETER and n not in self._numbers]
        parts = {n: self._part(n, place) for n in leaves}
        parts = {whole: part for whole, part in parts.items() if part is not whole}
        self._data |= {part for whole, part in parts.items() if whole in self._data}
        for whole, part in parts.items():
            if whole in self.sums:  # a number, or an array: it is the same one, or another
                self.sums[part] = self.sums[whole]
        return substitute([element], parts)[0] if parts else element

    def _part(self, leaf: Node, place: Any) -> Node:
        """Return the unknown number for a leaf at another place: a part of a part is a part of the whole."""
        if leaf in self.folded:
            return leaf if adds_axes(place) else self._part_of_folded(self.folded[leaf], place)
        whole, way = self._ways.get(leaf, (leaf, Place(())))
        if place == way == "T":
            return whole
        found = within(way, place)
        if found is not None and found.whole:
            return whole
        key = (leaf, place) if found is None else (whole, found)
        part = self.any(key, leaf.type, of=self.made_of[leaf])
        self._ways[part] = key
        self._roots[part] = self._roots.get(leaf, leaf)
        again = found is None and (leaf in self._roots) and not isinstance(place, str)
        reshapes = isinstance(place, tuple) and isinstance(place[0], str) and not isinstance(place, Place)
        if reshapes and place[0] == "flip" and isinstance(way, Place) and leaf not in self._shaped:
            self._flipped.add(part)
        elif leaf in self._shaped or (reshapes and place[0] not in {"roll", _FOLDED}) or (again and not reshapes):
            self._shaped.add(part)
        return part

    def _part_of_folded(self, what: Folded, place: Any) -> Node:
        """Return the fold of the part of its operand at another place."""
        if not (what.keeps_axes or what.axes == constant(-1)):
            place = _FOLDED, what.axes, place
        return self.fold(what._replace(element=self.moved(what.element, place)), number=False)

    def bound(self, value: Any) -> Any:
        """Return the value that a name is bound to: a known number is an operand of formulas."""
        whole = self.state.content[value].whole if isinstance(value, Array) else None
        if whole is None or whole.op is not CONSTANT:
            return value
        operand = self._operand(whole)
        return value if operand is whole else self.array(operand)

    def place(self, index: ast.AST) -> Any:
        """Return the identity of an index: its text, with the values of its names."""
        if isinstance(index, ast.Name):
            bound = self.state.names.get(index.id, index.id)
            return self.element(bound) if isinstance(bound, Array) else bound if isinstance(bound, str) else id(bound)
        match index:
            case ast.Constant(value=int(number)):
                return constant(number)
            case ast.UnaryOp(op=ast.USub(), operand=ast.Constant(value=int(number))):
                return constant(-number)
            case _:
                pass
        own = [getattr(index, name, None) for name in ("value", "attr", "id")]
        said = [v for v in own if v is not None and not isinstance(v, ast.AST)]
        return (type(index), type(getattr(index, "op", None)), *map(repr, said), *map(self.place, children(index)))

    # iterations

    def ends(self, value: Any) -> None:
        """Record that what a value holds is a result."""
        if isinstance(value, tuple):
            for one in cast("tuple[Any, ...]", value):
                self.ends(one)
        elif isinstance(value, Array):
            self.results += self.state.content[value].nodes
        elif value is not None:
            self.results.append(self.element(value))

    def hand_on(self, names: Iterable[str], bound: set[str]) -> dict[str, tuple[Node, Array]]:
        """Bind names to unknown carried values; return these for names that are not ``bound`` in the iteration as well."""
        handed: dict[str, tuple[Node, Array]] = {}
        for name in names:
            array = self.state.names.get(name)
            if array is None:
                continue
            t, nodes = self._may_hold(array)
            kind = np.float64 if t.form == "python" and t.dtype.kind == "i" else t.dtype  # it may become a float
            found = self.any(object(), kind, of=nodes, number=self.is_number(array))
            if name in bound:
                self.state.names[name] = array = self.array(found)
            else:
                self.state.content[array] = Content(found, {})
            handed[name] = found, array
        return handed

    def _may_hold(self, array: Any) -> tuple[Type, list[Node]]:
        """Return the type of an array, and all nodes that it may hold: on data-dependent branches, values of one type."""
        content = self.state.content.get(array) if isinstance(array, Array) else None
        types = [n.type for n in content.nodes] if content else []
        if content is None or (content.whole is None and len(set(types)) != 1):
            raise UnseenError
        return types[0], content.nodes

    def is_number(self, value: Any) -> bool:
        """Return whether a value, or a name's content, is a number, the same for all elements."""
        content = self.state.content.get(value) if isinstance(value, Array) else None
        whole = value if isinstance(value, Node) else content.whole if content and not content.parts else None
        return whole is not None and all(n in self._numbers for n in topological([whole]) if n.op is PARAMETER)

    def is_pythons(self, value: Any) -> bool:
        """Return whether a name holds a Python number, into which nothing can be stored."""
        content = self.state.content.get(value) if isinstance(value, Array) else None
        return content is not None and content.whole is not None and content.whole.type.form == "python"

    def go_on(self, handed: Mapping[str, tuple[Node, Array]], index: Node | None) -> None:
        """End an iteration of a loop with this index: the names' values become the next iteration's initial ones."""
        self.results += [found for found, _ in handed.values()]  # there may have been no iteration
        for name, (found, array) in handed.items():
            end = self.state.names[name]
            content = self.state.content.get(end) if isinstance(end, Array) else None
            if content is None:
                raise UnseenError
            self.made_of[found] += [n for n in content.nodes if n is not found]
            if index is not None and content.whole is not None and found in content.whole.args:  # it may become a sum
                self.sums[found] = found
            if end is not array:
                continue
            read = {place for own, place in self.read if own is array}
            if read:
                self._reads_itself(array, content, found.type, read)
                continue
            parts = [part for place, part in content.parts.items() if _mentions(place, index)]
            if parts:  # no iteration reads what others have stored: they may be computed at once
                first, *more = parts
                self.state.content[array] = (
                    Content(None, content.parts)
                    if more or not (first.args or first in self.folded)
                    else Content(first, {})
                )

    def _reads_itself(self, array: Array, content: Content, t: Type, read: set[Any]) -> None:
        """Give unknown content to an array that a loop stores into and reads where other iterations store.

        Such a loop stays a loop, and rules see nothing from outside of a branch in it.
        """
        stored = {place for own, place in self.stored if own is array}
        if all(not isinstance(place, Place) or place in stored for place in read - {None}) and None not in read:
            self.state.content[array] = Content(None, dict(enumerate(content.nodes)))
        elif content.whole is None:
            self.state.content[array] = Content(self.any(object(), t.dtype, of=content.nodes), {})


def _mentions(place: Any, index: Node | None) -> bool:
    """Return whether a place depends on an index."""
    if isinstance(place, tuple | frozenset):
        return any(_mentions(part, index) for part in cast("Iterable[Any]", place))
    return place is index if index is not None else False
