import hashlib
import stat
import threading
from dataclasses import replace

import pytest

from headrace.config import default_settings
from headrace.errors import EnvironmentFault
from headrace.events import Events, Notice
from headrace.spark import jars
from headrace.spark.jars import Jar, ensure, missing, verify

CONTENT = b"not really a jar\n"
FAKE = Jar("org.example", "thing", "1.0", hashlib.sha256(CONTENT).hexdigest())

FETCHES = """#!/bin/sh
if [ "$1" = "-version" ]; then echo 'openjdk version "17.0.1"' >&2; exit 0; fi
echo run >> {log}
for a in "$@"; do last="$a"; done
mkdir -p "$(dirname "$last")"
printf 'not really a jar\\n' > "$(dirname "$last")/thing-1.0.jar"
"""
OFFLINE = """#!/bin/sh
if [ "$1" = "-version" ]; then echo 'openjdk version "17.0.1"' >&2; exit 0; fi
echo ':: UNRESOLVED DEPENDENCIES ::'
echo 'java.net.UnknownHostException: repo'
exit 1
"""


@pytest.fixture
def settings(tmp_path, monkeypatch):
    """A project without jars, and a pinned list of one fake jar."""
    monkeypatch.setattr(jars, "JARS", (FAKE,))
    return replace(default_settings(tmp_path), jars_dir=str(tmp_path / "jars"))


def use_java(tmp_path, monkeypatch, script):
    java = tmp_path / "java_home" / "bin" / "java"
    java.parent.mkdir(parents=True)
    java.write_text(script.format(log=tmp_path / "log"))
    java.chmod(java.stat().st_mode | stat.S_IXUSR)
    monkeypatch.setenv("JAVA_HOME", str(java.parent.parent))


def test_a_missing_jar_is_fetched_verified_and_announced(tmp_path, monkeypatch, settings):
    use_java(tmp_path, monkeypatch, FETCHES)
    events, seen = Events(), []
    events.subscribe(seen.append)
    assert [j.artifact for j in missing(settings.jars)] == ["thing"]
    (path,) = ensure(settings, events)
    assert path.read_bytes() == CONTENT
    assert [type(e) for e in seen] == [Notice]
    assert ensure(settings, events) == (path,)
    assert len(seen) == 1
    assert [p.name for p in settings.jars.iterdir() if p.name != ".lock"] == ["thing-1.0.jar"]


def test_parallel_processes_fetch_once(tmp_path, monkeypatch, settings):
    use_java(tmp_path, monkeypatch, FETCHES)
    threads = [threading.Thread(target=ensure, args=(settings,)) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert (tmp_path / "log").read_text() == "run\n"


def test_an_altered_file_is_never_used(tmp_path, monkeypatch, settings):
    use_java(tmp_path, monkeypatch, FETCHES)
    monkeypatch.setattr(jars, "JARS", (replace(FAKE, sha256="0" * 64),))
    with pytest.raises(EnvironmentFault, match="JAR_CORRUPT"):
        ensure(settings)
    assert not (settings.jars / FAKE.file).exists()


def test_a_file_that_rots_later_is_found(settings):
    settings.jars.mkdir()
    (settings.jars / FAKE.file).write_bytes(CONTENT)
    verify(settings)
    (settings.jars / FAKE.file).write_bytes(b"x")
    with pytest.raises(EnvironmentFault, match="JAR_CORRUPT"):
        verify(settings)


def test_without_a_network_the_error_says_what_to_copy_where(tmp_path, monkeypatch, settings):
    use_java(tmp_path, monkeypatch, OFFLINE)
    with pytest.raises(EnvironmentFault, match="JARS_UNAVAILABLE") as caught:
        ensure(settings)
    assert caught.value.retryable
    assert "UnknownHostException" in str(caught.value)
    assert "org/example/thing/1.0/thing-1.0.jar" in str(caught.value)
    assert str(settings.jars) in str(caught.value)


def test_a_folder_that_cannot_be_made_is_named(tmp_path, settings):
    (tmp_path / "file").write_text("")
    with pytest.raises(EnvironmentFault, match="JARS_UNAVAILABLE") as caught:
        ensure(replace(settings, jars_dir=str(tmp_path / "file" / "jars")))
    assert "jars_dir" in str(caught.value)


def test_a_warehouse_in_s3_needs_one_jar_more(tmp_path):
    settings = default_settings(tmp_path)
    assert jars.needed(settings) == jars.JARS
    assert jars.needed(replace(settings, warehouse="s3://lake/shop")) == (*jars.JARS, jars.S3_JAR)
    other = replace(settings, warehouse="s3://lake/shop", storage={"io-impl": "org.apache.iceberg.hadoop.HadoopFileIO"})
    assert jars.needed(other) == jars.JARS
    iceberg = next(jar for jar in jars.JARS if jar.artifact.startswith("iceberg-spark-runtime"))
    assert jars.S3_JAR.version == iceberg.version
