"""Owners of leases are told apart by process, forked ones too."""

from __future__ import annotations

import os
import subprocess
import sys

import pytest

from headrace.refresh.held_leases import is_own, new_owner, owner_is_dead


def test_a_forked_process_owns_its_leases_alone() -> None:
    read, write = os.pipe()
    child = os.fork()
    if not child:
        os.write(write, new_owner().encode())
        os._exit(0)
    os.close(write)
    with os.fdopen(read) as told:
        owner = told.read()
    os.waitpid(child, 0)
    assert owner.split(":")[1] == str(child)
    assert not is_own(owner)
    assert owner_is_dead(owner)
    assert is_own(new_owner())


def test_a_former_process_of_the_same_number_is_dead(monkeypatch: pytest.MonkeyPatch) -> None:
    """In a container that is restarted, host and number of the process are what they were."""
    code = "import os; os.getpid = lambda: %d; from headrace.refresh import held_leases; print(held_leases.new_owner())"
    former = subprocess.run([sys.executable, "-c", code % os.getpid()], capture_output=True, text=True, check=True)
    owner, own = former.stdout.strip(), new_owner()
    assert owner.split(":")[:2] == own.split(":")[:2]
    assert owner_is_dead(owner)
    assert not is_own(owner)
    assert not owner_is_dead(own)
    monkeypatch.setattr("socket.gethostname", lambda: "another-host")
    assert not owner_is_dead(owner)
