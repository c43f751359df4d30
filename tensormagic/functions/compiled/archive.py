"""Files of named parts that are known to be unchanged: a zip archive whose comment is the checksum of everything before it.

A part ``signature`` tells who wrote it: it is made with a secret of the user, so that a file from elsewhere is
distinguished from one's own. Knows nothing of the contents of the parts.
"""

from __future__ import annotations

import errno
import hashlib
import hmac
import io
import os
import secrets
import zipfile
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path

from tensormagic.backend.compiling.cache import own_key
from tensormagic.backend.compiling.trust import UntrustedError, opened_folder, read_file
from tensormagic.ir.errors import FormatError

FIRST = "tensormagic.json"
SIGNATURE = "signature"
_DATE = (1980, 1, 1, 0, 0, 0)  # a fixed date, so that equal parts give equal files
_SUM = 64  # characters of a checksum
_NAME = slice(30, 30 + len(FIRST))  # the place of the first part's name in a zip archive


def packed(parts: Mapping[str, bytes]) -> bytes:
    """Return a file of these parts, the first of which is ``tensormagic.json``; signed if the user has a secret."""
    key = own_key()
    signed = {**parts, SIGNATURE: _signature(parts, key)} if key else parts
    stream = io.BytesIO()
    with zipfile.ZipFile(stream, "w", zipfile.ZIP_STORED) as archive:
        for name, data in signed.items():
            archive.writestr(zipfile.ZipInfo(name, _DATE), data)
        archive.comment = bytes(_SUM)
    body = stream.getvalue()[:-_SUM]
    return body + hashlib.sha256(body).hexdigest().encode()


def unpacked(data: bytes) -> dict[str, bytes]:
    """Return the parts of a file.

    Raises
    ------
    FormatError
        If it is no such file, or was altered.
    """
    if not data.startswith(b"PK\x03\x04") or data[_NAME] != FIRST.encode():
        raise FormatError("this is not a file of a compiled function", "Compiled.save writes such files.")
    body, told = data[:-_SUM], data[-_SUM:]
    if hashlib.sha256(body).hexdigest().encode() != told:
        raise FormatError(
            "the file was changed: its checksum does not match", "Copy it again, or save the function again."
        )
    try:
        with zipfile.ZipFile(io.BytesIO(data)) as archive:
            entries = archive.infolist()
            if any(e.compress_type != zipfile.ZIP_STORED for e in entries) or len({e.filename for e in entries}) < len(
                entries
            ):
                raise FormatError("the file has parts that no version writes")
            return {e.filename: archive.read(e) for e in entries}
    except (zipfile.BadZipFile, OSError, RuntimeError, ValueError) as error:
        raise FormatError(f"the file has parts that cannot be read: {error}") from None


def is_own(parts: Mapping[str, bytes]) -> bool:
    """Return whether this user has written the file: its signature is of the user's own secret."""
    signature, key = parts.get(SIGNATURE), own_key()
    return bool(signature and key) and hmac.compare_digest(signature or b"", _signature(parts, key))


def _signature(parts: Mapping[str, bytes], key: bytes) -> bytes:
    listed = "\n".join(
        f"{hashlib.sha256(data).hexdigest()} {name}" for name, data in parts.items() if name != SIGNATURE
    )
    return hmac.new(key, listed.encode(), hashlib.sha256).hexdigest().encode()


def write(path: Path, data: bytes) -> None:
    """Replace a file atomically."""
    if not path.parent.is_dir():
        raise FileNotFoundError(errno.ENOENT, os.strerror(errno.ENOENT), str(path.parent))
    draft = path.with_name(f".{path.name}.{secrets.token_hex(4)}.tmp")
    try:
        draft.write_bytes(data)
        draft.replace(path)
    except BaseException:
        with suppress(OSError):
            draft.unlink()
        raise


def read(path: Path) -> tuple[bytes, str]:
    """Return the content of a file, and why others could have written it (empty if they could not)."""
    place = Path(os.path.realpath(path))
    try:
        with opened_folder(place.parent) as folder:
            return read_file(folder, place.parent, place.name, used=False), ""
    except UntrustedError as error:
        return path.read_bytes(), str(error)
    except OSError:
        return path.read_bytes(), f"{path} cannot be looked at"
