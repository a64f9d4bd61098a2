#!/usr/bin/env python3
"""Cost and time of training on spot machines with elastic, against fixed machines.

compare       the three strategies on a trace, over many start times
sensitivity   the same, by discount and boot time
replay        a real job on this machine that follows a compressed trace, against its simulation
progress      measures how much a sample teaches with more workers, on the digits
synthesize    makes a trace at random

docs/spot.md has the model, its assumptions, and an example.
"""

import dataclasses
import json
import sys

sys.dont_write_bytecode = True
from availability import BadInput, read_trace  # noqa: E402
from comparison import outcomes, sensitivity, start_times  # noqa: E402
from measured import read_table  # noqa: E402
from options import PRICES, arguments  # noqa: E402
from progress import measure_progress  # noqa: E402
from replay import Plan, ReplayFailed, replay  # noqa: E402
from report import (availability_line, comparison_table, replay_table,  # noqa: E402
                    sensitivity_table)
from setting import HOUR, Delays, Job, Prices, RingModel, Setting, by_samples  # noqa: E402
from synthetic import synthetic  # noqa: E402


def delays_of(options):
    return Delays(**{field.name: getattr(options, field.name) for field in dataclasses.fields(Delays)
                     if hasattr(options, field.name)})


def setting_of(options, trace):
    job = Job(options.samples, options.batch, options.workers, options.most or options.workers, options.base)
    if job.base > job.most:
        raise BadInput(f"--base {job.base}: more than the {job.most} workers of the elastic job: "
                       "raise --most")
    discount = options.discount
    if discount is None and trace.prices is None:
        discount = PRICES.discount
    steps = (read_table(options.steps, "step_seconds") if options.steps
             else RingModel(options.compute, options.gradient_bytes, options.bandwidth))
    progress = read_table(options.progress, "progress_per_sample") if options.progress else by_samples
    prices = Prices(options.on_demand, discount, options.server)
    return Setting(job, delays_of(options), prices, steps, progress)


def read_input(options):
    """Setting, trace, and start times."""
    trace = read_trace(options.trace, options.ones == "preempted")
    setting = setting_of(options, trace)
    print(f"{options.trace}: {availability_line(trace, setting.job.workers)}")
    print(f"{options.runs} start times, seed {options.seed}")
    return setting, trace, start_times(trace, options.runs, options.seed)


def run_compare(options):
    setting, trace, starts = read_input(options)
    prices = setting.prices
    spot = ("prices of the trace" if prices.discount is None
            else f"{prices.on_demand * (1 - prices.discount):.3f}")
    print(f"dollars per hour of a machine: on demand {prices.on_demand:g}, spot {spot}\n")
    print(comparison_table(outcomes(setting, trace, starts, options.limit_hours * HOUR)))


def run_sensitivity(options):
    setting, trace, starts = read_input(options)
    print("medians, compared with on demand\n")
    print(sensitivity_table(sensitivity(setting, trace, starts, options.limit_hours * HOUR,
                                        options.discounts, options.boots)))


def run_replay(options):
    trace = read_trace(options.trace, options.ones == "preempted").compressed(options.compress)
    plan = Plan(trace, delays_of(options), options.compress, options.most, options.step_ms / 1000,
                options.seconds or trace.seconds)
    predicted, counted = replay(plan, options.bin.resolve())
    text, largest = replay_table(predicted, counted)
    print(text)
    if largest > options.tolerance:
        raise ReplayFailed(f"the real job differs from its simulation by {100 * largest:.1f} %, "
                           f"and {100 * options.tolerance:g} % are allowed: is the machine busy?")


def write(path, content):
    path.write_text(json.dumps(content) + "\n")
    print(f"spot_cost: wrote {path}")


def run_progress(options):
    content = measure_progress(options.bin.resolve(), options.seeds)
    print(content["progress_per_sample"])
    write(options.file, content)


def run_synthesize(options):
    content = synthetic(options.seed, options.days, options.machines, options.gap)
    print(f"{len(content['data'])} points, seed {options.seed}")
    write(options.file, content)


def main():
    options = arguments(__doc__)
    verbs = {"compare": run_compare, "sensitivity": run_sensitivity, "replay": run_replay,
             "progress": run_progress, "synthesize": run_synthesize}
    try:
        verbs[options.verb](options)
    except (BadInput, ReplayFailed, OSError) as failure:
        sys.exit(f"spot_cost: {failure}")


if __name__ == "__main__":
    main()
