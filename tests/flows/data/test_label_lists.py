"""Lists of points to label are random samples: what somebody chose is among them, or all that came with it is not."""

import numpy as np
import pytest

from tests.running import EXAMPLES, Bench
from venn_admit.files.label_sources import LabelFile
from venn_admit.flows.data.export import Export, export
from venn_admit.flows.data.label import label
from venn_admit.flows.data.label_lists import work_list

NAME = "reviews"


def score(bench: Bench, first: int, end: int) -> None:
    with np.load(EXAMPLES / "ood.npz") as ood:
        tweets = {name: ood[name][first:end] for name in ("r", "f")}
    ids = np.array([f"tweet-{row}" for row in range(first, end)])
    bench.score(NAME, bench.write("tweets.npz", tweets | {"id": ids}))


@pytest.mark.parametrize("join_train", [False, True])
def test_what_was_chosen_leaves_no_gap(few_reviews: Bench, join_train: bool) -> None:
    score(few_reviews, 0, 60)
    path = few_reviews.folder / "labels.csv"
    path.write_text("external_id,label\n" + "".join(f"tweet-{row},1\n" for row in range(0, 40, 3)))
    label(few_reviews.engine, NAME, LabelFile(path), selection="selected", retract=False, join_train=join_train)
    score(few_reviews, 60, 100)
    wanted = {f"tweet-{row}" for row in range(40 if join_train else 0, 100)}
    found = work_list(few_reviews.engine, NAME, limit=200)
    assert {one.external_id for one in found.shown} == wanted
    assert sum(one.label is not None for one in found.shown) == (0 if join_train else 14)
    out = few_reviews.folder / "unlabelled.csv"
    assert export(few_reviews.engine, NAME, Export.UNLABELLED, out, calibration_id=None).rows == len(wanted)
