"""Arguments and options that several verbs take."""

from typing import Annotated

import typer

Name = Annotated[str, typer.Argument(help="The classifier's name, or NAME@NUMBER for a generation of it.")]
Extractor = Annotated[
    str | None,
    typer.Option(help="Version of the extractor that the vectors come from, if the file does not state it."),
]
Probabilities = Annotated[
    bool | None,
    typer.Option(
        "--probabilities/--no-probabilities",
        help="What stands for logits are probabilities, whose logarithms are taken; or logits, whatever they look "
        "like. Default: logits, refused if every row looks like probabilities.",
    ),
]
AllowTrainingRows = Annotated[
    bool,
    typer.Option(
        "--allow-training-rows",
        help="Store held-out rows that have the vector and logits of a training row, which are refused otherwise.",
    ),
]
OwnExtractor = Annotated[
    str | None,
    typer.Option(
        "--extractor",
        help="Version of the extractor that its vectors come from. Default: the one that the first data state.",
    ),
]
Calibration = Annotated[int | None, typer.Option(help="Id of a calibration; default: the current one.")]
Weighted = Annotated[
    bool, typer.Option("--weighted", help="Weight probabilities by the localizer, the default of Venn-ADMIT.")
]
Unweighted = Annotated[
    bool, typer.Option("--unweighted", help="Use plain Venn probabilities, the default of Venn-Abers.")
]
RequireFullMatch = Annotated[bool, typer.Option("--require-full-match", help="Reject every prediction with q < K.")]
Json = Annotated[bool, typer.Option("--json", help="Print the result as one JSON object.")]
