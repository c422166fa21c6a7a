"""Finds where a project's server listens: its socket, and the file that names it.

A Unix socket's path holds about a hundred bytes, and some file systems hold no sockets: then the socket is in a short
folder of this user's, and the project's file says where.
"""

from __future__ import annotations

import json
import os
import socket
import struct

SHORT_ENOUGH = 100
"""Bytes of a path that every system takes for a socket; Linux has 107, macOS 103."""

ADDRESS, SOCKET, LOCK, LOG = "server.json", "socket", "lock", "serve.log"


def serve_folder(root: str) -> str:
    """Return the folder of a project that is about its server."""
    return os.path.join(root, ".headrace", "serve")


def make_private(folder: str) -> None:
    """Make a folder that only its owner may enter.

    Raises:
        PermissionError: It is somebody else's.
    """
    os.makedirs(os.path.dirname(folder), exist_ok=True)
    try:
        os.mkdir(folder, 0o700)
    except FileExistsError:
        found = os.lstat(folder)
        if found.st_uid != os.getuid():
            raise PermissionError(f"{folder} belongs to another user") from None
        os.chmod(folder, 0o700)


def socket_path(root: str, *, short: bool = False) -> str:
    """Return a path for the socket of a project's server, in a private folder that exists.

    Args:
        root: The project folder.
        short: Whether the project's own folder cannot hold it.
    """
    path = os.path.join(serve_folder(root), SOCKET)
    if not short and len(os.fsencode(path)) <= SHORT_ENOUGH:
        return path
    import hashlib
    import tempfile

    runtime = os.environ.get("XDG_RUNTIME_DIR", "")
    if not runtime or len(runtime) > 40 or not os.access(runtime, os.W_OK | os.X_OK):
        runtime = "/tmp" if os.access("/tmp", os.W_OK | os.X_OK) else tempfile.gettempdir()
    folder = os.path.join(runtime, f"headrace-{os.getuid()}")
    make_private(folder)
    return os.path.join(folder, hashlib.sha256(os.fsencode(root)).hexdigest()[:16])


def write_address(root: str, document: dict[str, object]) -> None:
    """Say in the project folder where its server is."""
    path = os.path.join(serve_folder(root), ADDRESS)
    temporary = f"{path}.{os.getpid()}"
    with open(temporary, "w", encoding="utf-8") as file:
        json.dump(document, file)
    os.replace(temporary, path)


def read_address(root: str) -> dict[str, object] | None:
    """Return what the project folder says about its server; None when it says nothing."""
    try:
        with open(os.path.join(serve_folder(root), ADDRESS), encoding="utf-8") as file:
            found = json.load(file)
    except (OSError, ValueError):
        return None
    return found if isinstance(found, dict) and isinstance(found.get("socket"), str) else None


def connect(root: str) -> socket.socket | None:
    """Return a connection to the project's server; None when none of this user's answers."""
    found = read_address(root)
    if found is None:
        return None
    connection = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    try:
        connection.connect(str(found["socket"]))
        if peer_uid(connection) == os.getuid():
            return connection
    except OSError:
        pass
    connection.close()
    return None


def peer_uid(connection: socket.socket) -> int | None:
    """Return the user at the other end of a Unix socket; None where the system does not say."""
    if hasattr(socket, "SO_PEERCRED"):
        given = connection.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, struct.calcsize("3i"))
        return int(struct.unpack("3i", given)[1])
    try:  # macOS: struct xucred by LOCAL_PEERCRED
        given = connection.getsockopt(0, 1, 76)
        return int(struct.unpack("2I", given[:8])[1])
    except OSError:
        return None


def root_identity(root: str) -> list[int]:
    """Return numbers that a folder keeps when it is moved, and that a copy of it does not have."""
    found = os.stat(root)
    return [found.st_dev, found.st_ino]
