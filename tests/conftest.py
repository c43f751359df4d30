"""What tests share: folders of their own, properties that do not flake, shares of large tables, GPU tests counted without a GPU."""

import ctypes
import gc
import os
import re
import signal
import tempfile
import zlib
from collections import defaultdict
from collections.abc import Iterator
from pathlib import Path

import pytest
from hypothesis import settings

# Set before anything is imported that reads them, and handed down to kernels, compile workers and browsers.
_HOME = tempfile.TemporaryDirectory(prefix="tensormagic-tests-")
for _variable, _folder in {
    "TENSORMAGIC_CACHE_FOLDER": "cache",
    "IPYTHONDIR": "ipython",
    "JUPYTER_CONFIG_DIR": "jupyter/config",
    "JUPYTER_DATA_DIR": "jupyter/data",
    "JUPYTER_RUNTIME_DIR": "jupyter/runtime",
    "MPLCONFIGDIR": "matplotlib",
}.items():
    _path = Path(_HOME.name, _folder)
    _path.mkdir(parents=True, mode=0o700)
    os.environ[_variable] = str(_path)
if "TENSORMAGIC_TESTS_CACHE" in os.environ:  # what keeps the code that tests have compiled (scripts/all_on_gpu.py)
    os.environ["TENSORMAGIC_CACHE_FOLDER"] = os.environ["TENSORMAGIC_TESTS_CACHE"]
os.environ["JUPYTER_PREFER_ENV_PATH"] = "1"  # the kernels of this environment, not the user's

if (
    signal.getsignal(signal.SIGINT) is signal.SIG_IGN
):  # as of what a shell has begun in the background: interrupts are tested
    signal.signal(signal.SIGINT, signal.default_int_handler)

gc.set_threshold(100_000, 20, 100)  # many small tests beside much that lives long: an eighth of their time

# The same examples on every run and no deadline: a busy machine is no failure.
settings.register_profile("tensormagic", derandomize=True, deadline=None, database=None)
settings.load_profile("tensormagic")

PROCESSES = ("tests/browser/", "tests/kernel/", "tests/docs/", "tests/distributed/")  # where tests start processes
# of the files with a browser those that take longest, begun first: a process that has none left waits for the other's last one
LONGEST = ("test_narrow.py", "test_views.py", "test_live.py", "test_converted.py", "test_kernel_views.py")
COLLECTED = pytest.StashKey[list[pytest.Item]]()  # every test, those of tables of which a share is run, too


def _has_gpu() -> bool:
    try:
        driver = ctypes.CDLL("libcuda.so.1")
    except OSError:
        return False
    count = ctypes.c_int()
    return driver.cuInit(0) == 0 and driver.cuDeviceGetCount(ctypes.byref(count)) == 0 and count.value > 0


def pytest_addoption(parser: pytest.Parser) -> None:
    """`--all` runs every test of the tables of which else a share is run."""
    parser.addoption(
        "--all",
        action="store_true",
        help="all of the tables of which a fixed share is run (shares.txt, and marked share)",
    )


def _is_in_share(item: pytest.Item) -> bool:
    """Whether a test is of the share of its table that is always run: its name decides, so it is the same one everywhere."""
    marker = item.get_closest_marker("share")
    return marker is None or zlib.crc32(item.nodeid.encode()) % marker.args[0] == 0


def _listed(name: str) -> dict[str, int]:
    """A list of test functions by scripts/measure_tests.py, each with a number of rows.

    slow.txt has those that are slow as a whole (0), or of which one row in so many is in the fast part; shares.txt has tables of which one
    row in so many is run.
    """
    lines = Path(__file__).with_name(name).read_text(encoding="utf-8").splitlines()
    return {name: int(rows) for rows, name in (line.split(" ", 1) for line in lines)}


def _function_of(item: pytest.Item) -> str:
    return item.nodeid.partition("[")[0]


def _is_slow(item: pytest.Item, known: dict[str, int]) -> bool:
    """Whether a test is left out of the fast part: its name decides, so it is the same one everywhere."""
    rows = 0 if item.nodeid.startswith(PROCESSES) else known.get(_function_of(item), 1)
    return not rows or zlib.crc32(item.nodeid.encode()) % rows != 0


def _shared_out(items: list[pytest.Item], shares: dict[str, int]) -> list[pytest.Item]:
    """The tests that are not in the share of their table: of those in ``shares`` some rows are, at least one; their names decide which."""
    left_out = [item for item in items if not _is_in_share(item)]
    tables = defaultdict[str, list[pytest.Item]](list)
    for item in set(items).difference(left_out):
        if _function_of(item) in shares:
            tables[_function_of(item)].append(item)
    for function, rows in tables.items():
        rows.sort(key=lambda item: (zlib.crc32(item.nodeid.encode()), item.nodeid))
        left_out += rows[-(-len(rows) // shares[function]) :]
    return left_out


def _is_unnamed(item: pytest.Item, config: pytest.Config) -> bool:
    """Whether a test that is run by its row's name alone (`by_name`) is not asked for."""
    if item.get_closest_marker("by_name") is None or any(item.name in a for a in config.args):
        return False
    return item.callspec.id not in re.findall(r"\w+", config.getoption("keyword"))  # type: ignore[attr-defined]


def _place_in_run(item: pytest.Item) -> int:
    """When a test is run: those with a browser last, the longest of them first."""
    if item.get_closest_marker("browser") is None:
        return 0
    return 1 + (LONGEST.index(item.path.name) if item.path.name in LONGEST else len(LONGEST))


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Mark what is slow, where `-m` asks; skip the tests marked `gpu` where there is no CUDA device: -rs then says how many were not run.

    Of the tables that are marked `share`, or take long (shares.txt), a part is run, and the rest is counted as deselected; a test that
    is asked for by its own name, or by `-k`, always runs. Browser tests go last: while Playwright is open its event loop runs in this
    thread, and nothing else may start one.
    """
    config.stash[COLLECTED] = list(items)
    for item in items:
        if item.nodeid.startswith("tests/browser/"):
            item.add_marker("browser")
    shares = _listed("shares.txt")
    if "slow" in config.getoption("markexpr"):
        shares = {}  # the fast part has shares of its own
        known = _listed("slow.txt")
        for item in items:
            if _is_slow(item, known):
                item.add_marker("slow")
    chosen = config.getoption("--all") or config.getoption("keyword") or any("::" in a for a in config.args)
    left_out = [item for item in items if _is_unnamed(item, config)]
    left_out += [] if chosen else _shared_out([item for item in items if item not in set(left_out)], shares)
    if left_out:
        apart = set(left_out)
        items[:] = [item for item in items if item not in apart]
        config.hook.pytest_deselected(items=left_out)
    items.sort(key=_place_in_run)
    marked = [item for item in items if item.get_closest_marker("gpu")]
    if marked and not _has_gpu():
        for item in marked:
            item.add_marker(pytest.mark.skip(reason="no CUDA device"))


@pytest.fixture
def by_numpy(monkeypatch: pytest.MonkeyPatch) -> None:
    """The NumPy tier: nothing is compiled."""
    from tensormagic.config import config

    monkeypatch.setattr(config, "tier", "numpy")


@pytest.fixture
def quietly_by_numpy(by_numpy: None) -> Iterator[None]:
    """NumPy, without its warnings of infinities and nan."""
    import numpy as np

    with np.errstate(all="ignore"):
        yield


@pytest.fixture
def by_numba(monkeypatch: pytest.MonkeyPatch) -> None:
    """Compiled code, from the first call on."""
    from tensormagic.config import config

    monkeypatch.setattr(config, "tier", "numba")


@pytest.fixture(params=["numpy", "numba"])
def tier(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> str:
    """Both tiers, one after the other."""
    from tensormagic.config import config

    monkeypatch.setattr(config, "tier", request.param)
    return str(request.param)


@pytest.fixture
def exact(monkeypatch: pytest.MonkeyPatch) -> None:
    """NumPy's own digits: no rule for accuracy."""
    from tensormagic.config import config

    monkeypatch.setattr(config, "math", "exact")


@pytest.fixture
def no_rules_left() -> Iterator[None]:
    """Rules that a test adds are removed."""
    import tensormagic as tm

    yield
    for name in list(tm.rules.own):
        tm.rules.remove(name)


@pytest.fixture
def first_calls(captured_at_once: None, monkeypatch: pytest.MonkeyPatch) -> None:
    """First calls are Python's where they may be, as for users."""
    from tensormagic.functions.calls import first_call as first

    monkeypatch.setattr(first, "enabled", True)


@pytest.fixture
def run_sizes(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """How many nodes each demand had."""
    from tensormagic import session

    found: list[int] = []
    bound = session.demand.bound

    def counted(nodes):
        made = bound(nodes)
        found.append(len(made[0].mapping))
        return made

    monkeypatch.setattr(session.demand, "bound", counted)
    return found


@pytest.fixture(params=["fake", pytest.param("card", marks=pytest.mark.gpu)])
def device(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch):
    """A device: the fake one; on a machine with a GPU the same tests run on the GPU, too.

    No kernels are compiled beside a test: what it runs would hang on when they are there.
    """
    from tensormagic.backend.cuda import device as devices
    from tensormagic.backend.cuda import run as cuda
    from tensormagic.backend.cuda import transfers
    from tests.backend.cuda.fake import FakeDevice

    if request.param == "card" and (why := devices.missing()) is not None:
        pytest.skip(f"needs a GPU: {why[0]}")
    used = FakeDevice() if request.param == "fake" else devices.Card()
    for name in ("WORTH_COMPILING", "COMPILING"):
        monkeypatch.setattr(cuda, name, float("inf"))
    devices.use(used)
    transfers.forget()
    try:
        yield used
    finally:
        devices.use(None)


@pytest.fixture(autouse=True)
def captured_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """First calls are captured, since that is what tests are about; ``tests/functions/test_first.py`` is about those that are not."""
    from tensormagic.functions.calls import first_call as first
    from tensormagic.functions.calls import remembered_calls

    monkeypatch.setattr(first, "enabled", False)
    monkeypatch.setattr(
        remembered_calls, "enabled", False
    )  # the first call in each test is one of a text that nobody knows


@pytest.fixture(autouse=True)
def captured_quietly(monkeypatch: pytest.MonkeyPatch) -> None:
    """How long captures take is no error of a test; ``tests/functions/test_recaptured.py`` is about the warning that says so."""
    from tensormagic.functions.reads import recaptured

    monkeypatch.setattr(recaptured, "_SECONDS", float("inf"))
