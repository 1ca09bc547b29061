"""The hook on a model: its vectors and logits for batches, straight into `ingest`, `score` and `evaluate`."""

import sys
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from venn_admit.errors import InvalidInputError
from venn_admit.files.inputs import input_error
from venn_admit.interface.arrays import array_of
from venn_admit.interface.hooks.arguments import Arguments, parameters_of
from venn_admit.interface.hooks.columns import BatchColumns, attribute_choices
from venn_admit.interface.hooks.estimators import HookedEstimator, is_estimator
from venn_admit.interface.hooks.model import Model, Outputs
from venn_admit.interface.hooks.modules import HookedModule
from venn_admit.interface.hooks.outputs import HookedBatches
from venn_admit_client.naming import type_text


class HookedFunction(Model):
    """A function that takes a batch's inputs and returns a pair: vectors, or None, and logits."""

    def __init__(self, function: Callable[..., Any]) -> None:
        """Use a function."""
        self.name = getattr(function, "__name__", type(function).__name__)
        self._function = function
        self.parameters = parameters_of(function)

    def outputs(self, arguments: Arguments, mask: Any) -> Outputs:  # noqa: ARG002 - as every model
        """Call it."""
        made = self._function(*arguments.positional, **arguments.named)
        if not isinstance(made, (tuple, list)) or len(made) != 2:
            got = type_text(made)
            raise input_error(self.name, "model", "a pair (vectors, logits) from a function", got)
        vectors, logits = made
        return Outputs(None if vectors is None else array_of(vectors), array_of(logits))


if TYPE_CHECKING:
    from torch.nn import Module


def hook(
    model: Any,
    layer: "str | Module | Any | None" = None,
    *,
    take: str = "output",
    reduce: str | Callable[[Any], Any] | None = None,
    logits: str | int | Callable[[Any], Any] | None = None,
) -> "Hook":
    """Hook a model, so that its vectors r and logits f go straight into `ingest`, `score` and `evaluate`.

        hooked = venn_admit.hook(module, layer="encoder.pool")
        classifier.ingest(hooked.over(train_loader), split="train")
        decisions = classifier.score(hooked.over(loader))

    Args:
        model: A torch module; a fitted estimator or pipeline of scikit-learn; or, for a model of any other kind, a
            function that takes the inputs of a batch and returns a pair, the vectors (n, D), or None if there are none,
            and the logits (n, C).
        layer: For a module: the name of the layer whose output is r, as `module.named_modules()` has it, or the layer
            itself; without one there are logits only. For an estimator: the name of a step of the pipeline whose output
            is r, a fitted transformer, or a function of the input; by default r is what the pipeline's last step sees,
            or the last hidden layer if that is a multilayer perceptron.
        take: For a module: whether r is the layer's `output` or its `input`, as for the last layer of a network.
        reduce: For a module: how the output of the layer becomes a vector. `mean`, `max` or `first` of the states of a
            sequence, (n, T, D), over the positions that the attention mask has; `mean` or `max` of a feature map,
            (n, D, height, width); or a function of what the layer returns. A shape (n, D) or (n, D, 1, 1) needs none.
        logits: For a module: the name or position of the logits in its output, or a function of the output; by default
            the output itself, its `logits`, or the first of a tuple. For one output z the logits are -z / 2 and z / 2.

    Returns:
        The hook.

    Raises:
        InvalidInputError: There is no such layer, the estimator is not fitted, or an argument does not fit the model.
    """
    torch = sys.modules.get("torch")  # a module exists only if it was imported
    if torch is not None and isinstance(model, torch.nn.Module):
        return Hook(HookedModule(model, layer, take=take, reduce=reduce, logits=logits))
    given = {"take": take != "output", "reduce": reduce is not None, "logits": logits is not None}
    unwanted = [name for name, is_given in given.items() if is_given]
    if unwanted:
        raise InvalidInputError(f"{', '.join(unwanted)}: expected with a torch module only, got {type_text(model)}")
    if is_estimator(model):
        return Hook(HookedEstimator(model, layer))
    if not callable(model):
        raise InvalidInputError(
            f"model: expected a torch module, a fitted estimator, or a function, got {type_text(model)}"
        )
    if layer is not None:
        raise InvalidInputError("layer: expected none for a function, which returns the vectors itself")
    return Hook(HookedFunction(model))


class Hook:
    """A model whose vectors and logits can be read. It is made by `hook`."""

    def __init__(self, model: Model) -> None:
        """Use a model."""
        self._model = model

    def __repr__(self) -> str:
        return f"<Hook on {self._model.name}: {self._model.vector_name}>"

    def over(
        self,
        data: Any,
        *,
        inputs: str | int | Sequence[str | int] | Callable[[Any], Any] | None = None,
        labels: Any = None,
        ids: Any = None,
        documents: Any = None,
        attributes: Sequence[str] | Mapping[str, Any] | Callable[[Any], Any] | None = None,
        mask: str | int | Callable[[Any], Any] | None = None,
        batch_size: int = 256,
    ) -> HookedBatches:
        """Name the batches, and what each member of one is. Nothing is computed before `ingest` or `score` reads them.

        A module runs in evaluation mode and without gradients, on its own device, and is left as it was. Each of
        `labels`, `ids`, `documents` and `attributes` is found in a batch by the name or the position of a member, or by
        a function of the batch; or the values of all rows are given, unless a DataLoader shuffles. Without ids, each
        exemplar gets one that follows from its vector and logits, whatever the order of the batches.

        Args:
            data: A DataLoader or another iterable of batches, each a mapping, a tuple (inputs, labels), or the inputs
                alone; or an array of rows, for an estimator also a DataFrame or a list of samples. A generator can be
                read once.
            inputs: The members of a batch that go into the model, by names or positions, or a function that returns
                them, a tuple of arguments or a mapping of them; by default those that are left, from a mapping those
                that the model takes by name. If it is given, labels are not guessed.
            labels: The default is `labels` or `label` of a mapping, and the second of two members. Those of an
                estimator are as the estimator knows them.
            ids: Texts or integers; by default there are none.
            documents: Texts or integers; by default there are none.
            attributes: Names of members, a mapping of names to members or values, a DataFrame of all rows, or a
                function that returns columns by name; by default there are none.
            mask: For `reduce`: which positions of a sequence count, (n, T); by default `attention_mask` of a mapping.
            batch_size: How many rows of an array are computed at once.

        Returns:
            What `ingest`, `score` and `evaluate` take as their data.

        Raises:
            InvalidInputError: There are no batches, or values were given for all rows of a DataLoader that shuffles.
        """
        columns = BatchColumns(inputs, labels, ids, documents, attribute_choices(attributes), mask)
        return HookedBatches(self._model, data, columns, batch_size)
