"""Elastic training: ``hvd.elastic.run``, ``TorchState`` and ``ElasticSampler``."""

from horovod.common.elastic import ObjectState, State
from horovod.common.elastic import run_fn as run
from horovod.torch.elastic.sampler import ElasticSampler
from horovod.torch.elastic.state import TorchState

__all__ = ["ElasticSampler", "ObjectState", "State", "TorchState", "run"]
