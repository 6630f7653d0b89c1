"""Encoders: each reads a batch of sources."""
