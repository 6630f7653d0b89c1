"""Modules made of operations, with weights; encoders, attention and decoders are made of them."""
