"""The exact search for the K nearest training exemplars of many points, by certified bounds of rounded products."""
