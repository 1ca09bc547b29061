"""The source's experiment on grammatical errors, from files of vectors and logits to its tables.

Run from the checkout: `python -m examples.grammar FOLDER OUT`. The folder holds `train.npz`, which the network was
trained on, `valid.npz`, held out, and sets to evaluate, such as `test.npz` and `shifted.npz`: one row a word, with the
arrays `r`, `f`, `y` (1: the word is marked as an error) and `doc`, its sentence. The tables are printed as Markdown,
and written to OUT with a page of charts for each calibration. It uses the database of the environment, or one of its
own in OUT.
"""

import argparse
import sys
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

import venn_admit

NAME = "grammar"
CLASSES = ("correct", "error")
STORED = {"train": "train", "valid": "held-out"}
CALIBRATIONS: dict[str, dict[str, Any]] = {"paper": {"method": "venn-admit"}, "default": {}}
METHODS = (
    "KNN",
    "network",
    "softmax >= 1 - alpha",
    "Conf_BASE",
    "LocalConf_BASE",
    "APS",
    "SGR",
    "ADMIT",
    "Venn-ADMIT plain",
    "Venn-ADMIT weighted",
    "Venn-Abers network",
    "on average",
)

Row = Sequence[object]


def run(folder: Path, out: Path, *, kappa: int = 100, name: str = NAME) -> str:
    """Ingest, fit, calibrate by the paper's method and by the default, evaluate every set, and return the tables."""
    sets = evaluation_sets(folder)
    with venn_admit.connect(home=out / "home") as connection:
        words = connection.create(name, CLASSES, dimension=dimension(folder / "train.npz"))
        for part, split in STORED.items():
            # Some words have the vector and logits of the same word elsewhere, which is so in traffic too.
            words.ingest(folder / f"{part}.npz", split=split, allow_training_rows=True)
        words.fit()
        found, promises = {}, []
        for which, asked in CALIBRATIONS.items():
            promises.append(str(words.calibrate(**(asked | ({"kappa": kappa} if which == "paper" else {})))))
            evaluations = words.evaluate_sets(sets)
            evaluations.write(out / which)
            found[which] = evaluations.to_dict()["sets"]
    text = "\n".join(tables(folder, found, promises))
    (out / "tables.md").write_text(text, encoding="utf-8")
    return text


def evaluation_sets(folder: Path) -> dict[str, Path]:
    """The files to evaluate by their names; `test` comes before `shifted`."""
    return {path.stem: path for path in sorted(folder.glob("*.npz"), reverse=True) if path.stem not in STORED}


def dimension(path: Path) -> int:
    with np.load(path) as arrays:
        return int(arrays["r"].shape[1])


def tables(folder: Path, found: Mapping[str, list[dict[str, Any]]], promises: Sequence[str]) -> Iterator[str]:
    """The tables as lines of Markdown."""
    paper, default = found["paper"], found["default"]
    yield from section("The task", ("set", "words", "sentences", "errors", "right by the network"), sizes(folder))
    data = {"calibration data": paper[0]["calibration_data"]} | {one["name"]: one for one in paper}
    yield from section(
        "Accuracy and F0.5 of every prediction, with 95 % intervals from resampled sentences",
        ("set", "prediction", "accuracy", "F0.5, mean", "F0.5 of error"),
        [(name, who, *of_prediction(one)) for name, each in data.items() for who, one in each["accuracy"].items()],
    )
    for name, each in data.items():
        yield from section(
            f"Partitions of {name}, median of d {each['median_d']:.4g}: threshold, accuracy, (n/N)",
            ("q", "d", "all", *(f"true {one}" for one in CLASSES)),
            [
                (row["q"], row["d"], *map(of_partition, (row["all"], *row["per_true_class"].values())))
                for row in each["partitions"]
            ],
        )
    for by_paper, by_default in zip(paper, default, strict=True):
        own = by_default["own_method"]
        methods = by_default["methods"] | by_paper["methods"] | {own: by_default["methods"][own]}
        kinds = [(kind, one) for kind in ("predicted", "true") for one in CLASSES]
        yield from section(
            f"What is admitted of {by_paper['name']}: share right, (n/N)",
            ("method", "promise", "admitted", *(f"{kind} {one}" for kind, one in kinds)),
            [
                (
                    f"**{method}**" if method == own else method,
                    methods[method]["promise"],
                    share(methods[method]["all"]["n"] / methods[method]["all"]["N"]),
                    *(of_class(methods[method][f"per_{kind}_class"][one]) for kind, one in kinds),
                )
                for method in (*METHODS, own)
                if method in methods
            ],
        )
    yield "## What is promised"
    yield from ("", *(f"```text\n{promise}\n```\n" for promise in promises))


def section(title: str, columns: Sequence[str], rows: Sequence[Row]) -> Iterator[str]:
    yield f"## {title}"
    yield ""
    for row in (columns, ["---"] * len(columns), *rows):
        yield f"| {' | '.join(map(str, row))} |"
    yield ""


def sizes(folder: Path) -> list[Row]:
    rows: list[Row] = []
    for name in (*STORED, *evaluation_sets(folder)):
        with np.load(folder / f"{name}.npz") as arrays:
            label, right = arrays["y"], arrays["f"].argmax(axis=1) == arrays["y"]
            documents = len(np.unique(arrays["doc"]))
        rows.append((name, f"{len(label):,}", f"{documents:,}", share(label.mean()), share(right.mean())))
    return rows


def of_prediction(one: Mapping[str, Any]) -> Row:
    overall = one["tallies"]["all"]
    mean = f"{share(one['f_half_macro'])} ({interval(one['f_half_macro_interval'])})"
    return f"{share(one['accuracy'])} ({interval(overall['interval'])})", mean, share(one["f_half"]["error"])


def of_partition(cell: Mapping[str, Any]) -> str:
    if not cell["n"]:
        return "-"
    return f"{share(cell['threshold'])}, {share(cell['share_correct'])} ({share(cell['n'] / cell['N'])})"


def of_class(cell: Mapping[str, Any]) -> str:
    if not cell["n"]:
        return "none"
    return f"{share(cell['share_correct'])} ({share(cell['n'] / cell['N'])}), {interval(cell['interval'])}"


def share(value: float) -> str:
    """A share with three digits, without a leading zero."""
    return f"{value:.3f}".removeprefix("0")


def interval(ends: Sequence[float]) -> str:
    return " to ".join(map(share, ends))


def main() -> None:
    """Read the command line, and print the tables."""
    parser = argparse.ArgumentParser(description="The experiment on grammatical errors, from vectors to tables.")
    parser.add_argument("folder", type=Path, help="with train.npz, valid.npz and sets to evaluate")
    parser.add_argument("out", type=Path, help="folder for the tables and pages")
    parser.add_argument(
        "--kappa", type=int, default=100, help="least points of each class in a band of the paper's method"
    )
    asked = parser.parse_args()
    sys.stdout.write(run(asked.folder, asked.out, kappa=asked.kappa))


if __name__ == "__main__":
    main()
