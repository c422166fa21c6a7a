"""The functions of a project follow their file; what is wrong with it is told in words."""

from __future__ import annotations

from pathlib import Path

import pytest

import headrace
from headrace.errors import UserError
from headrace.functions import Functions, changed, declare

ONE = 'import headrace\n\n@headrace.function(returns="int")\ndef One(x):\n    return x\n'


@pytest.fixture
def functions(tmp_path: Path) -> Functions:
    return Functions(tmp_path / "functions.py")


def test_without_a_file_there_are_none(functions: Functions) -> None:
    assert functions.now() == {}


def test_a_name_in_sql_is_in_lower_case_and_may_be_another(functions: Functions) -> None:
    functions.file.write_text(ONE + ONE.replace('"int"', '"int", name="two"').replace("One", "thing"))
    assert list(functions.now()) == ["one", "two"]
    assert functions.now()["two"].call(3) == 3


def test_a_file_that_was_changed_is_loaded_again(functions: Functions) -> None:
    functions.file.write_text(ONE)
    before = functions.now()
    assert functions.now() is before
    functions.file.write_text(ONE.replace("return x", "return y"))  # as long as before, perhaps in the same second
    then = {name: f.fingerprint for name, f in before.items()}
    assert changed(then, functions.now) == ("one",)
    functions.file.unlink()
    assert changed(then, functions.now) == ("one",)
    assert changed({}, functions.now) == ()


def test_functions_registered_by_hand_stay(functions: Functions) -> None:
    functions.register(declare("mine", lambda x: x, "int", True))
    functions.file.write_text(ONE)
    assert set(functions.now()) == {"one", "mine"}


def test_classes_of_the_file_work(functions: Functions) -> None:
    functions.file.write_text(
        "from __future__ import annotations\nfrom dataclasses import dataclass\n"
        "@dataclass\nclass Point:\n    x: int\n" + ONE
    )
    assert set(functions.now()) == {"one"}


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("import headrace\n\ndef f(:\n", "line 3"),
        ("\nimport not_there\n", "ModuleNotFoundError: No module named 'not_there' (line 2)"),
        ("def f():\n    return 1 / 0\n\nf()\n", "ZeroDivisionError: division by zero (line 2)"),
        ("import sys\nsys.exit(3)\n", "SystemExit: 3 (line 2)"),
        ('import headrace\nheadrace.function(returns="int")(len)\n', "wrap it in a function of your own"),
        (ONE.replace('"int"', "7"), "returns is 7, which is no type"),
        (ONE.replace('"int"', '"int", name="a b"'), "begins with no digit"),
        ("x = '\ud800'\n", ""),
    ],
)
def test_a_file_that_cannot_be_loaded(functions: Functions, text: str, said: str) -> None:
    functions.file.write_text(ONE)
    assert functions.now()
    functions.file.write_bytes(text.encode("utf-8", "surrogatepass"))
    for _ in range(2):  # it is not forgotten that it failed
        with pytest.raises(UserError) as caught:
            functions.now()
        assert caught.value.code == "FUNCTION_INVALID"
        assert said in str(caught.value)
    functions.file.write_text(ONE)
    assert set(functions.now()) == {"one"}


def test_a_declared_function_is_what_it_was() -> None:
    @headrace.function(returns="int")
    def double(x: int) -> int:
        return 2 * x

    assert double(4) == 8
