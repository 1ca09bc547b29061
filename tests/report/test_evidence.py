"""Every field of a decision that is declared is stored, written, answered, shown and explained."""

import re
from typing import Any

import pytest

from docs.generate.decisions import scores_table
from docs.generate.markdown import plain
from venn_admit.api.models.decisions import EvidenceAnswer
from venn_admit.cli.tables.decision_tables import print_decision
from venn_admit.core.evidence import EVIDENCE, PREDICTION, SHARED, VERDICT, VIEW, MethodEvidence, scalar_fields
from venn_admit.core.reasons import Reason
from venn_admit.files.output.exports import SCORES_SCHEMA
from venn_admit.report.decision import class_table
from venn_admit.store.database.statements import statement
from venn_admit.web.explanation import NUMBER, facts

NAMES = ("negative", "positive")
METHODS = pytest.mark.parametrize("evidence", EVIDENCE.values(), ids=list(EVIDENCE))


def decided(evidence: MethodEvidence) -> dict[str, Any]:
    stored = {field.name: field.example for field in (*PREDICTION, *VIEW, *evidence.fields, *VERDICT)}
    return stored | {"reason": str(Reason.PROBABILITY_BELOW_THRESHOLD)}


def test_names_differ_and_a_method_is_known_by_its_first_field() -> None:
    every = [*SHARED, *(field for evidence in EVIDENCE.values() for field in evidence.fields)]
    assert len({field.name for field in every}) == len(every)
    assert not any(evidence.fields[0].nullable for evidence in EVIDENCE.values())


@METHODS
def test_fields_are_read_and_are_columns_of_files(evidence: MethodEvidence) -> None:
    for name in ("decision_by_id", "job_decisions"):
        read = re.findall(rf"\b{evidence.table}\.(\w+)", str(statement(f"decisions.{name}")))
        assert {field.name for field in evidence.fields} <= set(read)
    for field in evidence.fields:
        assert field.out is None or (field.out in SCORES_SCHEMA.names and f"| `{field.out}` |" in scores_table())
        assert field.out is None or plain(field.meaning) in scores_table().replace(r"\|", "|")


@METHODS
def test_an_answer_over_http_has_the_fields(evidence: MethodEvidence) -> None:
    names = list(EvidenceAnswer.model_fields)
    places = [names.index(field.name) for field in (*PREDICTION, *VIEW, *evidence.fields, *VERDICT)]
    assert places == sorted(places)
    found = EvidenceAnswer.model_validate(decided(evidence)).model_dump(exclude_unset=True)
    assert found == decided(evidence)


@METHODS
def test_people_see_the_fields(evidence: MethodEvidence, capsys: pytest.CaptureFixture[str]) -> None:
    stored = decided(evidence)
    print_decision("one", NAMES, stored, [50, 850], [])
    terminal = capsys.readouterr().out
    table = class_table(stored, NAMES, None, NUMBER)
    page = {words for words, _ in facts(stored)} | set(table[0] if table else ())
    assert ("in category" in terminal) == (table is not None)
    assert "in category" not in page, "it was not looked up"
    for field in evidence.fields:
        assert field.words in terminal
        assert field.words in page
    assert len(facts(stored)) == len(scalar_fields(evidence.fields))
