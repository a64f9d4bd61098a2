"""Not there."""

from horovod.common.absent import no_framework

no_framework("horovod.mxnet")
