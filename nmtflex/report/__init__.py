"""Reports of runs: one page of HTML."""
