"""Calls before and after a backward pass adds to a parameter's gradient."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch


def before_gradient(
    parameter: torch.nn.Parameter, call: Callable[[torch.nn.Parameter], None]
) -> Any:
    """Calls ``call(parameter)`` before a backward pass adds to ``parameter.grad``, which stays as it
    is if the call raises.

    Returns what has to be kept for as long as that is wanted.
    """
    return parameter.register_hook(lambda _: call(parameter))


def on_gradient(
    parameter: torch.nn.Parameter, call: Callable[[torch.nn.Parameter], None]
) -> Any:
    """Calls ``call(parameter)`` when a backward pass has added up ``parameter.grad``.

    Returns what has to be kept for as long as that is wanted.
    """
    if hasattr(parameter, "register_post_accumulate_grad_hook"):  # from 2.1 on
        return parameter.register_post_accumulate_grad_hook(call)
    # The node that adds the gradient up has hooks that run after it. It lives as long as a
    # reference is kept.
    with torch.enable_grad():
        node = parameter.expand_as(parameter).grad_fn.next_functions[0][0]
    node.register_hook(lambda *_: call(parameter))
    return node
