"""Small files beside spooled rows that say which of them are whole (`ledger.py`)."""

from __future__ import annotations

import json
import os
from collections.abc import Mapping
from typing import Any

from headrace.sources.spool_faults import writing


class CompletionMarkers:
    """The notes of one landing, and those of others of the same source.

    Args:
        files: The file system, as Arrow has it.
        home: Where the source's landings have their folders.
        path: This landing's folder.
    """

    def __init__(self, files: Any, home: str, path: str) -> None:
        self._files = files
        self._home = home
        self._path = path

    def write(self, name: str, value: Mapping[str, Any]) -> None:
        """Write a marker atomically: after a crash it is complete or absent.

        Args:
            name: Its file below the folder.
            value: What it says, as JSON.
        """
        path = f"{self._path}/{name}"
        with writing(self._path):
            self._files.create_dir(path.rpartition("/")[0], recursive=True)
            with self._files.open_output_stream(f"{path}.new") as stream:
                stream.write(json.dumps(value).encode())
            self._files.move(f"{path}.new", path)

    def read(self, path: str) -> dict[str, Any] | None:
        """Return the value of a marker, or None where there is none."""
        try:
            with self._files.open_input_stream(path) as stream:
                found: dict[str, Any] = json.loads(stream.read())
                return found
        except FileNotFoundError:
            return None

    def others(self) -> list[str]:
        """Return the folders of the source's other landings."""
        return [folder for folder in self._inside(self._home) if folder != self._path]

    def listed(self, folder: str) -> list[str]:
        """Return the notes in a folder."""
        return [path for path in self._inside(folder) if path.endswith(".json")]

    def there(self, path: str) -> bool:
        """Return whether a file exists."""
        from pyarrow import fs

        return bool(self._files.get_file_info(path).type != fs.FileType.NotFound)

    def settle(self, file: str) -> None:
        """Sync a file to disk before it is marked complete; object stores need no sync."""
        from pyarrow import fs

        if isinstance(self._files, fs.LocalFileSystem):
            with writing(self._path), open(f"{self._path}/{file}", "rb") as written:
                os.fsync(written.fileno())

    def take(self, path: str, file: str) -> None:
        """Move a file of another landing into this one's folder.

        Args:
            path: The file.
            file: Its new name below the folder.
        """
        with writing(self._path):
            self._files.create_dir(f"{self._path}/{file}".rpartition("/")[0], recursive=True)
            self._files.move(path, f"{self._path}/{file}")

    def _inside(self, folder: str) -> list[str]:
        from pyarrow import fs

        return [str(f.path) for f in self._files.get_file_info(fs.FileSelector(folder, allow_not_found=True))]
