"""Encoders: networks that give every token of a text a state. Nothing is downloaded."""
