"""Small networks with random weights, saved as people save theirs.

Transformers are imported where they are used: to collect the tests takes a fifth less time without.
"""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import torch

LAYERS, WIDTH, MAX_TOKENS = 3, 16, 32
SPECIAL = ["[PAD]", "[UNK]", "[CLS]", "[SEP]"]
WORDS = ["good", "bad", "film", "the", "was", "a", "not", "very", "##ly", ".", ","]


def save_network(
    folder: Path,
    seed: int = 0,
    *,
    positions: int = 64,
    limit: int = MAX_TOKENS,
    words: Sequence[str] = WORDS,
    width: int = WIDTH,
) -> Path:
    """Save a network of three layers, and its tokenizer, which knows some words; the path, for convenience."""
    from transformers import BertConfig, BertModel

    count = save_tokenizer(folder, limit=limit, words=words)
    torch.manual_seed(seed)
    BertModel(BertConfig(**_sizes(count, width), max_position_embeddings=positions)).save_pretrained(folder)
    return folder


def save_roberta(folder: Path, *, positions: int) -> Path:
    """Save a network whose first two positions are not used, and a tokenizer without a limit."""
    from transformers import RobertaConfig, RobertaModel

    count = save_tokenizer(folder, limit=int(1e30))
    config = RobertaConfig(**_sizes(count), max_position_embeddings=positions, pad_token_id=1)
    RobertaModel(config).save_pretrained(folder)
    return folder


def save_encoder_decoder(folder: Path) -> Path:
    """Save a small T5."""
    from transformers import T5Config, T5Model

    count = save_tokenizer(folder)
    config = T5Config(vocab_size=count, d_model=WIDTH, d_kv=8, d_ff=32, num_layers=2, num_heads=2)
    T5Model(config).save_pretrained(folder)
    return folder


def _sizes(vocabulary: int, width: int = WIDTH) -> dict[str, Any]:
    return {
        "vocab_size": vocabulary,
        "hidden_size": width,
        "num_hidden_layers": LAYERS,
        "num_attention_heads": 2,
        "intermediate_size": 32,
    }


def save_tokenizer(folder: Path, *, limit: int = MAX_TOKENS, words: Sequence[str] = WORDS) -> int:
    """Save a tokenizer of English letters and some words; the size of its vocabulary."""
    from tokenizers import Tokenizer, models, normalizers, pre_tokenizers, processors
    from transformers import PreTrainedTokenizerFast

    letters = [chr(code) for code in range(ord("a"), ord("z") + 1)]
    pieces = [*SPECIAL, *words, *letters[1:], *(f"##{letter}" for letter in letters)]
    vocabulary = {piece: number for number, piece in enumerate(pieces)}
    tokenizer: Any = Tokenizer(models.WordPiece(vocabulary, unk_token="[UNK]"))
    tokenizer.normalizer = normalizers.BertNormalizer(lowercase=True)
    tokenizer.pre_tokenizer = pre_tokenizers.BertPreTokenizer()
    tokenizer.post_processor = processors.TemplateProcessing(
        single="[CLS] $A [SEP]", special_tokens=[("[CLS]", 2), ("[SEP]", 3)]
    )
    make_fast: Any = PreTrainedTokenizerFast
    fast = make_fast(
        tokenizer_object=tokenizer,
        unk_token="[UNK]",
        pad_token="[PAD]",
        cls_token="[CLS]",
        sep_token="[SEP]",
        model_max_length=limit,
    )
    fast.save_pretrained(folder)
    return len(vocabulary)
