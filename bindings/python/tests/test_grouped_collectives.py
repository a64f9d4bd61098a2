"""grouped_reduce_scatter and grouped_allgather, with arrays of NumPy and tensors of PyTorch."""

import numpy as np
import pytest
from conftest import Job

import elastic


def grouped() -> None:
    elastic.init()
    n, rank = elastic.size(), elastic.rank()
    tensors = [np.arange(10.0), np.ones((3, 4)), np.zeros(0)]
    out = [np.full(10, -1.0), np.full(12, -1.0), np.zeros(0)]
    parts = elastic.grouped_reduce_scatter(tensors, out)
    for tensor, room, part in zip(tensors, out, parts):
        alone = elastic.reduce_scatter(tensor)
        assert part.offset == alone.offset and (part.values == alone.values).all()
        assert np.shares_memory(part.values, room) or room.size == 0
        assert (room[len(part.values) :] == -1).all() and len(part.contributors) == n
    mean = elastic.grouped_reduce_scatter(tensors[:1], out[:1], elastic.AVERAGE)[0]
    assert (mean.values == np.arange(10.0)[mean.offset :][: len(mean.values)]).all()

    blocks = [np.full((rank + 1, 2), rank, np.float32), np.array([rank])]
    room = [np.zeros(100, np.float32), np.zeros(n, np.int64)]
    rows, ranks = elastic.grouped_allgather(blocks, room)
    assert rows.counts == list(range(1, n + 1)) and rows.values.shape == (n * (n + 1) // 2, 2)
    assert rows.values[:, 0].tolist() == [r for r in range(n) for _ in range(r + 1)]
    assert ranks.values.tolist() == list(range(n)) and ranks.counts == [1] * n

    scattered = elastic.grouped_reduce_scatter_async(tensors, out)
    gathered = elastic.grouped_allgather_async(blocks, room)
    assert gathered.wait()[1].values.tolist() == list(range(n))
    assert [part.offset for part in scattered.wait()] == [part.offset for part in parts]
    assert scattered.ready() and len(scattered.wait()[0].contributors) == n

    with pytest.raises(elastic.InvalidArgumentError, match="tensor 1: the blocks of .* has room for"):
        elastic.grouped_allgather(blocks, [room[0], np.zeros(n - 1, np.int64)])
    with pytest.raises(elastic.InvalidArgumentError, match="one call for each dtype"):
        elastic.grouped_reduce_scatter([tensors[0], blocks[0]], [out[0], room[0]])
    with pytest.raises(elastic.InvalidArgumentError, match="inputs is 3, that of outputs 1"):
        elastic.grouped_reduce_scatter(tensors, out[:1])
    with pytest.raises(elastic.MismatchError, match="grouped_reduce_scatter of 2 tensors, 22 elements"):
        count = 1 if rank == 1 else 2
        elastic.grouped_reduce_scatter(tensors[:count], out[:count])
    assert elastic.allreduce(1) == n
    elastic.shutdown()


def test_grouped(job: Job) -> None:
    job(3, grouped)


def of_torch() -> None:
    import torch

    elastic.init()
    n, rank = elastic.size(), elastic.rank()
    weights = [torch.arange(8, dtype=torch.bfloat16), torch.ones(5, dtype=torch.bfloat16)]
    shards = [torch.zeros(8, dtype=torch.bfloat16), torch.zeros(5, dtype=torch.bfloat16)]
    parts = elastic.grouped_reduce_scatter(weights, shards)
    assert parts[0].values.dtype == torch.bfloat16
    whole = [torch.zeros(8, dtype=torch.bfloat16), torch.zeros(5, dtype=torch.bfloat16)]
    gathered = elastic.grouped_allgather([part.values for part in parts], whole)
    assert torch.equal(whole[0], weights[0] * n) and torch.equal(whole[1], weights[1] * n)
    assert gathered[1].counts == [5 * (r + 1) // n - 5 * r // n for r in range(n)]
    pending = elastic.grouped_allgather_async([torch.full((2, 3), rank)], [torch.zeros(6 * n).long()])
    assert pending.wait()[0].values.shape == (2 * n, 3)
    elastic.shutdown()


def test_of_torch(job: Job) -> None:
    pytest.importorskip("torch")
    job(2, of_torch)
