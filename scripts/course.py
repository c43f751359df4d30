"""The course, from its text to its notebooks: ``course.py build`` and ``course.py student OUT [--from FOLDER]``.

A unit is a text in ``lessons/``. A fence that begins with ``python`` is a code cell, and what stands between fences is prose, a new cell
at each heading. ``answer=N`` marks the cell that a student fills in: its solution stands between ``### BEGIN SOLUTION`` and
``### END SOLUTION``. ``check=N points=P`` is the cell that checks it, and ``wrong=N says="words"`` a typical wrong answer, with words
that the check has to say to it; wrong answers are in no notebook. ``raises=NAME`` marks a cell that shows an error. What stands between
``<!-- teacher -->`` and ``<!-- /teacher -->`` is for the teacher alone.

``build`` writes ``notebooks/course/`` (what students open) and ``notebooks/course/solutions/`` (solutions and notes for the teacher, the
*source* version of nbgrader). ``student`` makes students' notebooks of a folder of notebooks with solutions, such as a teacher's own.
"""

from __future__ import annotations

import argparse
import json
import re
import shlex
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[1]
TEXTS = ROOT / "lessons"
NOTEBOOKS = ROOT / "notebooks" / "course"
SOLUTIONS = NOTEBOOKS / "solutions"
_FENCE = re.compile(r"^```python([^\n]*)\n(.*?)^```\n", re.MULTILINE | re.DOTALL)
_TEACHER = re.compile(r"^<!-- teacher -->\n(.*?)^<!-- /teacher -->\n", re.MULTILINE | re.DOTALL)
_SOLUTION = re.compile(r"^( *)### BEGIN SOLUTION\n.*?^ *### END SOLUTION$", re.MULTILINE | re.DOTALL)
_HEADING = re.compile(r"^(?=## )", re.MULTILINE)


@dataclass(frozen=True)
class Piece:
    """A part of a unit: ``kind`` is prose, teacher, code, answer, check or wrong; ``of`` is the number of the exercise."""

    kind: str
    text: str
    of: str = ""
    points: int = 1
    says: str = ""
    raises: str = ""


@dataclass
class Exercise:
    """The cells of an exercise, and the wrong answers, each with words that its message has to hold."""

    number: str
    answer: str = ""
    check: str = ""
    wrong: list[tuple[str, str]] = field(default_factory=list)


def units() -> list[Path]:
    """The texts of the course, in order."""
    return sorted(TEXTS.glob("[0-9][0-9]-*.md"))


def pieces(text: str) -> list[Piece]:
    """The parts of a unit, in order."""
    found: list[Piece] = []
    end = 0
    for fence in _FENCE.finditer(text):
        found += _prose(text[end : fence.start()])
        found.append(_code(fence[1], fence[2]))
        end = fence.end()
    return [*found, *_prose(text[end:])]


def _prose(text: str) -> Iterator[Piece]:
    end = 0
    for note in [*_TEACHER.finditer(text), None]:
        before = text[end : note.start() if note else len(text)]
        yield from (Piece("prose", part.strip()) for part in _HEADING.split(before) if part.strip())
        if note is not None:
            yield Piece("teacher", note[1].strip())
            end = note.end()


def _code(about: str, text: str) -> Piece:
    marks = dict(word.split("=", 1) for word in shlex.split(about))
    kind = next((k for k in ("answer", "check", "wrong") if k in marks), "code")
    of, points = marks.get(kind, ""), int(marks.get("points", 1))
    return Piece(kind, text.rstrip("\n"), of, points, marks.get("says", ""), marks.get("raises", ""))


def exercises(text: str) -> dict[str, Exercise]:
    """The exercises of a unit, by their numbers."""
    found: dict[str, Exercise] = {}
    for piece in pieces(text):
        if piece.of:
            exercise = found.setdefault(piece.of, Exercise(piece.of))
            if piece.kind == "wrong":
                exercise.wrong.append((piece.text, piece.says))
            else:
                setattr(exercise, piece.kind, piece.text)
    return found


def without_solution(source: str, number: str) -> str:
    """A cell with a line in place of its solution that says that the answer goes there, and an error where the cell is Python's."""
    stub = f'\n{{0}}raise NotImplementedError("Exercise {number}: your answer goes here.")'
    stub = "" if source.startswith("%%rewrite") else stub
    return _SOLUTION.sub(lambda m: f"{m[1]}# your answer goes here{stub.format(m[1])}", source)


def solved(text: str, unit: str) -> dict[str, Any]:
    """The notebook of a unit with solutions and notes for the teacher."""
    cells: list[dict[str, Any]] = []
    for piece in pieces(text):
        if piece.kind == "wrong":
            continue
        name = f"{piece.kind}-{piece.of.replace('.', '-')}" if piece.of else f"unit-{unit}-{len(cells) + 1}"
        cells.append(_cell(piece, name))
    about = {
        "kernelspec": {"display_name": "Python 3 (ipykernel)", "language": "python", "name": "python3"},
        "language_info": {"name": "python"},
    }
    return {"cells": cells, "metadata": about, "nbformat": 4, "nbformat_minor": 5}


def _cell(piece: Piece, name: str) -> dict[str, Any]:
    source = piece.text.splitlines(keepends=True)
    if piece.kind in {"prose", "teacher"}:
        tags: dict[str, Any] = {"tags": ["teacher"]} if piece.kind == "teacher" else {}
        return {"cell_type": "markdown", "id": name, "metadata": tags, "source": source}
    about: dict[str, Any] = {"tags": ["raises-exception"]} if piece.raises else {}
    if piece.kind != "code":
        checks = piece.kind == "check"
        grading: dict[str, Any] = {"grade_id": name, "grade": checks, "locked": checks, "solution": not checks}
        grading |= {"schema_version": 3, "task": False, **({"points": piece.points} if checks else {})}
        about = {"nbgrader": grading, **({"jupyter": {"source_hidden": True}} if checks else {})}
    return {
        "cell_type": "code",
        "execution_count": None,
        "id": name,
        "metadata": about,
        "outputs": [],
        "source": source,
    }


def for_students(book: dict[str, Any]) -> dict[str, Any]:
    """A notebook without solutions, notes for the teacher and outputs."""
    cells: list[dict[str, Any]] = []
    for cell in book["cells"]:
        if "teacher" in cell["metadata"].get("tags", []):
            continue
        copy = {**cell, "outputs": [], "execution_count": None} if cell["cell_type"] == "code" else dict(cell)
        if cell["metadata"].get("nbgrader", {}).get("solution"):
            number = cell["metadata"]["nbgrader"]["grade_id"].removeprefix("answer-").replace("-", ".")
            copy["source"] = without_solution("".join(cell["source"]), number).splitlines(keepends=True)
        cells.append(copy)
    return {**book, "cells": cells}


def as_text(book: dict[str, Any]) -> str:
    """A notebook as it stands in a file."""
    return json.dumps(book, indent=1, ensure_ascii=False, sort_keys=True) + "\n"


def built() -> dict[Path, str]:
    """What stands in each file of the course."""
    files: dict[Path, str] = {}
    for path in units():
        book = solved(path.read_text(encoding="utf-8"), path.name[:2])
        files[SOLUTIONS / f"{path.stem}.ipynb"] = as_text(book)
        files[NOTEBOOKS / f"{path.stem}.ipynb"] = as_text(for_students(book))
    return files


def build() -> None:
    """Write the notebooks of the course, and remove those whose text is gone."""
    files = built()
    for folder in (NOTEBOOKS, SOLUTIONS):
        folder.mkdir(parents=True, exist_ok=True)
        for path in set(folder.glob("*.ipynb")) - set(files):
            path.unlink()
    for path, text in files.items():
        path.write_text(text, encoding="utf-8")


def student(out: Path, folder: Path) -> list[Path]:
    """Write students' versions of the notebooks in a folder, and return their files.

    Parameters
    ----------
    out
        Where they go. It is made if it is not there.
    folder
        Notebooks with solutions, which are not changed.
    """
    out.mkdir(parents=True, exist_ok=True)
    written: list[Path] = []
    for path in sorted(folder.glob("*.ipynb")):
        text = as_text(for_students(json.loads(path.read_text(encoding="utf-8"))))
        (out / path.name).write_text(text, encoding="utf-8")
        written.append(out / path.name)
    return written


def main() -> None:
    """Read the command line."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    commands = parser.add_subparsers(dest="command", required=True)
    commands.add_parser("build", help="write the notebooks of the course from its texts")
    command = commands.add_parser("student", help="write students' versions of notebooks with solutions")
    command.add_argument("out", type=Path, help="where they go")
    command.add_argument("--from", dest="folder", type=Path, default=SOLUTIONS, help="notebooks with solutions")
    options = parser.parse_args()
    if options.command == "build":
        build()
        print(f"{len(units())} units in {NOTEBOOKS.relative_to(ROOT)}")
    else:
        print("\n".join(map(str, student(options.out, options.folder))))


if __name__ == "__main__":
    main()
