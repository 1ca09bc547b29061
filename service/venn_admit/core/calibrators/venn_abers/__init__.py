"""Venn-Abers on the network's own prediction: docs/PROCEDURE.md, section 9."""
