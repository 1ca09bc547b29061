"""What record batches of Arrow hold, and what of it is taken."""
