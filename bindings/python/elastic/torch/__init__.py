"""elastic for PyTorch: an optimizer that averages gradients, and what goes into the State.

    import torch, elastic, elastic.torch

    elastic.init()
    optimizer = elastic.torch.DistributedOptimizer(
        torch.optim.SGD(model.parameters(), lr=0.1, momentum=0.9), model.named_parameters()
    )
    sampler = elastic.torch.ElasticSampler(dataset, seed=1)
    state = elastic.torch.State(model=model, optimizer=optimizer, sampler=sampler)

    def train(state):
        while not sampler.finished(epochs):
            images, labels = dataset[sampler.next(32)]
            optimizer.zero_grad()
            torch.nn.functional.cross_entropy(model(images), labels).backward()
            optimizer.step()
            sampler.commit(optimizer.contributors)
            state.commit()

    elastic.torch.run(state, train)
    elastic.shutdown()
"""

import torch

from elastic import run
from elastic.torch.compression import Compression, Compressor
from elastic.torch.distributed_data_parallel import DistributedDataParallel
from elastic.torch.grad_scaler import GradScaler
from elastic.torch.learning_rate import ElasticLR
from elastic.torch.loader import ElasticDataLoader
from elastic.torch.optimizer import DistributedOptimizer
from elastic.torch.sampler import ElasticSampler
from elastic.torch.state import State
from elastic.torch.sync_batch_norm import SyncBatchNorm

if torch.distributed.is_available():
    from elastic.torch.process_group import init_process_group, register

    register()

#: The name that Horovod's users know.
TorchState = State

__all__ = [
    "Compression",
    "Compressor",
    "DistributedDataParallel",
    "DistributedOptimizer",
    "ElasticDataLoader",
    "ElasticLR",
    "ElasticSampler",
    "GradScaler",
    "State",
    "SyncBatchNorm",
    "TorchState",
    "init_process_group",
    "run",
]
