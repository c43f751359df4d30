"""A scene as JSON data: the message that a page starts from, and the parts that it asks for later."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import fields
from typing import TYPE_CHECKING, Any

from tensormagic.notebook.display.forms import bytes_text, seconds_text
from tensormagic.notebook.pictures.labels import AS_ACCURATE, KIND_WORDS, STAGES, VIEW_WORDS, clean
from tensormagic.notebook.pictures.palette import standalone
from tensormagic.notebook.pictures.picture import HEAD, Inside, Picture, opened_message, way_to
from tensormagic.notebook.pictures.shapes import OUTLINES, describe, mark, outline

if TYPE_CHECKING:
    from tensormagic.notebook.pictures.scene import Scene, Vertex, View


EAGER_BELOW = 60
"""Vertices of a further view, those of loops and branches with them, up to which its picture goes with the first message.

A saved notebook shows it without a kernel; that of a larger one is laid out when a page asks for it.
"""
WHOLE_BELOW = 6_000  # vertices of a view up to which a page without a kernel gets what closed groups hold
MOST_PICTURED = 4_000  # vertices of all further pictures (groupings, steps) of a page without a kernel
_LENGTHS = {"preview": 1000}
BACK = "An arrow back up: what the next iteration of a loop begins with."
_OWN = frozenset(("calls", "parts"))  # of a vertex, what no page needs
_UNITS: Mapping[str, Callable[[Any], str]] = {"seconds": seconds_text, "bytes": bytes_text}


class _Tables:
    """Vertices and outlines by number: each occurs once in a message."""

    def __init__(self) -> None:
        self.vertices: dict[Vertex, int] = {}
        self.shapes: dict[str, int] = {}

    def picture(self, picture: Picture, *, deep: bool) -> dict[str, Any]:
        """Return a picture as JSON data."""
        return picture.message(self.vertices, self.shapes, deep=deep)

    def message(self) -> dict[str, Any]:
        """Return the tables as JSON data."""
        return {"vertices": [_vertex_message(vertex) for vertex in self.vertices], "shapes": list(self.shapes)}


def scene_message(scene: Scene, *, deep: bool = False) -> dict[str, Any]:
    """Return a scene with its pictures as JSON data.

    Parameters
    ----------
    scene : Scene
        The scene.
    deep : bool
        Whether to include everything that a page may ask for, for pages without a kernel.
    """
    tables = _Tables()
    stages = _stages(scene, tables, deep=deep)
    parts = _parts(scene, tables) if deep else []
    return {
        "title": clean(scene.title, 200),
        "rules": [clean(rule, 200) for rule in scene.rules[:40]],
        "ruled": _ruled(scene),
        "source": [clean(line, 400) for line in scene.source.splitlines()[:2000]],
        **tables.message(),
        "head": HEAD,
        "style": standalone(),
        "kinds": KIND_WORDS,
        **stages,
        "begun": scene.rest is not None,
        "parts": parts,
    }


def _stages(scene: Scene, tables: _Tables, *, deep: bool = False, after: int = 0) -> dict[str, Any]:
    """Return the views, without pictures that the page already has, and the notes common to them."""
    views: list[dict[str, Any]] = []
    for number, view in enumerate(scene.views):
        eager = deep or not number or sum(1 for _ in view.drawn.everything()) <= EAGER_BELOW
        whole = deep and len(view.vertices) <= WHOLE_BELOW
        views.append(
            {
                "name": clean(view.name, 60),
                "stage": STAGES.get(view.name, clean(view.name, 60)),
                "told": VIEW_WORDS.get(view.name, ""),
                "ops": view.ops,
                "counted": view.counted,
                "groupings": list(view.groupings),
                "picture": tables.picture(view.picture, deep=whole) if eager and number >= after else None,
            }
        )
    return {
        "summary": scene.summary,
        "chosen": [clean(text, 200) for text in scene.notes],
        "legend": _legend(scene),
        "views": views,
        "more": scene.later is not None,
    }


def _ruled(scene: Scene) -> str:
    """Return the word under the cell, and the number of rules that it is about; each rule says what it keeps."""
    count = sum(not rule.startswith(AS_ACCURATE) for rule in scene.rules) or len(scene.rules)
    return f"{scene.word}: {count} rule{'s' * (count != 1)}" if count else ""


def _legend(scene: Scene) -> list[list[str]]:
    """Return the outlines that occur, each with its kind and meaning, and a text for everything else that is drawn."""
    vertices = [vertex for view in scene.views for vertex in view.drawn.everything()]
    kinds = {vertex.kind for vertex in vertices}
    rows = [[kind, outline(kind, 26, 14), told] for kind, told in OUTLINES.items() if kind in kinds]
    words = ["A thick border: the value."]
    words += [BACK] * any(map(_goes_back, scene.views))
    words += ["\N{PARTIAL DIFFERENTIAL}: only a gradient needs it."] * any(map(mark, vertices))
    words += ["A dot \N{MIDDLE DOT}: what an arrow brings, from left to right."] * any("·" in v.title for v in vertices)
    words += ["float: a number of Python's; float64: one of NumPy's."] * any(v.type == "float" for v in vertices)
    if any("->" in v.role for v in vertices):
        words.append("rule: what rewriting has made this box; its letters stand for any expression.")
    return [*rows, *(["", "", text] for text in words)]


def _goes_back(view: View) -> bool:
    """Return whether a loop in a view has a value that its next iteration begins with."""
    return bool(view.returns) or any(_goes_back(body) for bodies in view.drawn.inner.values() for body in bodies)


def part(scene: Scene, asked: Sequence[Any]) -> dict[str, Any]:
    """Return a part of the scene that a page asked for.

    Parameters
    ----------
    scene : Scene
        The scene.
    asked : sequence
        ``["whole"]``, the stages after the first; ``["details"]``;
        ``["picture", view, grouping]``; ``["group", view, grouping, key]``, the contents of a group;
        ``["search", view, text]``, the vertices whose description has the text; ``["way", view, grouping, key]``, the
        groups around a vertex. A step of rewriting is the grouping ``"step 3"``; views are named by their numbers.

    Raises
    ------
    KeyError
        If there is no such part.
    """
    tables = _Tables()
    scene = scene.whole
    what, *where = asked
    content = _ANSWERS[what](scene, tables, *where)
    return {"part": list(asked), "content": content, **tables.message()}


def _answer_whole(scene: Scene, tables: _Tables) -> Any:
    return _stages(scene, tables, after=1)


def _answer_details(scene: Scene, _: _Tables) -> Any:
    return _details(scene)


def _answer_picture(scene: Scene, tables: _Tables, view: int, grouping: str) -> Any:
    return tables.picture(_picture(scene, view, grouping), deep=False)


def _answer_group(scene: Scene, tables: _Tables, view: int, grouping: str, key: str) -> Any:
    inside = _find(_picture(scene, view, grouping), key)
    if inside is None:
        raise KeyError(f"no group {key!r}")
    return opened_message(inside.opened, tables.vertices, tables.shapes, deep=False)


def _answer_search(scene: Scene, _: _Tables, view: int, text: str) -> Any:
    return [vertex.id for vertex in scene.views[view].drawn.everything() if text.lower() in describe(vertex).lower()]


def _answer_way(scene: Scene, _: _Tables, view: int, grouping: str, key: str) -> Any:
    return way_to(_picture(scene, view, grouping), key)


_ANSWERS: dict[str, Callable[..., Any]] = {
    "whole": _answer_whole,
    "details": _answer_details,
    "picture": _answer_picture,
    "group": _answer_group,
    "search": _answer_search,
    "way": _answer_way,
}


def _parts(scene: Scene, tables: _Tables) -> list[list[Any]]:
    """Return pairs of questions that a page without a kernel could ask and their answers, as many as there is room for."""
    found: list[list[Any]] = [[["details"], _details(scene)]] if scene.later is not None else []
    room = MOST_PICTURED
    further = [
        (number, name, view)
        for number, view in enumerate(scene.views)
        for name, view in [
            *((f"step {k}", step.view) for k, step in enumerate(scene.details.steps.get(view.name, ()))),
            *((grouping, view) for grouping in view.groupings[1:]),
        ]
    ]
    for number, name, view in further:
        room -= len(view.vertices)
        if room >= 0:
            found.append([["picture", number, name], tables.picture(_picture(scene, number, name), deep=True)])
    return found


def _details(scene: Scene) -> dict[str, Any]:
    details = scene.details
    measured = {**_of_calls(scene), **details.measured}
    return {
        "measured": {str(number): _in_words(told) for number, told in measured.items()},
        "steps": {clean(name, 60): [step.message() for step in steps] for name, steps in details.steps.items()},
        "note": details.note,
    }


def _of_calls(scene: Scene) -> dict[int, Mapping[str, Any]]:
    """Return the measurements of calls drawn as one box: their last value, and the time of all their parts."""
    known = scene.details.measured
    found: dict[int, Mapping[str, Any]] = {}
    for vertex in (v for view in scene.views for v in view.drawn.everything() if v.parts):
        told = known.get(-vertex.number, {})
        seconds = [known.get(part, {}).get("seconds") for part in vertex.parts]
        whole = {"seconds": sum(filter(None, seconds))} if "seconds" in told else {}
        found[vertex.number] = {**told, **whole}
    return found


def _in_words(told: Mapping[str, Any]) -> dict[str, Any]:
    """Return the measurements of a vertex as text, with times and sizes in their units."""
    found = {key: _UNITS[key](value) if key in _UNITS else value for key, value in told.items()}
    if "iterations" in told:
        found["iterations"] = [[when, _in_words(one)] for when, one in told["iterations"]]
    return found


def _picture(scene: Scene, number: int, grouping: str) -> Picture:
    view: View = scene.views[number]
    if grouping.startswith("step "):
        return scene.details.steps[view.name][int(grouping[5:])].view.picture
    if grouping not in view.groupings:
        raise KeyError(f"no grouping {grouping!r}; there are: {', '.join(view.groupings)}")
    return view.grouped(grouping)


def _find(picture: Picture, key: str) -> Inside | None:
    """Return the group of that key: one that nobody opened has none inside that could be named."""
    stack = [picture]
    while stack:
        for box in stack.pop().boxes:
            if box.inside is None:
                continue
            if box.key == key:
                return box.inside
            if "opened" in vars(box.inside):
                stack.append(box.inside.opened.picture)
    return None


def _vertex_message(vertex: Vertex) -> dict[str, Any]:
    """Return the fields that say something, texts cleaned."""
    message: dict[str, Any] = {}
    for item in fields(vertex):
        if item.name in _OWN:
            continue
        value = getattr(vertex, item.name)
        if isinstance(value, str):
            value = clean(value, _LENGTHS.get(item.name, 300))
        elif item.name == "rules":
            value = [clean(rule, 120) for rule in vertex.rules[:40]]
        if value not in ("", None, [], False, 0) and (item.name, value) != ("role", "value"):
            message[item.name] = value
    return message
