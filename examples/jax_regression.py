"""Linear regression with JAX, on workers that come and go.

    elasticrun -np 3 python jax_regression.py
"""

import jax
import jax.numpy as jnp
import numpy as np

import elastic
import elastic.jax

elastic.init()
data = np.random.default_rng(1).normal(size=(2048, 8)).astype(np.float32)
wanted = {"weights": np.arange(8.0, dtype=np.float32), "bias": np.full((), 0.5, np.float32)}
target = data @ wanted["weights"] + wanted["bias"]

params = elastic.jax.PyTree({"weights": jnp.zeros(8), "bias": jnp.zeros(())})
sampler = elastic.Sampler(len(data), seed=1)
state = elastic.State(params=params, sampler=sampler)


@jax.jit
def gradient(params, inputs, targets, mask):  # type: ignore[no-untyped-def]
    """The gradient of the sum of squared errors, over the samples whose mask is 1."""

    def loss(params):  # type: ignore[no-untyped-def]
        error = inputs @ params["weights"] + params["bias"] - targets
        return (mask * error**2).sum() / 2

    return jax.grad(loss)(params)


def train(state: elastic.State) -> None:
    while not sampler.finished(epochs=10):
        share = sampler.next(batch_per_worker=16)
        padded = np.resize(share, 16) if len(share) else np.zeros(16, int)  # one shape for jit
        mask = (np.arange(16) < len(share)).astype(np.float32)
        own = gradient(params.value, data[padded], target[padded], mask)
        (sums, samples), contributors = elastic.jax.allreduce((own, float(len(share))))
        sampler.commit(contributors)
        params.value = jax.tree_util.tree_map(
            lambda value, total: value - 0.1 * total / samples, params.value, sums
        )
        state.commit()  # workers join and leave here


elastic.run(state, train)
if elastic.rank() == 0:
    errors = jax.tree_util.tree_map(lambda own, true: abs(own - true).max(), params.value, wanted)
    print(f"{state.commits} steps, largest error {max(jax.tree_util.tree_leaves(errors)):.1e}")
elastic.shutdown()
