"""The Python interface: a connection, its classifiers, and what they take and give."""
