"""Random flips, shifts and noise of images while a network is trained."""

from typing import Any

import jax
import jax.numpy as jnp

from credo.core.capabilities import Wrapper, capability, offers
from credo.core.network import Variables
from credo.core.tree import leaf, struct
from credo.core.typing import PyTree
from credo.errors import InputError
from credo.networks.layered import as_images


@struct
class Augmented(Wrapper):
    """The network on images that are changed at random in training; see `augmented`.

    All else (masks, layers, dropout rates) is the network's.
    """

    network: Any = leaf()
    flip: bool = True
    shift: int = 4
    noise: float = 0.0

    def offering(self, kind: type) -> Any:
        """What the network offers; the estimators of Bayes by Backprop, which only train, see changed images."""
        inner = capability(self.network, kind)
        return self if inner is not None and offers(self, kind) else inner

    @property
    def unchanged(self) -> Any:
        """The network, without the augmentation."""
        return self.network

    def apply_local(self, mean: PyTree, std: PyTree, inputs: jax.Array, key: jax.Array) -> jax.Array:
        """The network's own for changed images."""
        key_images, key = jax.random.split(key)
        return self.network.apply_local(mean, std, self.change(key_images, inputs), key)

    def apply_flipout(self, mean: PyTree, moved: PyTree, inputs: jax.Array, key: jax.Array) -> jax.Array:
        """The network's own for changed images."""
        key_images, key = jax.random.split(key)
        return self.network.apply_flipout(mean, moved, self.change(key_images, inputs), key)

    def init(self, key: jax.Array, inputs: jax.Array, num_outputs: int) -> Variables:
        """The network's own start."""
        as_images(inputs)
        return self.network.init(key, inputs, num_outputs)

    def apply(
        self, variables: Variables, inputs: jax.Array, *, key: jax.Array | None = None, train: bool = False
    ) -> tuple[jax.Array, PyTree]:
        """Outputs for changed images in training with a key, and for the images themselves otherwise."""
        if train and key is not None:
            key_images, key = jax.random.split(key)
            inputs = self.change(key_images, inputs)
        return self.network.apply(variables, inputs, key=key, train=train)

    def info(self, params: PyTree) -> PyTree:
        """What the network says."""
        return self.network.info(params)

    def change(self, key: jax.Array, inputs: jax.Array) -> jax.Array:
        """Every image flipped, shifted and with noise, each at random and apart from the others."""
        images = as_images(inputs)
        images = images if jnp.issubdtype(images.dtype, jnp.inexact) else images.astype(jnp.float32)
        key_flip, key_shift, key_noise = jax.random.split(key, 3)
        if self.flip:
            flipped = jax.random.bernoulli(key_flip, 0.5, (len(images), 1, 1, 1))
            images = jnp.where(flipped, images[:, :, ::-1], images)
        if self.shift:
            images = _shift(key_shift, images, self.shift)
        if self.noise:
            images = images + self.noise * jax.random.normal(key_noise, images.shape, images.dtype)
        return images.reshape(inputs.shape)


def _shift(key: jax.Array, images: jax.Array, most: int) -> jax.Array:
    """A random window of the image's size, in the image with zeros around it."""
    padded = jnp.pad(images, ((0, 0), (most, most), (most, most), (0, 0)))
    corners = jax.random.randint(key, (len(images), 2), 0, 2 * most + 1)

    def one(image: jax.Array, corner: jax.Array) -> jax.Array:
        return jax.lax.dynamic_slice(image, (corner[0], corner[1], 0), images.shape[1:])

    return jax.vmap(one)(padded, corners)


def augmented(network: Any, flip: bool = True, shift: int = 4, noise: float = 0.0) -> Augmented:
    """A network that sees other versions of its images at every step of training, made on the device.

    Augmentation is a part of optimisation, not of the model: methods that train on minibatches with a key (`map`,
    ensembles, variational inference, `mc_dropout` with the network's own masks) see changed images; samplers, whose
    target must not change, and all predictions see the images themselves. A likelihood of changed images counts each
    row once, so the posterior is that of as many rows as there are.

    Args:
        network: any network of images [n, height, width, channels] or [n, height, width].
        flip: mirror every other image, left to right.
        shift: most pixels by which an image is moved up, down, left or right, with zeros where nothing is left.
        noise: standard deviation of normal noise on every pixel.

    Example:
        >>> import jax, jax.numpy as jnp, credo
        >>> network = credo.networks.augmented(credo.networks.lenet([2], [8], window=3), shift=1)
        >>> images = jax.random.normal(jax.random.key(0), (3, 8, 8))
        >>> variables = network.init(jax.random.key(1), images, 2)
        >>> network.apply(variables, images, key=jax.random.key(2), train=True)[0].shape
        (3, 2)
    """
    if int(shift) != shift or shift < 0:
        raise InputError(f"shift is a whole number of places of at least 0, got {shift}.")
    if noise < 0:
        raise InputError(f"noise is a standard deviation of at least 0, got {noise}.")
    return Augmented(network, bool(flip), int(shift), float(noise))
