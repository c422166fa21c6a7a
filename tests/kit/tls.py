"""A private PostgreSQL behind TCP, with TLS or without.

`certificates/` holds a server's certificate for `localhost`, valid for a hundred years, the authority that signed it
(whose key is gone) and one that did not. The packaged PostgreSQL is built without TLS: there a proxy speaks it, as
poolers and managed servers have it; one that has it (HEADRACE_TEST_POSTGRES) speaks it itself.
"""

from __future__ import annotations

import select
import shutil
import socket
import ssl
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from kit.logical import LogicalServer, logical_server

CERTIFICATES = Path(__file__).with_name("certificates")
LOCALHOST = "127.0.0.1"
ASKED = bytes.fromhex("0000000804d2162f")
"""SSLRequest, which a client sends first."""


@contextmanager
def over_tcp(*, tls: bool) -> Iterator[int]:
    """The port at which a server of its own can be reached, and there only."""
    with logical_server() as server:
        with server.connect("postgres") as db:
            own = tls and db.execute("SHOW ssl_library").fetchone() == ("OpenSSL",)
        port, options = _free_port(), ""
        if own:
            files = {name: _copied(server, f"server.{name}") for name in ("pem", "key")}
            options = f" -c ssl=on -c ssl_cert_file={files['pem']} -c ssl_key_file={files['key']}"
        server.vanish()
        folder = server.folder
        listening = f"-h {LOCALHOST} -p {port} -k {server.host}{options}"
        server.run("pg_ctl", "-w", "-l", str(folder / "tcp.log"), "-D", str(folder), "-o", listening, "start")
        with _proxy(port) if tls and not own else _as_it_is(port) as reached:
            yield reached


def _free_port() -> int:
    with socket.create_server((LOCALHOST, 0)) as taken:
        return int(taken.getsockname()[1])


def _copied(server: LogicalServer, name: str) -> Path:
    """A file that the server reads, and nobody else may: it insists on that."""
    to = server.folder / name
    shutil.copyfile(CERTIFICATES / name, to)
    to.chmod(0o600)
    server.own(to)
    return to


@contextmanager
def _as_it_is(port: int) -> Iterator[int]:
    yield port


@contextmanager
def _proxy(port: int) -> Iterator[int]:
    """Speaks TLS for a server that cannot."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(CERTIFICATES / "server.pem", CERTIFICATES / "server.key")
    with socket.create_server((LOCALHOST, 0)) as listening:

        def accept() -> None:
            with suppress(OSError):
                while True:
                    client, _ = listening.accept()
                    threading.Thread(target=_serve, args=(client, port, context), daemon=True).start()

        threading.Thread(target=accept, daemon=True).start()
        yield listening.getsockname()[1]
        listening.shutdown(socket.SHUT_RDWR)


def _serve(client: socket.socket, port: int, context: ssl.SSLContext) -> None:
    with suppress(OSError), client:  # whoever distrusts the certificate goes away
        if client.recv(len(ASKED)) != ASKED:
            return
        client.sendall(b"S")
        with context.wrap_socket(client, server_side=True) as inner, socket.create_connection((LOCALHOST, port)) as to:
            while _relayed(inner, to):
                pass


def _relayed(inner: ssl.SSLSocket, to: socket.socket) -> bool:
    """Wait for either, and send on what has come; False when nothing more will."""
    ready = [inner] if inner.pending() else select.select([inner, to], [], [])[0]
    for one, other in ((inner, to), (to, inner)):
        if one in ready:
            data = one.recv(1 << 16)
            if not data:
                return False
            other.sendall(data)
    return True
