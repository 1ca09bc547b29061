"""What the operations of the OpenAPI document are called: as people say it, not as the framework makes it up."""

import re

from venn_admit.api.application import document

OPERATIONS = [operation for methods in document()["paths"].values() for operation in methods.values()]


def test_each_has_a_name_that_says_what_it_does() -> None:
    names = [operation["operationId"] for operation in OPERATIONS]
    assert len(set(names)) == len(names)
    assert [name for name in names if re.match(r"(post|put|patch|head)_|get_\w+s_v1|\w+__", name)] == []


def test_each_is_summed_up_in_a_clause_of_its_description() -> None:
    for operation in OPERATIONS:
        summary = operation["summary"]
        assert operation["description"].startswith(summary)
        assert summary != operation["operationId"].replace("_", " ").title()
        assert re.fullmatch(r"[A-Z][^.;:]*", summary), summary
        assert len(summary) <= 120
