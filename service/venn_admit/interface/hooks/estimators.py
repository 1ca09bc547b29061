"""A fitted estimator or pipeline of scikit-learn: the features that its last step sees, and its decision function."""

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from venn_admit.errors import InvalidInputError
from venn_admit.files.inputs import input_error
from venn_admit.files.sources import plain_list
from venn_admit.interface.arrays import column_of
from venn_admit.interface.hooks.arguments import Arguments
from venn_admit.interface.hooks.model import Floats, Model, Outputs, two_logits
from venn_admit_client.naming import type_text

LEAST_PROBABILITY = 1e-30
"""What a probability of 0 is taken for, since its logarithm is not finite."""

_ACTIVATIONS: dict[str, Callable[[Floats], Floats]] = {
    "identity": lambda values: values,
    "logistic": lambda values: 0.5 + 0.5 * np.tanh(values / 2),
    "tanh": np.tanh,
    "relu": lambda values: np.maximum(values, 0),
}


class HookedEstimator(Model):
    """An estimator, whose vectors are its last step's features, or what a step or transformer makes of its input."""

    def __init__(self, estimator: Any, layer: Any) -> None:
        """Check that it is fitted and has what logits can be made of; arguments and errors are those of `hook`."""
        estimator = getattr(estimator, "best_estimator_", estimator)  # of a search for hyperparameters
        self.name = type(estimator).__name__
        self._estimator, self._layer = estimator, layer
        steps = getattr(estimator, "steps", None)
        self._last = estimator if steps is None else steps[-1][1]
        self._before = None if steps is None or len(steps) == 1 else estimator[:-1]
        self._classes = _classes_of(self.name, estimator, self._last)
        if isinstance(layer, str):
            self._layer = _step(self.name, layer, estimator)
        elif not (layer is None or hasattr(layer, "transform") or callable(layer)):
            got = type_text(layer)
            raise input_error(self.name, "layer", "the name of a step, a fitted transformer or a function", got)
        self.vector_name = f"output of step {layer!r}" if isinstance(layer, str) else "features"

    def are_rows(self, data: Any) -> bool:
        """Whether data are an array, a sparse matrix, a DataFrame, a Series, or a list of samples."""
        return hasattr(data, "shape") or isinstance(data, (list, tuple))

    def check_classes(self, class_names: Sequence[str]) -> None:
        """Raise InvalidInputError if the classifier has another number of classes, or has them in another order."""
        own = [str(one) for one in self._classes]
        if len(own) != len(class_names):
            got = f"{len(own)}: {', '.join(own[:10])}"
            raise input_error(self.name, "classes", f"{len(class_names)}, as the classifier has", got)
        if own != list(class_names) and sorted(own) == sorted(class_names):
            expected = f"the order of the classifier, {', '.join(class_names[:10])}"
            advice = "create a classifier with the classes in the order of estimator.classes_"
            raise input_error(self.name, "classes", expected, ", ".join(own[:10]), advice)

    def class_numbers(self, labels: Sequence[Any], first_row: int) -> Sequence[Any]:
        """Return the positions of labels among the estimator's classes, -1 if one is unknown: None, NaN, or -1."""
        number_of = {value: number for number, value in enumerate(self._classes)}
        number_of = {None: -1, "": -1, -1: -1, **number_of}
        numbers = []
        for position, value in enumerate(plain_list(labels)):
            plain = None if isinstance(value, float) and np.isnan(value) else value
            if plain not in number_of:
                shown = ", ".join(map(repr, self._classes[:10]))
                where = f"row {first_row + position}, labels"
                raise input_error(self.name, where, f"one of the estimator's classes ({shown})", repr(value))
            numbers.append(number_of[plain])
        return numbers

    def outputs(self, arguments: Arguments, mask: Any) -> Outputs:  # noqa: ARG002 - as every model
        """Return the features (n, D), and the decision function or the logarithms of the probabilities, (n, C)."""
        if arguments.named or len(arguments.positional) != 1:
            raise input_error(self.name, "inputs", "one input", "several", "choose it, such as inputs=0")
        (given,) = arguments.positional
        seen = given if self._before is None else self._before.transform(given)
        if self._layer is None:
            vectors = _last_hidden_layer(self._last, seen)
        else:
            vectors = self._layer.transform(given) if hasattr(self._layer, "transform") else self._layer(given)
        return Outputs(_numbers(self.name, self.vector_name, vectors), self._logits(seen))

    def _logits(self, seen: Any) -> Floats:
        if hasattr(self._last, "decision_function"):
            found = _numbers(self.name, "logits", self._last.decision_function(seen))
            return two_logits(found) if found.ndim == 1 else found
        probabilities = _numbers(self.name, "logits", self._last.predict_proba(seen))
        return np.log(np.maximum(probabilities, LEAST_PROBABILITY))


def is_estimator(model: Any) -> bool:
    """Whether a model has the methods of an estimator of scikit-learn."""
    return hasattr(model, "fit") and hasattr(model, "predict")


def _classes_of(name: str, estimator: Any, last: Any) -> list[Any]:
    if not (hasattr(last, "decision_function") or hasattr(last, "predict_proba")):
        advice = "wrap it in CalibratedClassifierCV if it classifies"
        raise input_error(name, "logits", "an estimator with decision_function or predict_proba", "neither", advice)
    try:
        classes = np.asarray(estimator.classes_)
    except AttributeError:
        raise input_error(name, "model", "a fitted estimator", "one without classes_", "call fit first") from None
    except ValueError:  # several outputs, of different numbers of classes
        classes = np.empty((0, 0))
    if classes.ndim != 1 or getattr(last, "multilabel_", False):
        raise input_error(
            name, "model", "one class for each row", "several outputs", "hook the estimator of one of them"
        )
    if len(classes) > 2 and getattr(last, "decision_function_shape", None) == "ovo":
        got, advice = "one for each pair of classes", 'set decision_function_shape="ovr"'
        raise input_error(name, "logits", "a decision function for each class", got, advice)
    return list(column_of(classes.tolist()))


def _step(name: str, layer: str, estimator: Any) -> Any:
    """Return the part of a pipeline that ends with the step of a name."""
    names = [step for step, _ in getattr(estimator, "steps", [])]
    if layer not in names[:-1]:
        known = ", ".join(map(repr, names[:-1])) or "none"
        advice = f"steps before the last one are: {known}"
        raise input_error(name, "layer", "the name of a step before the last one", repr(layer), advice)
    return estimator[: names.index(layer) + 1]


def _last_hidden_layer(last: Any, seen: Any) -> Any:
    """Return the last hidden layer if the last step is a multilayer perceptron, and otherwise what it sees."""
    weights, biases = getattr(last, "coefs_", None), getattr(last, "intercepts_", None)
    activation = _ACTIVATIONS.get(str(getattr(last, "activation", None)))
    if weights is None or biases is None or activation is None:
        return seen
    hidden = seen if hasattr(seen, "toarray") else np.asarray(seen)
    for weight, bias in zip(weights[:-1], biases[:-1], strict=True):
        hidden = activation(hidden @ weight + bias)  # (n, width)
    return hidden


def _numbers(name: str, what: str, values: Any) -> Floats:
    """Return an array of floats. Raises InvalidInputError if the values are no numbers."""
    dense = np.asarray(values.toarray() if hasattr(values, "toarray") else values)
    if dense.dtype.kind == "f":
        return dense
    try:
        return dense.astype(np.float64)
    except (TypeError, ValueError):
        got, advice = (
            f"values of type {dense.dtype}",
            "give layer= a step, a transformer or a function that returns them",
        )
        raise InvalidInputError(f"{name}: {what}: expected numbers, got {got}; {advice}") from None
