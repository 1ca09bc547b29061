"""The verbs, each one flow call and one printing."""
