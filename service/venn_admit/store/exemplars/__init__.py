"""Classifiers, their exemplars, labels and training data, and the approximations of exemplars."""
