"""The state of an unfinished training: one safetensors file, replaced after every epoch."""

import json
from dataclasses import dataclass
from pathlib import Path

import torch
from safetensors import SafetensorError, safe_open
from safetensors.torch import save

from venn_admit.errors import InvalidInputError
from venn_admit.files.inputs import reading
from venn_admit.files.output.atomic import replacing, writing
from venn_admit.layer.layer import MemoryLayer
from venn_admit.layer.model import LayerEpoch

CHECKPOINT_NAME = "unfinished.safetensors"
_MOMENTS = ("exp_avg", "exp_avg_sq", "step")  # what Adam keeps for each parameter


@dataclass(slots=True)
class TrainingState:
    """What goes on from epoch to epoch. `layer` changes in place; a phase begins with an optimizer of its own.

    Attributes:
        best: Its parameters after the best epoch, by name.
        best_epoch: The earliest epoch of its phase with the lowest loss on the dev split; 0 before the first.
    """

    layer: MemoryLayer
    optimizer: torch.optim.Adam
    best: dict[str, torch.Tensor]
    log: list[LayerEpoch]
    best_epoch: int


def save_checkpoint(folder: Path, training: str, state: TrainingState) -> None:
    """Write the state after an epoch, atomically."""
    tensors = {f"best.{name}": tensor for name, tensor in state.best.items()}
    for name, parameter in state.layer.named_parameters():
        tensors[f"layer.{name}"] = parameter.detach()
        moments = state.optimizer.state.get(parameter)  # none without a gradient, as of the token scores at first
        if moments:
            tensors |= {f"adam.{moment}.{name}": moments[moment].detach() for moment in _MOMENTS}
    described = {
        "training": training,
        "best_epoch": str(state.best_epoch),
        "log": json.dumps([epoch.as_json() for epoch in state.log]),
    }
    with replacing(folder / CHECKPOINT_NAME) as file, writing(folder / CHECKPOINT_NAME):
        file.write(save(tensors, metadata=described))


def restore_checkpoint(folder: Path, training: str, state: TrainingState) -> None:
    """Bring a state at its start to where an interrupted training of the same settings and data was; if any was.

    Raises:
        InvalidInputError: The folder holds an unfinished training of other settings or data, or a damaged file.
    """
    path = folder / CHECKPOINT_NAME
    if not path.exists():
        return
    with reading(path, "unfinished training", SafetensorError, ValueError, KeyError, TypeError):
        with safe_open(path, framework="pt") as file:
            described = file.metadata() or {}
            tensors = {name: file.get_tensor(name) for name in file.keys()}  # noqa: SIM118
        log = [LayerEpoch(**line) for line in json.loads(described["log"])]
        best_epoch, found = int(described["best_epoch"]), described["training"]
    if found != training:
        raise InvalidInputError(
            f"{path}: expected an unfinished training of the same settings and data, got one of others; "
            "choose another folder, or remove this file to start again"
        )
    with torch.no_grad():
        for name, parameter in state.layer.named_parameters():
            parameter.copy_(tensors[f"layer.{name}"])
            if f"adam.step.{name}" in tensors:
                state.optimizer.state[parameter] = {moment: tensors[f"adam.{moment}.{name}"] for moment in _MOMENTS}
            state.best[name] = tensors[f"best.{name}"]
    state.log, state.best_epoch = log, best_epoch
