"""The names of the methods of calibration, which options and help name without loading NumPy."""

VENN_ADMIT = "venn-admit"
VENN_ABERS = "venn-abers"
DEFAULT_METHOD = VENN_ABERS
