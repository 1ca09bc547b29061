"""`python -m benchmarks.bounds --support A.npz --queries B.npz`: what exact bounds would spare a search.

Each bound is asked which training exemplars it cannot rule out, given the distance of the K-th nearest, which no search
knows at its start. Printed is their share, as a mean over queries.
"""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

import torch
import typer
from rich.console import Console
from rich.table import Table

from benchmarks.search import NEIGHBOUR_COUNT, larger, read_vectors
from venn_admit.core.neighbours.search import exact_neighbours

_CLUSTERS, _ROUNDS = 256, 20
_TOGETHER = 64
_LEADING = (32, 128)

# Some queries (m, D) and the distances of their K-th neighbours (m,) give which of N exemplars are left, (m, N) bool.
Left = Callable[[torch.Tensor, torch.Tensor], torch.Tensor]


@dataclass(frozen=True, eq=False)
class Clusters:
    """centres: (256, D). cluster, distance: (N,), of N exemplars, and to its centre. radii: (256,), of the balls."""

    centres: torch.Tensor
    cluster: torch.Tensor
    distance: torch.Tensor
    radii: torch.Tensor

    def in_reach(self, queries: torch.Tensor, farthest: torch.Tensor) -> torch.Tensor:
        """Exemplars of the clusters whose balls are in reach."""
        nearest_possible = torch.cdist(queries, self.centres) - self.radii  # (m, 256)
        return (nearest_possible <= farthest[:, None])[:, self.cluster]

    def in_shell(self, queries: torch.Tensor, farthest: torch.Tensor) -> torch.Tensor:
        """Exemplars about as far from their centre as the query is."""
        to_centre = torch.cdist(queries, self.centres)[:, self.cluster]  # (m, N)
        return (to_centre - self.distance).abs() <= farthest[:, None]


def clusters_of(support: torch.Tensor) -> Clusters:
    """Clusters by Lloyd's algorithm; an empty one stays where it is."""
    generator = torch.Generator().manual_seed(0)
    centres = support[torch.randperm(len(support), generator=generator)[:_CLUSTERS]]
    for _ in range(_ROUNDS):
        cluster = torch.cdist(support, centres).argmin(dim=1)
        sums = torch.zeros_like(centres).index_add_(0, cluster, support)
        counts = torch.bincount(cluster, minlength=len(centres))[:, None]
        centres = torch.where(counts > 0, sums / counts.clamp(min=1), centres)
    distance, cluster = torch.cdist(support, centres).min(dim=1)
    radii = torch.zeros(len(centres), dtype=support.dtype).scatter_reduce_(0, cluster, distance, "amax")
    return Clusters(centres, cluster, distance, radii)


def leading(support: torch.Tensor, count: int) -> Left:
    """What leading principal components, and the norm of the rest, leave."""
    mean = support.mean(dim=0)
    _, rotation = torch.linalg.eigh(torch.cov(support.T))  # the largest eigenvalue comes last

    def parts(vectors: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        turned = (vectors - mean) @ rotation.flip(1)
        return turned[:, :count], turned[:, count:].norm(dim=1)

    among, among_rest = parts(support)

    def left(queries: torch.Tensor, farthest: torch.Tensor) -> torch.Tensor:
        asked, asked_rest = parts(queries)
        least = torch.hypot(torch.cdist(asked, among), asked_rest[:, None] - among_rest)
        return least <= farthest[:, None]

    return left


def shares(support: torch.Tensor, queries: torch.Tensor, farthest: torch.Tensor) -> Iterator[tuple[str, float]]:
    """Each bound, with the share of exemplars that it leaves."""
    clusters = clusters_of(support)
    order = torch.cdist(queries, clusters.centres).argmin(dim=1).argsort(stable=True)
    blocks = [(queries[rows], farthest[rows]) for rows in torch.split(order, _TOGETHER)]

    def mean(left: Left) -> float:
        return sum(left(*block).double().mean(dim=1).sum().item() for block in blocks) / len(queries)

    yield f"{_CLUSTERS} clusters, the ball of each", mean(clusters.in_reach)
    yield (
        "the same, and each exemplar's distance to its centre",
        mean(lambda *block: clusters.in_reach(*block) & clusters.in_shell(*block)),
    )
    yield (
        f"{_CLUSTERS} clusters for {_TOGETHER} queries at a time, sorted by their centre",
        mean(lambda *block: clusters.in_reach(*block).any(dim=0, keepdim=True).expand(len(block[0]), -1)),
    )
    for count in _LEADING:
        if count < support.shape[1]:
            yield f"leading {count} components and the norm of the rest", mean(leading(support, count))


def main(
    support: Annotated[list[Path], typer.Option(help="Files with the training exemplars, their array r.")],
    queries: Annotated[list[Path], typer.Option(help="Files with the queries.")],
    query_count: int = 512,
    times: Annotated[int, typer.Option(min=1, help="How many exemplars to make of each one.")] = 1,
) -> None:
    """Print which share of the exemplars each bound leaves."""
    among, asked = larger(read_vectors(support), times), read_vectors(queries)[:query_count]
    farthest = exact_neighbours(asked, among, NEIGHBOUR_COUNT).distances[:, -1]
    table = Table("bound", "left", title=f"{len(among):,} x {among.shape[1]}, {len(asked):,} queries")
    # In float64, whose rounding is nothing beside these shares.
    for bound, share in shares(*(torch.from_numpy(values).double() for values in (among, asked, farthest))):
        table.add_row(bound, f"{share:.2g}")
    Console(width=100).print(table)


if __name__ == "__main__":
    typer.run(main)
