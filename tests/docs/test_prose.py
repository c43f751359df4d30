"""Pages are read by people: sentences are short, words are plain, and every page is reached by a link."""

# tests named elsewhere

import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
GENERATED = {"ops.md", "rules.md", "error-classes.md", "coverage.md", "magics.md"}
PAGES = [
    ROOT / "README.md",
    ROOT / "CONTRIBUTING.md",
    *(page for page in sorted(ROOT.glob("docs/*.md")) if page.name not in GENERATED),
    *sorted(ROOT.glob("lessons/*.md")),
]
LONGEST = 40  # words of a sentence; what is code counts as one
FENCE = re.compile(r"^(```|:::).*?^\1\s*$", re.MULTILINE | re.DOTALL)
PICTURE = re.compile(r"!\[[^]]*\]\([^)]*\)|<img [^>]*>")
AHEAD = re.compile(r"\s*(?:-|\*|\d+\.) ")
ODD = re.compile(
    r"\bas data (?:say|decide)\b|\bturn(?:s|ed)? (?:round|out of)\b|\bgoes? round\b|\bround (?:a|the) loop\b"
    r"|\bways? (?:round|about)\b|\bthe mend\b",
    re.IGNORECASE,
)


def passages(page: Path) -> list[tuple[int, str]]:
    """The paragraphs, list items and cells of tables of a page, each with its line."""
    text = FENCE.sub(lambda found: "\n" * found.group().count("\n"), page.read_text(encoding="utf-8"))
    found: list[tuple[int, str]] = []
    begun = False
    for number, line in enumerate(PICTURE.sub("", text).splitlines(), 1):
        if not line.strip() or line.startswith(("#", "<", "    ")):
            begun = False
        elif line.startswith("|"):
            begun = False
            found += [(number, cell) for cell in re.split(r"(?<!\\)\|", line)]
        elif begun and not AHEAD.match(line):
            found[-1] = (found[-1][0], f"{found[-1][1]} {line.strip()}")
        else:
            begun = True
            ahead = AHEAD.match(line)
            found.append((number, line[ahead.end() :] if ahead else line))
    return found


def sentences(page: Path) -> list[tuple[int, str]]:
    """The sentences of a page; a semicolon ends one."""
    return [
        (line, sentence.strip())
        for line, text in passages(page)
        for sentence in re.split(r"(?<=[.;!?]) |(?<=[.!?]\*\*) ", text)
    ]


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_no_sentence_is_too_long_to_be_read_once(page):
    counted = [(line, len(re.sub(r"`[^`]*`", "code", s).split()), s) for line, s in sentences(page)]
    assert [f"{page.name}:{line}: {words} words: {s}" for line, words, s in counted if words > LONGEST] == []


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_words_are_those_of_the_field(page):
    assert [f"{page.name}:{line}: {s}" for line, s in sentences(page) if ODD.search(s)] == []


def test_every_page_is_linked_to_by_another_one():
    """Beside the contents, which list all."""
    others = {page: page.read_text(encoding="utf-8") for page in PAGES if page.name != "index.md"}
    pages = {page.stem for page in (ROOT / "docs").glob("*.md")} - {"index"}
    assert [
        name
        for name in sorted(pages)
        if not any(
            re.search(rf"\{{doc\}}`(?:[^`<]*<)?{name}>?`|\({name}\.md|docs/{name}\.md", text)
            for page, text in others.items()
            if page.stem != name
        )
    ] == []


def test_a_sentence_that_is_too_long_or_odd_is_found(tmp_path):
    page = tmp_path / "page.md"
    page.write_text(
        "# A\n\n" + "word " * 20 + "\n" + "word " * 21 + "end.\n\n- short; " + "`a b c` " * 30 + "\n- it goes round.\n"
    )
    assert next((line, len(s.split())) for line, s in sentences(page)) == (3, 42)
    assert [line for line, s in sentences(page) if ODD.search(s)] == [7]
