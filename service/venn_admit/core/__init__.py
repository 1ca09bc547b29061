"""The mathematics: arrays in, frozen dataclasses out, no input or output.

A routine raises InvalidInputError if an argument has another shape, dtype or range than its docstring says, or if
arrays of the same points differ in length. Docstrings name what else is raised.

These arguments, and attributes of these names, mean the same everywhere. A docstring describes them again only if it
has more to say.

Args:
    admitted: (n,) bool, whether each prediction is admitted.
    alpha: The error level, an exact decimal in (0, 1).
    arrays: Arrays by the names that messages use.
    cell_count: The number of cells.
    class_count: C >= 2, the number of classes.
    code: The code of a reason, or `ADMITTED`.
    columns: Arrays by the names that messages use.
    confidence: 1 - eps, in (0, 1).
    correct: (n,) bool, whether each prediction is the label.
    decided: Recent traffic.
    dimension: D, the length of a vector.
    distance: (n,) float64, finite, d.
    document: As JSON holds it.
    document_keys: (n,), the document that each row belongs to.
    documents: The document of each point, if points of one document are not independent.
    eta_loc: The localizer's parameter, > 0, finite, in the units of the vectors; None with logits only.
    expected: The number of rows, one for each label.
    field: A field of the evidence.
    fields: Fields of the evidence.
    keys: The document of each point, or the point's own id if it has no document.
    label: (n,) int64 in [0, C), y.
    label_count: > 0, the number of random labels so far: the points of mc over the share of labels that goes there.
    labels: (n,) int64 in [0, C), y.
    localizer: Over the points, for weighted probabilities of Venn-ADMIT; None for plain ones.
    logits: (n, C), f or KNN(x), finite.
    match_count: (n,) int64 in [0, K], q.
    max_epochs: >= 0.
    memory_budget: The approximate size of temporaries, in bytes.
    neighbour_count: K, the number of nearest training exemplars, at least 1; None if the classifier has logits only.
    omega: Band radius, >= 0; may be inf.
    on_epoch: Called with each line of the log of a fit as soon as it is known.
    parts: At least one, of the same form.
    plan: The plan of a monitor.
    points: The points that something is computed for.
    predicted: (n,) int64 in [0, C), yhat, the predictions that are decided on.
    q_bins: Lower edges of the bins of q, ascending, the first of them 0; the last bin is open above.
    resamples: The number of samples to draw.
    right: (n,) bool, whether each prediction is the label, yhat = y.
    row_bytes: The bytes of temporaries for each row.
    row_keys: (n,), the name of each row within its document, all distinct there.
    rows: (m,) int64, the rows that are chosen.
    score: (n,) float64, by which points are admitted; NaN for a point that can never be admitted.
    seed: The classifier's seed, in [-2**63, 2**63).
    settings: The settings of the calibrator.
    singleton: (n,) bool, whether the ADMIT set of each point is a singleton.
    state: The state of a monitor after the documents so far.
    stored: The fields of a decision by name, as they are stored.
    temperature: T > 0, finite, of the softmax of f.
    text: The text to check.
    thresholds: (C,), t_c, exact decimals.
    value: The text to check.
    values: As arrays of the field hold them.
"""
