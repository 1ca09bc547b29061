"""The queue for reviewers: points, claims on them, and the labels that they were given."""
