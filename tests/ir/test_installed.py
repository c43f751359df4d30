"""Which files are a user's, and which a library's."""

from __future__ import annotations

from pathlib import Path

from tensormagic.ir.modules import is_users


def test_what_is_installed_elsewhere_is_a_librarys(tmp_path: Path) -> None:
    for folder in ("site-packages", "python3/dist-packages"):
        assert not is_users(str(tmp_path / folder / "box" / "a.py"))
    target = tmp_path / "target" / "box" / "inner"
    target.mkdir(parents=True)
    for package in (target, target.parent):
        (package / "__init__.py").write_text("")
    (tmp_path / "target" / "box-1.0.dist-info").mkdir()
    assert not is_users(str(target / "a.py"))
    assert not is_users(str(tmp_path / "target" / "single.py"))
    own = tmp_path / "project" / "box"
    own.mkdir(parents=True)
    (own / "__init__.py").write_text("")
    (tmp_path / "project" / "box.egg-info").mkdir()  # a package that is worked on
    assert is_users(str(own / "a.py"))
