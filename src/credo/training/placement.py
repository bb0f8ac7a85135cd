"""Where members run: on one device, mapped, or spread over all devices."""

from typing import Any, NamedTuple

import jax
import numpy as np
from jax.sharding import Mesh, NamedSharding
from jax.sharding import PartitionSpec as Spec

from credo.memory import memory_left


class Placement(NamedTuple):
    """How members are mapped. `padded` is their number rounded up so that every device gets equally many."""

    over: str  # "one", "vmap", "map" or "devices"
    members: int
    padded: int
    mesh: Mesh | None

    @property
    def by_member(self) -> Any:
        """Sharding of arrays whose leading axis is the member."""
        return None if self.mesh is None else NamedSharding(self.mesh, Spec(self.mesh.axis_names[0]))

    @property
    def shared(self) -> Any:
        """Sharding of arrays that every device needs whole."""
        return None if self.mesh is None else NamedSharding(self.mesh, Spec())


def place(members: int, over: str, lockstep: bool, mesh: Mesh | None = None) -> Placement:
    """Spread members over the mesh, or over all local devices where there are several."""
    if mesh is None and over in ("auto", "devices") and members > 1:
        devices = jax.local_devices()
        if len(devices) > 1:
            mesh = Mesh(np.array(devices[: min(len(devices), members)]), ("member",))
    if mesh is not None and over in ("auto", "devices"):
        width = mesh.shape[mesh.axis_names[0]]
        return Placement("devices", members, -(-members // width) * width, mesh)
    if members == 1:
        return Placement("one", 1, 1, None)
    if over in ("auto", "devices"):
        over = "vmap" if lockstep else "map"
    return Placement(over, members, members, None)


def device_room() -> float:
    """Bytes that the devices have left: memory of their own, or what the machine has."""
    own = [(device.memory_stats() or {}) for device in jax.local_devices()]
    left = [stats["bytes_limit"] - stats.get("bytes_in_use", 0) for stats in own if "bytes_limit" in stats]
    return float(sum(left)) if left else memory_left()


def on_one_device(tree: Any) -> Any:
    """The tree without arrays that lie on several devices.

    Such arrays spread every program that reads them over their devices: sums then round in another order than for the
    same arrays read from a file, and a computation on the host must run on one device.
    """

    def gathered(x: Any) -> Any:
        spread = isinstance(x, jax.Array) and len(x.sharding.device_set) > 1
        return jax.device_put(x, jax.local_devices()[0]) if spread else x

    return jax.tree.map(gathered, tree)
