"""`fit --k auto` shows what it tried, and keeps what it chose; it is no option beside given parameters."""

from pathlib import Path

from tests.cli.program import Program, check_refusal
from tests.cli.samples import NAME


def test_what_was_tried_is_shown_and_the_choice_is_kept(own_ingested: Program, tmp_path: Path) -> None:
    fitted = own_ingested("fit", NAME, "--k", "auto", "--json").result
    chosen = next(one for one in fitted["tried"] if one["neighbour_count"] == fitted["k"])
    assert (chosen["discrepancies"], chosen["full_matches"]) == (fitted["dev_discrepancies"], fitted["full_matches"])
    assert own_ingested("show", NAME, "--json").result["k"] == fitted["k"]
    check_refusal(own_ingested("fit", NAME, "--k", "auto"), 2, f"has results with K {fitted['k']}")
    check_refusal(own_ingested("fit", NAME, "--k", "auto", "--parameters", tmp_path), 2, "got both; leave one out")
    assert f"q is K for {fitted['full_matches']:.0%} of split knn" in own_ingested("fit", NAME).stdout
