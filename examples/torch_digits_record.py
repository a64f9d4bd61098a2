"""The report of torch_digits.py on a training, and the accidents that it can arrange for a demo.

Its lines of JSON have the same keys as those of train_digits, so that `./run demo` reads both.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import os
import pathlib
import signal
import time
from typing import Any

import torch

import elastic


class Usage:
    """How often each sample was used. Belongs to the State, so that a joiner counts on."""

    def __init__(self, samples: int) -> None:
        self._values: dict[str, Any] = {
            "times": torch.zeros(samples, dtype=torch.int64),
            "epochs": 0,
            "used": 0,
            "missed": 0,
            "twice": 0,
            "loss": 0.0,  # the mean over the last whole epoch
            "loss_sum": 0.0,  # of the epoch under way
        }

    def add(self, times: torch.Tensor, loss: float, ends_epoch: bool) -> None:
        values = self._values
        values["times"] += times.round().long()
        values["loss_sum"] += loss
        if not ends_epoch:
            return
        values["epochs"] += 1
        values["used"] += int((values["times"] == 1).sum())
        values["missed"] += int((values["times"] < 1).sum())
        values["twice"] += int((values["times"] > 1).sum())
        values["loss"] = values["loss_sum"] / len(times)
        values["loss_sum"] = 0.0
        values["times"].zero_()

    def state_dict(self) -> dict[str, Any]:
        return self._values

    def load_state_dict(self, values: dict[str, Any]) -> None:
        self._values = values

    def report(self) -> dict[str, Any]:
        values = self._values
        return {
            "epochs": values["epochs"],
            "samples_in_epoch": len(values["times"]),
            "samples_used_once": values["used"],
            "samples_missed": values["missed"],
            "samples_used_twice": values["twice"],
            "loss": values["loss"],
        }


class Record:
    """A line for each step of this worker, and one for its end."""

    def __init__(self, trace: pathlib.Path | None, report: pathlib.Path | None) -> None:
        self._trace = open(trace / f"trace-{os.getpid()}.jsonl", "w") if trace else None
        self._report = report / f"report-{os.getpid()}.json" if report else None

    def step(
        self,
        step: int,
        contributors: elastic.Contributors,
        samples: int,
        rate: elastic.Rate,
        loss: float,
        at_ns: int,
    ) -> None:
        if self._trace is None:
            return
        line = {
            "step": step,
            "generation": contributors.generation,
            "workers": len(contributors),
            "batch": samples,
            "gamma": rate.gamma,
            "rate": rate.value,
            "loss": loss,
            "at_ns": at_ns,
        }
        print(json.dumps(line), file=self._trace, flush=True)

    def end(
        self,
        outcome: elastic.RunOutcome,
        steps: int,
        usage: Usage,
        accuracy: float,
        network: torch.nn.Module,
    ) -> None:
        line = json.dumps(
            {
                "outcome": outcome.name.lower(),
                "rank": elastic.rank(),
                "pid": os.getpid(),
                "steps": steps,
                **usage.report(),
                "test_accuracy": accuracy,
                "parameter_hash": hash_of(network),
            }
        )
        if self._report is None:
            print(line)
        else:
            self._report.write_text(line + "\n")


def hash_of(module: torch.nn.Module) -> str:
    bits = b"".join(parameter.detach().numpy().tobytes() for parameter in module.parameters())
    return hashlib.sha256(bits).hexdigest()[:16]


def die_in_backward(
    parameter: torch.nn.Parameter, state: elastic.State, options: argparse.Namespace
) -> None:
    """Kills this process while it computes the gradient of ``parameter`` in the chosen step. Only in
    the first view: a joiner may have the same rank."""

    def kill(gradient: torch.Tensor) -> None:
        is_chosen = elastic.rank() == options.die_rank and elastic.generation() == 1
        if not is_chosen or state.step + 1 != options.die_at_step:
            return
        if options.trace:
            line = json.dumps({"at_ns": time.monotonic_ns(), "step": options.die_at_step})
            (options.trace / f"kill-{os.getpid()}.json").write_text(line + "\n")
        os.kill(os.getpid(), signal.SIGKILL)

    parameter.register_hook(kill)


def wait_for_workers(state: elastic.State, options: argparse.Namespace) -> None:
    """Waits after the chosen step until enough workers have joined, for a minute at most: what
    follows does not depend on how long they take to start.

    All members commit equally often, also where no worker comes: a view changes after the same commit
    on all of them. There was one commit for each step before.
    """
    if state.step != options.wait_after_step or elastic.size() >= options.wait_for:
        return
    if elastic.rank() == 0:
        print(f"after step {state.step}: waits for {options.wait_for} workers", flush=True)
    while elastic.size() < options.wait_for and state.commits < state.step + 12000:
        time.sleep(0.005)
        state.commit()
