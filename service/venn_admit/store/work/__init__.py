"""Jobs and their chunks, the messages that announce them, and requests for recalibration."""
