"""A torch module: what one of its layers takes or returns, and its output, while it runs on a batch."""

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from difflib import get_close_matches
from itertools import chain
from typing import TYPE_CHECKING, Any

import numpy as np

from venn_admit.errors import InvalidInputError
from venn_admit.files.inputs import input_error
from venn_admit.interface.arrays import array_of
from venn_admit.interface.hooks.arguments import Arguments, parameters_of
from venn_admit.interface.hooks.model import Model, Outputs, two_logits
from venn_admit.interface.hooks.pooling import POOLINGS, flattened, pooled, shape_advice, states_of
from venn_admit_client.naming import type_text

if TYPE_CHECKING:
    import torch
    from torch import Tensor
    from torch.nn import Module

_LISTED = 8


class HookedModule(Model):
    """A module, and the layer whose states are the vectors."""

    def __init__(
        self,
        module: "Module",
        layer: "str | Module | None",
        *,
        take: str,
        reduce: str | Callable[[Any], Any] | None,
        logits: str | int | Callable[[Any], Any] | None,
    ) -> None:
        """Find the layer; arguments and errors are those of `hook`."""
        # What is compiled calls no hooks; the module inside of it does.
        self._module: Module = getattr(module, "_orig_mod", module)
        self.name = type(self._module).__name__
        self._take, self._reduce, self._chosen_logits = take, reduce, logits
        if take not in ("output", "input"):
            raise InvalidInputError(f"take: expected output or input, got {take!r}")
        if not (reduce is None or callable(reduce) or reduce in POOLINGS):
            raise InvalidInputError(f"reduce: expected a function or one of {', '.join(POOLINGS)}, got {reduce!r}")
        if not (logits is None or callable(logits) or isinstance(logits, (str, int))):
            raise InvalidInputError(f"logits: expected a name, a position or a function, got {type_text(logits)}")
        self._layer: Module | None = None
        if layer is not None:
            name, self._layer = _find_layer(self._module, self.name, layer)
            self.vector_name = f"{take} of layer {name!r}"
        elif reduce is not None:
            raise InvalidInputError("reduce: expected a layer to reduce, got none; name it: hook(module, layer=...)")
        self.parameters = parameters_of(self._module.forward)

    def outputs(self, arguments: Arguments, mask: Any) -> Outputs:
        """Run the module, in evaluation mode and without gradients, and return what the hook saw and its logits.

        The hook is there, and the mode is changed, for this call alone. A module may keep tensors that it makes in its
        first call; made in inference mode, they could not be trained with later.
        """
        import torch

        place = _place_of(self._module)
        positional, named = moved(arguments.positional, place), moved(arguments.named, place)
        with torch.no_grad(), evaluating(self._module), self._watching(mask) as seen:
            output = self._module(*positional, **named)
        vectors = None if self._layer is None else self._vectors(seen)
        return Outputs(vectors, self._logits(output, vectors))

    @contextmanager
    def _watching(self, mask: Any) -> "Iterator[list[Tensor | None]]":
        """See what the layer takes or returns. A list with the vectors, and None for each call but the first."""
        seen: list[Tensor | None] = []

        def keep(value: Any) -> None:
            seen.append(None if seen else self._reduced(value, mask))

        if self._layer is None:
            yield seen
            return
        if self._take == "output":
            handle = self._layer.register_forward_hook(lambda _layer, _given, returned: keep(returned))
        else:
            handle = self._layer.register_forward_pre_hook(
                lambda _layer, given, named: keep(given if given else tuple(named.values())), with_kwargs=True
            )
        try:
            yield seen
        finally:
            handle.remove()

    def _reduced(self, value: Any, mask: Any) -> "Tensor":
        """Return a vector for each row. It is a copy, because what follows may change the layer's states in place."""
        import torch

        try:
            if callable(self._reduce):
                # A layer that takes one thing has it in a tuple, which would be in the way.
                alone = self._take == "input" and len(value) == 1
                found = self._reduce(value[0] if alone else value)
            else:
                states = states_of(value)
                found = flattened(states) if self._reduce is None else pooled(states, self._reduce, mask)
        except InvalidInputError as error:
            raise InvalidInputError(f"{self.name}: {self.vector_name}: {error}") from error
        if not isinstance(found, torch.Tensor):
            raise input_error(self.name, self.vector_name, "a tensor from reduce", type_text(found))
        if found.ndim != 2:
            advice = shape_advice(found.ndim)
            raise input_error(self.name, self.vector_name, "shape (n, D)", tuple(found.shape), advice)
        return found.detach().clone()

    def _vectors(self, seen: "list[Tensor | None]") -> np.ndarray[Any, Any]:
        if not seen:
            raise input_error(
                self.name,
                self.vector_name,
                "a layer that is called in each forward pass",
                "none",
                "name a layer that is; a ModuleList is not called itself, and a compiled module does not call hooks",
            )
        if len(seen) > 1:
            raise input_error(
                self.name,
                self.vector_name,
                "a layer that is called once in a forward pass",
                f"{len(seen)} calls",
                'name the layer before or behind it, with take="input" if that helps',
            )
        assert seen[0] is not None
        return array_of(seen[0])

    def _logits(self, output: Any, vectors: np.ndarray[Any, Any] | None) -> np.ndarray[Any, Any]:
        import torch

        found = _chosen(self.name, output, self._chosen_logits)
        if not isinstance(found, torch.Tensor):
            got = type_text(found)
            raise input_error(self.name, "logits", "a tensor", got, "choose it: logits=lambda output: ...")
        logits = array_of(found)
        is_one_output = logits.ndim == 2 and logits.shape[1] == 1
        if is_one_output or (logits.ndim == 1 and vectors is not None and len(logits) == len(vectors)):
            return two_logits(logits)
        return logits


@contextmanager
def evaluating(module: "Module") -> Iterator[None]:
    """Keep a module and all of its parts in evaluation mode while the block runs, and restore the mode of each then."""
    modes = {part: part.training for part in module.modules()}
    if not any(modes.values()):
        yield
        return
    module.eval()
    try:
        yield
    finally:
        module.train(modes[module])
        for part, mode in modes.items():
            part.training = mode


def moved(value: Any, place: "tuple[torch.device, torch.dtype] | None") -> Any:
    """Return inputs with tensors on a device, and arrays of numbers as tensors of its type.

    value: a tensor, an array, mappings, tuples and lists of them, or anything else, which is left as it is. place: the
    device, and the type that arrays of floats are converted to; None: tensors stay where they are.
    """
    import torch

    if isinstance(value, np.ndarray) and value.dtype.kind in "biuf":
        found = torch.from_numpy(np.ascontiguousarray(value))
        return found if place is None else found.to(place[0], place[1] if found.is_floating_point() else None)
    if isinstance(value, torch.Tensor) or (hasattr(value, "to") and hasattr(value, "keys")):
        return value if place is None else value.to(place[0])
    if isinstance(value, Mapping):
        return {name: moved(one, place) for name, one in value.items()}
    if isinstance(value, tuple) and hasattr(value, "_fields"):
        return type(value)(*(moved(one, place) for one in value))
    if isinstance(value, (tuple, list)):
        return type(value)(moved(one, place) for one in value)
    return value


def _place_of(module: "Module") -> "tuple[torch.device, torch.dtype] | None":
    import torch

    tensors = list(chain(module.parameters(), module.buffers()))
    if not tensors:
        return None
    dtype = next((one.dtype for one in tensors if one.is_floating_point()), torch.get_default_dtype())
    return tensors[0].device, dtype


def _find_layer(module: "Module", module_name: str, layer: "str | Module") -> "tuple[str, Module]":
    names = dict(module.named_modules())
    if isinstance(layer, str):
        if layer in names:
            return layer, names[layer]
        shown = _near(layer, [name for name in names if name])
        raise input_error(module_name, "layer", "the name of one of its layers", repr(layer), shown)
    for name, one in names.items():
        if one is layer:
            return name, one
    got = type_text(layer)
    raise input_error(module_name, "layer", "one of its layers, or the name of one", got, "it is no part of the module")


def _near(layer: str, names: list[str]) -> str:
    """Name the layers that are most like a name: by its letters, or by its last part; otherwise the first ones."""
    last = layer.rpartition(".")[2]
    near = get_close_matches(layer, names, n=_LISTED, cutoff=0.6)
    near += [name for name in names if name.rpartition(".")[2] == last or last in name.split(".")]
    if near:
        return f"near it are {', '.join(map(repr, list(dict.fromkeys(near))[:_LISTED]))}"
    more = ", ..." if len(names) > _LISTED else ""
    return f"its layers are {', '.join(map(repr, names[:_LISTED]))}{more}" if names else "it has no layers"


def _chosen(module_name: str, output: Any, choice: str | int | Callable[[Any], Any] | None) -> Any:
    """Return the logits in a module's output."""
    if callable(choice):
        return choice(output)
    if choice is None:
        if isinstance(output, Mapping) or hasattr(output, "logits"):
            choice = "logits"
        elif isinstance(output, (tuple, list)):
            choice = 0
        else:
            return output
    try:
        if isinstance(choice, int) or isinstance(output, Mapping):
            return output[choice]
        return getattr(output, choice)
    except (KeyError, IndexError, AttributeError, TypeError):
        members = f" with {', '.join(map(repr, output))}" if isinstance(output, Mapping) else ""
        got = f"{type_text(output)}{members}"
        advice = "choose them: logits=lambda output: ..."
        raise input_error(module_name, "logits", f"an output with the member {choice!r}", got, advice) from None
