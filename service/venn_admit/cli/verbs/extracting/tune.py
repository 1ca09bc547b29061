"""`venn-admit extract tune`: an encoder is trained in turns with a memory layer."""

from dataclasses import asdict
from pathlib import Path
from typing import Annotated

import typer

from venn_admit.cli.options import Json, with_records
from venn_admit.cli.output import print_result
from venn_admit.cli.verbs.extracting.options import Training
from venn_admit.cli.waiting import Showing


@with_records
def tune(
    file: Annotated[
        Path, typer.Argument(help="Labelled texts (.csv, .jsonl, .parquet) or words (.conll, .tsv, .txt).")
    ],
    out: Annotated[Path, typer.Option(help="The folder of the new encoder.")],
    rounds: Annotated[int, typer.Option(help="The most epochs that the encoder is trained for.")] = 3,
    learning_rate: Annotated[float, typer.Option(help="Learning rate of the encoder.")] = 2e-5,
    *,
    training: Training,
    as_json: Json = False,
) -> None:
    """Train an encoder in turns with a memory layer: a layer on top of it, an epoch of the encoder, and so on.

    It ends once the loss on the dev split stops falling, and writes the best encoder, which may be the one that it
    started from. Use it as `--encoder` of `extract train`, with the same `--layers` and `--max-tokens`. Its exemplars
    are those of a new extractor: `venn-admit generation create`. If the training was interrupted, the same command goes
    on with it.
    """
    from venn_admit.flows.extraction.options import check_options
    from venn_admit.flows.extraction.states import Resources
    from venn_admit.flows.extraction.tune import TuningSettings, tune_encoder
    from venn_admit.runtime.settings import get_settings

    options = training.source()
    check_options(options, file)
    settings = training.settings()
    with Showing() as display:
        tuned = tune_encoder(
            file,
            options,
            settings,
            TuningSettings(rounds, learning_rate),
            out,
            Resources(out, get_settings().memory_budget_mb << 20, display),
        )
    best = tuned.rounds[tuned.best_round]
    print_result(
        as_json,
        {"encoder": str(out), "best_round": tuned.best_round, "rounds": [asdict(line) for line in tuned.rounds]},
        *(
            f"Epochs of the encoder: {line.round}. On the dev split: loss {line.dev_loss:.4f}, accuracy "
            f"{line.dev_accuracy:.3f}, F0.5 {line.dev_f_half:.3f}."
            for line in tuned.rounds
        ),
        f"The best encoder is in {out}, epochs: {best.round}."
        + ("" if tuned.best_round else " Training did not help: it is the one that training started from."),
    )
