"""unit="step": all gradients of a backward pass have the same contributors, whenever a worker dies."""

from __future__ import annotations

import os
import signal

import pytest

import elastic
from conftest import Job

torch = pytest.importorskip("torch")

#: The member that dies, of three.
DEAD = 1


class Gradients(torch.nn.Module):
    """Each gradient of a member is its factor in all elements, in a row of its own if sparse. The
    gradient of the parameter named `last` comes when all others are on their way."""

    def __init__(self, last: str) -> None:
        super().__init__()
        self.last = last
        self.first = torch.nn.Parameter(torch.zeros(1000))
        self.second = torch.nn.Parameter(torch.zeros(3, 5))
        self.table = torch.nn.Embedding(4, 2, sparse=True)

    def forward(self, factor: float, rank: int, before_last) -> torch.Tensor:
        parts = {
            "first": lambda: self.first.sum() * factor,
            "second": lambda: self.second.sum() * factor,
            "table": lambda: self.table(torch.tensor([rank])).sum() * factor,
        }
        last = parts.pop(self.last)()
        last.register_hook(before_last)
        total = last * 1
        for part in parts.values():
            total = total + part()
        return total


def die_once_all_is_summed() -> None:
    """Ends the member DEAD, when what was submitted before is complete on all members."""
    elastic.allreduce_async("all before", torch.zeros(1)).wait()
    elastic.barrier()
    if elastic.rank() == DEAD:
        os.kill(os.getpid(), signal.SIGKILL)


def averages(model: torch.nn.Module) -> dict[str, list[float]]:
    """The numbers other than 0 in each gradient, each once."""
    return {
        name: sorted(set(parameter.grad.to_dense().unique().tolist()) - {0.0})
        for name, parameter in model.named_parameters()
    }


def death_in_backward() -> None:
    import elastic.torch
    from elastic.torch import step_exchange

    elastic.init()
    rank, unit, last = elastic.rank(), os.environ["UNIT"], os.environ["LAST"]
    factor = 10.0**rank
    torch.manual_seed(0)
    module = Gradients("table" if last == "rows" else last)
    model = elastic.torch.DistributedDataParallel(module, unit=unit, bucket_cap_mb=0)
    for _ in range(2):
        model.zero_grad()
        model(factor, rank, lambda gradient: None).backward()
        whole = {"first": [37.0], "second": [37.0]}
        assert {**averages(model.module), **whole} == averages(model.module), averages(model.module)
        assert sorted(averages(model.module)["table.weight"]) == [
            pytest.approx(f / 3) for f in (1, 10, 100)
        ]
    model.zero_grad()
    if last == "rows":  # the rows travel after all else, and without those of the dead worker
        packed = step_exchange.packed

        def packed_after_a_death(tensor: torch.Tensor) -> torch.Tensor:
            die_once_all_is_summed()
            return packed(tensor)

        step_exchange.packed = packed_after_a_death
        model(factor, rank, lambda gradient: None).backward()
    else:
        model(factor, rank, lambda gradient: die_once_all_is_summed()).backward()
    found = averages(model.module)
    sets = {tuple(contributors.workers) for contributors in model.contributors}
    if unit == "step":
        assert len(model.contributors) == 1 and len(model.contributors[0]) == 2
        assert found == {"first": [50.5], "second": [50.5], "table.weight": [0.5, 50.0]}, found
    else:  # what it is good for
        assert len(sets) == 2, sets
        assert 50.5 in found["first"] + found["second"] and 37.0 in found["first"] + found["second"]
    print("went on")
    elastic.shutdown()


@pytest.mark.parametrize("last", ["first", "second", "table", "rows"])
def test_a_death_leaves_all_gradients_with_the_survivors(job: Job, last: str) -> None:
    output = job(3, death_in_backward, "--max-restarts", "0", UNIT="step", LAST=last)
    assert output.count("went on") == 2, output


def test_buckets_have_contributors_of_their_own(job: Job) -> None:
    output = job(3, death_in_backward, "--max-restarts", "0", UNIT="bucket", LAST="first")
    assert output.count("went on") == 2, output
