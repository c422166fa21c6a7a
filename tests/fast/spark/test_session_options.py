import re
from dataclasses import replace
from pathlib import Path

import pytest

from headrace.config import default_settings
from headrace.errors import EnvironmentFault, UserError
from headrace.spark.session import catalog_options, check_session, jdbc_options, session_options

JARS = (Path("/jars/a.jar"), Path("/jars/b.jar"))


@pytest.fixture
def settings(tmp_path):
    return default_settings(tmp_path)


@pytest.mark.parametrize(
    ("url", "expected"),
    [
        (
            "sqlite:////p/headrace.db",
            {"uri": "jdbc:sqlite:/p/headrace.db?busy_timeout=30000&journal_mode=WAL&synchronous=NORMAL"},
        ),
        (
            "postgresql://ann:s%40crt@db.example:5433/lake?sslmode=require&application_name=x",
            {
                "uri": "jdbc:postgresql://db.example:5433/lake?sslmode=require",
                "jdbc.user": "ann",
                "jdbc.password": "s@crt",
            },
        ),
        ("postgresql+psycopg://localhost/lake", {"uri": "jdbc:postgresql://localhost:5432/lake"}),
        ("postgresql:///lake?host=db&user=ann", {"uri": "jdbc:postgresql://db:5432/lake", "jdbc.user": "ann"}),
    ],
)
def test_the_jdbc_url_says_what_the_catalog_url_says(url, expected):
    assert jdbc_options(url) == expected


@pytest.mark.parametrize("url", ["mysql://h/d", "postgresql:///lake?host=/var/run/postgresql"])
def test_a_database_spark_cannot_reach_is_refused(url):
    with pytest.raises(UserError, match="CONFIG_INVALID"):
        jdbc_options(url)


def test_both_catalogs_are_the_same_but_for_the_name(settings):
    options = catalog_options(settings)
    lake = {k.replace(".lake", "."): v for k, v in options.items() if ".lake" in k}
    staging = {k.replace(".staging", "."): v for k, v in options.items() if ".staging" in k}
    assert lake == staging
    assert options["spark.sql.catalog.lake.cache-enabled"] == "false"


@pytest.mark.parametrize("secret", ["adls.auth.shared-key.account.key", "gcs.encryption-key", "s3.sse.key"])
def test_spark_shows_no_key_of_an_object_store(settings, secret):
    options = session_options(replace(settings, storage={secret: "hush"}), JARS)
    assert re.search(options["spark.redaction.regex"], f"spark.sql.catalog.lake.{secret}")
    assert not re.search(options["spark.redaction.regex"], "spark.sql.catalog.lake.s3.endpoint")
    assert "spark.redaction.regex" not in session_options(settings, JARS)


def test_users_options_win(settings):
    mine = {"spark.driver.memory": "9g", "spark.sql.session.timeZone": "Asia/Tokyo"}
    options = session_options(replace(settings, spark_options=mine), JARS)
    assert options.items() >= mine.items()


def test_the_heap_begins_whole_unless_the_user_says_how_large_it_may_be(settings, monkeypatch):
    def java(**theirs):
        return session_options(replace(settings, spark_options=theirs), JARS)["spark.driver.defaultJavaOptions"]

    assert "-Xms2g" in java()
    assert "-Xms" not in java(**{"spark.driver.memory": "512m"})
    monkeypatch.setenv("PYSPARK_SUBMIT_ARGS", "--driver-memory 1g pyspark-shell")
    assert "-Xms" not in java()


def test_jars_reach_the_driver_of_a_local_session_and_the_executors_of_a_cluster(settings):
    local = session_options(settings, JARS)
    assert local["spark.driver.extraClassPath"] == "/jars/a.jar:/jars/b.jar"
    assert "spark.jars" not in local
    cluster = session_options(replace(settings, spark_master="spark://host:7077"), JARS)
    assert cluster["spark.jars"] == "/jars/a.jar,/jars/b.jar"
    assert "spark.driver.memory" not in cluster


def test_jars_of_the_user_come_beside_ours(settings):
    mine = {"spark.jars": "/mine/c.jar,/jars/b.jar"}
    options = session_options(replace(settings, spark_master="spark://host:7077", spark_options=mine), JARS)
    assert options["spark.jars"] == "/mine/c.jar,/jars/b.jar,/jars/a.jar"
    local = session_options(replace(settings, spark_options={"spark.driver.extraClassPath": "/mine/c.jar"}), JARS)
    assert local["spark.driver.extraClassPath"] == "/mine/c.jar:/jars/a.jar:/jars/b.jar"


def test_storage_is_known_to_both_catalogs_and_its_secrets_are_shown_to_nobody(settings):
    storage = {"s3.endpoint": "http://store:9000", "s3.secret-access-key": "hush"}
    options = catalog_options(replace(settings, warehouse="s3://lake/shop", storage=storage))
    for catalog in ("lake", "staging"):
        prefix = f"spark.sql.catalog.{catalog}"
        assert options[f"{prefix}.io-impl"] == "org.apache.iceberg.aws.s3.S3FileIO"
        assert options[f"{prefix}.s3.endpoint"] == "http://store:9000"
        assert options[f"{prefix}.s3.secret-access-key"] == "hush"
    assert "hush" not in repr(replace(settings, storage=storage))
    wanted = replace(settings, warehouse="s3://lake/shop", storage=storage)
    with pytest.raises(EnvironmentFault, match="SESSION_NOT_CONFIGURED") as caught:
        check_session(Bare(), wanted)
    assert "s3.endpoint" in str(caught.value)
    assert "hush" not in str(caught.value)


class Bare:
    """A session without any option."""

    version = "4.1.0"
    conf: dict[str, str] = {}  # noqa: RUF012
