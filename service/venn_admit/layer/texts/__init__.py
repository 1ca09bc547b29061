"""Texts with labels: tables of documents, and CoNLL files of labelled words."""
