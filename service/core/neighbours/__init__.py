"""The exact K nearest training exemplars of many points, by certified bounds of rounded products."""
