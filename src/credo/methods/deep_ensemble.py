"""Deep ensembles: several MAP fits as one vectorised computation."""

from typing import Any

from credo.core.tree import struct
from credo.errors import InputError
from credo.methods.map import MAP


@struct
class DeepEnsemble(MAP):
    """`replicate(MAP(), size)`: members differ in their start and in their batches (C3).

    Lakshminarayanan, Pritzel and Blundell (2017).

    Args:
        size: number of members.
        learning_rate, optimiser, schedule: as in `MAP`.

    Example:
        >>> import credo
        >>> credo.methods.DeepEnsemble(size=10).members
        10
    """

    size: int = 5

    def __post_init__(self) -> None:
        if self.size < 1:
            raise InputError(f"An ensemble needs at least one member, got size={self.size}.")

    @property
    def members(self) -> Any:
        return self.size
