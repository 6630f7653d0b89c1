"""Runs translated and scored."""
