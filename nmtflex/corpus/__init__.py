"""Tokens on disk and in batches; corpora that the program makes itself."""
