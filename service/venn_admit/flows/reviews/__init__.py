"""What reviewers do: they claim points of the queue, label them, and settle where their labels differ.

These arguments mean the same in all of its modules.

Args:
    count: At most how many points are wanted.
    lease_seconds: How long claims hold unless they are renewed.
    reviewer: Who it is, 1 to 100 printable characters; claims and labels are told apart by this name.
    external_ids: Ids of points; None: all that the reviewer holds.
"""
