"""Several networks as one posterior: deep ensembles, dropout masks, iterates of an optimiser."""
