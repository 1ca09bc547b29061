"""The mathematics: arrays in, frozen dataclasses out, no input or output."""
