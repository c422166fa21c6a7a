"""Drawings of a graph."""

from __future__ import annotations

import json

from headrace.graph import Dag, as_dict, as_dot, as_mermaid, as_text

DAG = Dag({"revenue": ["orders", "customers"], "top": ["revenue"], 'a "b"': ["orders"]})


def label(name: str) -> str:
    return "AUTO" if DAG.producers(name) else ""


def test_text_tree() -> None:
    assert as_text(DAG, label) == "\n".join(
        [
            "customers",
            "└─ revenue  AUTO",
            "   └─ top  AUTO",
            "orders",
            '├─ a "b"  AUTO',
            "└─ revenue …",
        ]
    )


def test_text_of_nothing() -> None:
    assert as_text(Dag[str]({})) == ""


def test_a_chain_of_a_thousand() -> None:
    chain = Dag({i: [i - 1] for i in range(1, 1500)})
    assert as_text(chain).count("\n") == 1499


def test_mermaid() -> None:
    assert as_mermaid(DAG, label).splitlines() == [
        "flowchart LR",
        '    n1["a &quot;b&quot;<br/>AUTO"]',
        '    n2[("customers")]',
        '    n3[("orders")]',
        '    n4["revenue<br/>AUTO"]',
        '    n5["top<br/>AUTO"]',
        "    n3 --> n1",
        "    n2 --> n4",
        "    n3 --> n4",
        "    n4 --> n5",
    ]


def test_dot() -> None:
    drawn = as_dot(DAG, label)
    assert drawn.startswith("digraph headrace {\n")
    assert '    n1 [label="a \\"b\\"\\nAUTO"];' in drawn
    assert '    n3 [label="orders", shape=cylinder];' in drawn
    assert "    n4 -> n5;" in drawn


def test_dict_is_json() -> None:
    found = json.loads(json.dumps(as_dict(DAG, label)))
    assert "critical_path" not in found
    assert found["nodes"][0] == {"name": "customers", "level": 0, "source": True, "cycle": [], "label": ""}
    assert {"from": "revenue", "to": "top"} in found["edges"]
    assert [node["name"] for node in found["nodes"]] == list(DAG.order())


def test_a_cycle_is_drawn_once_and_ends_where_it_comes_back() -> None:
    cyclic = Dag({"b": ["a", "c"], "c": ["b"], "p": ["q"], "q": ["p"], "s": ["s"]})
    assert as_text(cyclic).splitlines() == [
        "a",
        "└─ b",
        "   └─ c",
        "      └─ b …",
        "p",
        "└─ q",
        "   └─ p …",
        "s",
        "└─ s …",
    ]
    nodes = {node["name"]: node["cycle"] for node in json.loads(json.dumps(as_dict(cyclic)))["nodes"]}
    assert nodes == {"a": [], "b": ["b", "c"], "c": ["b", "c"], "p": ["p", "q"], "q": ["p", "q"], "s": ["s"]}


def test_the_critical_path_is_told_as_json_where_times_are_asked_for() -> None:
    chain = Dag({"b": ("a",), "c": ("b",), "d": ("a",)})
    found = as_dict(chain, seconds={"b": 1.0, "c": 0.25, "d": 1.5})
    assert found["critical_path"] == {"names": ["a", "d"], "seconds": 1.5}
    assert as_dict(chain, seconds={})["critical_path"]["seconds"] == 0  # type: ignore[index]
