"""Run folders: options, weights, text pipeline; how one is read and opened."""
