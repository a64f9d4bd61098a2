"""Trains examples/regression.py on all nodes of a Ray cluster, and on those that come while it trains.

    ray job submit --working-dir examples -- python ray/regression_on_ray.py --workers-per-node 2
"""

import argparse

import ray

from elastic.ray import ElasticRayJob


def main() -> None:
    parser = argparse.ArgumentParser(description="Trains a linear regression on a Ray cluster.")
    parser.add_argument("--workers-per-node", type=int, default=1)
    parser.add_argument("--min-workers", type=int, default=1, help="wait for nodes with room for so many")
    options = parser.parse_args()
    ray.init(log_to_driver=False)  # the job writes what its workers print
    job = ElasticRayJob(
        ["python", "regression.py"],
        workers_per_node=options.workers_per_node,
        min_workers=options.min_workers,
    )
    job.run()


if __name__ == "__main__":
    main()
