"""Finds the project around a folder, and whether it may be used without being named.

Settings and functions of a project are code that runs as whoever opens it. In a folder that others write to, such as
`/tmp`, anybody could leave a project for those who work below it.
"""

from __future__ import annotations

import os

FUNCTIONS = "functions.py"
"""File of a project that is imported."""


def around(folder: str, file: str) -> str | None:
    """Return the nearest folder, from one upwards, that is a project; None when there is none.

    Args:
        folder: Where to begin.
        file: Name of the file that a project has.
    """
    here = os.path.realpath(folder)
    while not os.path.isfile(os.path.join(here, file)):
        above = os.path.dirname(here)
        if above == here:
            return None
        here = above
    return here


def of_another_user(root: str, file: str) -> tuple[str, int] | None:
    """Return what of a project is of neither this user nor root, and whose; None for nothing.

    Args:
        root: The project folder.
        file: Name of the file that a project has.
    """
    for path in (root, os.path.join(root, file), os.path.join(root, FUNCTIONS)):
        for look in (os.lstat, os.stat):  # a link of another user's may lead to a file of this one's
            try:
                owner = look(path).st_uid
            except OSError:  # there are no functions, or it cannot be read, which whoever opens it is told
                continue
            if owner not in (os.geteuid(), 0):
                return path, owner
    return None
