"""Forecasts: nonlinear autoregression, simulated paths and backtests."""
