"""Arguments and options that several verbs take."""

import inspect
from collections.abc import Callable, Sequence
from dataclasses import dataclass, fields, is_dataclass
from functools import wraps
from typing import Annotated, Any, get_type_hints

import typer

from venn_admit.errors import InvalidInputError

Name = Annotated[str, typer.Argument(help="The classifier's name, or NAME@NUMBER for a generation of it.")]
AllowTrainingRows = Annotated[
    bool,
    typer.Option(
        "--allow-training-rows",
        help="Store held-out rows that have the vector and logits, or the document, of a training row, which are "
        "refused otherwise.",
    ),
]
OwnExtractor = Annotated[
    str | None,
    typer.Option(
        "--extractor",
        help="Version of the extractor that its vectors come from. Default: the one that the first data state.",
    ),
]
Calibration = Annotated[int | None, typer.Option(help="Id of a calibration; default: the one in use.")]
Json = Annotated[bool, typer.Option("--json", help="Print the result as one JSON object.")]


@dataclass(frozen=True, slots=True)
class Stating:
    """What is stated of the vectors and logits of a file."""

    extractor: Annotated[
        str | None,
        typer.Option(help="Version of the extractor that the vectors come from, if the file does not state it."),
    ] = None
    probabilities: Annotated[
        bool,
        typer.Option(
            "--probabilities",
            help="What stands for logits are probabilities: take their logarithms. Refused otherwise.",
        ),
    ] = False
    as_logits: Annotated[
        bool,
        typer.Option(
            "--as-logits", help="What stands for logits are logits, though each row looks like probabilities."
        ),
    ] = False

    @property
    def are_probabilities(self) -> bool | None:
        """Whether logits are stated to be probabilities; None if nothing is."""
        return _chosen("probabilities", self.probabilities, "as-logits", self.as_logits)


NOTHING_STATED = Stating()


@dataclass(frozen=True, slots=True)
class Deciding:
    """How points are decided on."""

    weighted: Annotated[
        bool, typer.Option("--weighted", help="Weight probabilities by the localizer, the default of Venn-ADMIT.")
    ] = False
    unweighted: Annotated[
        bool, typer.Option("--unweighted", help="Use plain Venn probabilities, the default of Venn-Abers.")
    ] = False
    require_full_match: Annotated[
        bool, typer.Option("--require-full-match", help="Reject every prediction with q < K.")
    ] = False

    def arguments(self) -> dict[str, Any]:
        """Return the same as arguments of flows."""
        weighted = _chosen("weighted", self.weighted, "unweighted", self.unweighted)
        return {"weighted": weighted, "require_full_match": self.require_full_match}


def _chosen(option: str, is_given: bool, opposite: str, opposite_is_given: bool) -> bool | None:
    """Return what two opposite options say, None if neither is given. Both at once raise InvalidInputError."""
    if is_given and opposite_is_given:
        raise InvalidInputError(f"expected --{option} or --{opposite}, got both; leave one out")
    return True if is_given else False if opposite_is_given else None


def labels_by_id(
    where: str, given: list[str], class_names: Sequence[str], *, expected: str = "ID=CLASS", of: str = "id"
) -> dict[str, str | int]:
    """Return classes by id; InvalidInputError if one of ID=CLASS lacks a part, or an id occurs twice.

    A name counts, also if it is the number of another class, and either part may hold another `=`. where, expected, of:
    what a message calls them all, one of them, and that which the ids are of.
    """
    found: dict[str, str | int] = {}
    for one in given:
        external_id, label = _divided(where, one, class_names, expected)
        if external_id in found:
            raise InvalidInputError(f"{where}: expected every {of} once, got {external_id!r} twice")
        found[external_id] = class_names.index(label) if label in class_names else label
    return found


def _divided(where: str, one: str, class_names: Sequence[str], expected: str) -> tuple[str, str]:
    """The id and the class of ID=CLASS."""
    places = [place for place in range(1, len(one) - 1) if one[place] == "="]
    named = [place for place in places if one[place + 1 :] in class_names]
    if not places or len(named) > 1:
        raise InvalidInputError(
            f"{where}: expected {expected}, got {one!r}" + (", which can be read in several ways" if named else "")
        )
    place = (named or places)[-1]
    return one[:place], one[place + 1 :]


def numbers(option: str, text: str, kind: Callable[[str], Any], example: str) -> list[Any]:
    """Return what an option names, separated by commas. Raises InvalidInputError if something is not of its kind."""
    try:
        return [kind(part.strip()) for part in text.split(",")]
    except ValueError:
        raise InvalidInputError(f"{option}: expected numbers such as {example}, got {text!r}") from None


def with_records(verb: Callable[..., None]) -> Callable[..., None]:
    """Give a verb an option for each field of its parameters that are dataclasses, which are made of the options."""
    signature = inspect.signature(verb)
    records: dict[str, Any] = {
        name: one.annotation for name, one in signature.parameters.items() if is_dataclass(one.annotation)
    }
    parameters: list[inspect.Parameter] = []
    for name, one in signature.parameters.items():
        if name not in records:
            parameters.append(one)
            continue
        hints = get_type_hints(records[name], include_extras=True)
        parameters += (
            one.replace(name=field.name, default=field.default, annotation=hints[field.name])
            for field in fields(records[name])
        )

    @wraps(verb)
    def run(*arguments: Any, **given: Any) -> None:
        for name, record in records.items():
            own = [field.name for field in fields(record) if field.name in given]
            given[name] = record(**{field: given.pop(field) for field in own})
        verb(*arguments, **given)

    run.__signature__ = signature.replace(parameters=parameters)  # type: ignore[attr-defined]
    return run
