"""`decide` on one row at once, and `index`: what searching by an HNSW index changes."""

import re
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow.parquet as pq
import pytest
from sqlalchemy import make_url, text

from tests.cli import samples
from tests.cli.program import Program, check_refusal, nothing_stored
from tests.cli.samples import CLASS_NAMES, NAME, SCORED_ROWS, K
from tests.files.samples import SUFFIXES
from venn_admit.cli.tables.decision_tables import print_decision
from venn_admit.core.evaluation.tallies import wilson_interval
from venn_admit.report.evaluation.wording import interval_text
from venn_admit.store.database.engine import create_engine, transaction

FIELDS = (
    "predicted",
    "logits",
    "band_size",
    "threshold",
    "category_size",
    "upweight",
    "lower",
    "upper",
    "decision",
    "reason",
    "calibration",
    "predicted_class",
    "decided_class",
)


@pytest.mark.parametrize("options", [(), ("--unweighted",), ("--require-full-match",)])
def test_decide_is_the_row_that_score_writes(own_calibrated: Program, tmp_path: Path, options: tuple[str, ...]) -> None:
    file, out = samples.save(tmp_path, "scored.npz", samples.scored()), tmp_path / "scores.parquet"
    with nothing_stored(own_calibrated):
        decided = {
            row: own_calibrated("decide", NAME, file, "--row", row, "--json", *options).result
            for row in (0, 7, SCORED_ROWS - 1)
        }
    assert own_calibrated("score", NAME, file, "--out", out, *options).code == 0
    scored = pq.read_table(out).to_pylist()
    for row, found in decided.items():
        # JSON has no infinity.
        finite = [value if np.isfinite(value) else str(value) for value in scored[row]["threshold"]]
        assert {field: found[field] for field in FIELDS} == {field: scored[row][field] for field in FIELDS} | {
            "threshold": finite
        }
        assert found["external_id"] == scored[row]["external_id"]
        assert (found["match_count"], found["distance"]) == (scored[row]["q"], scored[row]["d"])
        assert [place for place, bit in enumerate(found["admit_set"]) if bit == "1"] == scored[row]["set"]
        assert found["class_names"] == list(CLASS_NAMES)
        assert len(found["neighbours"]) == K
        for near in found["neighbours"]:
            assert near["label_class"] == CLASS_NAMES[near["label"]]
            assert near["network_class"] == CLASS_NAMES[near["network_predicted"]]
        assert found["neighbours"][0]["distance"] == found["distance"]
        assert sum(found["category_counts"]) == found["category_size"]
        assert (found["category"] is None) == (found["lower"] is None)
        if found["category"] is not None:
            own = found["predicted"]
            assert (found["category"]["lower"][own], found["category"]["upper"][own]) == (
                found["lower"],
                found["upper"],
            )


def test_decide_shows_why(calibrated: Program, files: Path) -> None:
    shown = calibrated("decide", NAME, files / "scored.npz", "--row", 3).stdout
    for expected in ("scored-3, calibration 1", "q, matching neighbours", "points in band", "train-", *CLASS_NAMES):
        assert expected in shown


def test_decide_and_replay_show_the_interval_of_the_category(
    own_calibrated: Program, files: Path, tmp_path: Path
) -> None:
    scores = tmp_path / "scores.parquet"
    assert own_calibrated("score", NAME, files / "scored.npz", "--out", scores).code == 0
    compared = 0
    for row in range(SCORED_ROWS):
        decide = ("decide", NAME, files / "scored.npz", "--row", row)
        found = own_calibrated(*decide, "--json").result
        if found["category"] is None or not found["category_size"]:
            continue
        counts = found["category_counts"]
        low, high = wilson_interval(counts[found["predicted"]], sum(counts))
        replay = ("replay", "--classifier", NAME, "--id", f"scored-{row}")
        for again in (found, own_calibrated(*replay, "--json").result):
            assert again["category"]["interval"] == [float(low), float(high)]
        said = f"95 % interval {interval_text((float(low), float(high)))}"
        assert all(said in own_calibrated(*asked).stdout for asked in (decide, replay))
        compared += 1
        if compared == 2:
            break
    assert compared == 2


def test_decide_shows_four_digits_and_as_many_neighbours_as_asked_for(calibrated: Program, files: Path) -> None:
    point = ("decide", NAME, files / "scored.npz", "--row", 3, "--neighbours", 2)
    exact, shown = calibrated(*point, "--json").result, calibrated(*point).stdout
    assert len(exact["neighbours"]) == 2
    for value in (exact["distance"], exact["lower"], *(near["distance"] for near in exact["neighbours"])):
        assert f"{value:.4g}" in shown
    assert shown.count("train-") == 2
    numbers = re.findall(r"\d+\.\d+", shown)
    assert all(len(number.replace(".", "").lstrip("0")) <= 4 for number in numbers), numbers
    assert "Nearest training" not in calibrated(*point[:-1], 0).stdout


def test_decide_says_of_a_rejection_what_there_is_none_of(capsys: pytest.CaptureFixture[str]) -> None:
    """A rejected point has no decision and maybe no probability, and an admitted one no reason to show."""
    fields: dict[str, Any] = {
        **dict.fromkeys(("predicted", "match_count", "category_size"), 0),
        **dict.fromkeys(("distance", "upweight"), 0.5),
        **dict.fromkeys(("lower", "upper", "decision"), None),
        "reason": "band below kappa",
        "admit_set": "11",
        "band_size": [0, 3],
        "threshold": [0.9, 0.9],
        "logits": [1.0, 2.0],
    }
    print_decision("one", ("red", "green"), fields, [0, 0], [])
    lines = [" ".join(line.split()) for line in capsys.readouterr().out.splitlines()]
    assert "decision none (rejected)" in lines
    assert "reason of rejection band below kappa" in lines
    assert "lower probability not computed" in lines
    print_decision("one", ("red", "green"), {**fields, "decision": 1, "reason": None}, [0, 0], [])
    told = capsys.readouterr().out
    assert "green" in told
    assert "reason of rejection" not in told


@pytest.mark.parametrize("suffix", SUFFIXES)
def test_decide_takes_any_row_of_either_format(calibrated: Program, tmp_path: Path, suffix: str) -> None:
    path = samples.save(tmp_path, f"two{suffix}", samples.take(samples.scored(), slice(5, 7)))
    assert calibrated("decide", NAME, path, "--row", 1, "--json").result["external_id"] == "scored-6"
    check_refusal(calibrated("decide", NAME, path, "--row", 2), 2, "expected a row from 0 to 1, got 2")


def test_decide_before_a_calibration(ingested: Program, files: Path) -> None:
    check_refusal(ingested("decide", NAME, files / "scored.npz"), 4, "has no calibration yet")


def test_the_life_of_an_index(own_calibrated: Program, files: Path) -> None:
    path = files / "scored.npz"
    exact = own_calibrated("decide", NAME, path, "--json").result
    by_index = ("decide", NAME, path, "--ef-search", 100, "--json")
    refused = f"has no HNSW index: create it, or search exactly; run `venn-admit index create {NAME}`$"
    check_refusal(own_calibrated(*by_index), 4, refused)
    check_refusal(own_calibrated("index", "audit", NAME), 4, "has no HNSW index")
    assert own_calibrated("index", "show", NAME, "--json").result == {"classifier": NAME, "hnsw": None}

    made = own_calibrated("index", "create", NAME, "--m", 8, "--ef-construction", 32, "--json").result["hnsw"]
    assert (made["m"], made["ef_construction"]) == (8, 32)
    assert own_calibrated("index", "show", NAME, "--json").result["hnsw"] == made
    assert "m = 8, ef_construction = 32" in own_calibrated("index", "show", NAME).stdout
    assert own_calibrated(*by_index).result == exact, "of 300 exemplars a search of 100 misses none of 5"
    check_refusal(own_calibrated("index", "create", NAME), 2, "drop it first")

    assert own_calibrated("index", "drop", NAME, "--json").result["hnsw"] is None
    check_refusal(own_calibrated("index", "drop", NAME), 3, "has no HNSW index")
    check_refusal(own_calibrated(*by_index), 4, "has no HNSW index")


def test_little_memory_for_an_index(own_calibrated: Program) -> None:
    name = make_url(own_calibrated.url).database
    engine = create_engine(own_calibrated.url)
    with transaction(engine) as connection:
        connection.execute(text(f"ALTER DATABASE {name} SET maintenance_work_mem = '64kB'"))
    engine.dispose()
    made = own_calibrated("index", "create", NAME)
    assert "the server may take 0: what does not fit takes many times as long" in made.stderr
    assert "--memory 1" in made.stderr
    assert own_calibrated("index", "drop", NAME).code == 0
    assert "warning" not in own_calibrated("index", "create", NAME, "--memory", 1).stderr


def test_the_audit_of_an_index(own_calibrated: Program) -> None:
    assert own_calibrated("index", "create", NAME, "--m", 2, "--ef-construction", 4).code == 0
    asked = ("index", "audit", NAME, "--sample", 60, "--ef-search", f"{K},300")
    with nothing_stored(own_calibrated):
        result = own_calibrated(*asked, "--json").result
        shown = own_calibrated(*asked).stdout
    assert result["sample"] == 60
    exact, narrow, wide = result["searches"]
    assert [one["ef_search"] for one in result["searches"]] == [None, K, 300]
    shares = (
        "wrong_nearest",
        "other_match_count",
        "other_distance",
        "other_prediction",
        "other_set",
        "other_decision",
    )
    assert exact["recall"] == 1
    assert all(exact[share] == 0 for share in shares)
    assert narrow["recall"] < wide["recall"]
    assert narrow["recall"] < 1
    assert 0 < narrow["wrong_nearest"] == narrow["other_distance"], "no two exemplars are alike"
    assert narrow["other_decision"] > 0
    assert all(0 <= narrow[share] <= 1 for share in shares)
    assert all(0 < one["p50"] <= one["p99"] for one in result["searches"])
    for expected in ("60 stored points", "recall", "exact", f"{narrow['recall']:.3f}"):
        assert expected in shown


@pytest.mark.parametrize(
    ("verb", "options", "saying"),
    [
        ("create", ("--m", 1), "expected m from 2 to 100"),
        ("audit", ("--ef-search", "many"), "--ef-search: expected numbers such as 40,100,400, got 'many'"),
        ("audit", ("--ef-search", K - 1), f"expected ef_search from K = {K} to 1000, got {K - 1}"),
        ("audit", ("--sample", 0), "expected a sample of at least 1 point, got 0"),
    ],
)
def test_what_cannot_be_done(calibrated: Program, verb: str, options: tuple[object, ...], saying: str) -> None:
    with nothing_stored(calibrated):
        check_refusal(calibrated("index", verb, NAME, *options), 2, saying)
