"""What the HTTP service and its pages rest on: bodies, limits, problems, uploads, and guards."""
