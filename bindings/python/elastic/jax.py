"""JAX: allreduces of pytrees through host memory, and pytrees in the State.

    import elastic.jax

    params = elastic.jax.PyTree({"w": jnp.zeros(8), "b": jnp.zeros(())})
    state = elastic.State(params=params, sampler=sampler)
    ...
    gradients, contributors = elastic.jax.allreduce(jax.grad(loss)(params.value, batch))
    params.value = jax.tree_util.tree_map(lambda p, g: p - rate * g, params.value, gradients)
    state.commit()
"""

from __future__ import annotations

from typing import Any

import jax
import jax.numpy
import numpy as np

import elastic
from elastic import Context, Contributors, ReduceOp, canonical

__all__ = ["PyTree", "allreduce"]


def allreduce(
    tree: Any, op: ReduceOp = elastic.SUM, *, context: Context | None = None
) -> tuple[Any, Contributors]:
    """Combines the leaves of a pytree over all members, as one unit.

    Args:
        tree: arrays of JAX or NumPy and numbers, in the same structure on all members. Not
            changed.
        op: as in ``elastic.allreduce``.

    Returns:
        The combined tree, whose arrays lie on the devices of the given ones, and the Contributors:
        after a death all leaves are over the same workers.

    Raises:
        InvalidArgumentError: ``op`` is no ReduceOp.
        TypeError: it is called under ``jax.jit`` or another transformation.
        MismatchError: members gave different leaves.
    """
    leaves, structure = jax.tree_util.tree_flatten(tree)
    arrays = [_host_copy(leaf) for leaf in leaves]
    on = elastic if context is None else context
    contributors = on.grouped_allreduce(arrays, op)
    combined = [_like(leaf, array) for leaf, array in zip(leaves, arrays)]
    return jax.tree_util.tree_unflatten(structure, combined), contributors


class PyTree:
    """Holds a pytree for the State: JAX's arrays cannot be written in place, but replaced.

    All members begin with the same structure, shapes and element types.
    """

    def __init__(self, value: Any) -> None:
        #: The tree; assign the next one to it.
        self.value = value

    def save(self) -> bytes:
        """The leaves as bytes, for the State."""
        arrays = [_host_copy(leaf) for leaf in jax.tree_util.tree_leaves(self.value)]
        return canonical.dumps([(str(a.dtype), a.shape, a.tobytes()) for a in arrays], "PyTree")

    def load(self, saved: bytes) -> None:
        """Reverse of ``save``."""
        leaves, structure = jax.tree_util.tree_flatten(self.value)
        loaded = canonical.loads(saved)
        if len(loaded) != len(leaves):
            raise elastic.InvalidArgumentError(
                f"PyTree: the tree has {len(leaves)} leaves, and what it is to load has {len(loaded)}"
            )
        new = [
            _like(leaf, np.frombuffer(content, jax.numpy.dtype(dtype)).reshape(shape))
            for leaf, (dtype, shape, content) in zip(leaves, loaded)
        ]
        self.value = jax.tree_util.tree_unflatten(structure, new)


def _host_copy(leaf: Any) -> np.ndarray[Any, np.dtype[Any]]:
    if isinstance(leaf, jax.core.Tracer):
        raise TypeError(
            "elastic.jax: arrays have no values under jax.jit or jax.grad; call it on their results"
        )
    return np.array(leaf, order="C")


def _like(leaf: Any, array: np.ndarray[Any, np.dtype[Any]]) -> Any:
    """``array`` as what ``leaf`` is: on the same devices, or a number."""
    if isinstance(leaf, jax.Array):
        return jax.device_put(array, leaf.sharding)
    return array.copy() if isinstance(leaf, np.ndarray) else array.item()
