"""Texts with values that are known only once the graph has run: printed text, error messages and f-strings."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from tensormagic.capture import context
from tensormagic.capture.errors.refusal import text_asked_for
from tensormagic.capture.numbers import classes as number_classes
from tensormagic.capture.numbers.alternatives import ChangedText, LazyText, OneOf, joined_text, text_of, unchanging
from tensormagic.capture.numbers.deferred import Deferred
from tensormagic.capture.numbers.optional import Perhaps
from tensormagic.capture.staging.calls import object_texts
from tensormagic.capture.staging.loops.grown_lists import GrownList
from tensormagic.capture.staging.trials.trial import trial
from tensormagic.capture.values.value import Tensor
from tensormagic.ir.node import Node
from tensormagic.ops.effects.raising import put
from tensormagic.ops.op import as_form

PLAIN = (str, int, float, bool, type(None), bytes)
LATER = (Tensor, Deferred, GrownList)  # classes whose texts are known only when the graph has run


class Text(str):  # noqa: SLOT000 (has its pieces beside it)
    """A text with lazy values, known only when the graph runs."""

    pieces: list[Any]

    def __str__(self) -> str:
        raise text_asked_for()

    __repr__ = __str__

    def __format__(self, form: str) -> str:
        raise text_asked_for()


def formatted(*pieces: Any) -> str:
    """Return the text of an f-string in the arguments of an exception; each piece is a text, or a value, its conversion and its format."""
    pieces = tuple(q for p in pieces for q in _expanded(p))
    if trial() is None:  # an error raised now, for these sizes
        pieces = tuple([p if isinstance(p, str) else (_as_known(p[0]), *p[1:]) for p in pieces])
    lazy = [p for p in pieces if not isinstance(p, str) and isinstance(p[0], LATER)]
    if not lazy or (trial() is None and not _abstract()):
        return joined_text([p if isinstance(p, str) else put(*p) for p in pieces])
    _refuse_formats(pieces)
    made = Text("".join(p if isinstance(p, str) else "{}" for p in pieces))
    made.pieces = list(pieces)
    return made


def _refuse_formats(pieces: Sequence[Any]) -> None:
    """Raise Python's error now for a format that no value of the class has, as the text may never be needed later."""
    for value, conversion, form in (p for p in pieces if not isinstance(p, str)):
        if not form or type(form) is not str or not isinstance(value, Tensor) or _classes(value.node) > 1:
            continue
        shape = [s if isinstance(s, int) and s < 2 else 2 for s in value.type.shape]
        put(as_form(np.ones(shape, value.type.dtype), value.type.form), conversion, form)


def _classes(node: Node) -> int:
    classes = number_classes.noted(node)
    return 1 if classes is None else len(classes.types)


def text(*pieces: Any) -> Any:
    """Return the text of an f-string: in a captured function, one that is put together when the graph has run."""
    if not _abstract() or context.current() is None:
        return joined_text([p if isinstance(p, str) else put(*p) for p in pieces])
    pieces = tuple([q for p in pieces for q in _expanded(p)])
    if any(not isinstance(p, str) and isinstance(p[2], Deferred) for p in pieces):
        raise text_asked_for()
    _refuse_formats(pieces)
    return text_of([p if isinstance(p, str) else (unchanging(p[0]), *p[1:]) for p in pieces])


def _as_known(value: Any) -> Any:
    known = value.specialised() if isinstance(value, Tensor) else None
    return value if known is None else known


def holds_lazy(value: Any) -> bool:
    """Return whether a value is a container that holds lazy values, or objects that may have these in their texts."""
    if type(value) not in {list, tuple, dict}:
        return False
    parts = [*value.keys(), *value.values()] if type(value) is dict else value
    return any(isinstance(v, LATER) or holds_lazy(v) or object_texts.has_own_text(v) for v in parts)


def is_put_together(value: Any) -> bool:
    """Return whether the text of a value is built from its contents, which may be lazy."""
    return holds_lazy(value) or (_abstract() and object_texts.has_own_text(value))


def _expanded(piece: Any, *, percent: bool = False) -> list[Any]:
    """Return the pieces of a piece of text, with containers of lazy values and user objects expanded as Python does.

    An item of ``%`` keeps the class that its method returned.
    """
    if isinstance(piece, str) or not isinstance(piece[2], str):
        return [piece]
    if (converted := _converted(*piece)) is not None:
        return _expanded(converted, percent=piece[1].startswith("%"))
    if piece[1] not in {"", "r", "s"}:
        return [piece]
    if isinstance(piece[0], Text) and piece[1] in {"", "s"} and not piece[2]:
        return list(piece[0].pieces)
    if holds_lazy(piece[0]) and not piece[2]:
        return _pieces(piece[0])
    own = object_texts.own_text(*piece) if _abstract() else None
    if own is None:
        return [piece]
    if piece[1] and not percent:  # f"{v!s}"
        own = [(p, "", "") if isinstance(p, str) and type(p) is not str else p for p in own]
    return [q for p in own for q in _expanded(p)]


def _converted(value: Any, conversion: str, form: str) -> Any:
    """Return an item of ``%``, or a value that is converted before it is formatted, as a piece of text; None for other values.

    Only for values whose text Python puts together: it calls their methods, which may return texts that are not known
    yet.
    """
    if conversion == "%%" and isinstance(value, tuple) and len(value) == 1:
        value, conversion = value[0], "%"
    percent = conversion == "%" or (conversion == "%%" and not isinstance(value, tuple))
    how = form[-1:] if percent else conversion if form else ""
    if how not in {"r", "s"} or not is_put_together(value):
        return None
    if form in {"%r", "%s"} and percent:
        return value, how, ""
    inner = text((value, how, ""))
    return (inner, "%", f"{form[:-1]}s") if percent else (inner, "", form)


def _pieces(value: Any) -> list[Any]:
    """Return the text of a container, in pieces."""
    if not holds_lazy(value):
        return _expanded((value, "r", ""))
    if type(value) is dict:
        inner = [[*_pieces(k), ": ", *_pieces(v)] for k, v in value.items()]
        return ["{", *_joined(inner), "}"]
    if type(value) in {list, tuple}:
        inner = [_pieces(v) for v in value]
        first, last = "[]" if type(value) is list else "()"
        return [first, *_joined(inner), ("," if type(value) is tuple and len(inner) == 1 else "") + last]
    return [(value, "r", "")]


def _joined(parts: list[list[Any]]) -> list[Any]:
    return [p for k, part in enumerate(parts) for p in ([", "] if k else []) + part]


def _abstract() -> bool:
    capture = context.current()
    return capture is None or capture.abstract


def part_of(value: Any, details: list[Node]) -> Any:
    """Return the description of a value to be shown when the graph runs; None for what cannot be shown.

    Lazy values are replaced by their index in ``details``.
    """

    def operand(node: Node) -> int:
        details.append(node)
        return len(details) - 1

    if isinstance(value, Perhaps) and isinstance(value := value.now, Perhaps):
        inner = formatted((value.inner, "", "")) if holds_lazy(value.inner) else value.inner
        flag = operand(value.flag.node)
        return None if (told := part_of(inner, details)) is None else ("perhaps", flag, told)
    if isinstance(value, GrownList):
        return _list_of(value, operand)
    if isinstance(value, ChangedText):
        return None if (told := part_of(value.text, details)) is None else ("method", told, value.name, value.args)
    if isinstance(value, LazyText):
        value = formatted(*value.pieces)
    if isinstance(value, OneOf):
        code, told = operand(value.code.node), [part_of(v, details) for v in value.options]
        return None if None in told else ("one of", code, told)
    if isinstance(value, Text):
        pieces = [_piece_of(p, details) for p in value.pieces]
        return None if None in pieces else ("text", pieces)
    if isinstance(value, Tensor):
        return _number_of(value.node, operand)
    return ("value", value) if type(value) in PLAIN else None


def _number_of(node: Node, operand: Callable[[Node], int]) -> Any:
    """Return the description of a number, or an array, in each of the classes that it may have."""
    classes = number_classes.noted(node)
    if classes is None or len(classes.types) == 1:
        return ("operand", operand(node))
    code, told = operand(classes.code), {number_classes.number(t): t for t in classes.types}
    each = [
        ("operand", operand(number_classes.as_class(node, told[k]))) if k in told else None
        for k in range(max(told) + 1)
    ]
    return ("one of", code, each)


def _list_of(value: GrownList, operand: Callable[[Node], int]) -> Any:
    """Return the description of a list of data-dependent length, which Python shows as a list."""
    if (node := value.shown) is None:
        return ("value", [])
    if not (codes := value.codes):
        return ("list", operand(node), value.types[0].form)
    return ("classes", operand(node), operand(codes[0]), [(t.dtype.str, t.form) for t in number_classes.types()])


def _piece_of(piece: Any, details: list[Node]) -> Any:
    """Return the description of a piece of text to be shown when the graph runs; None for one that cannot be shown."""
    if isinstance(piece, str):
        return (piece,)
    if not isinstance(piece[0], LATER):
        return (put(*piece),)
    told = part_of(piece[0], details)
    return None if told is None else (told, *piece[1:])
