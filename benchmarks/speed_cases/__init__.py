"""The cases of the speed benchmark: each runs alone in a fresh process, started by ``speed.py``."""
