"""The end of a worker's data, while others go on."""

from __future__ import annotations

import elastic
from horovod.common import basics
from horovod.common.exceptions import as_horovod_errors
from horovod.torch.handles import forget_completed, in_order


def join(device: int = -1) -> int:
    """Waits until all members have called it, and returns the rank that called it last.

    Until then the allreduces and barriers of the others go on without this worker: a sum lacks its
    tensors, and an average divides by all members all the same. Their other operations fail.
    Operations that this worker has started are completed first.

    Args:
        device: is not needed here.

    Raises:
        HorovodInternalError: it failed.
    """
    basics._check()
    basics.finish_what_is_under_way()
    with as_horovod_errors():
        last: int = in_order.submit(elastic.join).wait().last_rank
    forget_completed()
    return last
