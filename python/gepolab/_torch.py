"""The loss as a PyTorch function whose backward is the library's coefficients."""

from __future__ import annotations

from typing import Any, Mapping, Optional, Union

import numpy as np
import torch

from ._library import InputError
from ._policy import Algorithm, PolicyResult, policy


class _Loss(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, logp: torch.Tensor, rewards: torch.Tensor, logq: torch.Tensor, keywords: "dict[str, Any]") -> torch.Tensor:
        result = policy(rewards, logp.detach(), logq, **keywords["policy"])
        keywords["seen"](result)
        ctx.save_for_backward(result.coefficient)
        return logp.new_tensor(result.loss)

    @staticmethod
    def backward(ctx: Any, upstream: torch.Tensor) -> "tuple[Optional[torch.Tensor], None, None, None]":
        (coefficient,) = ctx.saved_tensors
        return -upstream * coefficient, None, None, None


def _on_cpu(value: Any) -> Any:
    return value.detach().cpu() if isinstance(value, torch.Tensor) else value


def _tensor(value: Any) -> torch.Tensor:
    return value if isinstance(value, torch.Tensor) else torch.as_tensor(np.asarray(value))


def loss(
    rewards: torch.Tensor,
    logp: torch.Tensor,
    logq: torch.Tensor,
    algorithm: "Union[str, Mapping[str, Any], Algorithm]" = "gepo_released",
    *,
    return_result: bool = False,
    **keywords: Any,
) -> "Union[torch.Tensor, tuple[torch.Tensor, PolicyResult]]":
    """The algorithm's loss as a tensor to call backward() on; arguments are those of policy().

    Only logp carries a gradient. Tensors on a GPU are evaluated on the CPU, and the gradient goes back where logp is;
    half precision is widened to float32 first. With return_result also the PolicyResult (its arrays on the CPU); weights
    and diagnostics are made for it alone. `threads` is PyTorch's own number unless it is given.
    """
    if not isinstance(logp, torch.Tensor):
        raise InputError(f"logp is a {type(logp).__name__}, and a tensor of PyTorch is expected, which carries the gradient")
    seen: "list[PolicyResult]" = []
    keywords = {name: _on_cpu(value) for name, value in keywords.items()}
    device = logp.device
    on_cpu = logp.to("cpu", torch.float32 if logp.dtype in (torch.float16, torch.bfloat16) else logp.dtype)
    behaviour = _on_cpu(_tensor(logq))
    if behaviour.dtype in (torch.float16, torch.bfloat16):
        behaviour = behaviour.float()
    defaults = {"threads": torch.get_num_threads(), "weights": return_result, "metrics": return_result}
    given = {"policy": {"algorithm": algorithm, **defaults, **keywords}, "seen": seen.append}
    value = _Loss.apply(on_cpu, _on_cpu(_tensor(rewards)).to(on_cpu.dtype), behaviour, given).to(device)
    return (value, seen[0]) if return_result else value
