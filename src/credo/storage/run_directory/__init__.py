"""Run directories: everything that a fit left, as data alone."""
