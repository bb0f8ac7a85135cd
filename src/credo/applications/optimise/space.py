"""The space that is searched: named settings, and their code in the unit cube."""

import itertools
import math
import tomllib
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from scipy.stats import qmc

from credo.applications.optimise.dimensions import Category, Dimension, Float, Int, from_plain, to_plain
from credo.errors import InputError
from credo.storage.archives import Damaged, read_file

Point = dict[str, Any]
MOST_BYTES = 2**24  # of a file that describes a space


class Space:
    """Settings and what each may be.

    A point is a dictionary. Its code is a row of the unit cube: one column for each number (logarithms where `log`),
    one for each choice of a categorical setting.

    Args:
        dimensions: name → `Float`, `Int` or `Category`.

    Example:
        >>> from credo.applications.optimise import Category, Float, Int, Space
        >>> space = Space({"x": Float(0, 1), "n": Int(1, 50), "kind": Category(["a", "b"])})
        >>> code = space.code([{"x": 0.25, "n": 7, "kind": "b"}])
        >>> space.decode(code)
        [{'x': 0.25, 'n': 7, 'kind': 'b'}]
    """

    def __init__(self, dimensions: Mapping[str, Dimension]):
        if not isinstance(dimensions, Mapping) or not dimensions:
            raise InputError('A space has at least one setting: Space({"x": Float(0, 1)}).')
        for name, dimension in dimensions.items():
            if not isinstance(name, str) or not isinstance(dimension, Float | Int | Category):
                raise InputError(f"A setting is a Float, an Int or a Category under a name, got {name!r}.")
        self.dimensions = dict(dimensions)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Space) and self.to_data() == other.to_data()

    def __hash__(self) -> int:
        return hash(tuple(self.dimensions))

    def __repr__(self) -> str:
        return f"Space({self.dimensions!r})"

    # ------------------------------------------------------------------ sizes
    @property
    def columns(self) -> int:
        """Columns of the code."""
        return sum(d.columns for d in self.dimensions.values())

    @property
    def count(self) -> int | None:
        """How many different points there are; None where a setting is a `Float`."""
        counts = [d.count for d in self.dimensions.values()]
        return None if None in counts else math.prod(c for c in counts if c is not None)

    @property
    def moving(self) -> np.ndarray:
        """Which columns a gradient may move: those of numbers [columns]."""
        return np.concatenate([np.full(d.columns, not isinstance(d, Category)) for d in self.dimensions.values()])

    @property
    def smooth(self) -> bool:
        """True where all settings are `Float`, so that every row of the cube is a point."""
        return all(isinstance(d, Float) for d in self.dimensions.values())

    # ------------------------------------------------------------------ points and codes
    def checked(self, point: Mapping[str, Any]) -> Point:
        """The point with all its settings in their ranges, or a sentence."""
        if not isinstance(point, Mapping) or point.keys() != self.dimensions.keys():
            names = ", ".join(map(str, point)) if isinstance(point, Mapping) else repr(point)
            raise InputError(f"A point has the settings {', '.join(self.dimensions)}, got {names}.")
        checked = {}
        for name, dimension in self.dimensions.items():
            try:
                checked[name] = dimension.checked(point[name])
            except InputError as error:
                raise InputError(f'For "{name}" {error}.') from error
        return checked

    def code(self, points: Sequence[Mapping[str, Any]]) -> np.ndarray:
        """Rows of the unit cube [n, columns]."""
        if not len(points):
            return np.zeros((0, self.columns))
        rows = [np.concatenate([d.code(p[name]) for name, d in self.dimensions.items()]) for p in points]
        return np.array(rows)

    def decode(self, rows: np.ndarray) -> list[Point]:
        """Points of rows; whole numbers and choices are the nearest ones."""
        points: list[Point] = [{} for _ in rows]
        for i, row in enumerate(np.asarray(rows, np.float64)):
            first = 0
            for name, dimension in self.dimensions.items():
                points[i][name] = dimension.decode(row[first : first + dimension.columns])
                first += dimension.columns
        return points

    def snap(self, rows: np.ndarray) -> np.ndarray:
        """Rows moved to the nearest codes of points."""
        if self.smooth:
            return np.clip(np.asarray(rows, np.float64), 0.0, 1.0)
        return self.code(self.decode(rows))

    def key(self, point: Mapping[str, Any]) -> tuple[Any, ...]:
        """What tells a point from others."""
        return tuple((type(point[name]).__name__, point[name]) for name in self.dimensions)

    def sample(self, num: int, seed: int) -> np.ndarray:
        """Codes of `num` points of a scrambled Sobol sequence [num, columns], which fills the cube evenly.

        Example:
            >>> from credo.applications.optimise import Float, Space
            >>> space = Space({"x": Float(0, 1), "y": Float(0, 1)})
            >>> np.histogram(space.sample(8, 0)[:, 0], 4, (0, 1))[0].tolist()
            [2, 2, 2, 2]
        """
        sobol = qmc.Sobol(len(self.dimensions), scramble=True, rng=np.random.default_rng(seed))
        unit = sobol.random_base2(max(0, math.ceil(math.log2(max(num, 1)))))[:num]
        columns = []
        for i, dimension in enumerate(self.dimensions.values()):
            if isinstance(dimension, Category):
                which = np.minimum((unit[:, i] * dimension.count).astype(int), dimension.count - 1)
                columns.append(np.eye(dimension.count)[which])
            else:
                columns.append(unit[:, i : i + 1])
        return self.snap(np.concatenate(columns, 1))

    def every(self) -> np.ndarray:
        """Codes of all points of a space without `Float` [count, columns]."""
        values = [d.choices if isinstance(d, Category) else range(d.low, d.high + 1)  # type: ignore[arg-type]
                  for d in self.dimensions.values()]  # fmt: skip
        return self.code([dict(zip(self.dimensions, point)) for point in itertools.product(*values)])

    # ------------------------------------------------------------------ files
    def to_data(self) -> dict[str, Any]:
        """The space as plain data."""
        return {name: to_plain(dimension) for name, dimension in self.dimensions.items()}

    @staticmethod
    def from_data(data: Any) -> "Space":
        """A space from plain data."""
        if not isinstance(data, dict) or not data:
            raise InputError("A space has a table for each setting.")
        return Space({name: from_plain(name, plain) for name, plain in data.items()})

    @staticmethod
    def from_toml(path: Any) -> "Space":
        """A space from a TOML file with a table for each setting.

        Example:
            >>> from pathlib import Path
            >>> from credo.applications.optimise import Space
            >>> _ = Path("space.toml").write_text("[rate]\\ntype = 'float'\\nlow = 1e-5\\nhigh = 1\\nlog = true\\n")
            >>> Space.from_toml("space.toml")
            Space({'rate': Float(low=1e-05, high=1.0, log=True)})
        """
        file = Path(path)
        try:
            data = tomllib.loads(read_file(file, MOST_BYTES, inside=False).decode())
        except OSError as error:
            raise InputError(f"Cannot read {file}: {error.strerror or error}.") from error
        except Damaged as error:
            raise InputError(f"Cannot read {file}: {error}.") from error
        except (tomllib.TOMLDecodeError, UnicodeDecodeError, RecursionError, ValueError) as error:
            raise InputError(f"{file} is not TOML: {str(error).splitlines()[0]}.") from error
        try:
            return Space.from_data(data)
        except InputError as error:
            raise InputError(f"{file}: {error}") from error
