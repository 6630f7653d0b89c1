"""Beam search, forced decoding and translation of a stream."""
