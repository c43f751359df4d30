"""Figures on pages that are bounds of the code; ``claims.toml`` names these tests."""

from pathlib import Path

ROOT = Path(__file__).parents[2]


def test_bounds_are_those_of_the_code():
    from tensormagic.backend.cuda.kernels import draws
    from tensormagic.backend.cuda.loops import ahead
    from tensormagic.backend.running import threads
    from tensormagic.capture import limits
    from tensormagic.distributed import distribute, watching
    from tensormagic.notebook.backprop import frame, passes
    from tensormagic.notebook.display import inspecting, progress, value_texts
    from tensormagic.notebook.live import ranges, sweep
    from tensormagic.notebook.pictures import inside, picture
    from tensormagic.notebook.pictures import measure as values
    from tensormagic.notebook.speeds import measure, profiled
    from tensormagic.notebook.widgets import descending, live

    operations = f"loop of less than about {threads.least() // 8:,} operations"
    bounds = [
        ("control-flow", f"a limit of {limits.LIMIT:,} operations"),
        ("control-flow", f"has {limits.MANY:,} operations, or the code has asked for {limits.SEVERAL} values"),
        ("speed", operations),
        ("limits", operations.replace("loop", "loops")),
        ("gpu", f"up to {ahead.MOST_AHEAD} iterations are launched ahead"),
        ("gpu", f"from {draws.FEWEST:,} numbers on"),
        ("gpu", f"arrays of up to {value_texts.MOST_COPIED >> 10} KiB"),
        ("cluster", f"of each {watching.BLOCK} chunks on a worker"),
        ("live", f"Of one number these are {sweep._COUNTS[1]} points"),
        ("live", f"a grid of {sweep._COUNTS[2]} by {sweep._COUNTS[2]}"),
        ("what-am-i-looking-at", f"Programs of up to\n{passes.MOST_NODES} values are shown"),
        ("what-am-i-looking-at", f"more than {picture.COLLAPSE_ABOVE} nodes starts as closed groups"),
        ("what-am-i-looking-at", {9: "nine iterations at most"}[inside.MOST_ITERATIONS]),
        ("what-am-i-looking-at", {7: "up to seven batches of runs"}[measure._BATCHES]),
        ("what-am-i-looking-at", {3: "the fastest of three"}[measure._PROFILED]),
        (
            "what-am-i-looking-at",
            {5.0: "A run of more than five seconds is followed for so long"}[profiled._MOST_SECONDS],
        ),
        ("what-am-i-looking-at", {3: "up to three elements are written out"}[frame._FEW]),
        ("what-am-i-looking-at", {3: "otherwise to the first three inputs"}[inspecting.MOST_GRADIENTS]),
        ("what-am-i-looking-at", {1.0: "What takes more than a second shows a bar"}[progress.AFTER]),
        ("what-am-i-looking-at", f"looked at for {inside.LONGEST} seconds"),
        ("what-am-i-looking-at", f"{values.LONGEST} seconds are told without the values"),
        ("what-am-i-looking-at", {50: "*descend* takes fifty steps"}[descending._STEPS]),
        ("live", {50: "*descend* takes fifty steps"}[descending._STEPS]),
        ("live", f"the last {live._SEEN} values"),
        ("live", f"At most {ranges.MOST_SPANS} numbers are moved, and at most {sweep._LARGEST} elements"),
        ("limits", f"reach at most {distribute.MOST} rows"),
        ("limits", f"Fewer than {distribute.LEAST} rows are computed by the client"),
    ]
    pages = {page: (ROOT / f"docs/{page}.md").read_text(encoding="utf-8") for page, _ in bounds}
    assert not [(page, said) for page, said in bounds if said not in pages[page]]


def test_no_more_threads_than_the_environment_says(monkeypatch):
    from tensormagic.config import processors

    monkeypatch.setenv("OMP_NUM_THREADS", "1")
    assert processors() == 1
    monkeypatch.delenv("OMP_NUM_THREADS")
    assert processors() >= 1
