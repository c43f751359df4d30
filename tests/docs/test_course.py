"""The course: its notebooks are those of its texts, every exercise is whole, and every unit runs with all of its answers."""

# tests named elsewhere

import json
import re
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
sys.path.insert(0, str(ROOT / "scripts"))

import check_course  # noqa: E402 (scripts are no package)
import course  # noqa: E402

UNITS = course.units()


def test_the_notebooks_are_those_of_the_texts():
    files = course.built()
    found = {p: p.read_text(encoding="utf-8") for f in (course.NOTEBOOKS, course.SOLUTIONS) for p in f.glob("*.ipynb")}
    assert [p.name for p in files if found.get(p) != files[p]] == [], "run python scripts/course.py build"
    assert sorted(found) == sorted(files)


@pytest.mark.parametrize("path", UNITS, ids=lambda path: path.stem)
def test_a_unit_is_whole(path):
    text = path.read_text(encoding="utf-8")
    exercises = course.exercises(text)
    assert 3 <= len(exercises) <= 6
    for exercise in exercises.values():
        assert course.without_solution(exercise.answer, "1") != exercise.answer, exercise.number
        assert len(exercise.wrong) >= 2, exercise.number
        assert all(says for _, says in exercise.wrong), exercise.number
        assert len(re.findall(r"^\s*assert .*(?:, f?\")", exercise.check, re.MULTILINE)) >= 2, exercise.number
    for heading in ("**After this unit you can**", "### For the teacher", "## Further reading"):
        assert text.count(heading) == 1
    assert len(re.findall(r"^%%tensor", text, re.MULTILINE)) >= 2


@pytest.mark.parametrize("path", UNITS, ids=lambda path: path.stem)
def test_lines_of_cells_fit_a_page_of_1100_pixels(path):
    cells = [
        piece.text for piece in course.pieces(path.read_text(encoding="utf-8")) if piece.kind in {"code", "answer"}
    ]
    assert [line for cell in cells for line in cell.splitlines() if len(line) > 117] == []


@pytest.mark.parametrize("path", UNITS, ids=lambda path: path.stem)
def test_a_students_notebook_is_valid_and_holds_no_solution(path):
    import nbformat

    book = json.loads((course.NOTEBOOKS / f"{path.stem}.ipynb").read_text(encoding="utf-8"))
    nbformat.validate(book)
    text = "".join("".join(cell["source"]) for cell in book["cells"])
    assert "SOLUTION" not in text
    assert "For the teacher" not in text
    assert all(not cell.get("outputs") for cell in book["cells"])
    checks = [cell["metadata"] for cell in book["cells"] if cell["metadata"].get("nbgrader", {}).get("grade")]
    assert all(about["nbgrader"]["locked"] and about["jupyter"]["source_hidden"] for about in checks)
    assert text.count("# your answer goes here") >= len(course.exercises(path.read_text(encoding="utf-8")))


@pytest.mark.parametrize("path", sorted(ROOT.glob("notebooks/**/*.ipynb")), ids=lambda path: path.stem)
def test_no_state_of_widgets_is_stored(path):
    book = json.loads(path.read_text(encoding="utf-8"))
    assert "widgets" not in book["metadata"]
    shown = [output.get("data", {}) for cell in book["cells"] for output in cell.get("outputs", ())]
    assert not any("widget-view" in kind for data in shown for kind in data)


def test_a_teachers_own_notebooks_become_students(tmp_path):
    written = course.student(tmp_path / "out", course.SOLUTIONS)
    assert [p.name for p in written] == [f"{path.stem}.ipynb" for path in UNITS]
    assert all(p.read_text() == (course.NOTEBOOKS / p.name).read_text() for p in written)


@pytest.mark.parametrize("path", UNITS, ids=lambda path: path.stem)
def test_a_unit_runs_and_its_answers_pass_or_fail_as_they_should(path):
    found = check_course.apart(path, [])
    exercises = course.exercises(path.read_text(encoding="utf-8"))
    assert found["faults"] == []
    assert found["passing"] == len(exercises)
    assert found["failing"] == found["answers"] == sum(1 + len(exercise.wrong) for exercise in exercises.values())
