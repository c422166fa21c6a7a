"""Metadata of tables that are written for hours: read once, few files of each kept, what they share kept once."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from headrace.errors import EnvironmentFault
from headrace.lake.metadata_cache import Remembered


def written(folder: Path, version: int, uuid: str = "u") -> str:
    """A metadata file that names as many snapshots as its number says."""
    file = folder / f"{version}.metadata.json"
    folder.mkdir(exist_ok=True)
    snapshots = [
        {"snapshot-id": n, "timestamp-ms": n, "summary": {"operation": "append"}} for n in range(1, version + 1)
    ]
    data = {"format-version": 3, "table-uuid": uuid, "location": str(folder), "current-snapshot-id": version}
    file.write_text(json.dumps(data | {"schema": {"fields": []}, "snapshots": snapshots}))
    return str(file)


def test_a_file_is_read_once_and_the_newest_few_of_a_table_are_kept(tmp_path: Path) -> None:
    metadata = Remembered(each=2)
    files = [written(tmp_path / "t", version) for version in range(1, 5)]
    other = written(tmp_path / "other", 1)
    first, apart = metadata(files[0]), metadata(other)
    second = metadata(files[1])
    assert metadata(files[0]) is first
    metadata(files[2])  # instead of the second, which nobody has asked for since
    for file in (*files, other):
        Path(file).unlink()
    assert metadata(files[0]) is first
    assert metadata(other) is apart
    assert second.current_snapshot_id == 2
    with pytest.raises(EnvironmentFault, match="METADATA_UNREADABLE"):
        metadata(files[1])
    with pytest.raises(EnvironmentFault, match="METADATA_UNREADABLE"):
        metadata(files[3])
    assert metadata(files[2]).current_snapshot_id == 3


def test_so_many_tables_are_kept_and_no_more(tmp_path: Path) -> None:
    metadata = Remembered(most=2)
    files = [written(tmp_path / name, 1) for name in "abc"]
    for file in files:
        metadata(file)
        Path(file).unlink()
    for file in files[1:]:
        assert metadata(file).current_snapshot_id == 1
    with pytest.raises(EnvironmentFault, match="METADATA_UNREADABLE"):
        metadata(files[0])


def test_snapshots_are_shared_within_a_table_and_not_with_one_in_its_place(tmp_path: Path) -> None:
    metadata = Remembered()
    before, after = (metadata(written(tmp_path / "t", version)) for version in (2, 3))
    assert [after.snapshots[n] is before.snapshots[n] for n in (1, 2)] == [True, True]
    assert set(after.snapshots) == {1, 2, 3}
    assert set(before.snapshots) == {1, 2}
    again = metadata(written(tmp_path / "t", 4, uuid="another"))
    assert again.snapshots[1] is not after.snapshots[1]


def test_a_name_that_is_used_again_is_read_again(tmp_path: Path) -> None:
    """As Hadoop's catalogs do for a table that is made in the place of a dropped one."""
    metadata = Remembered()
    file = Path(written(tmp_path / "t", 1)).rename(tmp_path / "t" / "v1.metadata.json")
    first = metadata(str(file))
    assert metadata(str(file)).snapshots[1] is first.snapshots[1]
    Path(written(tmp_path / "t", 1, uuid="another")).rename(file)
    assert metadata(str(file)).uuid == "another"
