"""The paper's method, Venn-ADMIT: bands, ADMIT sets and categories (docs/PROCEDURE.md, sections 3 to 6)."""
