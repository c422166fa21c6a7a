"""Owners of leases are told apart by process, forked ones too."""

from __future__ import annotations

import os
import socket
import subprocess
import sys

import pytest

from headrace.refresh.held_leases import is_out_of_sight, is_own, new_owner, owner_is_dead


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


def elsewhere(code: str) -> str:
    """What a program prints that runs in a PID namespace of its own, as in a container, on a host of the same name."""
    apart = ["unshare", "--user", "--map-root-user", "--pid", "--fork", sys.executable, "-c", code]
    try:
        return subprocess.run(apart, capture_output=True, text=True, check=True).stdout.strip()
    except (OSError, subprocess.CalledProcessError):
        pytest.skip("namespaces cannot be made here")


TELL = "from headrace.refresh.held_leases import new_owner, owner_is_dead, is_out_of_sight"


def test_a_process_of_another_container_is_never_taken_for_dead() -> None:
    other = elsewhere(f"{TELL}; print(new_owner())")
    assert not owner_is_dead(other)
    assert is_out_of_sight(other)
    own = new_owner()
    gone = own.replace(f":{os.getpid()}:", ":999999999:")
    assert (owner_is_dead(gone), is_out_of_sight(gone)) == (True, False)
    assert elsewhere(f"{TELL}; print([f(o) for o in {(own, gone)} for f in (owner_is_dead, is_out_of_sight)])") == str(
        [False, True] * 2
    )
    assert not is_out_of_sight(own)


def test_owners_that_say_nothing_of_their_place_are_never_taken_for_dead(monkeypatch: pytest.MonkeyPatch) -> None:
    former = f"{socket.gethostname()}:999999999:0123abcd:0123abcd"
    assert (owner_is_dead(former), is_out_of_sight(former)) == (False, True)
    assert not is_out_of_sight("another-host:999999999:0123abcd:0123abcd")
    monkeypatch.setattr("headrace.refresh.held_leases._place", lambda: "")  # no /proc
    nowhere = new_owner().replace(f":{os.getpid()}:", ":999999999:")
    assert (owner_is_dead(nowhere), is_out_of_sight(nowhere)) == (False, True)
    assert not is_out_of_sight(new_owner())
