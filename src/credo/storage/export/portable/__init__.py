"""Exported predictors with nothing but NumPy; `credo.storage.export.assemble` makes one file of these modules."""
