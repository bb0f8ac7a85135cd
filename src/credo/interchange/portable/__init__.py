"""Exported predictors with nothing but NumPy; `credo.interchange.assemble` makes one file of these modules."""
