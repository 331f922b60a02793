"""gepolab: losses of asynchronous group-based policy optimisation, their exact bias, and the clock of a cluster.

    import gepolab
    result = gepolab.policy(rewards, logp, logq, "gepo_released", group_size=8, mask=mask)
    gepolab.loss(rewards, logp, logq, "gepo_released", group_size=8, mask=mask).backward()   # PyTorch
    gepolab.bias("gepo", learner=[0.5, 0.3, 0.2], sampler=[0.2, 0.3, 0.5], reward=[1, 0, 0], group_size=8)
    gepolab.sim("steps: 500\\ncluster: {preset: heterorl, max_delay: 30m}").summary

The work is done by libgepolab, whose manual is library/gepolab.h of the sources.
"""

from __future__ import annotations

from typing import Any

from ._dump import read_dump, write_log
from ._group_log import GroupLog
from ._library import GepolabError, InputError, NumericError, library, needed
from ._measure import Delay, Simulation, bias, iqm, sim, spearman, survival
from ._policy import METRICS, Algorithm, PolicyResult, algorithms, policy, settings
from ._read import read, read_tensorboard
from ._whatif import read_log, whatif

__version__: str = library.gepolab_version().decode()

__all__ = [
    "METRICS", "Algorithm", "Delay", "GepolabError", "GroupLog", "InputError", "NumericError", "PolicyResult", "Simulation",
    "algorithms", "bias", "iqm", "loss", "policy", "read", "read_dump", "read_log", "read_tensorboard", "settings", "sim",
    "spearman", "survival", "whatif", "write_log",
]  # fmt: skip


def __getattr__(name: str) -> Any:
    """loss needs PyTorch, which is imported when it is asked for."""
    if name == "loss":
        needed("torch", "torch")
        from ._torch import loss

        return loss
    raise AttributeError(f"module 'gepolab' has no attribute {name!r}")
