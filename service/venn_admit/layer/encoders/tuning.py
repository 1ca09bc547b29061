"""Training an encoder for an epoch, with a memory layer that is held fixed on top of it.

Source: Schmaltz (2021) trains the layer over a frozen network; the appendix of Schmaltz & Rasooly (2022) allows the
network to be trained in turn. Settled here: Adam at a small learning rate, no dropout, so that the network sees the
states that the layer was trained on, and the same loss, mini-batches and dev split as for the layer.
"""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import torch
from safetensors.torch import save_file

from venn_admit.core.types import IntArray
from venn_admit.errors import InvalidInputError
from venn_admit.files.output.atomic import writing
from venn_admit.layer.batches import epoch_batches
from venn_admit.layer.encoders.encoding import pieces_of
from venn_admit.layer.encoders.local import WEIGHTS_NAME, TextEncoder
from venn_admit.layer.layer import LossTally, MemoryLayer, Objective
from venn_admit.layer.model import LayerModel
from venn_admit.layer.texts.document import TextDocument

_BATCH_TOKENS = 1024


@dataclass(frozen=True, slots=True, eq=False)
class TokenizedDocument:
    """What training needs of a document.

    Attributes:
        kept: The positions in each piece whose states count.
        labels: One of the document, or one of each kept position, int64; below 0 if there is none.
    """

    ids: tuple[IntArray, ...]
    kept: tuple[IntArray, ...]
    labels: IntArray

    @property
    def length(self) -> int:
        """The number of tokens."""
        return sum(map(len, self.ids))


def tokenized(documents: Iterator[TextDocument], encoder: TextEncoder) -> Iterator[TokenizedDocument]:
    """Yield documents as an encoder reads them."""
    for document in documents:
        pieces = pieces_of(document, encoder)
        yield TokenizedDocument(
            tuple(np.array(piece.ids) for piece in pieces),
            tuple(np.array(piece.kept) for piece in pieces),
            np.array([document.label]) if document.word_labels is None else document.word_labels,
        )


def tune(
    encoder: TextEncoder,
    model: LayerModel,
    objective: Objective,
    documents: Sequence[TokenizedDocument],
    *,
    learning_rate: float,
    generator: np.random.Generator,
    progress: Callable[[int], None],
) -> float:
    """Train an encoder for one epoch, in place.

    Args:
        progress: Called after every mini-batch with the number of its documents.

    Returns:
        The mean loss while the parameters change.
    """
    layer = _fixed(model)
    lengths = np.array([document.length for document in documents])
    optimizer = torch.optim.Adam(encoder.model.parameters(), lr=learning_rate)
    tally = LossTally(len(model.class_names))
    rows = np.arange(len(documents))
    for part in epoch_batches(lengths, rows, batch_tokens=model.settings.batch_tokens, generator=generator):
        batch = [documents[row] for row in part.tolist()]
        loss = objective.loss(
            layer,
            _states(encoder, batch),
            np.array([sum(map(len, document.kept)) for document in batch]),
            np.concatenate([document.labels for document in batch]),
            tally,
        )
        if loss is not None:
            optimizer.zero_grad()
            torch.autograd.backward(loss)
            optimizer.step()
        progress(len(batch))
    mean_loss = tally.mean_loss()
    if not np.isfinite(mean_loss):
        raise InvalidInputError(
            f"expected a finite loss while the encoder is trained, got {mean_loss}; "
            f"choose a smaller learning rate than {learning_rate}"
        )
    return mean_loss


def save_weights(encoder: TextEncoder, folder: Path) -> None:
    """Write an encoder's weights into a folder that holds its other files.

    What pools states into one is left out: it is not used, and a network that came without it has it at random.
    """
    weights = {name: value.contiguous() for name, value in encoder.model.state_dict().items() if "pooler" not in name}
    with writing(folder / WEIGHTS_NAME):
        save_file(weights, folder / WEIGHTS_NAME, metadata={"format": "pt"})


def _fixed(model: LayerModel) -> MemoryLayer:
    layer = MemoryLayer(model.settings, width=model.width, class_count=len(model.class_names))
    layer.load_state_dict({name: torch.from_numpy(values) for name, values in model.parameters().items()})
    return layer.requires_grad_(requires_grad=False)


def _states(encoder: TextEncoder, documents: Sequence[TokenizedDocument]) -> torch.Tensor:
    """The states that count, (n, H), of one document after the other; pieces of similar length are encoded together."""
    ids = [piece.tolist() for document in documents for piece in document.ids]
    kept = [torch.from_numpy(places).long() for document in documents for places in document.kept]
    lengths = np.array([len(piece) for piece in ids])
    found: list[torch.Tensor] = [torch.empty(0)] * len(ids)
    for part in epoch_batches(lengths, np.arange(len(ids)), batch_tokens=_BATCH_TOKENS, generator=None):
        rows = part.tolist()
        states = encoder.states([ids[row] for row in rows], len(rows), int(lengths[part].max()))
        for place, row in enumerate(rows):
            found[row] = states[place, kept[row]]
    return torch.cat(found)
