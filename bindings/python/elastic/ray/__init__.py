"""Jobs on a cluster of Ray: an agent on each node, with nodes that come and go.

    import ray
    import elastic.ray

    ray.init()
    job = elastic.ray.ElasticRayJob(["python", "train.py"], workers_per_node=2)
    job.run()

``train.py`` is as under ``elasticrun``. Ray starts the agents; elastic itself detects losses, in
milliseconds.
"""

from elastic.ray.job import ElasticRayJob, JobFailedError

__all__ = ["ElasticRayJob", "JobFailedError"]
