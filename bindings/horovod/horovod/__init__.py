"""Horovod's interface on elastic.

import horovod.torch as hvd

hvd.init()
optimizer = hvd.DistributedOptimizer(optimizer, model.named_parameters())
hvd.broadcast_parameters(model.state_dict(), root_rank=0)
"""

from horovod.common.environment import tell_ranks
from horovod.runner import run

__version__ = "0.28.1+elastic.0.1.0"
__all__ = ["run"]

tell_ranks()
