"""Machine code on disk, in a folder that only the user can write.

Files are named by all that decides their content, and written by atomic rename. What is read was looked at as it was
opened, each time (`trust`). Knows neither graphs nor compilers.
"""

from __future__ import annotations

import atexit
import hashlib
import json
import os
import secrets
import shutil
import tempfile
import threading
import time
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

from tensormagic.backend.compiling.messages import Code
from tensormagic.backend.compiling.trust import UntrustedError, child, opened_folder, read_file
from tensormagic.backend.running.thread_warnings import tell_once
from tensormagic.config import config

MOST_BYTES = 512 << 20
LEFT_BEHIND = 3600.0  # seconds after which a file that was never finished is nobody's
_TOLD = "the cache of compiled code is not used"
_OURS = (".o", ".json", ".tmp")
_KEY = "own.key"


class _Temporary:
    """A private folder of this process, created when first needed, and again if it was deleted."""

    def __init__(self) -> None:
        self._path: Path | None = None
        self._owner = 0
        self._lock = threading.Lock()

    def there(self) -> list[Path]:
        """Return the folder, if this process has one."""
        path = self._path
        return [path] if path is not None and self._owner == os.getpid() and path.is_dir() else []

    def get(self) -> Path:
        """Return the folder."""
        with self._lock:
            found = self.there()
            if not found:
                found = [Path(tempfile.mkdtemp(prefix="tensormagic-"))]
                self._path, self._owner = found[0], os.getpid()
                atexit.register(self._remove, found[0], os.getpid())
        return found[0]

    @staticmethod
    def _remove(path: Path, owner: int) -> None:
        if owner == os.getpid():
            shutil.rmtree(path, ignore_errors=True)

    def renew(self) -> None:
        """Replace locks that another thread held before a fork."""
        self._lock = threading.Lock()


_temporary = _Temporary()
if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_temporary.renew)


def read(key: str, folder: Path | None = None) -> Code | None:
    """Return the code stored under ``key``, in the cache or in another folder.

    None if there is none, it is damaged, or others could have written it.
    """
    for data in _contents(f"{key}.o", folder):
        head, _, body = data.partition(b"\n")
        with suppress(ValueError, KeyError, TypeError):
            header = json.loads(head)
            if header["sha256"] == hashlib.sha256(body).hexdigest():
                return Code(str(header["symbol"]), body, float(header["seconds"]))
    return None


def write(key: str, code: Code) -> None:
    """Store ``code`` under ``key``; if there is too much, the least recently used code is deleted."""
    _keep(f"{key}.o", _content(code))


def write_for_later(key: str, code: Code) -> None:
    """The same for code that this process does not need again; failures are ignored."""
    with suppress(OSError):
        _written(config.cache_folder, f"{key}.o", _content(code))


def _content(code: Code) -> bytes:
    header = {"symbol": code.symbol, "seconds": code.seconds, "sha256": hashlib.sha256(code.data).hexdigest()}
    return json.dumps(header).encode() + b"\n" + code.data


def read_text(name: str, folder: Path | None = None) -> str:
    """Return the text of another file in the cache; empty if there is none."""
    return next(_contents(name, folder), b"").decode(errors="replace")


def write_text(name: str, text: str) -> None:
    """Keep a text beside the code."""
    _keep(name, text.encode())


def own_key() -> bytes:
    """Return the user's secret, which marks files as written by them; empty if none can be stored."""
    key = read_text(_KEY)
    if not key:
        write_text(_KEY, secrets.token_hex(32))
        key = read_text(_KEY)  # that of another process, where one was as fast
    return key.encode()


def _contents(name: str, folder: Path | None = None) -> Iterator[bytes]:
    """Yield the contents stored under a name in the folders; untrusted files are reported and skipped."""
    for path in [config.cache_folder, *_temporary.there()] if folder is None else [folder]:
        try:
            with opened_folder(path) as opened:
                yield read_file(opened, path, name)
        except UntrustedError as error:
            tell_once(f"{_TOLD}: {error}")
        except OSError:
            continue


def _keep(name: str, data: bytes) -> None:
    """Write a file into the cache folder, or if that fails into a temporary folder of this process."""
    try:
        _written(config.cache_folder, name, data)
    except OSError as error:
        tell_once(f"{_TOLD}: {error}")
        with suppress(OSError):  # no room there either: this process has the code in memory
            _written(_temporary.get(), name, data)


def _written(path: Path, name: str, data: bytes) -> None:
    with opened_folder(path, make=True) as folder:
        draft, within = child(folder, path, f"{secrets.token_hex(8)}.tmp")
        flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | getattr(os, "O_BINARY", 0) | getattr(os, "O_CLOEXEC", 0)
        handle = os.open(draft, flags, 0o600, dir_fd=within)
        try:
            with os.fdopen(handle, "wb") as file:
                file.write(data)
            os.replace(draft, child(folder, path, name)[0], src_dir_fd=within, dst_dir_fd=within)
        except BaseException:
            with suppress(OSError):
                os.unlink(draft, dir_fd=within)
            raise
        _evict(folder, path)


def _files(folder: int, path: Path) -> list[tuple[float, int, str]]:
    """Our files in an opened folder: when they were last used, their sizes, and their names."""
    found: list[tuple[float, int, str]] = []
    for name in os.listdir(folder if folder >= 0 else path):  # noqa: PTH208 (by descriptor)
        if str(name).endswith(_OURS):
            with suppress(OSError):
                file, within = child(folder, path, str(name))
                status = os.stat(file, dir_fd=within, follow_symlinks=False)
                found.append((status.st_mtime, status.st_size, str(name)))
    return sorted(found)


def _unlink(folder: int, path: Path, name: str) -> None:
    file, within = child(folder, path, name)
    with suppress(OSError):
        os.unlink(file, dir_fd=within)


def _evict(folder: int, path: Path) -> None:
    files = _files(folder, path)
    total = sum(size for _, size, name in files if name.endswith(".o"))
    old = time.time() - LEFT_BEHIND
    for used, size, name in files:
        if name.endswith(".tmp") and used < old:
            _unlink(folder, path, name)
        elif name.endswith(".o") and total > MOST_BYTES:
            _unlink(folder, path, name)
            total -= size


def kept(*, clear: bool = False) -> tuple[int, int]:
    """Return the number of our files in the cache folder and their total bytes; with ``clear`` they are deleted.

    Nothing is deleted if others can write in the folder or on the path to it: `problem` says so.
    """
    try:
        with opened_folder(config.cache_folder) as folder:
            files = _files(folder, config.cache_folder)
            for _, _, name in files if clear else ():
                _unlink(folder, config.cache_folder, name)
    except OSError:
        return 0, 0
    return len(files), sum(size for _, size, _ in files)


def problem() -> str:
    """Return why the cache folder is not used; empty if it is."""
    try:
        with opened_folder(config.cache_folder):
            return ""
    except FileNotFoundError:
        return ""
    except OSError as error:
        return str(error)
