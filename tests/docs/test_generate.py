"""What the generated references take from the source, where that is more than to copy it."""

from sqlalchemy import Column, ForeignKey, Integer, MetaData, Table

from docs.generate.diagram import diagram
from docs.generate.errors import errors_page
from docs.generate.markdown import plain, table
from docs.generate.settings import settings_page
from docs.generate.worked_example import REVIEWS, worked_example_table
from venn_admit.errors import Code
from venn_admit.store.database.routines import ResultColumn, view_columns

VIEW = """\
-- What it is for.
CREATE VIEW report.counts_v1 AS
WITH counted AS (
    SELECT hidden FROM venn_admit.job
)

SELECT
    job.id,
    job.row_count AS rows,
    -- How many are done,
    -- at most all.
    coalesce(sum(chunk.end_row, 0), 0) AS done,
    CASE
        WHEN done THEN 'a'
    END AS verdict
FROM venn_admit.job AS job;
"""


def test_the_columns_of_a_view_are_those_of_its_last_select() -> None:
    assert view_columns(VIEW) == [
        ResultColumn("id", "job.id", ""),
        ResultColumn("rows", "job.row_count", ""),
        ResultColumn("done", "coalesce(sum(chunk.end_row, 0), 0)", "How many are done, at most all."),
        ResultColumn("verdict", "CASE WHEN done THEN 'a' END", ""),
    ]


def test_text_from_the_source_shows_as_it_is() -> None:
    assert plain("a_b * c < d, `a_b*c`") == r"a\_b \* c &lt; d, `a_b*c`"
    assert table(["a"], [["1 | 2"]]).splitlines()[-1] == r"| 1 \| 2 |"


def test_the_default_home_is_a_folder_with_a_name() -> None:
    row = next(line for line in settings_page().splitlines() if line.startswith("| `VENN_ADMIT_HOME`"))
    assert "| `venn-admit` in `XDG_DATA_HOME`, by default `~/.local/share`;" in row


def test_the_diagram_has_a_line_for_each_foreign_key_and_places_what_is_referred_to_first() -> None:
    metadata = MetaData()
    first = Table("first", metadata, Column("id", Integer, primary_key=True))
    second = Table(
        "second",
        metadata,
        Column("id", Integer, primary_key=True),
        Column("a_first", ForeignKey(first.c.id)),
        Column("b_first", ForeignKey(first.c.id)),
    )
    drawn = diagram([second, first])
    assert drawn.count('class="line"') == 2
    left, right = (drawn.index(f'<a href="#{name}"><rect x="') for name in ("first", "second"))
    assert 'x="0"' in drawn[left : left + 40]
    assert 'x="0"' not in drawn[right : right + 40]


def test_the_reference_of_errors_lists_each_code_with_its_class_and_parameters() -> None:
    lines = errors_page().splitlines()
    for code in Code:
        assert sum(line.startswith(f"| `{code}` |") for line in lines) == 1, code
    (not_fitted,) = [line for line in lines if line.startswith("| `not-fitted` |")]
    assert "| `NotReadyError` | `classifier` | The classifier's KNN has no parameters yet. |" in not_fitted


def test_the_worked_example_shows_what_weights_change() -> None:
    lines = {line.split("|")[1].strip(): line for line in worked_example_table().splitlines()}
    header, decision = lines["step"], lines["decision at alpha = 0.1"]
    assert all(f"review {name}" in header for name in REVIEWS)
    assert ("admitted as negative" in decision, "rejected" in decision) == (True, True)
    plain_probabilities = [float(cell) for cell in lines["plain lower probability"].split("|")[2:4]]
    assert min(plain_probabilities) >= 0.9
