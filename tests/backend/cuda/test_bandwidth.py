"""What the doctor says of a GPU: its compiler, and how fast it copies."""

import re

import pytest

from tensormagic import doctor
from tensormagic.backend.cuda import bandwidth
from tensormagic.backend.cuda import device as devices
from tensormagic.backend.cuda.compiling import compiler
from tensormagic.backend.cuda.device import Device


def test_bandwidths_are_of_copies_that_are_made(device: Device):
    before = device.copied.to_device, device.copied.to_host
    found = bandwidth.bandwidths(device, 1 << 16)
    assert set(found) == {"to it", "from it", "on it"}
    assert all(speed > 0 for speed in found.values())
    assert (device.copied.to_device - before[0], device.copied.to_host - before[1]) == (3 << 16, 3 << 16)


@pytest.mark.parametrize("lacks", [False, True])
def test_the_doctor_says_what_compiles_and_how_fast_it_copies(
    device: Device, monkeypatch: pytest.MonkeyPatch, lacks: bool
):
    def versions():
        if lacks:
            raise compiler.MissingCompilerError("the package numba-cuda is missing", "pip install it")
        return ("0.30.4",)

    monkeypatch.setattr(devices, "missing", lambda: None)
    monkeypatch.setattr(compiler, "versions", versions)
    monkeypatch.setattr(bandwidth, "BYTES", 1 << 16)
    text = doctor._usable()
    assert ("usable by its library alone: the package numba-cuda is missing" in text) is lacks
    assert ("with kernels of our own (numba-cuda 0.30.4)" in text) is not lacks
    assert re.search(r"copies [\d.,e+]+ GB/s to it, [\d.,e+]+ GB/s from it, [\d.,e+]+ GB/s on it$", text)
