"""Tools for labelling over their REST interfaces: points of the queue go there, and the labels given there come back.

These arguments mean the same in all of its modules.

Args:
    base: Where the tool answers, without a slash at the end.
    token: With what it is asked; messages do not show it.
"""
