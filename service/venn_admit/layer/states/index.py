"""The content of a folder of shards: documents with the states of their tokens, and `index.json` with digests.

The file appears when the last shard is written. Until then the same content is in `unfinished.json`, from which an
interrupted writer goes on.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any, ClassVar, Literal, Self, TypeVar

from pydantic import (
    BaseModel,
    ConfigDict,
    Field,
    SerializerFunctionWrapHandler,
    ValidationError,
    model_serializer,
    model_validator,
)

from venn_admit.core.types import Float32Array, IntArray
from venn_admit.errors import InvalidInputError
from venn_admit.files.inputs import check_is_file, reading
from venn_admit.files.output.atomic import replacing, writing

INDEX_NAME = "index.json"
UNFINISHED_NAME = "unfinished.json"
Kind = Literal["document", "token"]
"""What is labelled, and so what an exemplar will be: a whole document, or each of its tokens."""
_RECORD_BYTES = 64 << 20
_Digest = Annotated[str, Field(pattern="^[0-9a-f]{64}$")]
_Count = Annotated[int, Field(ge=1, le=1 << 48)]
MOST_LABELS = 63
"""How many labels documents can have, if each may have several."""
NOT_A_WORD = -2
"""The label of a token that is no exemplar: a subtoken after the first of its word, or a special token."""
TOKENS_CUT = "tokens_cut"
"""The attribute of a document with more tokens than the encoder reads: how many are left out."""


class Record(BaseModel):
    """What a file of a folder holds, checked as it is read."""

    model_config = ConfigDict(frozen=True, extra="forbid", strict=True)
    came_later: ClassVar[frozenset[str]] = frozenset()
    """Fields that are left out where they hold nothing, so that digests of what was written before stay."""

    @model_serializer(mode="wrap")
    def _without_what_is_not_there(self, serialize: SerializerFunctionWrapHandler) -> dict[str, Any]:
        described: dict[str, Any] = serialize(self)
        return {name: value for name, value in described.items() if value or name not in self.came_later}


RecordType = TypeVar("RecordType", bound=Record)


class EncoderIdentity(Record):
    """The network that the states are of. States of encoders that are not equal must not be mixed.

    Attributes:
        digest: SHA-256 of its weights and tokenizer; empty for states that were computed elsewhere.
        layers: The numbers of the layers whose states are concatenated, counted from 1; empty if unknown.
        max_tokens: How many tokens of a text it reads; 0 if unknown.
        side_logits: How many logits of the network follow each state, as a part of it; 0 for states alone.
    """

    name: str = Field(min_length=1, max_length=1000)
    digest: str = ""
    layers: tuple[int, ...] = Field(default=(), strict=False)
    max_tokens: int = Field(default=0, ge=0)
    side_logits: int = Field(default=0, ge=0)
    came_later = frozenset({"side_logits"})


class ShardEntry(Record):
    """One shard: its file, SHA-256 and counts. cut: documents with tokens that the encoder could not read."""

    file: str = Field(pattern=r"^shard-[0-9]{5,}\.safetensors$")
    sha256: _Digest
    documents: _Count
    tokens: _Count
    cut: int = Field(default=0, ge=0)


class StatesIndex(Record):
    """The content of `index.json`.

    Attributes:
        width: H, the length of a state.
        class_names: The C names; a label is the position of one.
        source: A digest of the data that the states were computed from; empty if unknown.
        several_labels: Whether each document has any number of labels.
    """

    format: Literal["venn-admit states"] = "venn-admit states"
    version: Literal[1] = 1
    kind: Kind
    width: int = Field(ge=1, le=1 << 20)
    dtype: Literal["float16", "float32"]
    class_names: tuple[str, ...] = Field(min_length=1, strict=False)
    encoder: EncoderIdentity
    source: str = ""
    documents: int = Field(default=0, ge=0)
    tokens: int = Field(default=0, ge=0)
    shards: tuple[ShardEntry, ...] = Field(default=(), strict=False)
    several_labels: bool = False
    came_later = frozenset({"several_labels"})

    @property
    def label_limit(self) -> int:
        """What every label of a document is below."""
        return 1 << len(self.class_names) if self.several_labels else len(self.class_names)

    @model_validator(mode="after")
    def _adds_up(self) -> Self:
        for name in ("documents", "tokens"):
            counted = sum(getattr(shard, name) for shard in self.shards)
            if counted != getattr(self, name):
                raise ValueError(f"{name}: it names {getattr(self, name):,}, its shards {counted:,}")
        if len({shard.file for shard in self.shards}) < len(self.shards):
            raise ValueError("shards: a file is named twice")
        return self


def read_index(path: Path) -> StatesIndex:
    """Read and check an index."""
    return read_record(path, StatesIndex, "index of a folder of states", "write the states again")


def read_record(path: Path, kind: type[RecordType], called: str, advice: str) -> RecordType:
    """Read and check a record in a file of its own.

    Args:
        called: What messages call what was expected.
        advice: What to do about a file that is invalid, apart from copying its folder again.
    """
    check_is_file(path)
    with reading(path, called), path.open("rb") as file:
        text = file.read(_RECORD_BYTES + 1)
    if len(text) > _RECORD_BYTES:
        raise InvalidInputError(f"{path}: expected at most {_RECORD_BYTES:,} bytes, got more; divide the documents")
    try:
        return kind.model_validate_json(text)
    except ValidationError as error:
        first = error.errors(include_url=False, include_input=False)[0]
        where = ".".join(map(str, first["loc"])) or "content"
        raise InvalidInputError(
            f"{path}: {where}: expected the {called}, got: {first['msg']}; {advice}, or copy the folder again"
        ) from error


def write_index(path: Path, index: StatesIndex) -> None:
    """Write an index, atomically."""
    with replacing(path) as file, writing(path):
        file.write(index.model_dump_json(indent=2).encode() + b"\n")


@dataclass(frozen=True, slots=True, eq=False)
class StateDocument:
    """A document, with a state of the network for each of its T >= 1 tokens.

    Attributes:
        external_id: 1 to 1,000 characters, unique among the documents.
        states: (T, H) float32, finite.
        label: y in [0, C) of the document, -1 if unknown; -1 in documents whose tokens are labelled. If each document
            has any number of labels, their set: a number whose bit c is 1 if label c is one of them.
        token_labels: (T,) int64, y of each token in [0, C), -1 if unknown, `NOT_A_WORD` for a token that is no
            exemplar; None in documents that are labelled as a whole.
        tokens: T texts, or none if they are unknown.
        attributes: JSON values by name, such as the text.
    """

    external_id: str
    states: Float32Array
    label: int
    token_labels: IntArray | None
    tokens: tuple[str, ...]
    attributes: Mapping[str, object]
