"""Where NannyML's realized performance alerts; run by `benchmarks.detection` with a Python that has NannyML.

It takes the name of an npz file with `reference` (n, r) and `traffic` (n, t), bool, whether each label of n streams is
as predicted, and prints a JSON list: for each stream, the labels after which the first chunk lies below the reference,
or null.
"""

import json
import sys

import nannyml
import numpy as np
import pandas as pd

CHUNK = 100


def frame(right: "np.ndarray") -> pd.DataFrame:
    """Labels of one class, as a classifier that is right or wrong about them says; accuracy takes nothing else."""
    predicted = right.astype(int)
    return pd.DataFrame(
        {"label": np.ones(len(right), dtype=int), "predicted": predicted, "probability": predicted * 1.0}
    )


def first_alert(reference: "np.ndarray", traffic: "np.ndarray") -> int | None:
    """The labels that have come when a chunk's accuracy is first 3 standard deviations below the reference chunks'."""
    calculator = nannyml.PerformanceCalculator(
        metrics=["accuracy"],
        y_true="label",
        y_pred="predicted",
        y_pred_proba="probability",
        problem_type="classification_binary",
        chunk_size=CHUNK,
    )
    calculator.fit(frame(reference))
    found = calculator.calculate(frame(traffic)).filter(period="analysis").to_df()["accuracy"]
    below = np.flatnonzero((found["value"] < found["lower_threshold"]).to_numpy())
    return int(below[0] + 1) * CHUNK if len(below) else None


if __name__ == "__main__":
    with np.load(sys.argv[1]) as streams:
        print(json.dumps([first_alert(*each) for each in zip(streams["reference"], streams["traffic"], strict=True)]))
