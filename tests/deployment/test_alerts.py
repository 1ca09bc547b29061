"""The alert rules of Prometheus: it loads them, and what they look at is what the running service exports."""

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import promql_parser
import pytest
import yaml

from tests.deployment.manifests import DEPLOY, check_command, compose_file

FOLDER = DEPLOY / "prometheus"
CONFIGURATION = yaml.safe_load((FOLDER / "prometheus.yml").read_text())
RULES: list[dict[str, Any]] = [
    rule for group in yaml.safe_load((FOLDER / "alerts.yml").read_text())["groups"] for rule in group["rules"]
]
# What Prometheus knows by itself of whatever it asks.
OF_PROMETHEUS = {"up"}
DURATION = re.compile(r"\d+[smhd]")


def selectors(part: Any) -> Iterator[Any]:
    """Every selector of an expression."""
    match part:
        case promql_parser.VectorSelector():
            yield part
        case promql_parser.MatrixSelector():
            yield part.vector_selector
        case promql_parser.BinaryExpr():
            yield from selectors(part.lhs)
            yield from selectors(part.rhs)
        case promql_parser.AggregateExpr() | promql_parser.ParenExpr() | promql_parser.UnaryExpr():
            yield from selectors(part.expr)
        case promql_parser.Call():
            for argument in part.args:
                yield from selectors(argument)
        case promql_parser.NumberLiteral() | promql_parser.StringLiteral():
            pass
        case _:
            raise AssertionError(f"not looked into: {part}")


def test_prometheus_loads_them() -> None:
    mounted = dict(volume.split(":")[:2] for volume in compose_file()["services"]["prometheus"]["volumes"])
    assert mounted["./deploy/prometheus"] == "/etc/prometheus"
    (file,) = CONFIGURATION["rule_files"]
    assert Path(file) == Path("/etc/prometheus/alerts.yml")
    assert (FOLDER / Path(file).name).exists()


@pytest.mark.parametrize("rule", RULES, ids=lambda rule: rule["alert"])
def test_a_rule_looks_at_what_the_service_exports(rule: dict[str, Any], exported: dict[str, set[str]]) -> None:
    found = list(selectors(promql_parser.parse(rule["expr"])))
    assert found
    for selector in found:
        matched = {matcher.name for matcher in selector.matchers.matchers}
        if selector.name in OF_PROMETHEUS:
            assert matched == {"job"}
            (job,) = CONFIGURATION["scrape_configs"]
            assert {matcher.value for matcher in selector.matchers.matchers} == {job["job_name"]}
        else:
            assert matched <= exported[selector.name]


@pytest.mark.parametrize("rule", RULES, ids=lambda rule: rule["alert"])
def test_a_rule_says_what_is_wrong_and_what_to_do(rule: dict[str, Any]) -> None:
    assert rule.keys() <= {"alert", "expr", "for", "labels", "annotations"}
    assert re.fullmatch(r"VennAdmit\w+", rule["alert"])
    assert DURATION.fullmatch(rule.get("for", "0s"))
    assert rule["labels"].keys() == {"severity"}
    assert rule["labels"]["severity"] in {"warning", "critical"}
    assert rule["annotations"].keys() == {"summary", "action"}
    grouped = re.search(r"by \((\w+)\)", rule["expr"])
    named = set(re.findall(r"\$labels\.(\w+)", str(rule["annotations"])))
    assert named == ({grouped[1]} if grouped else set())
    for command in re.findall(r"`(venn-admit[^`]+)`", rule["annotations"]["action"]):
        words = command.split()
        check_command([*words, "NAME"] if words[1:] in (["show"], ["monitor"]) else words)


def test_their_names_differ_and_the_guide_has_each() -> None:
    names = [rule["alert"] for rule in RULES]
    assert len(set(names)) == len(names)
    guide = (DEPLOY.parent / "docs/how-to/docker.md").read_text()
    assert set(re.findall(r"`(VennAdmit\w+)`", guide)) == set(names)
