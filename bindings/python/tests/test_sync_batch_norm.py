"""elastic.torch.SyncBatchNorm against batch normalization of the whole batch in one process."""

from __future__ import annotations

import pytest

import elastic

torch = pytest.importorskip("torch")


def whole_batch() -> None:
    import elastic.torch

    elastic.init()
    n, rank = elastic.size(), elastic.rank()
    for shape in ((12, 3), (12, 3, 5), (12, 3, 2, 4)):
        torch.manual_seed(2)
        inputs = 100 + torch.randn(shape)  # far from zero, where squares lose digits
        weights = torch.randn(shape)
        kind = {2: torch.nn.BatchNorm1d, 3: torch.nn.BatchNorm1d, 4: torch.nn.BatchNorm2d}[len(shape)]
        plain = kind(3)
        torch.nn.init.normal_(plain.weight)
        converted = torch.nn.Sequential(kind(3))
        converted[0].load_state_dict(plain.state_dict())
        converted = elastic.torch.SyncBatchNorm.convert_sync_batchnorm(converted)
        assert isinstance(converted[0], elastic.torch.SyncBatchNorm)

        bounds = [0, 0, 7, 12] if n == 3 else [0, 5, 12]  # uneven; of three, the first has nothing
        share = slice(bounds[rank], bounds[rank + 1])
        own = inputs[share].clone().requires_grad_()
        (converted(own) * weights[share]).sum().backward()
        whole = inputs.clone().requires_grad_()
        (plain(whole) * weights).sum().backward()

        assert torch.allclose(own.grad, whole.grad[share], atol=1e-4)
        for parameter in converted.parameters():  # as DistributedDataParallel would, but added up
            elastic.allreduce(parameter.grad)
        assert torch.allclose(converted[0].weight.grad, plain.weight.grad, atol=1e-3)
        assert torch.allclose(converted[0].bias.grad, plain.bias.grad, atol=1e-4)
        for name, buffer in plain.named_buffers():
            assert torch.allclose(dict(converted[0].named_buffers())[name], buffer, atol=1e-3), name
        converted.eval()
        plain.eval()
        assert torch.allclose(converted(inputs), plain(inputs), atol=1e-3)

    norm = elastic.torch.SyncBatchNorm(3)
    with pytest.raises(elastic.InvalidArgumentError, match=r"\(samples, 3, \.\.\.\)"):
        norm(torch.ones(2, 4))
    with pytest.raises(elastic.InvalidArgumentError, match="no variance of one"):
        norm(torch.ones(1 if rank == 0 else 0, 3))
    elastic.shutdown()


@pytest.mark.parametrize("workers", [2, 3])
def test_is_that_of_the_whole_batch(job, workers: int) -> None:
    job(workers, whole_batch)
