"""A module whose gradients are averaged over all members in each backward pass."""

from __future__ import annotations

import contextlib
import weakref
from collections.abc import Iterator
from typing import Any

import torch

import elastic
from elastic.torch.compression import Compression, Compressor
from elastic.torch.gradient_exchange import Exchange, Group
from elastic.torch.step_exchange import StepExchange

_MiB = 1 << 20
#: The types of buffers that can be combined, as far as this version of PyTorch has them.
_COMBINED = {
    getattr(torch, name)
    for name in "float16 bfloat16 float32 float64 bool int8 int16 int32 int64 uint8 uint16 uint32 "
    "uint64".split()
    if hasattr(torch, name)
}


class _Buffers:
    """The buffers of a module, such as the statistics of batch normalization, which differ between
    workers after each forward pass: numbers are averaged, counters take the largest value."""

    def __init__(self, name: str, module: torch.nn.Module) -> None:
        self._name = name
        self._module = module
        self._works: list[elastic.Work] = []
        for buffer_name, buffer in module.named_buffers():
            if buffer.dtype not in _COMBINED:
                problem = f"has elements of type {buffer.dtype}, which elastic has not"
            elif buffer.layout is not torch.strided:
                problem = "is sparse; give the module its .to_dense()"
            elif not buffer.is_contiguous():
                problem = "is not contiguous; give the module its .contiguous()"
            else:
                continue
            raise elastic.InvalidArgumentError(
                f"DistributedDataParallel: the buffer {buffer_name!r} {problem}; or leave buffers "
                "as they are on each worker, broadcast_buffers=False"
            )

    def start(self) -> None:
        self._works = []
        buffers = [buffer for buffer in self._module.buffers() if buffer.numel() > 0]
        numbers = [buffer for buffer in buffers if buffer.dtype.is_floating_point]
        counters = [buffer for buffer in buffers if not buffer.dtype.is_floating_point]
        for kind, tensors, op in (
            ("numbers", numbers, elastic.AVERAGE),
            ("counters", counters, elastic.MAX),
        ):
            if tensors:
                name = f"{self._name}, buffers, {kind}"
                self._works.append(elastic.grouped_allreduce_async(name, tensors, op))

    def finish(self) -> None:
        for work in self._works:
            work.wait()


class DistributedDataParallel(torch.nn.Module):
    """Wraps a module so that its gradients are the averages over all members when ``backward``
    returns.

        model = elastic.torch.DistributedDataParallel(network)
        loss(model(images), labels).backward()
        optimizer.step()                                    # any optimizer of PyTorch
        sampler.commit(model.contributors)

    If a worker dies during ``backward``, it ends on the survivors with the averages over the workers
    that contributed. A joiner makes its wrapper alone, while the others train.

    PyTorch's own class is not underneath: it is made by all workers of a group of fixed size
    together, divides gradients by that size before it is known which workers contribute, agrees on its buckets by
    broadcasts in the second step, which a joiner's second step is not, and cannot be used again after
    an error in its hook. Here gradients have the parameters' names, and the library forms buckets.

    Parameters that are unfrozen later are averaged from then on, with unit="bucket" each as a unit of
    its own. Unfreeze on all members before the same step, joiners included. Parameters that the
    module gets when it is wrapped already are not averaged.

    Args:
        module: has parameters that require gradients, all on the devices where they stay.
        unit: "bucket": gradients travel in parts, while the backward pass computes the others, and a
            death may leave some averaged over more workers than others (``contributors`` says which).
            "step": all gradients of a step are one unit, with the same contributors. They travel while
            the backward pass computes the others, and are committed together at its end. Those of a
            module on a device travel after the backward pass.
        bucket_cap_mb: the size of a part of unit="bucket".
        compression: the element type in which gradients travel, or a Compressor.
        broadcast_buffers: makes buffers, such as the statistics of batch normalization, the same on
            all members in each backward pass: averages, and the largest of counters.
        name: tells the names of this module's gradients from those of another wrapped module.
        find_unused_parameters, gradient_as_bucket_view, device_ids, output_device: taken so that
            calls written for PyTorch's class work. Parameters without a gradient are always found,
            and have zeros here; the others have no effect.
        static_graph: refused; there is nothing to gain by it.

    Raises:
        InvalidArgumentError: nothing requires a gradient, the name is taken, or a buffer cannot be
            combined.
    """

    #: Names in use, with the modules that live.
    _names: weakref.WeakValueDictionary[str, DistributedDataParallel] = weakref.WeakValueDictionary()

    def __init__(
        self,
        module: torch.nn.Module,
        device_ids: Any = None,
        output_device: Any = None,
        *,
        unit: str = "bucket",
        bucket_cap_mb: float = 25,
        compression: Compressor | str = Compression.NONE,
        broadcast_buffers: bool = True,
        name: str = "module",
        find_unused_parameters: bool = False,
        gradient_as_bucket_view: bool = False,
        static_graph: bool = False,
    ) -> None:
        super().__init__()
        parameters = self._parameters_of(module)
        if static_graph:
            raise elastic.InvalidArgumentError(
                "DistributedDataParallel: static_graph=True is not supported; leave it out"
            )
        if DistributedDataParallel._names.get(name) is not None:
            raise elastic.InvalidArgumentError(
                f"DistributedDataParallel: another module has the name {name!r}; give this one "
                "name=..., the same on all workers"
            )
        DistributedDataParallel._names[name] = self
        self.module = module
        self._buffers_of_module = _Buffers(name, module) if broadcast_buffers else None
        self._synchronizes = True
        self._pending = False
        this = weakref.ref(self)  # the parameters, which keep the hooks, may outlive this wrapper

        def before() -> bool:
            wrapper = this()
            return wrapper is not None and wrapper._begin_backward()

        units = _units(name, parameters, unit, bucket_cap_mb)
        exchange = Exchange
        if unit == "step" and all(parameter.device.type == "cpu" for _, parameter in parameters):
            units = [Group(f"{name}.{own}", [(own, p)]) for own, p in reversed(parameters)]
            exchange = StepExchange  # takes gradients in host memory alone
        self._exchange = exchange(
            units,
            elastic.AVERAGE,
            Compression.of(compression),
            backward_passes_per_step=1,
            predivide=1,
            before=before,
            later=[
                (f"{name}.{parameter_name}", parameter)
                for parameter_name, parameter in module.named_parameters()
                if not parameter.requires_grad
            ],
        )

    @staticmethod
    def _parameters_of(module: Any) -> list[tuple[str, torch.nn.Parameter]]:
        if not isinstance(module, torch.nn.Module) or isinstance(module, DistributedDataParallel):
            raise elastic.InvalidArgumentError(
                "DistributedDataParallel: give a torch.nn.Module that is not wrapped yet; this is a "
                f"{type(module).__name__}"
            )
        named = [pair for pair in module.named_parameters() if pair[1].requires_grad]
        if not named:
            raise elastic.InvalidArgumentError(
                "DistributedDataParallel: the module has no parameter that requires a gradient; it "
                "needs no wrapping"
            )
        return named

    def forward(self, *arguments: Any, **named: Any) -> Any:
        if self._pending and not _in_backward():
            self._begin_after_exception()
        self._exchange.take_in()
        return self.module(*arguments, **named)

    def _begin_after_exception(self) -> None:
        """An exception has ended the backward pass before."""
        if self._exchange.under_way():
            raise elastic.InvalidArgumentError(
                "DistributedDataParallel: an exception ended the backward pass before, when some of "
                "its gradients were on their way: call contribute_nothing() and make the step with "
                "the averages first, as the other members do"
            )
        self._pending = False
        self._exchange.begin_step()

    @contextlib.contextmanager
    def no_sync(self) -> Iterator[None]:
        """Backward passes in here add up gradients on this worker only. They travel with those of
        the next pass outside. Where the forward pass runs does not matter, unlike in PyTorch's
        class."""
        before, self._synchronizes = self._synchronizes, False
        try:
            yield
        finally:
            self._synchronizes = before

    @property
    def contributors(self) -> list[elastic.Contributors]:
        """The Contributors of each unit of the latest backward pass, for Sampler.commit."""
        return self._exchange.contributors

    @property
    def finite(self) -> bool:
        """Whether the latest averages may be used. False only under the option non_finite="skip",
        where a gradient has NaN or Inf, on all members alike: leave the optimizer's step out."""
        return self._exchange.finite

    def contribute_nothing(self) -> None:
        """Takes part in a step for which this worker has no batch, in place of ``backward``: zeros
        stand for its gradients. Call ``optimizer.zero_grad()`` before. Also ends a backward pass
        that an exception has broken off: gradients that were not on their way yet are zeros."""
        self._finish()

    def _begin_backward(self) -> bool:
        """Before each gradient that is ready. Returns whether it may travel."""
        if not self._synchronizes:
            return False
        if not self._pending:
            self._pending = True
            torch.autograd.Variable._execution_engine.queue_callback(self._finish)
        return True

    def _finish(self) -> None:
        """At the end of a backward pass. Its errors come out of ``backward``."""
        self._pending = False
        if self._buffers_of_module is not None:
            self._buffers_of_module.start()
        self._exchange.synchronize()
        if self._buffers_of_module is not None:
            self._buffers_of_module.finish()


def _in_backward() -> bool:
    """Whether a backward pass runs in this thread."""
    try:
        torch.autograd.Variable._execution_engine.queue_callback(lambda: None)
    except RuntimeError:
        return False
    return True


def _units(
    name: str, parameters: list[tuple[str, torch.nn.Parameter]], unit: str, bucket_cap_mb: float
) -> list[Group]:
    """What travels as one. Gradients come from the last parameter to the first."""
    if unit == "step":
        return [Group(f"{name}, step", parameters)]
    if unit != "bucket":
        raise elastic.InvalidArgumentError(
            f"DistributedDataParallel: unit is {unit!r}; it is 'bucket' or 'step'"
        )
    if not bucket_cap_mb >= 0:
        raise elastic.InvalidArgumentError(
            f"DistributedDataParallel: bucket_cap_mb is {bucket_cap_mb!r}; it must not be negative"
        )
    units: list[Group] = []
    room = 0.0
    for parameter_name, parameter in reversed(parameters):
        size = parameter.numel() * parameter.element_size()
        if not units or size > room:
            units.append(Group(f"{name}.{parameter_name}...", []))
            room = bucket_cap_mb * _MiB
        units[-1].add(parameter_name, parameter)
        room -= size
    return units
