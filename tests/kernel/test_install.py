"""Installing the kernelspec: where it goes, what it starts, and what Jupyter shows of it."""

import json
import sys
from pathlib import Path

import pytest
from PIL import Image

from tensormagic_kernel import install


def test_it_is_bound_to_this_interpreter(tmp_path: Path, capsys: pytest.CaptureFixture[str]):
    assert install.main(["--prefix", str(tmp_path)]) == 0
    folder = tmp_path / "share/jupyter/kernels/tensormagic"
    assert str(folder) in capsys.readouterr().out
    spec = json.loads((folder / "kernel.json").read_text())
    assert spec["argv"] == [sys.executable, "-m", "tensormagic_kernel", "-f", "{connection_file}"]
    assert spec["display_name"] == "TensorMagic"
    assert spec["language"] == "python"


def test_twice_in_a_row(tmp_path: Path):
    assert install.install(prefix=str(tmp_path)) == install.install(prefix=str(tmp_path))


def test_for_the_user(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setenv("JUPYTER_DATA_DIR", str(tmp_path))
    assert install.main(["--user"]) == 0
    assert (tmp_path / "kernels/tensormagic/kernel.json").is_file()


def test_in_the_environment_by_default(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(sys, "prefix", str(tmp_path))
    assert install.main([]) == 0
    assert (tmp_path / "share/jupyter/kernels/tensormagic/kernel.json").is_file()


def test_two_places_are_one_too_many(capsys: pytest.CaptureFixture[str]):
    with pytest.raises(SystemExit, match="2"):
        install.main(["--user", "--sys-prefix"])
    assert "not allowed with" in capsys.readouterr().err


def test_where_nobody_may_write(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]):
    def refuse(*arguments: object, **options: object):
        raise PermissionError(13, "Permission denied", "/usr/share/jupyter")

    monkeypatch.setattr(install.KernelSpecManager, "install_kernel_spec", refuse)
    assert install.main(["--sys-prefix"]) == 1
    assert "/usr/share/jupyter cannot be written: try --user" in capsys.readouterr().err


@pytest.mark.parametrize("size", [32, 64])
def test_the_logo(tmp_path: Path, size: int):
    folder = install.install(prefix=str(tmp_path))
    assert (folder / "logo-svg.svg").read_text().startswith("<svg")
    with Image.open(folder / f"logo-{size}x{size}.png") as logo:
        assert logo.size == (size, size)
        assert logo.getpixel((0, 0))[3] == 0  # transparent corners
        assert len(logo.getcolors(size * size)) > 10
