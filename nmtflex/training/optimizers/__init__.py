"""Optimisers: each changes the weights by their gradients."""
