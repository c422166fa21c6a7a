"""Owners of leases are told apart by process, forked ones too."""

from __future__ import annotations

import os

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
