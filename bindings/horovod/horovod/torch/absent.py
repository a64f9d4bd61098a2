"""What Horovod's interface to PyTorch has and elastic lacks."""

from horovod.common.absent import refusal

_ALLTOALL = "gather everything by hvd.allgather, and take this rank's part"
_TIMELINE = "elastic.step_times() and elastic.last_view_change() have numbers"

alltoall = refusal("hvd.alltoall", _ALLTOALL)
alltoall_async = refusal("hvd.alltoall_async", _ALLTOALL)
join = refusal(
    "hvd.join",
    "give every rank as many batches, as hvd.elastic.ElasticSampler does",
)
start_timeline = refusal("hvd.start_timeline", _TIMELINE)
stop_timeline = refusal("hvd.stop_timeline", _TIMELINE)
