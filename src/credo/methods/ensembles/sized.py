"""Methods that take the number of their members as a field."""

from typing import Any

from credo.core.checks import whole_number


class Sized:
    """Base of methods of `size` members; goes before the other bases."""

    size: Any

    def __post_init__(self) -> None:
        whole_number(self.size, "The size of an ensemble")

    @property
    def members(self) -> Any:
        return self.size
