"""Thresholds by conformal selection, which keep the share wrong on average: docs/PROCEDURE.md, section 9.

These arguments and attributes mean the same in all of its modules.

Args:
    found: The policy.
    wrong_score: (w,) float64, the scores of the calibration points that are wrong.
"""
