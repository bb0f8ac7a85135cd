"""Run directories: all of a fit, as data alone."""
