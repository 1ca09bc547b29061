"""Data that come with the package, to try it on."""

from pathlib import Path

from venn_admit.resources import bundled_folder


def example_texts() -> Path:
    """Return the folder of the texts that the tutorial from texts uses: customers' messages to a shop, all generated.

    It holds four CSV files: `train.csv` (800 messages), `held-out.csv` (1,500), `test.csv` (300) and `new.csv` (100,
    without labels). The columns are `id`, `text`, `label`, the team that answered: billing, delivery or product, and
    `channel`.
    """
    return bundled_folder("examples") / "messages"


def example_data() -> Path:
    """Return the folder of the data that the tutorial uses: film reviews and tweets, as a small network saw them.

    It holds four files: `train.npz` (3,414 reviews that the network was trained on), `valid.npz` (16,000 others, held
    out), `test.npz` (488 others, to score) and `ood.npz` (4,750 tweets, which are unlike the reviews). Each has the
    arrays `r` (n, 128), the last hidden layer; `f` (n, 2), the logits; `y` (n,), 0 negative or 1 positive; `id` and
    `doc` (n,), ids of rows and of documents; and `group` (n,), star ratings. There is no text in them.
    """
    return bundled_folder("examples") / "sentiment_small"
