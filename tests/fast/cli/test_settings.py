"""Settings from the environment."""

from pathlib import Path

import pytest
from catalog_kit.ready import ready_project

from headrace import config
from headrace.errors import UserError
from headrace.project.new_project import init_project


def test_spark_options_come_from_the_environment_and_win(tmp_path: Path) -> None:
    ready_project(tmp_path)
    file = tmp_path / config.FILE_NAME
    file.write_text(file.read_text() + '"spark.driver.memory" = "1g"\n"spark.kept" = "yes"\n')
    given = {"HEADRACE_SPARK_OPTIONS": "spark.driver.memory=4g  spark.a='two words' spark.b=x=y"}
    options = config.load(tmp_path, given).spark_options
    assert options == {
        "spark.driver.memory": "4g",
        "spark.kept": "yes",
        "spark.a": "two words",
        "spark.b": "x=y",
    }


@pytest.mark.parametrize("call", ["stat", "read_text"])
def test_settings_that_may_not_be_read(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, call: str) -> None:
    def refuse(*_: object, **__: object) -> None:
        raise PermissionError(13, "Permission denied")

    ready_project(tmp_path)
    monkeypatch.setattr(Path, call, refuse)
    with pytest.raises(UserError, match="CONFIG_INVALID") as raised:
        config.load(tmp_path, {})
    assert "headrace.toml cannot be read: Permission denied." in str(raised.value)


@pytest.mark.parametrize("text", ["spark.a", "driver.memory=4g", "spark.a='open"])
def test_what_is_no_spark_option_is_refused(tmp_path: Path, text: str) -> None:
    ready_project(tmp_path)
    with pytest.raises(UserError, match="CONFIG_INVALID") as raised:
        config.load(tmp_path, {"HEADRACE_SPARK_OPTIONS": text})
    assert "HEADRACE_SPARK_OPTIONS" in str(raised.value)


def test_relative_folders_are_of_the_project(tmp_path: Path) -> None:
    ready_project(tmp_path)
    file = tmp_path / config.FILE_NAME
    file.write_text(file.read_text().replace("[headrace]", "[headrace]\njars_dir = 'jars'\nivy_settings = 'ivy.xml'"))
    loaded = config.load(tmp_path, {})
    assert (loaded.jars, loaded.ivy_settings) == (tmp_path / "jars", str(tmp_path / "ivy.xml"))


@pytest.mark.parametrize("key", ["warehouse", "jars_dir", "ivy_settings"])
def test_a_home_of_nobody_is_refused(tmp_path: Path, key: str) -> None:
    ready_project(tmp_path)
    with pytest.raises(UserError, match="CONFIG_INVALID") as raised:
        config.load(tmp_path, {f"HEADRACE_{key.upper()}": "~no-such-user/x"})
    assert "~no-such-user" in raised.value.message
    with pytest.raises(UserError, match="no home folder"):
        config.load("~no-such-user/shop", {})
    with pytest.raises(UserError, match="no home folder"):
        init_project("~no-such-user/shop")


@pytest.mark.parametrize("given", ["²", "0", "33", "1e3", ""])
def test_a_number_is_one_of_plain_digits(tmp_path: Path, given: str) -> None:
    ready_project(tmp_path)
    with pytest.raises(UserError, match="CONFIG_INVALID"):
        config.load(tmp_path, {"HEADRACE_MAX_CONCURRENT_REFRESHES": given})


def test_an_empty_variable_moves_nothing(tmp_path: Path) -> None:
    """As an unset one in a file of Docker Compose's."""
    ready_project(tmp_path)
    empty = {f"HEADRACE_{key}": "" for key in ("WAREHOUSE", "CATALOG_URL", "SPARK_MASTER", "JARS_DIR")}
    assert config.load(tmp_path, empty) == config.load(tmp_path, {})


def test_deployments_have_slots_of_their_own(tmp_path: Path) -> None:
    ready_project(tmp_path)
    file = tmp_path / config.FILE_NAME
    text = file.read_text()
    assert config.load(tmp_path, {}).deploy_slots == 1
    file.write_text(f"[deploy]\nslots = 2\n{text}")
    assert config.load(tmp_path, {}).deploy_slots == 2
    assert config.load(tmp_path, {}).layout_limit == config.LAYOUT_LIMIT
    for given, limit in (("0", 0), ('"none"', None)):
        file.write_text(f"[deploy]\nlayout_limit = {given}\n{text}")
        assert config.load(tmp_path, {}).layout_limit == limit
    file.write_text(f"[deploy]\nlayout_limit = true\n{text}")
    with pytest.raises(UserError, match="CONFIG_INVALID"):
        config.load(tmp_path, {})
    file.write_text(f"[deploy]\nslots = 0\n{text}")
    with pytest.raises(UserError, match="CONFIG_INVALID"):
        config.load(tmp_path, {})


@pytest.mark.parametrize(
    ("text", "told", "remedy"),
    [
        ("[spark]\nmax_concurrent_refreshes = 2", "max_concurrent_refreshes in [spark]", "below [headrace]"),
        ('[spark]\n"driver.memory" = "4g"', "driver.memory in [spark]", "full names"),
        ("warehouse = 'x'", "warehouse outside of a section", "below the line [headrace]"),
        ("warehuose = 'x'", "warehuose outside of a section", "Did you mean warehouse?"),
        ("[headrace]\nwarehuose = 'x'", "unknown setting: warehuose", "Did you mean warehouse?"),
        ("[headrace]\nspark_driver = 'x'", "unknown setting: spark_driver. They are Spark's", "[spark]"),
        ("[optimiser]\ndisable = []", "unknown section: [optimiser]", "Did you mean optimizer?"),
        ("[deploy]\nslot = 2", "slot in [deploy]", "Did you mean slots?"),
        ("[optimizer]\ndisabled = []", "disabled in [optimizer]", "Did you mean disable?"),
        ("[sinks.a]\nfrom = 'a.b'\nurl = 'postgresql://x'\ntable = 'p.t'\nschedul = '1m'", "schedul", "from ="),
        ("[sources.a]\nurl = 'postgresql://x'\ntabels = ['p.t']", "tabels", "tables ="),
    ],
)
def test_keys_that_nobody_reads_are_told(tmp_path: Path, text: str, told: str, remedy: str) -> None:
    (tmp_path / config.FILE_NAME).write_text(text)
    with pytest.raises(UserError) as raised:
        config.load(tmp_path, {})
    assert raised.value.code == "CONFIG_INVALID"
    assert told in f"{raised.value.message} {raised.value.detail}"
    assert remedy in str(raised.value.hint)
