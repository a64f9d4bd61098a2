#!/usr/bin/env python3
"""Trains through a growth and a loss of workers with every policy, and compares them.

Takes the release build in build/bin. Writes experiment.md and, beside it, experiment/ with the rows
and the pictures. Takes two minutes of two cores; each training is the same whatever they do
meanwhile. Ends with 1 where a training failed.
"""

import argparse
import concurrent.futures
import os
import pathlib
import sys
import time
import types

sys.dont_write_bytecode = True
HERE = pathlib.Path(__file__).resolve().parent
ROOT = HERE.parent.parent
sys.path.append(str(HERE.parent / "performance"))
from cells import POLICIES, UNDISTURBED, Cell, Plan, TrainingFailed, Trainings  # noqa: E402
from document import save, saved  # noqa: E402
from machine import facts  # noqa: E402
from measures import agreement, curve, mean_curve, measured  # noqa: E402
from page import page, picture, picture_name, settings  # noqa: E402

ROWS, CURVES = types.SimpleNamespace(name="rows"), types.SimpleNamespace(name="curves")
# Ranks are added up in their order, as in one process, and as the library chooses.
ALGORITHMS = ("one_shot", "auto")


def cells_of(quick):
    """Those in one process, and those of them that are real jobs as well."""
    if quick:
        alone = [Cell(0.05, 1, UNDISTURBED, 1), Cell(0.05, 2, "ramp", 1)]
        return alone, alone[1:]
    etas, numbers, seeds = (0.05, 0.1), (8, 12), range(1, 6)
    alone = [Cell(eta, 1, UNDISTURBED, seed) for eta in etas for seed in seeds]
    alone += [Cell(eta, workers, policy, seed) for eta in etas for workers in numbers
              for policy in POLICIES for seed in seeds]
    return alone, [cell for cell in alone if cell.workers == 8 and cell.seed == 1]


def arguments():
    summary, text = __doc__.split("\n", 1)
    parser = argparse.ArgumentParser(prog="dynamic-sgd", description=summary, epilog=text,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--bin", type=pathlib.Path, default=ROOT / "build" / "bin",
                        help="folder with the programs")
    parser.add_argument("--data", type=pathlib.Path, help="another CSV file like that of the digits")
    parser.add_argument("--into", type=pathlib.Path, default=ROOT / "docs" / "dynamic-training",
                        metavar="FOLDER", help="what to write to; default: docs/dynamic-training")
    parser.add_argument("--quick", action="store_true",
                        help="one seed, one policy, two workers, few epochs: whether it works")
    parser.add_argument("--render", action="store_true",
                        help="train nothing, rewrite the page from the rows")
    options = parser.parse_args()
    if options.render and (options.quick or options.data):
        parser.error("--render trains nothing: leave --quick and --data out")
    if options.data:
        options.data = options.data.resolve()
        if not options.data.is_file():
            parser.error(f"--data: {options.data} is not a file")
    return options


def row_of(cell, job, steps, plan, more):
    return {"eta": cell.eta, "workers": cell.workers, "policy": cell.policy, "seed": cell.seed,
            "job": job, **measured(steps, plan), **more}


def progress(done, total, what):
    """One line that changes, on a terminal only."""
    if sys.stdout.isatty():
        print(f"dynamic-sgd: {done} of {total} {what}", end="\n" if done == total else "\r",
              flush=True)


def train(trainings, alone, real):
    """Rows and curves."""
    plan, rows, curves = trainings.plan, [], {}
    kept = {}  # steps of what is compared with a real job
    with concurrent.futures.ThreadPoolExecutor(os.cpu_count()) as pool:
        for done, (cell, steps) in enumerate(zip(alone, pool.map(trainings.simulated, alone)), 1):
            progress(done, len(alone), "in one process")
            rows.append(row_of(cell, "simulated", steps, plan, {}))
            curves.setdefault((cell.eta, cell.workers, cell.policy), []).append(curve(steps, plan))
            if cell in real:
                kept[cell] = steps
    for done, cell in enumerate(real, 1):  # one after the other: each has more workers than cores
        progress(done, len(real), "as real jobs")
        for algorithm in ALGORITHMS:
            steps = trainings.real(cell, algorithm)
            rows.append(row_of(cell, algorithm, steps, plan, agreement(steps, kept[cell])))
    return rows, [{"eta": eta, "workers": workers, "policy": policy, "points": mean_curve(of_it)}
                  for (eta, workers, policy), of_it in curves.items()]


def how(options, plan, seconds):
    machine = facts(ROOT)
    quick = " **A quick run: one seed, one policy.**" if options.quick else ""
    data = f" Data: {options.data.name}." if options.data else ""
    return (f"{machine['date']}, {machine['compiler']}; {seconds:.0f} s on {machine['cores']} cores. "
            f"{plan.epochs} epochs, growth at {plan.grow_at}, "
            f"shrinking at {plan.shrink_at}.{data}{quick}")


def measure(options):
    plan = Plan(epochs=4, grow_at=1, shrink_at=2) if options.quick else Plan()
    trainings = Trainings(options.bin.resolve(), plan, options.data)
    began = time.monotonic()
    rows, curves = train(trainings, *cells_of(options.quick))
    result = {"how": how(options, plan, time.monotonic() - began), "plan": vars(plan)}
    save(ROWS, options.into / "experiment", {**result, "rows": rows})
    save(CURVES, options.into / "experiment", {"rows": curves})


def render(options):
    folder = options.into / "experiment"
    result, curves = saved(ROWS, folder), saved(CURVES, folder)
    if "rows" not in result:
        raise TrainingFailed(f"{folder} has no rows yet: leave --render out")
    template = (HERE / "template.md").read_text()
    for eta, workers in settings(result["rows"]):
        (folder / picture_name(eta, workers)).write_text(
            picture(curves["rows"], eta, workers, Plan(**result["plan"])))
    document = options.into / "experiment.md"
    document.write_text(page(template, result, result["rows"], folder.name))
    print(f"dynamic-sgd: wrote {document}")


def main():
    options = arguments()
    try:
        if not options.render:
            measure(options)
        render(options)
    except (TrainingFailed, OSError) as failure:
        sys.exit(f"dynamic-sgd: {failure}")


if __name__ == "__main__":
    main()
