"""The State in PyTorch's own format, which plain PyTorch reads."""

from __future__ import annotations

import json
import os
import pathlib
import subprocess
import sys

import pytest

import elastic

torch = pytest.importorskip("torch")


def network() -> torch.nn.Module:
    torch.manual_seed(7)
    return torch.nn.Sequential(torch.nn.Linear(8, 16), torch.nn.BatchNorm1d(16), torch.nn.Linear(16, 2))


def trains_and_exports() -> None:
    import numpy as np

    import elastic.torch

    elastic.init()
    data = torch.randn(64, 8, generator=torch.Generator().manual_seed(1))
    model = elastic.torch.DistributedDataParallel(network())
    optimizer = torch.optim.Adam(model.parameters(), lr=0.01)
    rate = elastic.LearningRate(elastic.Schedule.constant(0.01), 8)
    schedule = elastic.torch.ElasticLR(optimizer, rate, batch_per_worker=8)
    dataset = torch.utils.data.TensorDataset(data)
    loader = elastic.torch.ElasticDataLoader(dataset, elastic.torch.ElasticSampler(dataset), 8, epochs=2)
    averages = torch.zeros(3)
    state = elastic.torch.TorchState(
        model=model,
        optimizer=optimizer,
        schedule=schedule,
        loader=loader,
        averages=averages,
        table=np.zeros(2),
        loss=np.float32(0),
        history=[],
    )
    folder = pathlib.Path(os.environ["FOLDER"])

    def train(state: elastic.State) -> None:
        for batch in loader:
            optimizer.zero_grad()
            if batch is None:
                model.contribute_nothing()
            else:
                model(batch[0]).square().mean().backward()
            optimizer.step()
            schedule.step(model.contributors)
            loader.sampler.commit(model.contributors)
            averages.add_(1)
            state.loss = np.float32(0.5)
            state.history.append(state.commits)
            state.commit()
            if elastic.rank() == 0:
                state.save_to(folder / "job.checkpoint")
            assert state.export_to(folder / "model.pt") == (elastic.rank() == 0)

    outcome = elastic.torch.run(state, train)
    assert outcome == elastic.RunOutcome.FINISHED
    if elastic.rank() == 0:
        assert sorted(path.name for path in folder.iterdir()) == ["job.checkpoint", "model.pt"]
        sums = [float(parameter.double().sum()) for parameter in model.state_dict().values()]
        print("sums", json.dumps([state.commits, *sums]))
        with pytest.raises(OSError):
            state.export_to(folder / "missing" / "model.pt")
        before = (folder / "model.pt").read_bytes()
        optimizer.state_dict = lambda: {"lock": open(os.devnull)}  # cannot be pickled
        with pytest.raises(TypeError):
            state.export_to(folder / "model.pt")
        assert (folder / "model.pt").read_bytes() == before
        assert len(list(folder.iterdir())) == 2
    elastic.shutdown()


PLAIN = """
import json, sys
import torch
leave = {"weights_only": True} if torch.__version__ >= "2" else {}
saved = torch.load(sys.argv[1], **leave)
assert "elastic" not in sys.modules
torch.manual_seed(1)
model = torch.nn.Sequential(torch.nn.Linear(8, 16), torch.nn.BatchNorm1d(16), torch.nn.Linear(16, 2))
model.load_state_dict(saved["model"])
optimizer = torch.optim.Adam(model.parameters())
optimizer.load_state_dict(saved["optimizer"])
assert int(optimizer.state_dict()["state"][0]["step"]) == saved["commits"]
assert saved["schedule"]["last_epoch"] == saved["commits"]
assert saved["averages"].tolist() == [saved["commits"]] * 3, saved["averages"]
assert saved["values"] == {"history": list(range(saved["commits"])), "loss": 0.5}, saved["values"]
assert "loader" not in saved and saved["table"].tolist() == [0, 0]
print("sums", json.dumps([saved["commits"], *(float(p.double().sum()) for p in model.state_dict().values())]))
"""


def test_plain_pytorch_reads_what_one_worker_wrote(job, tmp_path: pathlib.Path) -> None:
    written = job(2, trains_and_exports, FOLDER=str(tmp_path))
    read = subprocess.run(
        [sys.executable, "-c", PLAIN, tmp_path / "model.pt"],
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert read.returncode == 0, read.stderr
    assert read.stdout.strip() in written, written + read.stdout


def test_before_init_it_says_so(tmp_path: pathlib.Path) -> None:
    import elastic.torch

    with pytest.raises(elastic.NotInitializedError):
        elastic.torch.State(model=network()).export_to(tmp_path / "model.pt")
