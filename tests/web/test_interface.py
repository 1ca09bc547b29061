"""The page about the interface for programs: all that the OpenAPI document says, for anyone, from this host alone."""

import re

from tests.web.visitor import Visitor
from venn_admit.api.application import document
from venn_admit.web.rendering import POLICY


def test_every_operation_parameter_field_and_status_is_shown(shared: Visitor) -> None:
    shared.client.cookies.clear()
    shown, described = shared.open("/docs"), document()
    sections = dict(re.findall(r'<summary><h3 id="(\w+)">(.*?)</details>', shown, re.DOTALL))
    operations = {
        operation["operationId"]: (method, path, operation)
        for path, methods in described["paths"].items()
        for method, operation in methods.items()
    }
    assert sections.keys() == operations.keys()
    for name, (method, path, operation) in operations.items():
        said = sections[name]
        assert f"<code>{method.upper()} {path}</code>" in said
        for one in operation.get("parameters", ()):
            assert f"<code>{one['name']} ({one['in']})</code>" in said
        for status in operation["responses"]:
            assert f"<li>{status}: " in said
        scope = operation["security"][0]["key"][0] if "security" in operation else "none is needed"
        assert f"<dt>scope of the key</dt><dd>{scope}</dd>" in said
    for name, schema in described["components"]["schemas"].items():
        _, _, said = shown.partition(f' id="schema-{name}"')
        for field in schema.get("properties", ()):
            assert f"<code>{field}</code>" in said.partition("<h3")[0], (name, field)


def test_it_stays_at_home_and_every_link_within_leads_somewhere(shared: Visitor) -> None:
    answer = shared.client.get("/docs")
    answer = shared.client.get("/docs")
    assert (answer.status_code, answer.headers["content-security-policy"]) == (200, POLICY)
    assert not re.findall(r'(?:src|href|action)="(?!/|#)', answer.text)
    assert not re.findall(r"<(?:style|script(?! src=)|iframe)|style=|onclick=", answer.text)
    targets = set(re.findall(r' id="([^"]+)"', answer.text))
    assert set(re.findall(r'href="#([^"]+)"', answer.text)) <= targets


def test_the_sign_in_and_the_overview_lead_to_it(shared: Visitor) -> None:
    assert 'href="/docs"' in shared.open("/sign-in")
    shared.sign_in()
    assert 'href="/docs"' in shared.open("/")
