"""What a report measures of an evaluation set, and the sentences about it."""

import re
from collections.abc import Callable
from dataclasses import replace

import numpy as np
import pytest

from tests.report.samples import ALPHA, abers_points, golden_points, made_points
from tests.running import METHODS
from venn_admit.core.calibrators.certification import ClassKind
from venn_admit.core.comparison.selective import certified_for, in_shares
from venn_admit.core.evaluation.points import KNN, WEIGHTED_ADMIT
from venn_admit.core.evaluation.tallies import Tally, Verdict
from venn_admit.errors import InvalidInputError
from venn_admit.report.evaluation.dataset import DatasetReport, build_dataset_report
from venn_admit.report.evaluation.verdicts import (
    answer,
    class_gap,
    class_verdicts,
    headline,
    overall_verdict,
    settling,
)
from venn_admit.report.evaluation.wording import (
    accuracy_note,
    extent,
    hidden_classes,
    interval_note,
    match_bin_names,
    parameters_text,
    reservations,
    size_strata,
    size_tally,
)

Build = Callable[[list[tuple[int, int, int]]], DatasetReport]


def test_rows_in_the_order_they_are_shown(sentiment: DatasetReport) -> None:
    assert [row.name for row in sentiment.methods] == [
        "KNN",
        "ADMIT",
        "Venn-ADMIT plain",
        "Venn-ADMIT plain, q = K",
        "Venn-ADMIT weighted",
        "Venn-ADMIT weighted, q = K",
    ]
    assert [row.name for row in sentiment.accuracy] == ["network", "KNN"]
    assert sentiment.partitions is not None
    assert len(sentiment.partitions.rows) == 9
    assert (sentiment.own, sentiment.baseline) == (WEIGHTED_ADMIT, KNN)


def test_venn_abers_is_judged_on_the_predictions_of_the_network(by_abers: DatasetReport) -> None:
    points = abers_points(slice(500))
    right = points.network_predicted == points.label
    (own,) = (one for one in points.selective if one.name == by_abers.own)
    assert [row.name for row in by_abers.methods] == ["KNN", "network", *METHODS[1:6], *METHODS[12:]]
    assert by_abers.method("network").overall == Tally(int(right.sum()), 500, 500)
    judged = by_abers.method(by_abers.own)
    assert judged.overall == Tally(int((right & own.admitted).sum()), int(own.admitted.sum()), 500)
    assert by_abers.partitions is None
    assert by_abers.grid is not None
    assert by_abers.grid.correct.sum() == right.sum()
    assert by_abers.coverage.curve_overall.count[-1] == 500
    assert list(by_abers.reliability_lower) == ["plain"]
    said = [one.tally for one in class_verdicts(by_abers)]
    assert said == list(judged.per_predicted_class)
    assert headline(by_abers).startswith("Venn-Abers network admits ")
    assert f"and {right.mean():.1%} when every point is admitted" in headline(by_abers)


def test_comparison_methods_stand_after_the_knn_in_the_order_given(compared: DatasetReport) -> None:
    # The reference has no sets of the corrected form.
    assert [row.name for row in compared.methods] == [name for name in METHODS[:12] if name != "LocalConf corrected"]


def test_the_parts_agree_with_each_other(sentiment: DatasetReport) -> None:
    points = golden_points(slice(400))
    knn, admitted = sentiment.method(KNN), sentiment.method(WEIGHTED_ADMIT)
    correct = int((points.knn.predicted == points.label).sum())
    assert knn.overall == Tally(correct, 400, 400)
    assert sentiment.accuracy[1].accuracy.tallies == knn
    assert sentiment.partitions is not None
    assert sentiment.partitions.rows[-1].overall.tally == knn.overall
    assert sentiment.grid is not None
    assert sentiment.grid.correct.sum() == correct
    singletons = sentiment.method("ADMIT").overall
    curve = sentiment.coverage.curve_overall
    assert curve.count[-1] == singletons.count == sentiment.reliability_lower["weighted"].count.sum()
    assert sentiment.reliability_upper["plain"].count.sum() == singletons.count
    assert curve.correct[-1] == singletons.correct
    at_target = int(np.searchsorted(-curve.threshold, -0.9, side="right")) - 1
    assert curve.count[at_target] == admitted.overall.count


def test_sets_of_one_class_cover_what_singletons_get_right(compared: DatasetReport) -> None:
    for row in compared.methods:
        assert sum(size.covered.count for size in row.by_size) == row.coverage.overall.count == 500
        assert sum(size.covered.correct for size in row.by_size) == row.coverage.overall.correct
        assert size_tally(row, (1, 1)) == row.singletons.overall
        assert row.mean_size == pytest.approx(2 - row.singletons.overall.portion)
    assert size_strata(compared) == [(1, 1), (2, 2)]
    assert size_tally(compared.methods[0], (2, 2)) == Tally(0, 0, 500)


def test_intervals_of_documents_are_those_of_every_share(of_documents: DatasetReport, compared: DatasetReport) -> None:
    assert (of_documents.document_count, compared.document_count) == (100, None)
    for clustered, plain in zip(of_documents.methods, compared.methods, strict=True):
        ours, theirs = clustered.singletons.overall, plain.singletons.overall
        assert (ours.correct, ours.count) == (theirs.correct, theirs.count)
        assert ours.documents is not None
        assert theirs.documents is None
        assert ours.interval != theirs.interval


def test_refuses_names_that_do_not_match_the_classes() -> None:
    with pytest.raises(InvalidInputError, match="expected 2 class names, one a column of the logits, got 1"):
        build_dataset_report("test", ("only",), golden_points(slice(400)), 25, ALPHA)


def test_of_many_classes_the_worst_are_shown(hostile: DatasetReport) -> None:
    assert hostile.shown_classes() == (0, 1, 2, 3, 4, 5)
    assert hostile.shown_classes(most=2) == (0, 1)
    assert hostile.shown_classes(most=8) == tuple(range(8))
    left_out = hidden_classes(hostile, hostile.shown_classes())
    assert left_out.startswith("6 of 8 classes shown: those that miss")
    assert re.search("; those of which under 10 (points|documents) are admitted come last[.]$", left_out)


def test_a_class_that_misses_the_target_is_shown_before_one_of_a_lower_share() -> None:
    # Predicted a: 9 of 12, which cannot tell; predicted b: 165 of 200, which misses 0.9.
    counts = [(0, 0, 9), (1, 0, 3), (1, 1, 165), (2, 1, 35), (2, 2, 965)]
    label = [y for y, _, n in counts for _ in range(n)]
    said = [c for _, c, n in counts for _ in range(n)]
    report = build_dataset_report("three", ("a", "b", "c"), made_points(label, said, said, 3), 5, ALPHA)
    measured = report.method(WEIGHTED_ADMIT)
    assert measured.per_predicted_class[0].share < measured.per_predicted_class[1].share
    assert report.shown_classes(most=1) == (1,)


def test_classes_too_few_to_judge_come_after_the_judged(two_class_report: Build) -> None:
    report = two_class_report([(0, 0, 5), (0, -1, 40), (1, 1, 50)])
    assert report.shown_classes(most=1) == (1,)


def test_headline(two_class_report: Build) -> None:
    report = two_class_report([(0, 0, 20), (1, 0, 5), (1, -1, 75)])
    assert headline(report) == (
        "Venn-ADMIT weighted admits 25 of 100 points (25.0%); 80.0% of these are correct, against a target of "
        "90% and 20.0% when every point is admitted."
    )
    assert headline(two_class_report([(0, -1, 3)])) == "Venn-ADMIT weighted admits none of 3 points."


def test_which_intervals_and_what_is_too_few(compared: DatasetReport, of_documents: DatasetReport) -> None:
    assert interval_note(compared) == "95 % Wilson intervals"
    assert accuracy_note(compared.document_count) == "95 % Wilson intervals; of F0.5, from resampled points"
    assert (
        interval_note(of_documents)
        == accuracy_note(of_documents.document_count)
        == "95 % intervals from 100 resampled documents"
    )
    assert (extent(compared), extent(of_documents)) == (
        "500 labelled points",
        "500 labelled points of 100 documents",
    )


def test_rows_left_out_are_said(compared: DatasetReport, sentiment: DatasetReport) -> None:
    assert reservations(compared) == (
        "12 rows are left out: they are training or calibration data of this calibration.",
    )
    one = replace(compared, left_out=1, chosen=3)
    assert reservations(one) == (
        "1 row is left out: it is training or calibration data of this calibration.",
        "3 of the labels were selected or given in a review. Each counts as one here, so the shares are not those of "
        "the traffic; the monitor counts each as it was chosen.",
    )
    assert reservations(sentiment) == ()


def test_parameters_of_the_comparison_methods(compared: DatasetReport, sentiment: DatasetReport) -> None:
    assert parameters_text(compared) == (
        "Parameters of the comparison methods: temperature 0.697; RAPS size k_reg 2, lambda 0.01."
    )
    assert parameters_text(sentiment) == ""


class TestVerdict:
    def test_met_for_every_class(self, two_class_report: Build) -> None:
        report = two_class_report([(0, 0, 60), (1, 1, 95), (1, -1, 50)])
        assert overall_verdict(report) is Verdict.MET
        assert answer(report) == "Every predicted class meets the target of 0.9."

    def test_a_class_of_too_few_points_is_not_met(self, two_class_report: Build) -> None:
        # All 9 are right, which is what hid behind "every predicted class holds the target".
        report = two_class_report([(0, 0, 9), (1, 1, 95)])
        assert overall_verdict(report) is Verdict.CANNOT_TELL
        assert answer(report) == "This sample cannot judge predictions of rare."
        rare, common = class_verdicts(report)
        # Wilson's interval of 35 points that are all right is the first to leave .9 out.
        assert settling(rare, report) == "about 26 more points would settle it"
        assert settling(common, report) == ""

    def test_a_share_above_the_target_is_not_met_while_its_interval_straddles_it(self, two_class_report: Build) -> None:
        report = two_class_report([(0, 0, 19), (1, 0, 1), (1, 1, 95)])
        assert class_verdicts(report)[0].tally.share == 0.95
        assert overall_verdict(report) is Verdict.CANNOT_TELL

    def test_missed(self, two_class_report: Build) -> None:
        report = two_class_report([(0, 0, 60), (0, 1, 50), (1, 1, 95)])
        assert overall_verdict(report) is Verdict.MISSED
        assert answer(report) == "Predictions of common miss the target of 0.9."

    def test_what_nothing_is_admitted_as_is_said(self, two_class_report: Build) -> None:
        report = two_class_report([(0, -1, 60), (1, 1, 95)])
        assert answer(report).endswith("target of 0.9. Nothing is admitted as rare.")
        nothing = two_class_report([(0, -1, 12), (1, -1, 12)])
        assert overall_verdict(nothing) is Verdict.CANNOT_TELL
        assert answer(nothing) == "Nothing is admitted, so there is nothing to judge."

    def test_of_documents(self, of_few_documents: DatasetReport) -> None:
        one = class_verdicts(of_few_documents)[0]
        assert settling(one, of_few_documents).endswith("more documents would settle it")


class TestClassGap:
    def test_every_predicted_class_holds_and_a_true_class_does_not(self, two_class_report: Build) -> None:
        # Predicted rare: 50 of 50. Predicted common: 950 of 970. True rare: 50 of 70.
        gap = class_gap(two_class_report([(0, 0, 50), (0, 1, 20), (1, 1, 950)]))
        assert gap.startswith(
            "Every predicted class meets the target, but the points of true class rare (.714 of 70) miss it. "
        )

    def test_a_certificate_for_declared_shares_may_be_about_true_classes(self, two_class_report: Build) -> None:
        report = two_class_report([(0, 0, 50), (0, 1, 20), (1, 1, 950)])
        own = in_shares(certified_for(tuple(ClassKind)))
        methods = tuple(replace(one, name=own) if one.name == report.own else one for one in report.methods)
        gap = class_gap(replace(report, own=own, methods=methods))
        assert gap.endswith("The certificate is about the classes asked for, in traffic with class shares of its own.")

    def test_predicted_classes_that_cannot_be_told(self, two_class_report: Build) -> None:
        # Predicted rare: 12 of 12. Predicted common: 95 of 100. True rare: 12 of 17.
        gap = class_gap(two_class_report([(0, 0, 12), (0, 1, 5), (1, 1, 95)]))
        assert gap.startswith(
            "No predicted class misses the target for certain, but the points of true class rare (.706"
        )

    @pytest.mark.parametrize(
        "counts",
        [
            [(0, 0, 12), (0, 1, 50), (1, 1, 95)],  # a predicted class fails too
            [(0, 0, 12), (0, 1, 1), (1, 1, 95)],  # no true class is seen to miss it
            [(0, 0, 1), (0, 1, 8), (1, 1, 95)],  # too few of the true class to say
            [(0, -1, 12), (1, -1, 12)],  # nothing admitted
        ],
    )
    def test_otherwise_nothing(self, two_class_report: Build, counts: list[tuple[int, int, int]]) -> None:
        assert class_gap(two_class_report(counts)) == ""


def test_bins_of_q_are_named(sentiment: DatasetReport) -> None:
    assert sentiment.grid is not None
    assert match_bin_names(sentiment.grid) == ["0", "1-5", "6-15", "16-24", "25"]
