"""Comparisons of settings as tables, sentences and JSON."""

import re
from io import StringIO

from rich.console import Console

from tests.report.samples import many_classes
from venn_admit.cli.advice import command
from venn_admit.report.what_if.compared import (
    compared_payload,
    compared_table,
    next_lines,
)


def test_of_many_classes_the_lowest_is_shown() -> None:
    output = StringIO()
    Console(file=output, width=120).print(compared_table(many_classes(3000, 0), rest="add --details"))
    said = " ".join(output.getvalue().split())
    assert re.search(r"kappa 100, every q \.500 ✗ \.[67]\d\d ✗ \.\d{3} \.450 \.\d{3}-\.\d{3} \.\d{3}-\.\d{3} d ", said)
    assert "Divided: how much of a fifth of mc" in said
    assert "e .400-.500" in said
    assert "6,000 points of mc, 3,000 documents; 95 % intervals by documents drawn again" in said
    assert "Nothing is admitted by Venn-ADMIT with kappa 101, every q." in said
    assert "Left out: Venn-Abers, score reliability: there is no model of it." in said
    assert len(compared_payload(many_classes(3000), command)["settings"][0]["per_true_class"]) == 6


def test_without_details_the_best_of_each_method_is_shown() -> None:
    brief, full = StringIO(), StringIO()
    found = many_classes(1000, 3000, 2000)
    Console(file=brief, width=120).print(compared_table(found, rest="add --details"))
    Console(file=full, width=120).print(compared_table(found))
    assert [f"kappa {kappa}," in brief.getvalue() for kappa in (100, 101, 102)] == [False, True, False]
    assert all(f"kappa {kappa}," in full.getvalue() for kappa in (100, 101, 102))
    assert "2 other settings: add --details." in brief.getvalue()
    assert "--details" not in full.getvalue()


def test_where_nothing_is_admitted_notes_are_left() -> None:
    output = StringIO()
    Console(file=output, width=120).print(compared_table(many_classes(0), rest="add --details"))
    assert "Nothing is admitted by Venn-ADMIT with kappa 100, every q." in output.getvalue()
    assert "What settings admit" not in output.getvalue()
    by_default, proposal, *_ = next_lines(many_classes(0, 3000), command)
    assert by_default.startswith("The default cannot be foretold, because too few points propose: `venn-admit")
    assert proposal.startswith("No pointwise setting is proposed: none with every predicted")
