"""The section [storage]: what it takes, and what of it nobody sees."""

from __future__ import annotations

from pathlib import Path

import pytest

from headrace import config
from headrace.errors import UserError
from headrace.lake.files.file_access import properties_at, reach_by
from headrace.lakes.storage_settings import warehouses


def project(folder: Path, section: str) -> Path:
    text = f'[headrace]\nwarehouse = "s3://lake/shop"\n[storage]\n{section}\n'
    (folder / "headrace.toml").write_text(text)
    return folder


def test_properties_are_read_as_toml_writes_them(tmp_path: Path) -> None:
    section = '"s3.endpoint" = "http://h:9000"\ns3.path-style-access = true\n"s3.secret-access-key" = "env:KEY"'
    settings = config.load(project(tmp_path, section), {"KEY": "hush"})
    assert settings.storage == {
        "s3.endpoint": "http://h:9000",
        "s3.path-style-access": "true",
        "s3.secret-access-key": "hush",
    }
    assert "hush" not in repr(settings)


@pytest.mark.parametrize(
    ("section", "says"),
    [
        ('"s3.secret-access-key" = "hush"', "env:NAME"),
        ('"adls.sas-token.account" = "hush"', "env:NAME"),
        ('"adls.auth.shared-key.account.key" = "hush"', "env:NAME"),
        ('"adls.connection-string.account" = "hush"', "env:NAME"),
        ('"gcs.encryption-key" = "hush"', "env:NAME"),
        ('"gcs.decryption-key" = "hush"', "env:NAME"),
        ('"s3.sse.type" = "custom"\n"s3.sse.key" = "hush"', "env:NAME"),
        ('"s3.secret-access-key" = "env:NOWHERE"', "NOWHERE"),
        ('"s3 endpoint" = "x"', "s3 endpoint"),
        ('"s3.endpoint" = ["x"]', "s3.endpoint"),
    ],
)
def test_what_is_no_property_is_refused(tmp_path: Path, section: str, says: str) -> None:
    with pytest.raises(UserError, match="CONFIG_INVALID") as caught:
        config.load(project(tmp_path, section), {})
    assert says in str(caught.value)
    assert "hush" not in str(caught.value)


def test_the_name_of_a_key_is_no_secret(tmp_path: Path) -> None:
    section = '"s3.sse.type" = "kms"\n"s3.sse.key" = "arn:aws:kms:eu:1:key/2"'
    assert config.load(project(tmp_path, section), {}).storage["s3.sse.key"] == "arn:aws:kms:eu:1:key/2"


def test_a_file_is_reached_as_the_warehouse_that_it_lies_in() -> None:
    options = {
        "spark.sql.catalog.lake.s3.endpoint": "http://a",
        "spark.sql.catalog.other": "org.apache.iceberg.spark.SparkCatalog",
        "spark.sql.catalog.other.warehouse": "s3://lake/shop/other",
        "spark.sql.catalog.other.s3.endpoint": "http://b",
    }
    found = warehouses("s3://lake/shop", {"s3.region": "x"}, options)
    for warehouse, properties in found.items():
        reach_by(warehouse, properties)
    assert properties_at("s3://lake/shop/t/f.json")["s3.endpoint"] == "http://a"
    assert properties_at("s3://lake/shop/t/f.json")["s3.region"] == "x"
    assert properties_at("s3://lake/shop/other/t/f.json")["s3.endpoint"] == "http://b"
    assert properties_at("s3://lake/elsewhere/f.json")["s3.endpoint"] == "http://a"
    assert "s3.endpoint" not in properties_at("gs://lake/shop/f.json")
