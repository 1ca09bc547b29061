"""Vectors and logits of models, batch after batch: torch modules, scikit-learn estimators, and functions."""
