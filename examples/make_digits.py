"""Make the files of examples/digits: a small network on scikit-learn's handwritten digits, and what it sees.

    python examples/make_digits.py OUT_FOLDER

The images are divided by a hash of their ids and the network is trained from a seed, in float64 and on one thread:
the same machine gives the same files again, another one the same rows and a network that is right as often.
"""

from hashlib import blake2b
from pathlib import Path
from typing import Annotated, Any

import numpy as np
import numpy.typing as npt
import torch
import typer
from sklearn.datasets import load_digits
from torch import nn

SEED = 0
TRAIN_COUNT = 397
VALID_COUNT = 1000
HIDDEN_UNITS = 64
CLASS_COUNT = 10
EPOCHS = 200
LARGEST_ANGLE = 25
WHITE = 16.0  # the greatest pixel value in the source

Arrays = dict[str, Any]


def main(out: Annotated[Path, typer.Argument(help="folder for the files, made if need be")]) -> None:
    """Train the network and write train.npz, valid.npz, test.npz and shifted.npz."""
    torch.set_num_threads(1)
    source = load_digits()
    images = torch.from_numpy(source.images / WHITE)  # (1797, 8, 8)
    labels = source.target.astype(np.int8)
    ids = np.array([f"digit-{row:04d}" for row in range(len(labels))])
    train, valid, test = np.split(shuffled_rows(ids), [TRAIN_COUNT, TRAIN_COUNT + VALID_COUNT])

    hidden, output = train_network(images[train], torch.from_numpy(labels[train]).long())

    def exemplars(seen: torch.Tensor, rows: npt.NDArray[np.int64], angles: npt.NDArray[np.int8]) -> Arrays:
        with torch.no_grad():
            vectors = hidden(seen)
            logits = output(vectors)
        return {
            "r": vectors.numpy().astype(np.float16),
            "f": logits.numpy().astype(np.float32),
            "y": labels[rows],
            "id": ids[rows],
            "angle": angles,
        }

    angles = np.resize(np.arange(-LARGEST_ANGLE, LARGEST_ANGLE + 1, dtype=np.int8), len(test))
    files = {
        name: exemplars(images[rows], rows, np.zeros(len(rows), np.int8))
        for name, rows in (("train", train), ("valid", valid), ("test", test))
    }
    files["shifted"] = exemplars(turned(images[test], angles), test, angles)
    files["shifted"]["id"] = np.char.add(ids[test], "-turned")

    out.mkdir(parents=True, exist_ok=True)
    for name, arrays in files.items():
        np.savez_compressed(out / f"{name}.npz", **arrays)
        accuracy = np.mean(arrays["f"].argmax(axis=1) == arrays["y"])
        typer.echo(f"{name}: {len(arrays['y'])} rows, the network is right on {accuracy:.3f}")


def shuffled_rows(ids: npt.NDArray[np.str_]) -> npt.NDArray[np.int64]:
    """All rows in an order that is random, and the same wherever and whenever it is drawn."""
    return np.argsort([blake2b(name.encode()).hexdigest() for name in ids.tolist()])


def train_network(images: torch.Tensor, labels: torch.Tensor) -> tuple[nn.Module, nn.Module]:
    """A hidden layer, whose output is the exemplar vector, and the layer that gives the logits.

    images: (n, 8, 8) float64 in [0, 1]. labels: (n,) int64.
    """
    torch.manual_seed(SEED)
    hidden = nn.Sequential(nn.Flatten(), nn.Linear(images[0].numel(), HIDDEN_UNITS), nn.ReLU()).double()
    output = nn.Linear(HIDDEN_UNITS, CLASS_COUNT).double()
    optimiser = torch.optim.Adam([*hidden.parameters(), *output.parameters()], lr=0.01)
    for _ in range(EPOCHS):
        optimiser.zero_grad()
        torch.autograd.backward(nn.functional.cross_entropy(output(hidden(images)), labels))
        optimiser.step()
    return hidden, output


def turned(images: torch.Tensor, angles: npt.NDArray[np.int8]) -> torch.Tensor:
    """Each image turned about its centre by an angle in degrees, anticlockwise; what comes in from outside is black.

    images: (n, 8, 8). angles: (n,). Pixels are interpolated linearly.
    """
    radians = torch.from_numpy(np.radians(angles.astype(np.float64)))
    cosine, sine, zero = radians.cos(), radians.sin(), torch.zeros_like(radians)
    # From the place of a pixel in the result to its place in the image; y points down.
    rotation = torch.stack([cosine, -sine, zero, sine, cosine, zero], dim=1).reshape(-1, 2, 3)
    grid = nn.functional.affine_grid(rotation, [len(images), 1, *images.shape[1:]], align_corners=False)
    return nn.functional.grid_sample(images.unsqueeze(1), grid, align_corners=False).squeeze(1)


if __name__ == "__main__":
    typer.run(main)
