"""The translation server: requests in front, processes that translate behind."""
