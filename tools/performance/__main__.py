#!/usr/bin/env python3
"""Measures elastic, and what it is compared with, and writes docs/performance.md.

Takes the release build in build/bin, and about 25 minutes on a machine that does nothing else.
What each section measured last is in docs/performance/SECTION.json. A section that cannot run here
is marked as not measured. Ends with 1 where a command failed.
"""

import argparse
import pathlib
import sys

sys.dont_write_bytecode = True
from allreduce import SHM2, SHM4, TCP2  # noqa: E402
from changes import Join, Recovery  # noqa: E402
from collectives import COLLECTIVES_SHM2, COLLECTIVES_SHM4, COLLECTIVES_TCP2  # noqa: E402
from document import render, save  # noqa: E402
from fusion import Fusion  # noqa: E402
from handover import Handover  # noqa: E402
from kernels import Kernels  # noqa: E402
from measuring import measure  # noqa: E402
from network import Network  # noqa: E402
from recoverable import Recoverable  # noqa: E402

HERE = pathlib.Path(__file__).resolve().parent
ROOT = HERE.parent.parent
RESULTS = ROOT / "docs" / "performance"
SECTIONS = (Handover(), SHM2, SHM4, TCP2, COLLECTIVES_SHM2, COLLECTIVES_SHM4, COLLECTIVES_TCP2,
            Network(), Fusion(), Recoverable(), Recovery(), Join(), Kernels())


def arguments():
    summary, text = __doc__.split("\n", 1)
    names = ",".join(section.name for section in SECTIONS)
    parser = argparse.ArgumentParser(prog="performance", description=summary, epilog=text,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--only", metavar="SECTION[,SECTION]",
                        help=f"measure these again, keep what is known of the others: {names}")
    parser.add_argument("--quick", action="store_true", help="fewer sizes, fewer calls")
    parser.add_argument("--render", action="store_true",
                        help="measure nothing, rewrite the document")
    options = parser.parse_args()
    if options.render and (options.only or options.quick):
        parser.error("--render measures nothing: leave --only and --quick out")
    wanted = options.only.split(",") if options.only else names.split(",")
    unknown = [name for name in wanted if name not in names.split(",")]
    if unknown:
        parser.error(f"--only: no section '{unknown[0]}'; there are {names}")
    options.sections = [section for section in SECTIONS if section.name in wanted]
    return options


def main():
    options = arguments()
    all_well = True
    for section in [] if options.render else options.sections:
        result, well = measure(section, options.quick, ROOT, "performance")
        all_well = all_well and well
        save(section, RESULTS, result)
    render(SECTIONS, (HERE / "template.md").read_text(), RESULTS)
    print(f"performance: wrote {(RESULTS.with_suffix('.md')).relative_to(ROOT)}")
    sys.exit(0 if all_well else 1)


if __name__ == "__main__":
    main()
