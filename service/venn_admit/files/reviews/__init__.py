"""Points of the queue as files that people and tools for labelling take, and the labels that these give back."""
