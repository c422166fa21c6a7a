"""Deletes the folder of a table whose files cannot be found by its metadata any more."""

from __future__ import annotations

import shutil

from headrace.lake.files.file_access import file_system
from headrace.lake.metadata import local_path


def delete_folder(location: str) -> None:
    """Delete a folder with all that is in it; one that is not there is fine.

    Args:
        location: A path, or a URL.

    Raises:
        OSError: It cannot be deleted.
    """
    path = local_path(location)
    try:
        if path is not None:
            shutil.rmtree(path)
        else:
            files, there = file_system(location)
            files.delete_dir(there)
    except FileNotFoundError:
        return
