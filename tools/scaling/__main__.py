#!/usr/bin/env python3
"""Measures, and where that is impossible calculates, large jobs, and writes docs/scaling.md.

Takes the release build in build/bin, and about eight minutes on a machine that does nothing else.
What each section gave last is in docs/scaling/SECTION.json. Ends with 1 where a command failed.
"""

import argparse
import pathlib
import sys

sys.dont_write_bytecode = True
HERE = pathlib.Path(__file__).resolve().parent
ROOT = HERE.parent.parent
sys.path.append(str(HERE.parent / "performance"))
from document import render, save  # noqa: E402
from measuring import measure  # noqa: E402
from sections import Deaths, Hosts, Membership, Starts  # noqa: E402


def arguments():
    summary, text = __doc__.split("\n", 1)
    parser = argparse.ArgumentParser(prog="scaling", description=summary, epilog=text,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--bin", default="build/bin", metavar="FOLDER",
                        help="with the programs; default: build/bin")
    parser.add_argument("--into", type=pathlib.Path, default=ROOT / "docs", metavar="FOLDER",
                        help="what to write to; default: docs")
    parser.add_argument("--only", metavar="SECTION[,SECTION]",
                        help="these again, and keep what is known of the others: membership, starts, "
                        "deaths, hosts")
    parser.add_argument("--quick", action="store_true", help="smaller jobs: whether it works")
    parser.add_argument("--render", action="store_true",
                        help="measure nothing, rewrite the document")
    options = parser.parse_args()
    if options.render and (options.only or options.quick):
        parser.error("--render measures nothing: leave --only and --quick out")
    return options


def chosen(sections, only):
    """The sections that `only` names, or all."""
    names = [section.name for section in sections]
    wanted = only.split(",") if only else names
    unknown = [name for name in wanted if name not in names]
    if unknown:
        sys.exit(f"scaling: --only: no section '{unknown[0]}'; there are {','.join(names)}")
    return [section for section in sections if section.name in wanted]


def main():
    options = arguments()
    sections = [kind(options.bin) for kind in (Membership, Starts, Deaths, Hosts)]
    results = options.into / "scaling"
    results.mkdir(parents=True, exist_ok=True)
    all_well = True
    for section in [] if options.render else chosen(sections, options.only):
        result, well = measure(section, options.quick, ROOT, "scaling")
        all_well = all_well and well
        save(section, results, result)
    render(sections, (HERE / "template.md").read_text(), results)
    print(f"scaling: wrote {results.with_suffix('.md')}")
    sys.exit(0 if all_well else 1)


if __name__ == "__main__":
    main()
