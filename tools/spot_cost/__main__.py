#!/usr/bin/env python3
"""What training on spot machines with elastic costs and takes, against fixed machines.

compare       the three strategies on a trace, over many start times
sensitivity   the same, by discount and boot time
replay        a real job on this machine that follows a compressed trace, against its simulation
progress      measures how much a sample teaches with more workers, on the digits
synthesize    makes a trace at random

docs/spot.md has the model, its assumptions, and an example.
"""

import argparse
import dataclasses
import json
import math
import pathlib
import sys

sys.dont_write_bytecode = True
from availability import BadInput, read_trace  # noqa: E402
from comparison import outcomes, sensitivity, start_times  # noqa: E402
from measured import read_table  # noqa: E402
from progress import measure_progress  # noqa: E402
from replay import Plan, ReplayFailed, replay  # noqa: E402
from report import (availability_line, comparison_table, replay_table,  # noqa: E402
                    sensitivity_table)
from setting import HOUR, Delays, Job, Prices, RingModel, Setting, by_samples  # noqa: E402
from synthetic import synthetic  # noqa: E402

ROOT = pathlib.Path(__file__).resolve().parent.parent.parent
JOB, DELAYS, PRICES, RING = Job(), Delays(), Prices(), RingModel()


def above(least, kind=float, inclusive=True):
    """A number for argparse."""
    def parse(text):
        value = kind(text)
        if not (value >= least if inclusive else value > least) or value == math.inf:
            raise ValueError
        return value
    parse.__name__ = f"number {'of at least' if inclusive else 'above'} {least:g}"
    return parse


POSITIVE, NOT_NEGATIVE = above(0, inclusive=False), above(0)
COUNT = above(1, int)


def share(text):
    value = float(text)
    if not 0 <= value < 1:
        raise ValueError
    return value


share.__name__ = "share from 0 to less than 1"


def add_trace(parser):
    parser.add_argument("trace", type=pathlib.Path, help="a file of SkyPilot's spot traces, or like them")
    parser.add_argument("--ones", choices=("available", "preempted"), default="available",
                        help="what 1 means in a trace of one machine; SkyPilot's simulator takes it for "
                             "preempted, its published traces for available [available]")


def add_job(parser):
    add = parser.add_argument_group("job, one worker per machine").add_argument
    add("--samples", type=POSITIVE, default=JOB.samples, help="to train [90 epochs of ImageNet]")
    add("--batch", type=COUNT, default=JOB.batch, help=f"samples of a worker in a step [{JOB.batch}]")
    add("--workers", type=COUNT, default=JOB.workers, help=f"of the fixed jobs [{JOB.workers}]")
    add("--most", type=COUNT, default=None, help="workers of the elastic job at most [--workers]")
    add("--base", type=above(0, int), default=JOB.base,
        help=f"workers of the elastic job on demand; 0: it writes checkpoints [{JOB.base}]")
    add("--progress", type=pathlib.Path, metavar="FILE",
        help='learning by a sample: {"progress_per_sample": {"1": 1.0, "8": 0.9}} [1 for all]')


def add_throughput(parser):
    add = parser.add_argument_group("time of a step").add_argument
    add("--steps", type=pathlib.Path, metavar="FILE",
        help='measured: {"step_seconds": {"1": 0.17, "8": 0.2}}; without it, computing and a ring')
    add("--compute", type=POSITIVE, default=RING.compute, help=f"seconds [{RING.compute}]")
    add("--gradient-bytes", type=NOT_NEGATIVE, default=RING.gradient_bytes,
        help=f"[{RING.gradient_bytes:g}]")
    add("--bandwidth", type=POSITIVE, default=RING.bandwidth,
        help=f"of a machine, bytes per second [{RING.bandwidth:g}]")


# Option of each delay: its meaning.
LIVE_DELAYS = {"boot": "from the request for a machine to a system that runs; a guess",
               "prepare": "image, packages, data; a guess",
               "join": "from the start of a worker to its first step",
               "join-pause": "of the members, per join",
               "recovery": "pause of the members, per loss"}
CHECKPOINT_DELAYS = {"restart": "of a job from its checkpoint; a guess",
                     "checkpoint-every": "of training; a guess",
                     "checkpoint-write": "for which the training waits; a guess"}


def add_delays(parser, meanings):
    add = parser.add_argument_group("delays, in seconds").add_argument
    for name, meaning in meanings.items():
        default = getattr(DELAYS, name.replace("-", "_"))
        kind = POSITIVE if name == "checkpoint-every" else NOT_NEGATIVE
        add(f"--{name}", type=kind, default=default, help=f"{meaning} [{default:g}]")


def add_prices(parser):
    add = parser.add_argument_group("prices, in dollars per hour of a machine").add_argument
    add("--on-demand", type=POSITIVE, default=PRICES.on_demand, help=f"[{PRICES.on_demand}]")
    add("--discount", type=share, default=None,
        help=f"of spot machines [the prices of the trace, or {PRICES.discount} if it has none]")
    add("--server", type=NOT_NEGATIVE, default=PRICES.server,
        help="rendezvous server of the elastic job, if it has a machine of its own [0]")


def add_runs(parser):
    add = parser.add_argument_group("runs").add_argument
    add("--runs", type=COUNT, default=100, help="start times [100]")
    add("--seed", type=int, default=1, help="of the start times [1]")
    add("--limit-hours", type=POSITIVE, default=720, help="a run that takes longer is not complete [720]")


def add_bin(parser):
    parser.add_argument("--bin", type=pathlib.Path, default=ROOT / "build" / "bin",
                        help="folder with the programs [build/bin]")


def arguments(words):
    summary, text = __doc__.split("\n", 1)
    parser = argparse.ArgumentParser(prog="spot_cost", description=summary, epilog=text,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    verbs = parser.add_subparsers(dest="verb", required=True, metavar="VERB")
    for verb in ("compare", "sensitivity"):
        one = verbs.add_parser(verb)
        for add in (add_trace, add_job, add_throughput, add_prices, add_runs):
            add(one)
        add_delays(one, LIVE_DELAYS | CHECKPOINT_DELAYS)
        if verb == "sensitivity":
            one.add_argument("--discounts", type=share, nargs="+", default=[0.3, 0.5, 0.7, 0.9])
            one.add_argument("--boots", type=NOT_NEGATIVE, nargs="+", default=[60, 120, 600])
    one = verbs.add_parser("replay")
    add_trace(one)
    add_delays(one, LIVE_DELAYS)
    one.add_argument("--compress", type=POSITIVE, required=True,
                     help="seconds of the trace, of boot and of prepare in a second of the replay")
    one.add_argument("--seconds", type=POSITIVE, help="of the replay [the whole trace]")
    one.add_argument("--most", type=above(2, int), default=4,
                     help="workers at most, with that of the base [4]")
    one.add_argument("--step-ms", type=COUNT, default=50, help="time of a step, mostly sleep [50]")
    one.add_argument("--tolerance", type=POSITIVE, default=0.1, help="allowed difference [0.1]")
    add_bin(one)
    one = verbs.add_parser("progress")
    one.add_argument("file", type=pathlib.Path, help="to write, for --progress")
    one.add_argument("--seeds", type=COUNT, default=25, help="trainings per number of workers [25]")
    add_bin(one)
    one = verbs.add_parser("synthesize")
    one.add_argument("file", type=pathlib.Path, help="to write")
    one.add_argument("--seed", type=int, default=1)
    one.add_argument("--days", type=POSITIVE, default=14)
    one.add_argument("--machines", type=COUNT, default=16, help="at most [16]")
    one.add_argument("--gap", type=POSITIVE, default=300, help="seconds between two points [300]")
    return parser.parse_args(words)


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


def compare(options):
    """Both compare and sensitivity."""
    trace = read_trace(options.trace, options.ones == "preempted")
    setting = setting_of(options, trace)
    starts = start_times(trace, options.runs, options.seed)
    print(f"{options.trace}: {availability_line(trace, setting.job.workers)}")
    spot = ("prices of the trace" if setting.prices.discount is None
            else f"{setting.prices.on_demand * (1 - setting.prices.discount):.3f}")
    print(f"dollars per hour of a machine: on demand {setting.prices.on_demand:g}, spot {spot}; "
          f"{options.runs} start times, seed {options.seed}\n")
    if options.verb == "compare":
        print(comparison_table(outcomes(setting, trace, starts, options.limit_hours * HOUR)))
    else:
        print("Medians, compared with on demand:\n")
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


def progress(options):
    content = measure_progress(options.bin.resolve(), options.seeds)
    print(content["progress_per_sample"])
    write(options.file, content)


def synthesize(options):
    content = synthetic(options.seed, options.days, options.machines, options.gap)
    print(f"{len(content['data'])} points, seed {options.seed}")
    write(options.file, content)


def main(words=None):
    options = arguments(words)
    verbs = {"compare": compare, "sensitivity": compare, "replay": run_replay,
             "progress": progress, "synthesize": synthesize}
    try:
        verbs[options.verb](options)
    except (BadInput, ReplayFailed, OSError) as failure:
        sys.exit(f"spot_cost: {failure}")


if __name__ == "__main__":
    main()
