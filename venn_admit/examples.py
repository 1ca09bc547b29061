"""Data that come with the package, to try it on."""

from pathlib import Path

from venn_admit.service.resources import bundled_folder


def example_data() -> Path:
    """Return the folder of the data that the tutorial uses: film reviews and tweets, as a small network saw them.

    It holds four files: `train.npz` (3,414 reviews that the network was trained on), `valid.npz` (16,000 others, held
    out), `test.npz` (488 others, to score) and `ood.npz` (4,750 tweets, which are unlike the reviews). Each has the
    arrays `r` (n, 128), the last hidden layer; `f` (n, 2), the logits; `y` (n,), 0 negative or 1 positive; `id` and
    `doc` (n,), ids of rows and of documents; and `group` (n,), star ratings. There is no text in them.
    """
    return bundled_folder("examples") / "sentiment_small"
