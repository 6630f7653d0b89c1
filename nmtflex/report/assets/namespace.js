// Each file adds one part; page.py says in which order they stand.
const nmtflex = {};
