"""Machine code that others could have written is not loaded: a table of folders, links, files and changes between loads."""

import os
import stat
import tempfile
import threading
from pathlib import Path

import pytest

from tensormagic.backend.compiling import cache, trust
from tensormagic.backend.compiling.cache import Code
from tensormagic.config import config

OTHER = 12345  # a user who is not there
CODE = Code("f", b"x" * 1000, 0.5)

pytestmark = pytest.mark.skipif(not trust.CHECKED, reason="owners and modes do not say who can write here")
as_root = pytest.mark.skipif(not hasattr(os, "geteuid") or os.geteuid() != 0, reason="only root gives files to others")


@pytest.fixture
def home(tmp_path, monkeypatch):
    """A folder that is the user's, as the top of what a situation is made in; warnings are collected, not raised."""
    monkeypatch.setattr(cache, "_temporary", cache._Temporary())
    told = []
    monkeypatch.setattr(cache, "tell_once", told.append)
    tmp_path.chmod(0o700)
    (tmp_path / "private").mkdir(mode=0o700)
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path / "private"))
    place = tmp_path / "a" / "b" / "cache"
    monkeypatch.setattr(config, "cache_folder", place)
    return Home(tmp_path, place, told)


class Home:
    def __init__(self, top, place, told):
        self.top, self.place, self.told = top, place, told

    @property
    def file(self):
        return self.place / "k.o"

    def kept(self):
        """Keep a file, as an earlier process would have."""
        cache.write("k", CODE)
        assert not self.told
        assert cache.read("k") == CODE
        return self


def parent_for_all(home):
    home.place.parent.chmod(0o777)


def parent_of_a_group(home):
    home.place.parent.chmod(0o770)
    os.chown(home.place.parent, -1, OTHER)


def parent_of_another(home):
    os.chown(home.place.parent, OTHER, -1)


def top_for_all(home):
    home.place.parent.parent.chmod(0o777)


def folder_for_all(home):
    home.place.chmod(0o777)


def folder_for_all_though_sticky(home):
    home.place.chmod(0o1777)


def folder_of_another(home):
    os.chown(home.place, OTHER, -1)


def file_for_all(home):
    home.file.chmod(0o666)


def file_for_a_group(home):
    home.file.chmod(0o660)
    os.chown(home.file, -1, OTHER)


def file_of_another(home):
    os.chown(home.file, OTHER, -1)
    home.file.chmod(0o600)


def file_of_another_for_all(home):
    os.chown(home.file, OTHER, -1)
    home.file.chmod(0o666)


def file_with_a_second_name(home):
    os.link(home.file, home.top / "second")


def file_that_is_a_link(home):
    home.file.rename(home.top / "moved.o")
    home.file.symlink_to(home.top / "moved.o")


def file_that_is_a_pipe(home):
    home.file.unlink()
    os.mkfifo(home.file, 0o600)


def linked_by_another(home):
    real = home.top / "real"
    home.place.rename(real)
    home.place.symlink_to(real)
    os.lchown(home.place, OTHER, -1)


def parent_linked_by_another(home):
    real = home.top / "real"
    home.place.parent.rename(real)
    home.place.parent.symlink_to(real)
    os.lchown(home.place.parent, OTHER, -1)


def linked_into_a_folder_for_all(home):
    (home.top / "open").mkdir()
    home.place.rename(home.top / "open" / "cache")
    home.place.symlink_to(home.top / "open" / "cache")
    (home.top / "open").chmod(0o777)


def linked_in_a_circle(home):
    home.place.rename(home.top / "moved")
    home.place.symlink_to(home.place)


def swapped_for_a_folder_of_another(home):
    other = home.top / "other"
    home.place.rename(other)
    home.place.mkdir(mode=0o700)
    (other / "k.o").rename(home.file)
    os.chown(home.place, OTHER, -1)


REFUSED = [
    parent_for_all,
    parent_of_a_group,
    parent_of_another,
    top_for_all,
    folder_for_all,
    folder_for_all_though_sticky,
    folder_of_another,
    file_for_all,
    file_for_a_group,
    file_of_another,
    file_of_another_for_all,
    file_with_a_second_name,
    file_that_is_a_link,
    file_that_is_a_pipe,
    linked_by_another,
    parent_linked_by_another,
    linked_into_a_folder_for_all,
    linked_in_a_circle,
    swapped_for_a_folder_of_another,
]


@as_root
@pytest.mark.parametrize("change", REFUSED, ids=lambda f: f.__name__)
def test_a_change_after_the_first_load_is_seen(home, change):
    home.kept()
    change(home)
    assert cache.read("k") is None
    # what is kept anew is read again: in the folder where the file alone was wrong, else in a private one of this process
    cache.write("k", CODE)
    assert cache.read("k") == CODE
    if change.__name__.startswith("file"):
        assert home.file.is_file()
        assert not home.file.is_symlink()
        assert not cache._temporary.there()
    else:
        (private,) = cache._temporary.there()
        assert stat.S_IMODE(private.stat().st_mode) == 0o700
        assert any("is not used" in message for message in home.told)


def sticky_parent(home):
    home.place.parent.chmod(0o1777)


def linked_by_the_user(home):
    home.place.rename(home.top / "real")
    home.place.symlink_to("../../real")


def readable_by_all(home):
    home.place.chmod(0o755)
    home.file.chmod(0o644)


def through_dots(home):
    config.cache_folder = home.place / ".." / "cache"


@pytest.mark.parametrize(
    "change", [sticky_parent, linked_by_the_user, readable_by_all, through_dots], ids=lambda f: f.__name__
)
def test_what_others_cannot_write_is_read(home, change):
    home.kept()
    change(home)
    assert cache.read("k") == CODE
    assert not home.told


def test_a_group_that_is_the_user_alone_may_write(home, monkeypatch):
    home.kept()
    home.place.parent.chmod(0o770)
    monkeypatch.setattr(trust, "_own_group", lambda group: False)
    assert cache.read("k") is None
    monkeypatch.setattr(trust, "_own_group", lambda group: True)
    assert cache.read("k") == CODE
    monkeypatch.setattr(os, "listxattr", lambda path: [trust._ACL], raising=False)
    assert cache.read("k") is None


@as_root
def test_another_user_reads_what_is_theirs_alone(home):
    """The rules as a user who is not root meets them."""
    home.kept()
    pid = os.fork()
    if not pid:
        for path in (home.place, home.file):
            os.chown(path, OTHER, OTHER)
        os.chown(home.place.parent, 0, 0)
        for path in (home.top, home.place.parent.parent, home.place.parent):
            path.chmod(0o755)
        for above in home.top.parents:
            if above.stat().st_uid == os.geteuid() and not above.stat().st_mode & stat.S_ISVTX:
                above.chmod(0o755)
        os.setgroups([])
        os.setresgid(OTHER, OTHER, OTHER)
        os.setresuid(OTHER, OTHER, OTHER)
        os._exit(0 if cache.read("k") == CODE else 1)
    assert os.waitpid(pid, 0)[1] == 0


def test_what_is_looked_at_is_what_is_read(home, monkeypatch):
    """Whoever swaps the file between the look and the load has his file passed over."""
    home.kept()
    other = home.top / "other.o"
    other.write_bytes(b"evil")
    look = trust._look

    def swapping(status, descriptor, where, *, last):
        look(status, descriptor, where, last=last)
        if where.endswith("k.o"):
            other.replace(home.file)

    monkeypatch.setattr(trust, "_look", swapping)
    assert cache.read("k") == CODE
    assert home.file.read_bytes() == b"evil"


def test_a_folder_swapped_again_and_again_gives_its_own_file_or_none(home):
    """A race: the folder is now the user's, now a link to one that all may write."""
    home.kept()
    evil = home.top / "evil"
    evil.mkdir()
    evil.chmod(0o777)
    good = (home.place / "k.o").read_bytes()
    (evil / "k.o").write_bytes(good.replace(b"xxxx", b"evil"))
    ended = threading.Event()

    def swap():
        kept = home.place.with_name("kept")
        while not ended.is_set():
            home.place.rename(kept)
            home.place.symlink_to(evil)
            home.place.unlink()
            kept.rename(home.place)

    thread = threading.Thread(target=swap)
    thread.start()
    found = [cache.read("k") for _ in range(500)]
    ended.set()
    thread.join()
    assert all(code is None or code == CODE for code in found)


def test_a_folder_that_is_deleted_is_made_again(home):
    home.kept()
    home.file.unlink()
    home.place.rmdir()
    assert cache.read("k") is None
    cache.write("k", CODE)
    assert cache.read("k") == CODE
    assert home.file.is_file()
    assert not home.told


def full(*_):
    raise OSError(28, "No space left on device")


@pytest.mark.parametrize("when", ["open", "write", "replace"])
def test_a_full_disk_is_told_and_nothing_is_left_behind(home, monkeypatch, when):
    home.kept()
    before = sorted(home.place.iterdir())
    real = os.open, os.replace, os.fdopen

    def fails(path):
        return home.place.exists() and str(path).endswith(".tmp") and not cache._temporary.there()

    if when == "open":
        monkeypatch.setattr(os, "open", lambda path, *a, **k: full() if fails(path) else real[0](path, *a, **k))
        monkeypatch.setattr(os, "supports_dir_fd", {*os.supports_dir_fd, os.open})
    elif when == "replace":
        monkeypatch.setattr(os, "replace", lambda path, *a, **k: full() if fails(path) else real[1](path, *a, **k))
    else:
        monkeypatch.setattr(
            os,
            "fdopen",
            lambda handle, mode, **k: (
                (os.close(handle), full())
                if mode == "wb" and not cache._temporary.there()
                else real[2](handle, mode, **k)
            ),
        )
    other = Code("g", b"y", 0.1)
    cache.write("l", other)
    assert sorted(home.place.iterdir()) == before
    assert "No space left" in home.told[0]
    (private,) = cache._temporary.there()
    assert (private / "l.o").is_file()
    assert cache.read("l") == other
    assert cache.read("k") == CODE


@as_root
@pytest.mark.skipif(
    not Path("/dev/full").exists() or os.system("unshare -m true 2>/dev/null") != 0, reason="no mounts here"
)
def test_a_tiny_file_system_is_full(home):
    home.place.mkdir(parents=True, mode=0o700)
    script = f"mount -t tmpfs -o size=16k,mode=0700 none {home.place}"
    if os.system(f"unshare -m sh -c '{script}' 2>/dev/null"):
        pytest.skip("no file systems are mounted here")
    os.system(script)
    try:
        cache.write("big", Code("f", b"z" * 100_000, 0.1))
        assert "No space left" in home.told[0]
        assert cache.read("big") == Code("f", b"z" * 100_000, 0.1)
        assert not list(home.place.iterdir())
    finally:
        os.system(f"umount {home.place}")


def test_where_nothing_can_be_kept_that_is_no_error(home, monkeypatch):
    monkeypatch.setattr(cache, "_written", full)
    cache.write("k", CODE)
    cache.write("l", CODE)
    assert cache.read("k") is None
    assert {m for m in home.told if "No space" in m}


def test_a_path_that_is_none_falls_back(home, monkeypatch):
    (home.top / "file").touch()
    monkeypatch.setattr(config, "cache_folder", home.top / "file" / "inside")
    cache.write("k", CODE)
    assert cache.read("k") == CODE
    assert len(home.told) == 1


def test_the_private_folder_is_made_anew_where_it_was_deleted(home, monkeypatch):
    (home.top / "file").touch()
    monkeypatch.setattr(config, "cache_folder", home.top / "file" / "inside")
    cache.write("k", CODE)
    (private,) = cache._temporary.there()
    (private / "k.o").unlink()
    private.rmdir()
    assert cache.read("k") is None
    cache.write("k", CODE)
    assert cache.read("k") == CODE


def test_clearing_deletes_what_is_ours_alone(home):
    home.kept()
    (home.place / "notes.txt").write_text("mine")
    (home.place / "sub").mkdir()
    (home.place / "sub" / "k.o").write_text("mine")
    assert cache.kept()[0] == 1
    cache.kept(clear=True)
    assert not home.file.exists()
    assert (home.place / "notes.txt").exists()
    assert (home.place / "sub" / "k.o").exists()
    home.place.chmod(0o777)
    (home.place / "k.o").write_text("x")
    cache.kept(clear=True)
    assert home.file.exists()
    assert "others can write" in cache.problem()
