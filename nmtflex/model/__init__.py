"""Encoder, decoder and the model made of them."""
