"""What is shown of a cascade."""

from venn_admit.report.cascade import shown_share
from venn_admit_client.records import CascadeClass


def test_a_share_right_with_a_few_errors_among_thousands_is_not_rounded_to_all() -> None:
    served = CascadeClass(
        "predicted", "positive", served=2697, right=2696, low=0.9979, high=0.99993, threshold=0.5, labels_needed=None
    )
    assert shown_share(served) == ">.999 .998-1.00"
