"""The Celery side of the service: ids in, one flow call, counts out."""
