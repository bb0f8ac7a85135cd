"""`auto` beside the models that people use on tables: many sets, published splits, one process for each fit."""
