"""Scratch folders go when the process that has them is gone, and not before."""

from __future__ import annotations

import os
import subprocess
import sys
import threading
from pathlib import Path

import pytest
from kit.waiting import until

from headrace.spark.starting.scratch_folder import scratch_folder, sweep


@pytest.fixture
def base(tmp_path: Path) -> Path:
    return tmp_path / "scratch"


def sleeper(base: Path) -> tuple[Path, subprocess.Popen[bytes]]:
    """A process with a scratch folder in which there is something."""
    with scratch_folder(base) as made:
        assert made is not None
        folder, lock = made
        (folder / "blockmgr").mkdir()
        (folder / "blockmgr" / "shuffle").write_bytes(b"rows")
        command = ["sh", "-c", f"exec {sys.executable} -c 'import time; time.sleep(60)'"]  # as Spark's scripts do
        return folder, subprocess.Popen(command, pass_fds=(lock,))


def test_a_folder_stays_for_as_long_as_its_process_lives(base: Path) -> None:
    first, process = sleeper(base)
    second, other = sleeper(base)
    try:
        sweep(base)
        assert first.exists()
        process.kill()
        process.wait()
        with scratch_folder(base):  # the next start sweeps
            until(lambda: not first.exists())
        assert second.exists()
        assert (second / "blockmgr" / "shuffle").exists()
    finally:
        for each in (process, other):
            each.kill()
            each.wait()
    sweep(base)
    assert not any(base.iterdir())


def test_nobody_elses_folder_is_used(base: Path, tmp_path: Path) -> None:
    base.mkdir(mode=0o755)
    base.chmod(0o777)
    with scratch_folder(base) as made:
        assert made is None
    base.rmdir()
    base.symlink_to(tmp_path)
    with scratch_folder(base) as made:
        assert made is None
    base.unlink()
    base.write_text("a file")
    with scratch_folder(base) as made:
        assert made is None


def test_many_that_start_and_sweep_at_once_keep_their_folders(base: Path) -> None:
    lost: list[Path] = []

    def start() -> None:
        for _ in range(30):
            with scratch_folder(base) as made:
                assert made is not None
                sweep(base)
                if not (made[0].exists() and os.fstat(made[1]).st_nlink):
                    lost.append(made[0])

    threads = [threading.Thread(target=start) for _ in range(6)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not lost
