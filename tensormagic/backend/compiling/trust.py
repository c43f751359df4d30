"""Files that nobody else could have written: every step of the way to them is looked at, each time.

A path is walked from the root by descriptors, links included, so that what was looked at is what is opened. Knows
neither caches nor code.
"""

from __future__ import annotations

import errno
import os
import stat
from collections.abc import Generator
from contextlib import contextmanager, suppress
from functools import cache
from pathlib import Path

CHECKED = hasattr(os, "getuid") and os.open in os.supports_dir_fd
"""Whether owners and modes say who can write: not on Windows, where the folders of a profile are the user's by their lists."""
MOST_LINKS = 40
_ACL = "system.posix_acl_access"
_WAY = (
    getattr(os, "O_PATH", 0)
    | getattr(os, "O_NOFOLLOW", 0)
    | getattr(os, "O_DIRECTORY", 0)
    | getattr(os, "O_CLOEXEC", 0)
)
_LIST = os.O_RDONLY | getattr(os, "O_NOFOLLOW", 0) | getattr(os, "O_DIRECTORY", 0) | getattr(os, "O_CLOEXEC", 0)
_FILE = os.O_RDONLY | getattr(os, "O_NOFOLLOW", 0) | getattr(os, "O_NONBLOCK", 0) | getattr(os, "O_CLOEXEC", 0)


class UntrustedError(OSError):
    """Somebody else could have written the file or folder."""


@contextmanager
def opened_folder(path: Path, *, make: bool = False) -> Generator[int]:
    """A descriptor of a folder that only its user and root can write to, or redirect on its path.

    Parameters
    ----------
    path
        The folder.
    make
        Whether missing folders are made, for the user alone.

    Raises
    ------
    UntrustedError
        If somebody else owns, or can write in, a folder on the path, or owns a link on it. A folder with the
        sticky bit, such as ``/tmp``, may be on the path: others cannot replace the user's entries there.
    OSError
        If it cannot be opened or made.
    """
    descriptor = _walked(path.absolute(), make=make) if CHECKED else _unchecked(path, make=make)
    try:
        yield descriptor
    finally:
        if descriptor >= 0:
            os.close(descriptor)


def _unchecked(path: Path, *, make: bool) -> int:
    if make:
        path.mkdir(mode=0o700, parents=True, exist_ok=True)
    elif not path.is_dir():
        raise FileNotFoundError(f"{path} is not there")
    return -1


def _walked(path: Path, *, make: bool) -> int:
    """Return the descriptor of the last folder on the path, after checking every step."""
    ahead = list(reversed(path.parts[1:]))
    links = 0
    where = path.anchor
    here = os.open(where, _WAY)
    try:
        _look(os.fstat(here), here, where, last=not ahead)
        while ahead:
            name = ahead.pop()
            place = name if name.startswith(os.sep) else os.path.join(where, name)  # noqa: PTH118 (".." is a step, not text)
            following = _step(here, name, make=make, last=not ahead)
            if following is None:
                links += 1
                ahead += reversed(_counted(_link(here, name, place), links, path))
                continue
            os.close(here)
            here, where = following, place
            _look(os.fstat(here), here, where, last=not ahead)
    except BaseException:
        os.close(here)
        raise
    return here


def _counted(link: str, links: int, path: Path) -> tuple[str, ...]:
    """Return the parts of a link's target; raises if there were so many links that they may be circular."""
    if links > MOST_LINKS:
        raise UntrustedError(f"too many links on the way to {path}")
    return Path(link).parts


def _link(here: int, name: str, place: str) -> str:
    """Return the target of a trusted link; raises for an entry that is neither a folder nor a link."""
    status = os.lstat(name, dir_fd=here)
    if not stat.S_ISLNK(status.st_mode):
        raise NotADirectoryError(f"{place} is not a folder")
    if status.st_uid not in _owners():
        raise UntrustedError(f"{place} is a link of somebody else")
    return os.readlink(name, dir_fd=here)


def _step(here: int, name: str, *, make: bool, last: bool) -> int | None:
    """Open a folder inside an opened one; None if something else has that name."""
    way = _LIST if last else _WAY
    try:
        return os.open(name, way, dir_fd=here)
    except FileNotFoundError:
        if not make:
            raise
    except OSError as error:
        if error.errno in {errno.ENOTDIR, errno.ELOOP, getattr(errno, "EMLINK", -1)}:  # as systems say it of a link
            return None
        raise
    with suppress(FileExistsError):
        os.mkdir(name, 0o700, dir_fd=here)
    return os.open(name, way, dir_fd=here)


def _owners() -> tuple[int, int]:
    return 0, os.geteuid()


def _look(status: os.stat_result, descriptor: int, where: str, *, last: bool) -> None:
    """Refuse a folder or file that others own or can write to."""
    if status.st_uid not in _owners():
        raise UntrustedError(f"{where} belongs to somebody else")
    if stat.S_ISDIR(status.st_mode) and status.st_mode & stat.S_ISVTX and not last:
        return  # others can write in it, and can neither rename nor remove what is not theirs
    what = f"others can write {'in ' * stat.S_ISDIR(status.st_mode)}{where}"
    if status.st_mode & stat.S_IWOTH:
        raise UntrustedError(what)
    if status.st_mode & stat.S_IWGRP and not (_own_group(status.st_gid) and not _has_list(descriptor)):
        raise UntrustedError(what)


@cache
def _own_group(group: int) -> bool:
    """Return whether a group has no member but the user: it has the user's name, and is their primary group."""
    import grp
    import pwd

    try:
        user, entry = pwd.getpwuid(os.geteuid()), grp.getgrgid(group)
    except KeyError:
        return False
    return entry.gr_gid == user.pw_gid and entry.gr_name == user.pw_name and set(entry.gr_mem) <= {user.pw_name}


def _has_list(descriptor: int) -> bool:
    """Return whether an ACL may allow further users to write: the group bits are then only its upper limit."""
    if not hasattr(os, "listxattr"):
        return False
    try:
        return _ACL in os.listxattr(f"/proc/self/fd/{descriptor}")
    except OSError:
        return True


def child(folder: int, path: Path, name: str) -> tuple[str, int | None]:
    """Return a name and the folder's descriptor (if any) for ``os.open`` and the like."""
    return (name, folder) if folder >= 0 else (str(path / name), None)


def read_file(folder: int, path: Path, name: str, *, used: bool = True) -> bytes:
    """Return the content of a file in an opened folder, read from the checked descriptor; with ``used``, its time is updated.

    Raises
    ------
    UntrustedError
        If others own it or can write to it, it has a second name, or it is not a file.
    OSError
        If it does not exist, or cannot be read.
    """
    file, within = child(folder, path, name)
    descriptor = os.open(file, _FILE | getattr(os, "O_BINARY", 0), dir_fd=within)
    with os.fdopen(descriptor, "rb", buffering=0) as opened:
        if CHECKED:
            status = os.fstat(descriptor)
            if not stat.S_ISREG(status.st_mode):
                raise UntrustedError(f"{path / name} is not a file")
            if status.st_nlink > 1:
                raise UntrustedError(f"{path / name} has a second name")
            _look(status, descriptor, str(path / name), last=True)
            with suppress(OSError):
                if used:
                    os.utime(descriptor)
        return opened.read()
