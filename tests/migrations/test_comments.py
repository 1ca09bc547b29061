"""What a database says of its tables and views: in plain words, as the references say it, and true."""

import re

import pytest
from sqlalchemy import Engine, text

from docs.generate.markdown import plain
from docs.generate.views import views_page
from tests.docs.wording import RULES
from venn_admit.store.database.engine import connect

COMMENTS = """
SELECT concat_ws('.', pg_class.oid::regclass, quote_ident(pg_attribute.attname)) AS name, pg_description.description
FROM pg_description
INNER JOIN pg_class ON pg_description.objoid = pg_class.oid
LEFT JOIN pg_attribute
    ON pg_class.oid = pg_attribute.attrelid AND pg_description.objsubid = pg_attribute.attnum AND objsubid > 0
WHERE
    pg_description.classoid = 'pg_class'::regclass
    AND pg_class.relnamespace IN ('venn_admit'::regnamespace, 'report'::regnamespace)
"""


def comments(engine: Engine) -> dict[str, str]:
    with connect(engine) as connection:
        return {row.name: row.description for row in connection.execute(text(COMMENTS))}


def test_no_comment_has_wording_that_is_refused(engine: Engine) -> None:
    refused = re.compile("|".join(RULES["refused"]))
    found = {name: comment for name, comment in comments(engine).items() if refused.search(comment)}
    assert found == {}


def test_the_reference_says_what_the_database_says(engine: Engine) -> None:
    page = views_page()
    sections = {part.partition("\n")[0]: part for part in page.split("\n## ")}
    asked = {name: comment for name, comment in comments(engine).items() if name.startswith("report.")}
    assert len(asked) > 300
    for name, comment in asked.items():
        schema, view, *column = name.split(".")
        row = f"| `{column[0]}` |" if column else ""
        lines = [line for line in sections[f"{schema}.{view}"].splitlines() if line.startswith(row)]
        assert any(plain(comment) in line for line in lines), name


@pytest.mark.parametrize(
    ("name", "words"),
    [
        ("report.traffic_v1", "A promise for a class pools its partitions, and need not survive"),
        ("report.calibration_v2.thresholds", "asked for, .* policy_v3 and average_policy_v1"),
        *((f"report.{view}", "in use, kept current or neither") for view in ("calibration_point_v1", "cell_v1")),
        *((f"report.{view}", "in use, kept current or neither") for view in ("partition_v2", "point_accuracy_v1")),
        ("calibration.state", "in use or kept current until the setting is retired"),
    ],
)
def test_a_comment_does_not_promise_too_much(engine: Engine, name: str, words: str) -> None:
    assert re.search(words, comments(engine)[name])
