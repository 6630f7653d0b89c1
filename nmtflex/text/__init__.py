"""Raw text to tokens and back."""
