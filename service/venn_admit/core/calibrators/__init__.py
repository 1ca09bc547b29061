"""The foundations of every method of calibration: settings, bands of (q, d), and the rows of a snapshot.

These arguments and attributes mean the same in all of its modules.

Args:
    columns: (p, n) float64, one contiguous row a column.
    delta: > 0, the band radius in standard deviations of d; may be inf.
    group: (n,) int64, >= 0.
    kappa: The least number of points of each class in a band that is used.
    kinds: As `Certification` has them.
    method: `venn-admit` or `venn-abers`.
    name: The name of a setting.
    outcome: (n,) bool.
    value: That of a setting, as the record of settings holds it.
"""
