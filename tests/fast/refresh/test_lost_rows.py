"""A refresh whose rows were lost is computed again, so many times, and nothing else is."""

from __future__ import annotations

import pytest

from headrace.errors import EnvironmentFault, HeadraceError
from headrace.refresh.groups.lost_rows import ATTEMPTS, LOST, computed_again


@pytest.mark.parametrize(
    ("fails", "code", "computed"),
    [(0, LOST, 1), (ATTEMPTS - 1, LOST, ATTEMPTS), (ATTEMPTS, LOST, ATTEMPTS), (1, "DISK_FULL", 1)],
)
def test_it_is_computed_again_until_it_succeeds(fails: int, code: str, computed: int) -> None:
    begun, told = list[int](), list[HeadraceError]()

    def compute() -> str:
        begun.append(len(told))
        if len(begun) <= fails:
            raise EnvironmentFault(code, "It was made to fail.", retryable=True)
        return "done"

    if fails < ATTEMPTS and code == LOST:
        assert computed_again(compute, told.append) == "done"
    else:
        with pytest.raises(EnvironmentFault, match=code):
            computed_again(compute, told.append)
    assert begun == list(range(computed))  # put back before each new attempt
