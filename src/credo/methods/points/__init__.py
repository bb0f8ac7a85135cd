"""One point of the posterior: the mode, the best fit, and the optimisers that find them."""
