"""Venn-Abers on the network's prediction (docs/PROCEDURE.md, section 9)."""
