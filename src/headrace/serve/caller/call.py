"""Has the project's server run a command, and says what it says."""

from __future__ import annotations

import json
import os
import signal
import sys
from collections.abc import Mapping

from headrace.serve.caller import address, wire
from headrace.serve.caller.ask import ask
from headrace.serve.caller.words import STARTING, Words

FILE_NAME = "headrace.toml"
FAILED, INTERRUPTED = 1, 130
SHOW_CURSOR = "\x1b[?25h"

Document = dict[str, object]


def call(args: list[str]) -> int | None:
    """Run a command by the project's server.

    Args:
        args: The words after `headrace`.

    Returns:
        Its exit status; None where this process is to run it.
    """
    words = Words(args, os.environ)
    if not words.served:
        return None
    try:
        root = words.root(os.getcwd(), FILE_NAME)
    except OSError:
        return None
    if root is None:
        return None
    tell = _silent if words.quiet else _tell
    for _ in range(3):
        connection = address.connect(root)
        if connection is None:
            if words.verb not in STARTING:
                return None
            from headrace.serve.caller import start_server

            if not start_server.start(root, tell) or (connection := address.connect(root)) is None:
                return None
        with connection:
            try:
                wire.send(connection, "POST", "/v1/commands", json.dumps(request(root, args)).encode("ascii"))
                answer = wire.Answer(connection)
                if answer.status == 200:
                    return follow(root, answer, as_json="--json" in args)
                if answer.status != 409:  # it is another project's, or knows this request no more
                    return None
                found = answer.document()
                tell(str(found.get("message", "")))
                if not found.get("ending"):  # one that somebody started for more than this
                    return None
            except OSError:  # it ended just now
                continue
    return None


def request(root: str, args: list[str]) -> Document:
    """Return a request that tells a server about a command and its surroundings."""
    from headrace import __version__

    terminals = {name: _is_terminal(name) for name in ("stdin", "stdout", "stderr")}
    width, height = _size() if any(terminals.values()) else (None, None)
    return {
        "args": args,
        "root": root,
        "identity": address.root_identity(root),
        "folder": os.getcwd(),
        "environment": dict(os.environ),
        "terminals": terminals,
        "width": width,
        "height": height,
        "encoding": getattr(sys.stdout, "encoding", None) or "utf-8",
        "version": __version__,
        "python": sys.version,
        "prefix": sys.prefix,
    }


def follow(root: str, answer: wire.Answer, *, as_json: bool) -> int | None:
    """Say what a running command says until it ends.

    The first Ctrl-C cancels the command and goes on listening to how it ends; the second leaves at once.

    Returns:
        The exit status; None where this process is to run the command.
    """
    following = _Following(root)
    former = signal.getsignal(signal.SIGINT)
    if former is not signal.SIG_IGN:  # as in what a shell runs in the background
        signal.signal(signal.SIGINT, following.interrupted)
    try:
        for name, data in answer.events():
            if name == "started":
                following.number = str(data["id"])
            elif name == "exit":
                return int(str(data["status"]))
            elif name == "local":
                return None
            elif name == "stdin":
                if not following.hand_stdin():
                    return _too_long(as_json)
            else:
                _say(name, str(data.get("text", "")))
        return _lost(as_json)
    except KeyboardInterrupt:
        return _leave(as_json)
    except BrokenPipeError:  # whoever read the output has left; the server notices that this process does, too
        _forget_output()
        return FAILED
    except OSError:
        return _lost(as_json)
    finally:
        signal.signal(signal.SIGINT, former)


class _Following:
    """A command that a server runs, and what Ctrl-C does to it.

    Args:
        root: The project folder.

    Attributes:
        number: The command's, once known.
    """

    def __init__(self, root: str) -> None:
        self.number = ""
        self._root = root
        self._patient = True

    def interrupted(self, _number: int, _frame: object) -> None:
        """Have the command cancelled; leave where that is not possible, or was done already."""
        if not self._patient or not self.number:
            raise KeyboardInterrupt
        self._patient = False
        if not _post(self._root, f"/v1/commands/{self.number}/cancel"):
            raise KeyboardInterrupt

    def hand_stdin(self) -> bool:
        """Send what comes on stdin, or cancel the command that waits for it.

        Ctrl-C leaves at once meanwhile.

        Returns:
            False where it is more than a server takes.
        """
        self._patient = False
        found = sys.stdin.buffer.read(wire.MOST_BYTES + 1)
        self._patient = True
        path, fits = f"/v1/commands/{self.number}", len(found) <= wire.MOST_BYTES
        if not fits or not _post(self._root, f"{path}/stdin", found, "application/octet-stream"):
            _post(self._root, f"{path}/cancel")
        return fits


def _say(name: str, text: str) -> None:
    stream = sys.stdout if name == "out" else sys.stderr
    try:
        stream.write(text)
    except UnicodeEncodeError:
        stream.write(text.encode(stream.encoding or "ascii", "replace").decode(stream.encoding or "ascii"))
    stream.flush()


def _forget_output() -> None:
    nowhere = os.open(os.devnull, os.O_WRONLY)
    for stream in (sys.stdout, sys.stderr):
        try:
            stream.flush()
        except BrokenPipeError:
            os.dup2(nowhere, stream.fileno())


def _post(root: str, path: str, body: bytes = b"{}", kind: str = "application/json") -> bool:
    """Send something about a running command; return whether the server took it."""
    try:
        found = ask(root, "POST", path, body, kind)
    except OSError:
        return False
    return found is not None and found[0] == 200


def _lost(as_json: bool) -> int:
    """Say that the server ended in the middle of the command."""
    if _is_terminal("stderr"):
        sys.stderr.write(SHOW_CURSOR)
    from headrace.errors import EnvironmentFault

    error = EnvironmentFault(
        "SERVER_LOST",
        "The server ended before it had answered.",
        hint="Run it again: whatever was published is whole, and nothing else happened. Its log is "
        f".headrace/serve/{address.LOG} in the project folder.",
        retryable=True,
    )
    return _report(error.as_dict(), as_json)


def _too_long(as_json: bool) -> int:
    """Say that stdin is longer than what a server takes."""
    from headrace.errors import UserError

    error = UserError(
        "INPUT_TOO_LONG",
        f"What comes on stdin is longer than {wire.MOST_BYTES // 2**20} MiB, the most that the project's server takes.",
        hint="Run the command with --no-serve, or in parts.",
    )
    return _report(error.as_dict(), as_json)


def _report(error: Mapping[str, object], as_json: bool) -> int:
    if as_json:
        sys.stderr.write(json.dumps({"error": error}, ensure_ascii=False) + "\n")
    else:
        sys.stderr.write(f"Error: {error['message']}  [{error['code']}]\nHint: {error['hint']}\n")
    return FAILED


def _leave(as_json: bool) -> int:
    """Leave without waiting for the server, which cancels the command when the connection ends."""
    if _is_terminal("stderr"):
        sys.stderr.write(SHOW_CURSOR)
    message = "Interrupted. Nothing of what was under way has been published."
    document = {"error": {"code": "INTERRUPTED", "message": message, "retryable": True}}
    sys.stderr.write((json.dumps(document) if as_json else message) + "\n")
    return INTERRUPTED


def _is_terminal(name: str) -> bool:
    stream = getattr(sys, name)
    try:
        return bool(stream is not None and stream.isatty())
    except ValueError:
        return False


def _size() -> tuple[int | None, int | None]:
    for number in (0, 1, 2):
        try:
            found = os.get_terminal_size(number)
        except OSError:
            continue
        return found.columns, found.lines
    return None, None


def _tell(line: str) -> None:
    sys.stderr.write(line + "\n")
    sys.stderr.flush()


def _silent(_line: str) -> None:
    """Say nothing."""
