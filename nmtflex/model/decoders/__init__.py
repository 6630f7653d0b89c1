"""Decoders: each makes the vectors that predict the next word."""
