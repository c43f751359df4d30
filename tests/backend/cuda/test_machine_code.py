"""Machine code is kept beside PTX: made once for each GPU and driver, read again, and PTX where the driver does not take it."""

import shutil
import subprocess
from pathlib import Path

import numpy as np
import pytest

import tensormagic as tm
from tensormagic.backend.compiling import cache as disk
from tensormagic.backend.compiling.messages import Code
from tensormagic.backend.cuda import device as devices
from tensormagic.backend.cuda import run as cuda
from tensormagic.backend.cuda.compiling import machine_code
from tensormagic.backend.cuda.compiling.compiler import compiled
from tensormagic.backend.cuda.planned import planned
from tests.backend.cuda.emulated import compiles
from tests.backend.cuda.fake import FakeDevice
from tests.backend.cuda.test_compiler import CC, GOOD, launch_of
from tests.backend.cuda.test_run import graph_of

pytestmark = compiles
X = np.linspace(0.5, 2.0, 40)
PTXAS = shutil.which("ptxas")


@pytest.fixture(autouse=True)
def _kept(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr(tm.config, "cache_folder", tmp_path / "cache")
    monkeypatch.setattr(tm.config, "tier", "numba")
    planned.cache_clear()


def fresh(**told) -> FakeDevice:
    device = FakeDevice()
    device.assembles = True
    vars(device).update(told)
    return device


def kernel() -> Code:
    return compiled(launch_of(GOOD), CC)


def files(folder: Path, kind: str) -> list[Path]:
    return sorted(folder.glob(f"{kind}-*.o"))


def ran(device: FakeDevice) -> list[str]:
    """What the kernels of a program are loaded of, which gives what NumPy gives."""
    planned.cache_clear()
    devices.use(device)
    try:
        _, graph = graph_of(lambda x: (np.exp(x) * 2, np.sum(x)), (X,))
        found = cuda.run(graph, [device.put(X)], device)
    finally:
        devices.use(None)
    for own, numpys in zip(found, (np.exp(X) * 2, np.sum(X)), strict=True):
        np.testing.assert_allclose(device.fetch(own), numpys, rtol=1e-14)
    return device.loads


def test_it_is_made_once_and_read_by_the_next_process():
    folder = Path(tm.config.cache_folder)
    assert set(ran(fresh())) == {"machine code"}
    made = files(folder, "cubin")
    assert len(made) == len(files(folder, "cuda")) > 0
    assert all(f.stat().st_mode & 0o077 == 0 for f in made)
    again = fresh(assembled=None)  # which nothing calls
    assert set(ran(again)) == {"machine code"}
    assert files(folder, "cubin") == made


@pytest.mark.parametrize("told", [{"capability": (7, 5)}, {"driver": 13010}])
def test_another_architecture_or_driver_has_its_own(told: dict):
    code, first, second = kernel(), fresh(), fresh(**told)
    for device in (first, second, first, second):
        machine_code.loaded(device, code)
    assert set(first.loads + second.loads) == {"machine code"}
    assert len(files(Path(tm.config.cache_folder), "cubin")) == 2


def test_where_the_driver_gives_none_it_is_ptx():
    device = fresh(assembles=False)
    machine_code.loaded(device, kernel())
    assert device.loads == ["PTX"]
    assert not files(Path(tm.config.cache_folder), "cubin")


def test_what_the_driver_does_not_take_is_ptx():
    """Damage that the checksum knows nothing of, or code for another architecture under this one's name."""
    code, device = kernel(), fresh()
    disk.write(machine_code.key_of(device, code), Code(code.symbol, b"sm_(3, 5)\n" + code.data, 0.0))
    machine_code.loaded(device, code)
    assert device.loads == ["PTX"]


def test_damaged_files_are_made_anew():
    code, device = kernel(), fresh()
    machine_code.loaded(device, code)
    (file,) = files(Path(tm.config.cache_folder), "cubin")
    file.write_bytes(file.read_bytes()[:-3] + b"!!!")
    machine_code.loaded(device, code)
    assert device.loads == ["machine code", "machine code"]
    assert disk.read(file.stem) is not None


def test_what_others_could_have_written_is_not_loaded():
    code, device = kernel(), fresh()
    machine_code.loaded(device, code)
    (file,) = files(Path(tm.config.cache_folder), "cubin")
    file.write_bytes(file.read_bytes())
    file.chmod(0o666)
    assert disk.read(file.stem) is None
    machine_code.loaded(device, code)
    assert device.loads == ["machine code", "machine code"]


@pytest.mark.skipif(PTXAS is None, reason="needs ptxas, of NVIDIA's toolkit")
def test_what_is_kept_is_what_the_assembler_makes(tmp_path: Path):
    """Of the very PTX, for two architectures, byte for byte."""
    code, made, taken = kernel(), {}, []

    def assembled(arch: str):
        def assemble(image: bytes) -> bytes:
            source, target = tmp_path / "kernel.ptx", tmp_path / f"{arch}.cubin"
            source.write_bytes(image.rstrip(b"\0"))
            subprocess.run([PTXAS or "", f"-arch={arch}", str(source), "-o", str(target)], check=True)
            made[arch] = target.read_bytes()
            return made[arch]

        return assemble

    for cc in ((9, 0), (10, 0)):
        for _ in range(2):
            device = fresh(capability=cc, assembled=assembled(f"sm_{cc[0]}{cc[1]}"))
            device.load = lambda image, name: taken.append((image, name)) or name
            assert machine_code.loaded(device, code) == code.symbol
    assert [image[:4] for image, _ in taken] == [b"\x7fELF"] * 4
    assert [image for image, _ in taken] == [made["sm_90"]] * 2 + [made["sm_100"]] * 2


@pytest.mark.gpu
def test_on_a_card():
    if devices.missing() is not None:
        pytest.skip("needs a CUDA device")
    card = devices.Card()
    code = compiled(launch_of(GOOD), card.capability)
    image = card.assembled(code.data)
    assert image is not None
    assert image[:4] == b"\x7fELF"
    array = card.put(np.zeros(64))
    card.launch(machine_code.loaded(card, code), (1,), (64,), [array, np.int64(64)])
    np.testing.assert_array_equal(card.fetch(array), np.ones(64))
    assert files(Path(tm.config.cache_folder), "cubin")
