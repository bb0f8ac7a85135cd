"""Objects as JSON and arrays: files hold data alone, and names in them are looked up, never imported.

A value becomes JSON in which `{"$type": name, "fields": …}` is a credo object and `{"$array": name}` an array that lies
in a safetensors file beside it. Numbers come back as the type they had: a Python float stays one, so that a loaded
model is the program that was saved.
"""

import dataclasses
import math
from collections.abc import Mapping
from typing import Any

import jax
import jax.numpy as jnp
import ml_dtypes
import numpy as np

from credo import likelihoods, networks, posteriors, priors
from credo.core.model import Model
from credo.core.network import Variables
from credo.core.pieces import mapping
from credo.core.short import name_of
from credo.core.tree import STRUCTS, field_values
from credo.errors import ArtifactError
from credo.methods.function_space import infinite
from credo.methods.laplace import curvature

Arrays = dict[str, np.ndarray]
STORED = ("float64", "float32", "float16", "int64", "uint64", "int32", "uint32", "int16", "uint16", "int8", "uint8",
          "bool", "complex64")  # fmt: skip
MARKS = ("$type", "$array", "$tuple", "$dict", "$float", "$variables")


class Unsavable(TypeError):
    """A value that is not data: a function, or an object of a class that credo does not know."""


def known_types() -> dict[str, type]:
    """Every class that a file may name: credo's by package, and the user's structs."""
    types: dict[str, type] = {"core.Model": Model}
    for package in (networks, priors, likelihoods, posteriors, curvature, infinite):
        short = package.__name__.rpartition(".")[2]  # files outlive the folders of the source
        for name, item in vars(package).items():
            if isinstance(item, type) and dataclasses.is_dataclass(item):
                types[f"{short}.{name}"] = item
    for name, item in STRUCTS.items():
        if not item.__module__.startswith("credo."):
            types[f"user.{name}"] = item
    return types


def encode(value: Any, arrays: Arrays, path: str = "") -> Any:
    """The value as JSON types; its arrays are added to `arrays` under their paths."""
    if value is None or isinstance(value, bool | str) or type(value) is int:
        return value
    if type(value) is float:
        return value if math.isfinite(value) else {"$float": repr(value)}
    if isinstance(value, np.ndarray | np.generic | jax.Array):
        return _encode_array(value, arrays, path)
    if isinstance(value, Variables):
        return {"$variables": [encode(v, arrays, f"{path}/{f}") for f, v in zip(value._fields, value)]}
    if type(value) is tuple:
        return {"$tuple": [encode(v, arrays, f"{path}/{i}") for i, v in enumerate(value)]}
    if isinstance(value, list):
        return [encode(v, arrays, f"{path}/{i}") for i, v in enumerate(value)]
    if isinstance(value, Mapping):
        return _encode_dict(value, arrays, path)
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        return _encode_struct(value, arrays, path)
    raise Unsavable(f"{name_of(value)} (at {path}) is not data")


def _encode_array(value: Any, arrays: Arrays, path: str) -> dict[str, Any]:
    if isinstance(value, jax.Array) and jnp.issubdtype(value.dtype, jax.dtypes.prng_key):
        raise Unsavable(f"a random key (at {path}) is not saved")
    form = "scalar" if isinstance(value, np.generic) else "jax" if isinstance(value, jax.Array) else "numpy"
    # Memory maps stay what they are: a copy in C order could be larger than the memory.
    array, note = np.asarray(value, order=None if mapping(value) else "C"), {"form": form}
    if array.dtype == ml_dtypes.bfloat16:
        array, note = array.view(np.uint16), note | {"dtype": "bfloat16"}
    if array.dtype.name not in STORED:
        raise Unsavable(f"an array of type {array.dtype} (at {path}) has no form in a file")
    name = path.lstrip("/")
    while name in arrays:
        name += "'"
    arrays[name] = array
    return {"$array": name} | note


def _encode_dict(value: Mapping[Any, Any], arrays: Arrays, path: str) -> dict[str, Any]:
    if all(isinstance(k, str) and k not in MARKS for k in value):
        return {k: encode(v, arrays, f"{path}/{k}") for k, v in value.items()}
    pairs = [[encode(k, arrays, path), encode(v, arrays, f"{path}/{k}")] for k, v in value.items()]
    return {"$dict": pairs}


def _encode_struct(value: Any, arrays: Arrays, path: str) -> dict[str, Any]:
    name = next((name for name, item in known_types().items() if item is type(value)), None)
    if name is None:
        raise Unsavable(f"{type(value).__name__} (at {path}) is not one of credo's classes")
    fields = {name: encode(part, arrays, f"{path}/{name}") for name, part in field_values(value).items()}
    return {"$type": name, "fields": fields}


def decode(plain: Any, arrays: Mapping[str, np.ndarray]) -> Any:
    """The value that `encode` described; raises ArtifactError where it cannot be one."""
    if isinstance(plain, list):
        return [decode(v, arrays) for v in plain]
    if not isinstance(plain, dict):
        return plain
    if "$type" in plain:
        return _decode_struct(plain, arrays)
    if "$array" in plain:
        return _decode_array(plain, arrays)
    if "$tuple" in plain:
        return tuple(decode(v, arrays) for v in plain["$tuple"])
    if "$variables" in plain:
        return Variables(*(decode(v, arrays) for v in plain["$variables"]))
    if "$dict" in plain:
        return {decode(k, arrays): decode(v, arrays) for k, v in plain["$dict"]}
    if "$float" in plain:
        return float(plain["$float"])
    return {k: decode(v, arrays) for k, v in plain.items()}


def _decode_array(plain: dict[str, Any], arrays: Mapping[str, np.ndarray]) -> Any:
    if plain["$array"] not in arrays:
        raise ArtifactError(f"the array '{plain['$array']}' is missing")
    array = arrays[plain["$array"]]
    if plain.get("dtype") == "bfloat16":
        array = array.view(ml_dtypes.bfloat16)
    if plain.get("form") == "scalar":
        return array[()]
    # Numbers of 64 bits stay NumPy's: JAX would round them unless told otherwise.
    keeps = plain.get("form") == "jax" and jax.dtypes.canonicalize_dtype(array.dtype) == array.dtype
    return jnp.asarray(array) if keeps else array


def _decode_struct(plain: dict[str, Any], arrays: Mapping[str, np.ndarray]) -> Any:
    name, fields = plain["$type"], plain.get("fields")
    cls = known_types().get(name)
    if cls is None and str(name).startswith("user."):
        raise ArtifactError(f"it holds your own class '{name[5:]}': import the module that defines it first")
    if cls is None or not isinstance(fields, dict):
        raise ArtifactError(f"it holds a '{name}', which this credo does not know")
    unknown = set(fields) - {f.name for f in dataclasses.fields(cls)}
    if unknown:
        raise ArtifactError(f"its '{name}' has the unknown field '{min(unknown)}'")
    return cls(**{k: decode(v, arrays) for k, v in fields.items()})
