"""Small networks, and what of them is stored when it is taken by hand."""

from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn
from torch.utils.data import DataLoader, Dataset, TensorDataset

CLASS_NAMES = ("low", "middle", "high")
DIMENSION = 6
VOCABULARY = 30


class Cnn(nn.Module):
    """Pictures, (n, 1, 8, 8); an activation changes the pooled features in place."""

    def __init__(self) -> None:
        super().__init__()
        self.features = nn.Sequential(nn.Conv2d(1, DIMENSION, 3), nn.BatchNorm2d(DIMENSION), nn.ReLU())
        self.pool = nn.AdaptiveAvgPool2d(1)
        self.dropout = nn.Dropout(0.5)
        self.head = nn.Linear(DIMENSION, len(CLASS_NAMES))

    def forward(self, pictures: Tensor) -> Tensor:
        states: Tensor = self.pool(self.features(pictures))
        return self.head(self.dropout(states.flatten(1).mul_(2)))  # type: ignore[no-any-return]


def trained(network: Cnn) -> Cnn:
    """Train a network somewhat, so that it is right more often than not."""
    given, labels = pictures(300, seed=100)
    optimizer = torch.optim.Adam(network.parameters(), lr=0.02)
    for _ in range(60):
        optimizer.zero_grad()
        nn.functional.cross_entropy(network(given), labels).backward()  # type: ignore[no-untyped-call]
        optimizer.step()
    return network


class Output(dict[str, Tensor]):
    """As models of transformers return it."""

    @property
    def logits(self) -> Tensor:
        return self["logits"]


class Text(nn.Module):
    """Tokens, (n, T), with a mask, as models of transformers take them."""

    def __init__(self) -> None:
        super().__init__()
        self.embedding = nn.Embedding(VOCABULARY, DIMENSION)
        self.encoder = nn.ModuleDict({"body": nn.Linear(DIMENSION, DIMENSION), "unused": nn.Linear(1, 1)})
        self.classifier = nn.Linear(DIMENSION, len(CLASS_NAMES))

    def forward(self, input_ids: Tensor, attention_mask: Tensor, labels: Tensor | None = None) -> Output:
        assert labels is None, "labels are no input"
        states = torch.tanh(self.encoder["body"](self.embedding(input_ids)))  # (n, T, D)
        weights = attention_mask.unsqueeze(2)
        return Output(logits=self.classifier((states * weights).sum(1) / weights.sum(1)))


def pictures(count: int, seed: int) -> tuple[Tensor, Tensor]:
    """Pictures whose brightness is their class, with labels."""
    generator = torch.Generator().manual_seed(seed)
    labels = torch.randint(len(CLASS_NAMES), (count,), generator=generator)
    noise = torch.randn(count, 1, 8, 8, generator=generator)
    return noise + labels[:, None, None, None], labels


class Texts(Dataset[dict[str, Any]]):
    """Texts of different lengths, with ids and documents."""

    def __init__(self, count: int, seed: int) -> None:
        generator = np.random.default_rng(seed)
        self.labels = generator.integers(len(CLASS_NAMES), size=count)
        self.tokens = [
            generator.integers(1 + 10 * label, 10 + 10 * label, generator.integers(2, 9)) for label in self.labels
        ]
        self.prefix = f"text-{seed}"

    def __len__(self) -> int:
        return len(self.labels)

    def __getitem__(self, row: int) -> dict[str, Any]:
        return {"tokens": self.tokens[row], "label": int(self.labels[row]), "row": row, "id": f"{self.prefix}-{row}"}


def collate(rows: list[dict[str, Any]]) -> dict[str, Any]:
    """Pad texts at their left, as a batch of transformers has them, with columns that no model takes."""
    length = max(len(row["tokens"]) for row in rows)
    padded = np.zeros((len(rows), length), dtype=np.int64)
    for place, row in enumerate(rows):
        padded[place, length - len(row["tokens"]) :] = row["tokens"]
    tokens = torch.from_numpy(padded)
    return {
        "input_ids": tokens,
        "attention_mask": (tokens > 0).long(),
        "labels": torch.tensor([row["label"] for row in rows]),
        "id": [row["id"] for row in rows],
        "document": torch.tensor([row["row"] // 2 for row in rows]),
        "length": [len(row["tokens"]) for row in rows],
    }


def text_loader(count: int, seed: int, **options: Any) -> DataLoader[dict[str, Any]]:
    return DataLoader(Texts(count, seed), collate_fn=collate, **{"batch_size": 32, **options})


def picture_loader(count: int, seed: int, **options: Any) -> DataLoader[tuple[Tensor, ...]]:
    return DataLoader(TensorDataset(*pictures(count, seed)), **{"batch_size": 32, **options})


def by_hand(network: Cnn, loader: DataLoader[tuple[Tensor, ...]], path: Path) -> Path:
    """Write an npz file of what a network makes of batches, without any hook."""
    network.eval()
    vectors, logits, labels = [], [], []
    with torch.no_grad():
        for batch, batch_labels in loader:
            states = network.pool(network.features(batch)).flatten(1)
            vectors.append(states.numpy())
            logits.append(network.head(states * 2).numpy())
            labels.append(batch_labels.numpy())
    np.savez(path, r=np.concatenate(vectors), f=np.concatenate(logits), y=np.concatenate(labels))
    return path
