"""The HTTP service: each route parses, calls one flow, and answers."""
