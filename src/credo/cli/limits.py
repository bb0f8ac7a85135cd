"""How large numbers on the command line may be."""

# Keys have 32 bits where JAX computes in single precision: a larger seed would give the numbers of a smaller one.
MOST_SEED = 2**32 - 1
