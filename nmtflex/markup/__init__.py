"""Markup around the text to translate: taken apart, and put together with translations."""
