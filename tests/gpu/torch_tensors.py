"""PyTorch's tensors on a CUDA device, in a job of real workers that may share the device.

    elasticrun -np 3 --max-restarts 1 python torch_tensors.py [--device cuda]

Exits with 77 where PyTorch finds no device. One worker dies in the backward pass of a step, and another
joins; in the end the parameters of all three have the same bits.
"""

import argparse
import os
import signal
import sys
import zlib

import elastic
import elastic.torch
import torch
import torch.distributed as dist

torch.sparse.check_sparse_tensor_invariants.enable()

WORKERS = 3
STEPS = 40
DEATH = 15


def expect(condition: object, what: str) -> None:
    if not condition:
        raise AssertionError(what)


class Collectives:
    """Each gets what the program computed before the call, and no less."""

    def __init__(self, device: torch.device) -> None:
        self.device = device
        self.ranks = elastic.size()
        self.own = float(elastic.rank() + 1)
        self.total = self.ranks * (self.ranks + 1) / 2

    def run(self) -> None:
        self.after_computing()
        self.by_name()
        self.of_all_types()
        self.of_other_sizes()
        self.compressed()

    def after_computing(self) -> None:
        tensor = torch.zeros(1 << 20, device=self.device)
        for _ in range(64):
            tensor += self.own / 64
        elastic.allreduce(tensor)
        expect((tensor == self.total).all(), "a sum of what was computed")
        if self.device.type == "cuda":
            with torch.cuda.stream(torch.cuda.Stream()):
                self._on_current_stream()

    def _on_current_stream(self) -> None:
        tensor = torch.zeros(1 << 22, device=self.device)
        for _ in range(256):  # still at it when the call begins
            tensor += self.own / 256
        elastic.allreduce(tensor)
        expect((tensor == self.total).all(), "a sum of what the stream computed")

    def by_name(self) -> None:
        tensors = [torch.full((n,), self.own, device=self.device) for n in (1, 1000, 65537)]
        works = [
            elastic.allreduce_async(f"tensor {n}", each, elastic.AVERAGE)
            for n, each in enumerate(tensors)
        ]
        for work, each in zip(works, tensors):
            work.wait()
            expect((each == self.total / self.ranks).all(), "an average by name")

    def of_all_types(self) -> None:
        for dtype in (torch.float16, torch.bfloat16, torch.float64, torch.int32, torch.int64):
            tensor = torch.ones(777, dtype=dtype, device=self.device)
            elastic.allreduce(tensor)
            expect((tensor == self.ranks).all(), f"a sum of {dtype}")

    def of_other_sizes(self) -> None:
        tensor = torch.full((5,), self.own, device=self.device)
        elastic.broadcast(tensor, self.ranks - 1)
        expect((tensor == self.ranks).all(), "a broadcast")
        block = torch.full((elastic.rank() + 1, 2), self.own, device=self.device)
        gathered = elastic.allgather(block)
        expect(gathered.values.device == block.device, "blocks on the device")
        expect(gathered.values.sum() == 2 * sum(n * n for n in range(1, self.ranks + 1)), "blocks")
        part = elastic.reduce_scatter(torch.full((100,), self.own, device=self.device))
        expect(part.values.device == block.device, "a part on the device")
        expect((part.values == self.total).all(), "a part of a sum")

    def compressed(self) -> None:
        for form in ("f16", "int8", "top_k:0.1"):
            here, on_host = elastic.GradientCompressor(form), elastic.GradientCompressor(form)
            for step in range(3):
                gradient = (torch.arange(1000, dtype=torch.float32) % 7) * self.own + step
                tensor = gradient.clone().to(self.device)
                here.allreduce("gradient", tensor)
                on_host.allreduce("gradient", gradient)
                expect((tensor.cpu() == gradient).all(), f"a sum by {form}")
                kept = here.residual("gradient") == on_host.residual("gradient")
                expect(kept.all(), f"a residual of {form}")


def process_group(device: torch.device) -> None:
    elastic.torch.init_process_group()
    ranks, rank = dist.get_world_size(), dist.get_rank()
    tensor = torch.ones(33, device=device)
    dist.all_reduce(tensor)
    expect((tensor == ranks).all(), "all_reduce")
    parts = [torch.empty(4, device=device) for _ in range(ranks)]
    dist.all_gather(parts, torch.full((4,), float(rank), device=device))
    expect(all((part == n).all() for n, part in enumerate(parts)), "all_gather")
    part = torch.empty(2, device=device)
    dist.reduce_scatter_tensor(part, torch.ones(2 * ranks, device=device))
    expect((part == ranks).all(), "reduce_scatter_tensor")
    dist.destroy_process_group()


class Network(torch.nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.words = torch.nn.Embedding(100, 16, sparse=True)
        self.layers = torch.nn.Sequential(
            torch.nn.Linear(64, 64),
            elastic.torch.SyncBatchNorm(64),
            torch.nn.ReLU(),
            torch.nn.Linear(64, 10),
        )

    def forward(self, words: torch.Tensor) -> torch.Tensor:
        return self.layers(self.words(words).flatten(1))


class Training:
    """A network with a sparse layer, batch normalization and Adam, whose gradients are scaled; one
    worker dies in a backward pass, and its successor gets the State."""

    def __init__(self, device: torch.device) -> None:
        self.device = device
        self.restarted = os.environ.get("ELASTIC_RESTART", "0") != "0"
        torch.manual_seed(1)
        self.network = Network().to(device)
        self.dense = elastic.torch.DistributedOptimizer(
            torch.optim.Adam(self.network.layers.parameters(), lr=0.01),
            self.network.layers.named_parameters(),
        )
        self.sparse = elastic.torch.DistributedOptimizer(
            torch.optim.SGD(self.network.words.parameters(), lr=0.1),
            [("words", self.network.words.weight)],
        )
        self.scaler = elastic.torch.GradScaler(device.type, init_scale=1024.0)
        self.state = elastic.torch.State(
            network=self.network, dense=self.dense, sparse=self.sparse, scaler=self.scaler, step=0
        )
        self.network.layers[0].weight.register_hook(self.die)

    def die(self, gradient: torch.Tensor) -> None:
        if self.state.step == DEATH and elastic.rank() == 1 and not self.restarted:
            if elastic.size() == WORKERS:
                os.kill(os.getpid(), signal.SIGKILL)

    def run(self, state: elastic.State) -> None:
        while state.step < STEPS or elastic.size() < WORKERS:
            self.step(state.step * WORKERS + elastic.rank())
            state.step += 1
            state.commit()

    def step(self, seed: int) -> None:
        words = torch.randint(100, (32, 4), generator=torch.Generator().manual_seed(seed))
        words = words.to(self.device)
        self.dense.zero_grad()
        self.sparse.zero_grad()
        with torch.autocast(self.device.type, dtype=torch.bfloat16):
            loss = torch.nn.functional.cross_entropy(self.network(words), words.sum(1) % 10)
        self.scaler.scale(loss).backward()
        for optimizer in (self.dense, self.sparse):
            self.scaler.step(optimizer)
        self.scaler.update()

    def expect_same_bits(self) -> None:
        moments = [
            state[name]
            for _, state in sorted(self.dense.state_dict()["state"].items())
            for name in sorted(state)
        ]
        tensors = [*self.network.parameters(), *self.network.buffers(), *moments]
        checksum = zlib.crc32(b"".join(each.detach().cpu().numpy().tobytes() for each in tensors))
        bounds = torch.tensor([checksum, -checksum])
        elastic.allreduce(bounds, elastic.MAX)
        expect(bounds[0] == -bounds[1], "the same bits on all members")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--device", default="cuda", help="cuda or cpu")
    options = parser.parse_args()
    device = torch.device(options.device)
    if device.type == "cuda":
        if not torch.cuda.is_available():
            print("no CUDA device")
            sys.exit(77)
        device = torch.device("cuda", 0)
    elastic.init()
    training = Training(device)
    if not training.restarted:
        Collectives(device).run()
        process_group(device)
    elastic.torch.run(training.state, training.run)
    training.expect_same_bits()
    print(f"rank {elastic.rank()} of {elastic.size()} on {device}: as expected", flush=True)
    elastic.shutdown()


main()
