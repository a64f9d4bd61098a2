"""A small transformer that learns to continue a text, byte by byte, on workers that come and go.

    elasticrun -np 3 python transformer.py

The text is this project's own documents, unless --text names another file. Kill a worker while it
trains: the others go on. All workers end with the same parameters, bit for bit.
"""

from __future__ import annotations

import argparse
import hashlib
import os
import pathlib
import signal

import torch
from torch.nn import functional

import elastic
import elastic.torch

CONTEXT = 64  # bytes that a prediction looks back
DOCUMENTS = pathlib.Path(__file__).resolve().parent.parent / "docs"


class Transformer(torch.nn.Module):
    """Predicts each next byte from those before it."""

    def __init__(self, width: int = 64, layers: int = 2) -> None:
        super().__init__()
        self.bytes = torch.nn.Embedding(256, width)
        self.positions = torch.nn.Parameter(0.02 * torch.randn(CONTEXT, width))
        layer = torch.nn.TransformerEncoderLayer(
            width, nhead=4, dim_feedforward=4 * width, dropout=0.0, batch_first=True
        )
        self.layers = torch.nn.TransformerEncoder(layer, layers, enable_nested_tensor=False)
        self.scores = torch.nn.Linear(width, 256)
        later = torch.ones(CONTEXT, CONTEXT, dtype=torch.bool).triu(diagonal=1)
        self.register_buffer("later", later, persistent=False)

    def forward(self, text: torch.Tensor) -> torch.Tensor:
        hidden = self.bytes(text) + self.positions
        return self.scores(self.layers(hidden, mask=self.later))


def loss_of(model: torch.nn.Module, windows: torch.Tensor) -> torch.Tensor:
    """The cross entropy of the next bytes in windows of CONTEXT + 1 bytes."""
    scores = model(windows[:, :-1])
    return functional.cross_entropy(scores.reshape(-1, 256), windows[:, 1:].reshape(-1))


def read_windows(path: pathlib.Path | None) -> torch.Tensor:
    paths = [path] if path else [DOCUMENTS / "architecture.md", DOCUMENTS / "atomicity.md"]
    text = torch.tensor(list(b"\n".join(file.read_bytes() for file in paths)))
    return text.unfold(0, CONTEXT + 1, CONTEXT)


def die_in_backward(model: Transformer, state: elastic.State, step: int) -> None:
    """For tests: worker 1 is killed when half of the gradients of this step are made."""

    def kill(gradient: torch.Tensor) -> None:
        if state.commits == step and elastic.rank() == 1 and elastic.generation() == 1:
            os.kill(os.getpid(), signal.SIGKILL)

    model.positions.register_hook(kill)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--text", type=pathlib.Path, help="the file to learn from")
    parser.add_argument("--steps", type=int, default=300)
    parser.add_argument("--batch", type=int, default=8, help="windows per worker in a step")
    parser.add_argument("--die-at", type=int, default=-1, help=argparse.SUPPRESS)
    arguments = parser.parse_args()

    elastic.init()
    torch.set_num_threads(1)  # workers share the machine's cores
    torch.manual_seed(1)
    windows = read_windows(arguments.text)
    is_held_out = torch.arange(len(windows)) % 16 == 0
    held_out, windows = windows[is_held_out], windows[~is_held_out]
    model = Transformer()
    optimizer = elastic.torch.DistributedOptimizer(
        torch.optim.AdamW(model.parameters(), lr=3e-3), model.named_parameters()
    )
    sampler = elastic.Sampler(len(windows), seed=1)
    state = elastic.torch.State(model=model, optimizer=optimizer, sampler=sampler)
    die_in_backward(model, state, arguments.die_at)
    with torch.no_grad():
        before = float(loss_of(model, held_out))

    def train(state: elastic.State) -> None:
        while state.commits < arguments.steps:
            share = torch.from_numpy(sampler.next(arguments.batch).astype("int64"))
            optimizer.zero_grad()
            if len(share) > 0:  # at an epoch's end nothing may be left for this worker
                loss_of(model, windows[share]).backward()
            optimizer.step()  # waits for the averages
            sampler.commit(optimizer.contributors)
            state.commit()  # workers join and leave here

    if elastic.run(state, train) == elastic.RunOutcome.FINISHED:
        with torch.no_grad():
            after = float(loss_of(model, held_out))
        bits = b"".join(parameter.detach().numpy().tobytes() for parameter in model.parameters())
        print(
            f"loss {before:.2f} to {after:.2f} in {state.commits} steps, {elastic.size()} workers, "
            f"parameters {hashlib.sha256(bits).hexdigest()[:16]}"
        )
    elastic.shutdown()


if __name__ == "__main__":
    main()
