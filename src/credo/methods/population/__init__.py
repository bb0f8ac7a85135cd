"""Populations of particles: sequential Monte Carlo, importance sampling, Stein particles."""
