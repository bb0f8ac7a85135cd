"""Measurements that anybody can run again: tables, published rows and baselines beside credo's own."""
