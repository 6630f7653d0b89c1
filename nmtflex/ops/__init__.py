"""Operations written by hand: each with a plain reference, and faster forms that equal it."""
