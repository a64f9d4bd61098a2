"""What Horovod's interface to PyTorch has and elastic lacks."""

from horovod.common.absent import refusal

_TIMELINE = "elastic.step_times() and elastic.last_view_change() have numbers"

join = refusal(
    "hvd.join",
    "give every rank as many batches, as hvd.elastic.ElasticSampler does",
)
start_timeline = refusal("hvd.start_timeline", _TIMELINE)
stop_timeline = refusal("hvd.stop_timeline", _TIMELINE)
