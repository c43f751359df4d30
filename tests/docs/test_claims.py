"""No sentence of README, docs, lessons or tutorials has a figure, *never*, *faster*, *accurate* or *the same bits* that nothing shows.

``claims.toml`` says for each what shows it: a test, or a line of a page of results. A heading stands for its section.
"""

# tests named elsewhere

import json
import re
import statistics
import subprocess
import sys
import tomllib
from pathlib import Path

import numpy as np
import pytest

import tensormagic as tm
from tensormagic.session.tiers import Executable

ROOT = Path(__file__).parents[2]
LEDGER = Path(__file__).with_name("claims.toml")
CLAIMS = tomllib.loads(LEDGER.read_text(encoding="utf-8"))["claim"]
GENERATED = {"ops.md", "rules.md", "error-classes.md", "coverage.md", "architecture.md", "magics.md"}
FENCE = re.compile(r"^(```|:::).*?^\1\s*$", re.MULTILINE | re.DOTALL)
NUMBER = r"(?<![\w.^-])\d[\d,.]*(?:\s*(?:to|–)\s*\d[\d.,]*)?\s*"
CODE = re.compile(r"`[^`\n]*`")
PICTURE = re.compile(r"!\[[^]]*\]\([^)]*\)")
CLAIM = re.compile(
    rf"{NUMBER}(?:ms|µs|s|seconds?|minutes|microseconds|%|times|kB|MB|GB|GiB|MiB)(?!\w)"
    r"|\b(?:milli|micro)seconds?|\b(?:half|quarter) (?:a|of a) (?:milli)?second"
    r"|\bnever\b|\balways\b|same bits|every bit|bit for bit|[Nn]o bit\b"
    r"|\bfaster\b|\bslower\b|\bas fast\b|[Nn]othing (?:uses|is (?:fetched|allocated))"
    r"|(?<![\w.^,-])(?:[1-9]\d{0,2}(?:,\d{3})+|[1-9]\d+) (?:[a-z]{2,}|KiB)"
    r"|\b[Aa]ccurate(?:ly)?\b|\b[Dd]igits\b|\b[Aa]t (?:most|least) \d|half the memory|as small as the text|\btenth of\b",
)
TAUGHT = re.compile(
    rf"{NUMBER}(?:ms|µs|MB|GB)(?!\w)|times as fast|% faster"
)  # lessons: the rest is what a unit teaches, and its cells show


def _blank(found: re.Match[str]) -> str:
    return "\n" * found.group().count("\n")


def _prose(page: Path) -> str:
    text = page.read_text(encoding="utf-8")
    if page.suffix != ".ipynb":
        return text
    return "\n\n".join("".join(cell["source"]) for cell in json.loads(text)["cells"] if cell["cell_type"] == "markdown")


def said(page: Path) -> list[tuple[str, str, int]]:
    """The sentences of a page that claim something, each with its heading and its line."""
    wanted = TAUGHT if page.parent.name == "lessons" else CLAIM
    text = FENCE.sub(_blank, _prose(page))
    text = PICTURE.sub(_blank, text)
    found: list[tuple[str, str, int]] = []
    heading = ""
    for number, line in enumerate(text.splitlines(), 1):
        if line.startswith("    "):
            continue  # code
        if line.startswith(("#", "<")):
            heading = line if line.startswith("#") else heading
            continue
        sentences = re.split(r"(?<=[.:;!?]) ", line)
        found += [(s.strip(), heading, number) for s in sentences if wanted.search(CODE.sub("", s))]
    return found


PAGES = [
    ROOT / "README.md",
    *(page for page in sorted(ROOT.glob("docs/*.md")) if page.name not in GENERATED),
    *sorted(ROOT.glob("lessons/*.md")),
    *sorted(ROOT.glob("notebooks/*.ipynb")),
]


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_every_claim_is_in_the_ledger(page):
    known = [claim["says"] for claim in CLAIMS if claim["page"] == str(page.relative_to(ROOT))]
    open_ = [
        f"{page.name}:{number}: {sentence}"
        for sentence, heading, number in said(page)
        if heading not in known and not any(says in sentence for says in known)
    ]
    assert open_ == [], "\n".join(open_)


@pytest.mark.parametrize("claim", CLAIMS, ids=lambda claim: f"{claim['page']}: {claim['says'][:40]}")
def test_what_the_ledger_names_is_there(claim):
    assert claim["says"] in _prose(ROOT / claim["page"])
    assert claim["by"]
    assert [shown for shown in claim["by"] if not is_there(shown)] == []


def is_there(shown: str) -> bool:
    """Whether a test is in its file, or a text in a page of results."""
    file, _, test = shown.partition("::")
    if test:
        return re.search(rf"^def {test}\(", (ROOT / file).read_text(encoding="utf-8"), re.MULTILINE) is not None
    file, _, text = shown.partition(": ")
    return bool(text) and text in (ROOT / file).read_text(encoding="utf-8")


def test_a_page_that_claims_something_else_is_found(tmp_path):
    page = tmp_path / "page.md"
    page.write_text(
        "# Head\n\nIt is fine. It takes 3 to 5 ms.\n\n```text\n9 ms\n```\n\nIt never fails; w^2 s is a name.\n"
    )
    assert [(sentence, line) for sentence, _, line in said(page)] == [
        ("It takes 3 to 5 ms.", 3),
        ("It never fails;", 9),
    ]


# what no other test shows ---------------------------------------------------------------------------------------------

QUIET = """
import sys
def heard(event, arguments):
    if event in {"socket.connect", "socket.sendto", "socket.getaddrinfo", "socket.gethostbyname"}:
        raise SystemExit(f"{event}: {arguments}")
sys.addaudithook(heard)
from IPython.core.interactiveshell import InteractiveShell
shell = InteractiveShell.instance()
for cell in (
    "%load_ext tensormagic",
    "import numpy as np, tensormagic as tm; tm.config.tier = 'numba'; w = np.ones(3)",
    "%%tensor f -t --grad w --show graph,backprop,rewrites,code\\nloss = np.sum(np.log(1 + np.exp(w)))\\nloss",
    "%tensor_formula loss",
    "tm.live(lambda a: np.sin(a), a=(0, 1)).to_html('page.html')",
    "tm.value_and_grad(f)(w)",
    "%tensor_cache",
):
    shell.run_cell(cell).raise_error()
print("nothing was heard")
"""


def test_nothing_uses_the_network(tmp_path):
    ran = subprocess.run(
        [sys.executable, "-c", QUIET], cwd=tmp_path, capture_output=True, text=True, check=False, timeout=300
    )
    assert ran.stdout.endswith("nothing was heard\n"), ran.stdout[-1000:] + ran.stderr[-1000:]


def test_the_table_of_the_readme_is_what_the_libraries_gave():
    rows = [
        re.findall(r"^\| (.*) \|$", (ROOT / page).read_text(encoding="utf-8"), re.MULTILINE)
        for page in ("README.md", "benchmarks/results/comparison.md")
    ]
    told, found = ({cells[0]: cells[1:] for row in kind if len(cells := row.split(" | ")) == 5} for kind in rows)
    for name, given in told.items():
        (asked,) = [cells for row, cells in found.items() if row.partition(" (it is")[0] == name] or [None]
        if asked is not None:
            assert given == asked, name
    assert len(told) == 6
    failing = [
        [("error" in ours) == ("`" in theirs) for ours, theirs in zip(told[name], found[row], strict=True)]
        for name, row in LIKE.items()
    ]
    assert all(map(all, failing))


LIKE = {
    "slope through a Python `while` loop on values": "slope of a square root by a `while` loop at 2 (it is 0.354)",
    "slope of `y[0] = y[0]**2; sum(y)`": "slope of `y[0] = y[0]**2; sum(y)` at (3, 1) (it is (6, 1))",
    "`3!` by recursion, as a graph": "`3!` by a function that calls itself, as a graph (it is 6)",
}


def test_first_calls_take_as_long_as_the_page_on_speed_says():
    text = (ROOT / "benchmarks/results/first_results.md").read_text(encoding="utf-8")
    rows = re.findall(r"^\| \w+ \| ([\d.]+) \| ([\d.]+) \|", text, re.MULTILINE)
    more = [float(first) - float(plain) for plain, first in rows]
    assert (len(more), f"{statistics.median(more):.1f}", f"{max(more):.0f}") == (67, "2.7", "53")


def test_compiled_moves_and_comparisons_have_numpys_bits(monkeypatch):
    monkeypatch.setattr(tm.config, "tier", "numba")
    x = np.random.default_rng(0).normal(size=(40, 30)) * [np.inf if k == 3 else 10.0**k for k in range(30)]

    def moved(x):
        return (
            x[::-1, ::2].T,
            np.where(x > x[:, ::-1], x, -x),
            np.concatenate([x, x[3:9]]),
            x < x.T[:, :1].T,
            np.roll(x, 3, axis=0),
        )

    assert [v.tobytes() for v in tm.tensor(moved)(x)] == [np.ascontiguousarray(v).tobytes() for v in moved(x)]


def test_a_value_stays_when_the_tier_changes(monkeypatch):
    monkeypatch.setattr(tm.config, "tier", "numpy")
    y = np.exp(tm.tensor(np.ones(3)))
    value = y.numpy()
    monkeypatch.setattr(tm.config, "tier", "numba")
    assert y.numpy() is value


def test_float32_moves_half_the_memory():
    def f(x):
        return np.exp(x) * x + 1

    sizes = [tm.compile(f, f"{dtype}[n]").run(np.ones(1000, dtype)).nbytes for dtype in ("float32", "float64")]
    assert sizes == [4000, 8000]


def test_of_the_formulas_out_of_books_one_has_inputs_that_lose_bits():
    text = (ROOT / "benchmarks/results/accuracy.md").read_text(encoding="utf-8")
    rows = [row.split(" | ") for row in text.splitlines() if row.endswith(" % |")]
    worse = [(row[1], row[-1]) for row in rows if row[-1] != "0.0 % |"]
    assert (len(rows), worse) == (121, [("`log(2) + x * log(x) + (1 - x) * log(1 - x)`", "4.0 % |")])
    assert all(float(row[3]) <= float(row[2]) + 0.25 for row in rows)


def test_units_are_planned_for_as_long_as_the_page_for_teachers_says():
    found = [
        re.findall(r"Plan (\d+) minutes", page.read_text(encoding="utf-8"))
        for page in sorted(ROOT.glob("lessons/*.md"))
    ]
    planned = [int(minutes) for (minutes,) in found]
    assert (len(planned), min(planned), max(planned)) == (12, 60, 90)


def test_tiers_compile_as_the_page_on_speed_says(tier, monkeypatch):
    compiled: list[Executable] = []
    monkeypatch.setattr(
        Executable, "compile", lambda self, old=Executable.compile: (compiled.append(self), old(self))[1]
    )
    f = tm.tensor(lambda x: np.sum(np.tanh(x) * 1.375))
    for _ in range(300):
        f(np.ones(30_000))
    assert bool(compiled) == (tier == "numba")
    assert all(ran._native is not None for ran in compiled)
