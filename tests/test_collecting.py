"""``-k`` selects what it selects where every test is made: what is left out of it by the text of a file (``conftest.py``) has no match."""

import subprocess
import sys
from collections import defaultdict
from pathlib import Path
from types import ModuleType

import pytest
from _pytest.mark import KeywordMatcher

ROOT = Path(__file__).parents[1]


@pytest.fixture
def collecting(request: pytest.FixtureRequest) -> ModuleType:
    """The file under test, as pytest has loaded it."""
    found = request.config.pluginmanager.get_plugin(str(ROOT / "conftest.py"))
    assert isinstance(found, ModuleType)
    return found


def test_the_names_of_tests_stand_in_their_files(request: pytest.FixtureRequest, collecting: ModuleType):
    """Of what was collected in this run: in the whole run, of every test there is."""
    kept = request.config.pluginmanager.get_plugin(str(ROOT / "tests" / "conftest.py"))
    assert kept is not None
    names = defaultdict[Path, set[str]](set)
    for item in request.config.stash[kept.COLLECTED]:
        names[item.path] |= KeywordMatcher.from_item(item)._names
    missing: set[tuple[str, str]] = set()
    for path, found in names.items():
        if (text := collecting.reachable(path)) is not None:
            words = {word for name in found for word in collecting.words(name)}
            missing |= {(path.name, word) for word in words if word not in text}
    assert not missing, f"a line {collecting.NAMED_ELSEWHERE!r} says that names come from elsewhere"


def selected(keyword: str, *options: str) -> tuple[list[str], str]:
    """The tests that ``-k`` selects of two folders, and pytest's last line."""
    command = [sys.executable, "-m", "pytest", "-q", "--collect-only", "-p", "no:cacheprovider", "-k", keyword]
    ran = subprocess.run(
        [*command, *options, "tests/ir", "tests/transform"], capture_output=True, text=True, cwd=ROOT, check=False
    )
    lines = ran.stdout.splitlines()
    return [line for line in lines if "::" in line], lines[-1]


@pytest.mark.parametrize("keyword", ["softmax and not numba", "digits or (softmax and numpy)"])
def test_the_same_tests_are_selected_as_where_all_are_made(keyword: str):
    found, line = selected(keyword)
    expected, _ = selected(keyword, "--confcutdir=tests")  # without the file under test
    assert found == expected
    assert "error" not in line


@pytest.mark.parametrize(
    ("keyword", "read"),
    [
        ("softmax", True),
        ("SoftMax", True),
        ("softmax and nothing_of_this", False),
        ("nothing_of_this or tests_of_rows", True),
        ("not nothing_of_this", True),
        ("nothing_of_this", False),
        ("rows[softmax-12]", True),
        ("is_hypothesis_test", True),
        ("test_rows.py", True),
        ("helper_of_it", True),
        ("helper_of_others", False),
    ],
)
def test_a_file_is_read_where_its_text_has_the_words(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, collecting: ModuleType, keyword: str, read: bool
):
    monkeypatch.setattr(collecting, "ROOT", tmp_path)
    tests = tmp_path / "tests"
    tests.mkdir()
    (tmp_path / "conftest.py").write_text("# is_hypothesis_test\n")
    (tests / "helper.py").write_text("helper_of_it = 1\n")
    (tests / "other.py").write_text("helper_of_others = 1\n")
    path = tests / "test_rows.py"
    path.write_text("from tests.helper import helper\nROWS = ['softmax', 'tests_of_rows', 'rows']\n")
    assert collecting.may_be_selected(path, keyword) is read
    path = tests / "test_elsewhere.py"
    path.write_text(f"{collecting.NAMED_ELSEWHERE}\n")
    assert collecting.may_be_selected(path, keyword)
