"""The module in which Horovod has its operations; scripts import them from it, too."""

from horovod.torch import *  # noqa: F403
from horovod.torch import __all__ as __all__
