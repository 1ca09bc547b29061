"""Use cases, one a file: gather, one core call, apply.

A use case raises NotFoundError if nothing has the name, id or number that it is given; NotReadyError if data, labels or
a calibration are missing for what it does; OutdatedError if it would rest on a calibration of which points were
forgotten; JobError if a job that it sees through fails. Docstrings name what else is raised.

These arguments mean the same in all of its modules.

Args:
    app: The Celery application to send further messages by.
    by: Who asks over HTTP; None: somebody else.
    calibration_id: The snapshot; None: the one in use.
    calibrator_id: The setting.
    check: Is given the settings as they are when nobody else can change them.
    dry_run: Whether to say only what would change, and to change nothing.
    name: The name of the classifier, or of a generation of it.
    on_rows: Is told the number of rows of each transaction.
    on_stored: Is called with what the use case returns, in the transaction that stores or changes it.
    reason: Why, as it is kept with the snapshot.
    requester: Whose job it is; None: somebody whose jobs are not limited.
    shell: Shows what is done, and sees jobs through.
"""
