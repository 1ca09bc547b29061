"""What is shown of a cascade."""

from datetime import UTC, datetime
from decimal import Decimal

import pytest

from venn_admit.report.cascade import promise_sentence, shown_share
from venn_admit_client.records.cascades import CascadeClass, CascadeReport, CascadeStage


def cascade(*, is_certified: bool, documents: int = 900, labels_needed: int | None = None) -> CascadeReport:
    tested = CascadeClass("predicted", "yes", 700, 650, None, None, 0.8, labels_needed=labels_needed)
    return CascadeReport(
        cascade="reviews",
        classes=("no", "yes"),
        stages=(CascadeStage(1, "small", 1.0, 7, 900, 700, (tested,)),),
        number=3,
        certified_at=datetime(2026, 3, 1, tzinfo=UTC),
        alpha=Decimal("0.1"),
        confidence=Decimal("0.95"),
        kinds=("predicted",),
        is_certified=is_certified,
        points=900,
        documents=documents,
        served=700,
        promised=(tested,),
        labels_needed=labels_needed,
        looks=1,
        joint_confidence=Decimal("0.95"),
        cost=6.1,
        cost_of_last=100.0,
        withheld=None,
    )


def test_documents_are_named_where_points_are_grouped() -> None:
    assert promise_sentence(cascade(is_certified=True))[0].endswith(" on 900 points.")
    assert promise_sentence(cascade(is_certified=True, documents=300))[0].endswith(" on 900 points of 300 documents.")


@pytest.mark.parametrize(
    ("needed", "said"),
    [
        (5000, "about 5,000 labels of evidence would do instead of 900, because of predicted yes."),
        (800, "At the rates seen, about as many labels as there are would do, and some more will help."),
        (None, "No number of labels would do, at the rates seen of predicted yes."),
    ],
)
def test_what_it_would_take(needed: int | None, said: str) -> None:
    assert promise_sentence(cascade(is_certified=False, labels_needed=needed))[0].endswith(said)


def test_what_the_rows_of_a_policy_that_failed_are_is_said() -> None:
    """Else the classifiers together would seem to serve nothing, and some of a class."""
    said = "The last rows of the table show what the policy that came closest would serve."
    assert [said in promise_sentence(cascade(is_certified=certified)) for certified in (False, True)] == [True, False]


def test_a_share_right_with_a_few_errors_among_thousands_is_not_rounded_to_all() -> None:
    served = CascadeClass(
        "predicted", "positive", served=2697, right=2696, low=0.9979, high=0.99993, threshold=0.5, labels_needed=None
    )
    assert shown_share(served) == ">.999 .998-1.00"
