"""How fast credo is beside NumPyro, BlackJAX, Pyro, posteriors and torch, through its public interface."""
