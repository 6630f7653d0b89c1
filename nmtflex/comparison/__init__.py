"""Mechanisms trained, scored and timed alike, and their table."""
