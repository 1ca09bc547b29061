"""Thresholds by conformal selection, which keep the share wrong on average: docs/PROCEDURE.md, section 9."""
