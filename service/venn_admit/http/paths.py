"""Paths of what the service holds, as advice and the header Location have them."""

from urllib.parse import quote


def classifier_path(classifier: str) -> str:
    """Return the path of a classifier.

    >>> classifier_path("film/tv")
    '/v1/classifiers/film%2Ftv'
    """
    return f"/v1/classifiers/{quote(classifier, safe='')}"


def cascade_path(cascade: str) -> str:
    """Return the path of a cascade."""
    return f"/v1/cascades/{quote(cascade, safe='')}"


def job_path(classifier: str, job_id: int) -> str:
    """Return the path of a job."""
    return f"{classifier_path(classifier)}/jobs/{job_id}"
