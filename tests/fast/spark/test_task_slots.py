"""Task slots of Spark on one machine."""

from __future__ import annotations

from pathlib import Path

import pytest

from headrace.spark.starting.task_slots import available_cores, with_spare_slots


def test_all_cores_get_slots_to_spare_and_as_many_tasks_as_before():
    cores = available_cores()
    master, options = with_spare_slots("local[*]")
    assert master == f"local[{cores + max(1, cores // 2)}]"
    assert options == {"spark.default.parallelism": str(cores)}


@pytest.mark.parametrize("master", ["local", "local[2]", "local[*, 3]", "spark://host:7077", "yarn"])
def test_who_names_a_number_or_a_cluster_gets_that(master: str):
    assert with_spare_slots(master) == (master, {})


@pytest.mark.parametrize(
    ("files", "cores"),
    [
        ({"cpu.max": "150000 100000\n"}, 2),
        ({"cpu.max": "50000 100000\n"}, 1),
        ({"cpu/cpu.cfs_quota_us": "100000\n", "cpu/cpu.cfs_period_us": "100000\n"}, 1),
    ],
)
def test_a_container_may_use_fewer_cores_than_the_machine_has(tmp_path: Path, files: dict[str, str], cores: int):
    for name, text in files.items():
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_text(text)
    assert available_cores(tmp_path) == min(cores, available_cores(tmp_path / "none"))


def test_no_limit_leaves_the_cores_of_the_machine(tmp_path: Path):
    (tmp_path / "cpu.max").write_text("max 100000\n")
    assert available_cores(tmp_path) == available_cores(tmp_path / "none") >= 1
