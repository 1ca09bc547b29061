"""The mathematics: arrays in, frozen dataclasses out, no input or output.

These arguments mean the same everywhere. A docstring describes them again only if it has more to say.

Args:
    alpha: The error level, an exact decimal in (0, 1).
    class_count: C, the number of classes.
    document_keys: (n,), the document that each row belongs to.
    documents: The document of each point, if points of one document are not independent.
    eta_loc: The localizer's parameter, > 0, finite, in the units of the vectors.
    max_epochs: >= 0.
    memory_budget: The approximate size of temporaries, in bytes.
    neighbour_count: K, the number of nearest training exemplars.
    on_epoch: Called with each line of the log of a fit as soon as it is known.
    plan: The plan of a monitor.
    q_bins: Lower edges of the bins of q, ascending, the first of them 0; the last bin is open above.
    row_keys: (n,), the name of each row within its document, all distinct there.
    seed: The classifier's seed, in [-2**63, 2**63).
    settings: The settings of the calibrator.
    thresholds: (C,), t_c, exact decimals.
"""
