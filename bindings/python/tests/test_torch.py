"""elastic.torch: gradients averaged through deaths, and the State of modules and optimizers."""

from __future__ import annotations

import os
import re
import signal
import warnings

import numpy as np
import pytest

import elastic

torch = pytest.importorskip("torch")


def tensors() -> None:
    elastic.init()
    n = elastic.size()
    for dtype in (torch.float32, torch.bfloat16, torch.float16, torch.float64, torch.int64, torch.uint8):
        tensor = torch.full((2, 3), elastic.rank() + 1).to(dtype)
        elastic.allreduce(tensor)
        assert (tensor == n * (n + 1) // 2).all(), dtype
    gathered = elastic.allgather(torch.full((1, 2), elastic.rank(), dtype=torch.bfloat16))
    assert gathered.values.dtype == torch.bfloat16 and gathered.values.shape == (n, 2)
    wanted = torch.ones(3, requires_grad=True)
    with pytest.raises(elastic.InvalidArgumentError, match="requires a gradient"):
        elastic.allreduce(wanted)
    with torch.no_grad():
        elastic.allreduce(wanted)
    assert (wanted == n).all()
    for wrong, text in (
        (torch.ones(4, 4).t()[1:], r"\.contiguous\(\)"),
        (torch.ones(3, dtype=torch.complex64), "complex64"),
        (torch.ones(3).to_sparse(), "sparse"),
        (torch.ones(3, device="meta"), "device meta"),
        (torch._neg_view(torch.ones(3)), r"\.resolve_neg\(\)"),
    ):
        with pytest.raises(elastic.InvalidArgumentError, match=text):
            elastic.allreduce(wrong)
    elastic.shutdown()


def test_tensors(job) -> None:
    job(2, tensors)


def network() -> torch.nn.Module:
    torch.manual_seed(7)
    return torch.nn.Sequential(
        torch.nn.Linear(8, 16), torch.nn.BatchNorm1d(16), torch.nn.ReLU(), torch.nn.Linear(16, 2)
    )


def averages() -> None:
    """One step has the gradient of the whole batch."""
    import elastic.torch

    elastic.init()
    n, rank = elastic.size(), elastic.rank()
    inputs = torch.randn(4 * n, 8, generator=torch.Generator().manual_seed(1))
    for options in (
        {},
        {"groups": 2},
        {"op": elastic.SUM},
        {"gradient_predivide_factor": 4.0},
        {"backward_passes_per_step": 2},
        {"compression": elastic.torch.Compression.BF16},
    ):
        torch.manual_seed(3)
        model = torch.nn.Linear(8, 2)
        whole = torch.nn.Linear(8, 2)
        whole.load_state_dict(model.state_dict())
        passes = options.get("backward_passes_per_step", 1)
        optimizer = elastic.torch.DistributedOptimizer(
            torch.optim.SGD(model.parameters(), lr=0.1), model.named_parameters(), **options
        )
        for _ in range(passes):
            model(inputs[rank::n]).square().mean().backward()
        optimizer.step()
        factor = n if options.get("op") == elastic.SUM else 1
        (passes * factor * whole(inputs).square().mean()).backward()
        torch.optim.SGD(whole.parameters(), lr=0.1).step()
        close = 0.02 if "compression" in options else 1e-6
        for own, expected in zip(model.parameters(), whole.parameters()):
            assert (own - expected).abs().max() < close, options
        assert all(len(c) == n for c in optimizer.contributors)
    elastic.shutdown()


def test_step_uses_the_average_gradient(job) -> None:
    job(3, averages)


def wrapped_after_its_scheduler() -> None:
    """Schedulers put a ``step`` that counts onto the optimizer."""
    elastic.init()
    model = torch.nn.Linear(2, 1)
    torch.nn.init.constant_(model.weight, 0.5)
    torch.nn.init.zeros_(model.bias)
    plain = torch.optim.SGD(model.parameters(), lr=0.1)
    scheduler = torch.optim.lr_scheduler.StepLR(plain, 1, 0.5)
    optimizer = elastic.torch.DistributedOptimizer(plain, model.named_parameters())
    torch.manual_seed(elastic.rank())
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        for _ in range(3):
            optimizer.zero_grad()
            model(torch.randn(4, 2)).square().mean().backward()
            optimizer.step()
            scheduler.step()
    weights = elastic.allgather(model.weight.detach()).values
    assert (weights[0] == weights[1]).all()
    assert optimizer.param_groups[0]["lr"] == 0.1 * 0.5**3
    elastic.shutdown()


def test_a_scheduler_may_be_made_before_the_wrapping(job) -> None:
    job(2, wrapped_after_its_scheduler)


def unused_and_sparse() -> None:
    import elastic.torch

    elastic.init()
    n, rank = elastic.size(), elastic.rank()
    table = torch.nn.Embedding(10, 4, sparse=True)
    torch.nn.init.zeros_(table.weight)
    used = torch.nn.Parameter(torch.zeros(3))
    only_on_rank_0 = torch.nn.Parameter(torch.zeros(3))
    optimizer = elastic.torch.DistributedOptimizer(
        torch.optim.SGD([table.weight, used, only_on_rank_0], lr=1.0),
        [("table", table.weight), ("used", used), ("sometimes", only_on_rank_0)],
    )
    loss = table(torch.tensor([rank, 5])).sum() + used.sum()
    if rank == 0:
        loss = loss + only_on_rank_0.sum()
    loss.backward()
    optimizer.step()
    assert torch.allclose(table.weight[5], torch.full((4,), -1.0))
    assert torch.allclose(table.weight[rank], torch.full((4,), -1.0 / n))
    assert torch.allclose(used, torch.full((3,), -1.0))
    assert torch.allclose(only_on_rank_0, torch.full((3,), -1.0 / n))
    elastic.shutdown()


def test_unused_parameters_and_sparse_gradients(job) -> None:
    job(3, unused_and_sparse)


def training(die_at: int = -1) -> None:
    import elastic.torch

    elastic.init()
    data = torch.randn(600, 8, generator=torch.Generator().manual_seed(1))
    labels = (data[:, 0] + data[:, 1].abs() > 0.8).long()
    model = network()
    optimizer = elastic.torch.DistributedOptimizer(
        torch.optim.Adam(model.parameters(), lr=0.01), model.named_parameters()
    )
    schedule = torch.optim.lr_scheduler.StepLR(optimizer, 40, 0.5)
    sampler = elastic.Sampler(len(data), seed=5)
    state = elastic.torch.State(
        model=model, optimizer=optimizer, schedule=schedule, sampler=sampler, loss=0.0
    )

    def train(state: elastic.State) -> None:
        loader = elastic.torch.ElasticDataLoader(
            torch.utils.data.TensorDataset(data, labels), sampler, batch_size=16, epochs=8
        )
        for batch in loader:
            optimizer.zero_grad()
            if batch is not None:
                loss = torch.nn.functional.cross_entropy(model(batch[0]), batch[1])
                loss.backward()
            if state.commits == die_at and elastic.rank() == 1:
                if os.environ["ELASTIC_RESTART"] == "0":
                    os.kill(os.getpid(), signal.SIGKILL)
            optimizer.step()
            schedule.step()
            for buffer in model.buffers():  # each rank has statistics of its own samples
                elastic.broadcast(buffer, 0)
            sampler.commit(optimizer.contributors)
            state.commit()

    elastic.run(state, train)
    flat = torch.cat([p.detach().reshape(-1) for p in model.parameters()])
    everyone = elastic.allgather(flat.reshape(1, -1)).values
    assert (everyone == flat).all(), "replicas differ"
    model.eval()
    accuracy = (model(data).argmax(1) == labels).float().mean()
    if elastic.rank() == 0:
        print(f"accuracy {accuracy:.3f} after {state.commits} steps, {elastic.size()} workers")
    elastic.shutdown()


def accuracy_of(output: str) -> float:
    found = re.search(r"accuracy ([0-9.]+) after", output)
    assert found, output
    return float(found.group(1))


def test_trains(job) -> None:
    assert accuracy_of(job(2, training, timeout=120)) > 0.85


def training_through_a_kill() -> None:
    training(die_at=25)


def test_trains_through_a_kill_and_a_replacement(job) -> None:
    assert accuracy_of(job(3, training_through_a_kill, timeout=120)) > 0.85


class WithOddState:
    def state_dict(self) -> dict:
        return {"lock": object()}

    def load_state_dict(self, state: dict) -> None:
        pass


class SavesText:
    def save(self) -> str:
        return "text"

    def load(self, saved: bytes) -> None:
        pass


def mistakes() -> None:
    import elastic.torch

    elastic.init()
    model = torch.nn.Linear(2, 2)

    def wrapped(**options) -> torch.optim.Optimizer:
        named = options.pop("named", model.named_parameters())
        return elastic.torch.DistributedOptimizer(
            torch.optim.SGD(model.parameters(), lr=0.1), named, **options
        )

    for options, text in (
        ({"named": [("w", model.weight), ("w", model.bias)]}, "'w' twice"),
        ({"named": [("w", model.weight)]}, "lacks"),
        ({"named": model.parameters()}, "pairs"),
        ({"op": elastic.MAX}, "AVERAGE or elastic.SUM"),
        ({"op": "avg"}, "op is 'avg'; give elastic.AVERAGE"),
        ({"groups": 0}, "1 or more"),
        ({"groups": [[model.weight], [model.weight]]}, "twice"),
        ({"backward_passes_per_step": 0}, "1 or more"),
        ({"backward_passes_per_step": "2"}, "whole number"),
        ({"gradient_predivide_factor": 0.0}, "above 0"),
        ({"compression": "zip"}, "'zip'"),
    ):
        with pytest.raises(elastic.InvalidArgumentError, match=text):
            wrapped(**options)
    optimizer = wrapped()
    model(torch.ones(1, 2)).sum().backward()
    with pytest.raises(elastic.InvalidArgumentError, match="call optimizer.step"):
        optimizer.zero_grad()
    with pytest.raises(elastic.InvalidArgumentError, match="backward_passes_per_step"):
        model(torch.ones(1, 2)).sum().backward()
    optimizer.step()
    optimizer.zero_grad()
    with pytest.raises(elastic.InvalidArgumentError, match="no canonical form"):
        elastic.torch.State(odd=WithOddState()).save_to("/tmp/never-written")
    with pytest.raises(TypeError, match=r"save\(\) of entry 'odd' returned a str"):
        elastic.torch.State(odd=SavesText()).save_to("/tmp/never-written")
    with pytest.raises(elastic.InvalidArgumentError, match="layer.weight has no shape yet"):
        elastic.torch.State(layer=torch.nn.LazyLinear(2))
    with pytest.raises(elastic.InvalidArgumentError, match=r"State\(model=model\).*Linear"):
        elastic.torch.State(model)
    elastic.shutdown()


def names_used_twice() -> None:
    """Rank 0 has an operation of the same name under way, which rank 1 joins afterwards."""
    import elastic.torch

    elastic.init()
    model = torch.nn.Linear(2, 2)
    elastic.torch.DistributedOptimizer(
        torch.optim.SGD(model.parameters(), lr=0.1), model.named_parameters()
    )
    values = torch.ones(2)
    if elastic.rank() == 0:
        work = elastic.allreduce_async("bias", values)
        with pytest.raises(elastic.InvalidArgumentError, match="'bias' is under way.*own prefix"):
            model(torch.ones(1, 2)).sum().backward()
        elastic.barrier()
    else:
        elastic.barrier()
        work = elastic.allreduce_async("bias", values)
    work.wait()
    assert (values == elastic.size()).all()
    elastic.shutdown()


def test_a_name_used_twice_says_what_to_do(job) -> None:
    job(2, names_used_twice)


def test_an_optimizers_state_keeps_its_types(tmp_path) -> None:
    """A joiner loads what the members have, also where it is not of the parameters' type."""
    import elastic.torch
    from elastic import canonical

    path = tmp_path / "state"
    for kind in (torch.optim.NAdam, torch.optim.ASGD, torch.optim.Adam):
        for dtype in (torch.float64, torch.bfloat16, torch.float32):
            saved = []
            for _ in range(2):
                parameters = [torch.nn.Parameter(torch.ones(3, dtype=dtype)) for _ in range(2)]
                optimizer = kind(parameters, lr=0.1)
                state = elastic.torch.State(optimizer=optimizer)
                if not saved:
                    for parameter in parameters:
                        parameter.grad = torch.ones_like(parameter)
                    optimizer.step()
                    state.save_to(path)
                else:
                    assert state.load_from(path)
                saved.append(canonical.dumps(optimizer.state_dict()))
            assert saved[0] == saved[1], (kind, dtype)


class OnDevice(torch.Tensor):
    """In host memory, and says that it is on a CUDA device."""

    is_cuda = True


def on_device(*values: float) -> torch.Tensor:
    return torch.tensor(values).as_subclass(OnDevice)


def test_tensors_on_a_device_go_into_the_state_as_copies(tmp_path) -> None:
    import elastic.torch

    path = tmp_path / "state"
    for kind in (elastic.State, elastic.torch.State):
        saved = on_device(1, 2, 3)
        kind(weights=saved).save_to(path)
        loaded = on_device(0, 0, 0)
        assert kind(weights=loaded).load_from(path)
        assert (loaded == saved).all() and (saved == on_device(1, 2, 3)).all()
        with pytest.raises(elastic.InvalidArgumentError, match=r"'weights' has the shape \(2,\)"):
            kind(weights=on_device(0, 0)).load_from(path)


def test_tensors_in_canonical_values() -> None:
    from elastic import canonical

    for given in (
        torch.tensor([1 + 2j]).conj(),
        torch._neg_view(torch.ones(2)),
        torch.arange(6).reshape(2, 3).t(),
    ):
        (loaded,) = canonical.loads(canonical.dumps([given]))
        assert loaded.dtype == given.dtype and (loaded == given).all()
    for refused, text in (
        (torch.ones(2, device="meta"), r"value\[0\] is .* device meta"),
        (torch.quantize_per_tensor(torch.ones(2), 0.1, 0, torch.qint8), r"\.dequantize\(\)"),
        (torch.eye(2).to_sparse(), r"\.to_dense\(\)"),
    ):
        with pytest.raises(elastic.InvalidArgumentError, match=text):
            canonical.dumps([refused])


def grows() -> None:
    """Layers are unfrozen and come as a group of parameters when the optimizer is wrapped already."""
    import elastic.torch

    elastic.init()
    for named in (False, True):
        torch.manual_seed(0)
        model = torch.nn.Sequential(*(torch.nn.Linear(3, 3) for _ in range(4)))
        model[1].requires_grad_(False)
        optimizer = elastic.torch.DistributedOptimizer(
            torch.optim.SGD([*model[1].parameters(), *model[2].parameters()], lr=0.1),
            model.named_parameters() if named else None,
        )
        for step in range(6):
            if step == 2:
                model[1].requires_grad_(True)
            if step == 4:
                model[0].requires_grad_(False)  # unfrozen later
                optimizer.add_param_group({"params": list(model[0].parameters())})
                optimizer.add_param_group({"params": model[3].weight, "lr": 0.2})
            if step == 5:
                model[0].requires_grad_(True)
            optimizer.zero_grad()
            inputs = torch.randn(4, 3, generator=torch.Generator().manual_seed(elastic.rank()))
            if step != 2 or elastic.rank() != 0:  # this worker has no batch when they thaw
                model(inputs).square().sum().backward()
            optimizer.step()
            assert len(optimizer.contributors) == [2, 2, 4, 4, 5, 7][step], step
        weights = torch.cat([p.detach().reshape(1, -1) for p in model.parameters()], dim=1)
        everyone = elastic.allgather(weights).values
        assert (everyone == weights).all(), "replicas differ"
    elastic.shutdown()


def test_parameters_that_thaw_or_come_later_are_averaged(job) -> None:
    job(2, grows)


def test_datasets_and_samplers_that_do_not_fit() -> None:
    import elastic.torch

    Loader, Sampler = elastic.torch.ElasticDataLoader, elastic.torch.ElasticSampler

    def loader(batch_size=1, **named) -> Loader:
        return Loader([1, 2], Sampler([1, 2]), batch_size, **named)

    for make, error, text in (
        (lambda: Sampler(iter([1])), TypeError, r"no len\(\)"),
        (lambda: Sampler(-1), elastic.InvalidArgumentError, "-1 samples"),
        (lambda: Loader([1, 2], torch.utils.data.SequentialSampler([1, 2]), 1), TypeError, "follows"),
        (lambda: Loader([1, 2], Sampler(3), 1), elastic.InvalidArgumentError, "2 samples"),
        (lambda: Loader([1, 2], Sampler([1, 2]), 0), elastic.InvalidArgumentError, "1 or more"),
        (lambda: loader(2.5), elastic.InvalidArgumentError, "batch_size is 2.5; .* whole number"),
        (lambda: loader("2"), elastic.InvalidArgumentError, "batch_size is '2'"),
        (lambda: loader(2**70), elastic.InvalidArgumentError, r"below 2\*\*63"),
        (lambda: loader(epochs=1.5), elastic.InvalidArgumentError, "epochs is 1.5"),
        (lambda: loader(epochs=-1), elastic.InvalidArgumentError, "epochs is -1"),
        (lambda: loader(num_threads="2"), elastic.InvalidArgumentError, "num_threads is '2'"),
        (lambda: loader(num_threads=-1), elastic.InvalidArgumentError, "num_threads is -1"),
        (lambda: loader(num_threads=1.5), elastic.InvalidArgumentError, "num_threads is 1.5"),
        (lambda: Sampler(2, seed=-1), elastic.InvalidArgumentError, "seed is -1"),
        (lambda: Sampler(2, 2**64), elastic.InvalidArgumentError, r"seed is .*below 2\*\*64"),
        (lambda: Sampler(2**64), elastic.InvalidArgumentError, "the number of samples is"),
        (lambda: Sampler(2).next(-1), elastic.InvalidArgumentError, "next: batch_per_worker is -1"),
        (lambda: Sampler(2).finished(-1), elastic.InvalidArgumentError, "finished: epochs is -1"),
        (lambda: Sampler(2).commit(None), TypeError, "commit: there are no contributors"),
        (
            lambda: Loader([1, 2], Sampler([1, 2]), 1, num_workers=2, shuffle=True),
            elastic.InvalidArgumentError,
            "no argument num_workers, shuffle; .*num_threads",
        ),
    ):
        with pytest.raises(error, match=text):
            make()


class Stops:
    """A dataset one of whose samples raises StopIteration, as the ``next`` of an iterator does."""

    def __len__(self) -> int:
        return 8

    def __getitem__(self, index: int) -> int:
        return next(iter([])) if index == 3 else index


def stops() -> None:
    import elastic.torch

    elastic.init()
    sampler = elastic.torch.ElasticSampler(Stops())

    def train(state: elastic.State) -> None:
        for threads in (0, 2):
            loader = elastic.torch.ElasticDataLoader(Stops(), sampler, 8, 2, num_threads=threads)
            with pytest.raises(RuntimeError, match="StopIteration for sample 3"):
                list(loader)
            sampler.commit(elastic.barrier())

    elastic.torch.run(elastic.torch.State(sampler=sampler), train)
    elastic.shutdown()


def test_a_sample_that_raises_stop_iteration_is_an_error(job) -> None:
    job(1, stops)


@pytest.mark.parametrize("place", ["sampler", "batch_sampler"])
def test_a_loader_of_pytorch_is_told_of_the_elastic_one(place: str) -> None:
    import elastic.torch

    sampler = elastic.torch.ElasticSampler([1, 2])
    loader = torch.utils.data.DataLoader([1, 2], **{place: sampler})
    with pytest.raises(elastic.InvalidArgumentError, match=r"ElasticDataLoader\(dataset, sampler"):
        list(loader)


def test_mistakes_are_errors(job) -> None:
    job(1, mistakes)


@pytest.mark.parametrize("wraps", ["module", "optimizer"])
def test_different_start_weights_are_an_error_on_all(job, wraps) -> None:
    job(2, different_start_weights, WRAPS=wraps)


def different_start_weights() -> None:
    elastic.init()
    for seeds, differs in (((1, 1), False), ((1, 2), True)):
        torch.manual_seed(seeds[elastic.rank()])
        model = torch.nn.Linear(4, 2)
        if os.environ["WRAPS"] == "module":
            model = elastic.torch.DistributedDataParallel(model, name=str(seeds))
            optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
        else:
            optimizer = elastic.torch.DistributedOptimizer(
                torch.optim.SGD(model.parameters(), lr=0.1), model.named_parameters()
            )

        def step():
            model(torch.ones(1, 4)).sum().backward()
            optimizer.step()

        if differs:
            with pytest.raises(elastic.InvalidArgumentError, match="different weights.* same seed"):
                step()
        else:
            step()
    elastic.shutdown()


def other_memory_meanwhile() -> None:
    elastic.init()
    network = torch.nn.Linear(300, 300)
    addresses = {p.data_ptr() for p in network.parameters()}
    if elastic.rank() != 0:  # the others wait until rank 0 is done with its check
        elastic.allreduce_async("checked", torch.zeros(1)).wait()
    with torch.no_grad():
        works = [
            elastic.allreduce_async(name, parameter, elastic.MAX)
            for name, parameter in network.named_parameters()
        ]
        group = torch.ones(90_000)
        addresses.add(group.data_ptr())
        works.append(elastic.grouped_allreduce_async("group", [group]))
    if elastic.rank() == 0:
        network.double()
        group.data = torch.zeros(3)
        fresh = [torch.zeros(size) for size in (90_000, 300, 90_000)]
        assert not {tensor.data_ptr() for tensor in fresh} & addresses, "the memory was freed"
        elastic.allreduce_async("checked", torch.zeros(1)).wait()
    for work in works:
        work.wait()
    elastic.shutdown()


def test_a_tensor_may_be_given_other_memory_while_it_travels(job) -> None:
    job(2, other_memory_meanwhile)
