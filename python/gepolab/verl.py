"""verl's actor with any of gepolab's losses, and gepolab's diagnostics among its metrics.

    # my_losses.py, named in the environment: VERL_USE_EXTERNAL_MODULES=my_losses
    from gepolab.verl import register
    register("gepo_released")              # or "{base: gepo, clip: none}", or an Algorithm

    python -m verl.trainer.main_ppo actor_rollout_ref.actor.policy_loss.loss_mode=gepolab algorithm.adv_estimator=gepolab ...

    log_groups("run.jsonl")                # every batch that the actor trains on, for `gepolab whatif`

The estimator makes the row's advantages of rewards and groups; another one of verl's outcome estimators may stand in its
place. The row's `aggregate` replaces loss_agg_mode, its widths clip_ratio_*; normalisation over mini-batch and ranks is verl's.
Tested with verl 0.9.1 on the CPU, without Ray and without a rollout engine.
"""

from __future__ import annotations

import os
import sys
import threading
from typing import Any, Mapping, Optional, Union

import torch
from verl.trainer.ppo import core_algos

from ._group_log import GroupLog
from ._library import InputError
from ._policy import Algorithm, policy
from ._torch import loss

#: diagnostics that are returned, as gepolab/NAME
LOGGED = (
    "ess iw_mean iw_max iw_variance log_iw_variance iw_variance_gepo iw_variance_pq aw_variance clip_fraction kl_k3 kl_k3_seq cppo_kl"
).split()

_now = threading.local()  # the micro-batch that verl's ppo_loss is at work on in this thread

# The log of this process's batches: its path, and the log itself once the process has its rank.
_log: "dict[str, Any]" = {"path": None, "log": None}


class _Order:
    """Responses with tokens, those of a group side by side, and where the groups start."""

    def __init__(self, mask: torch.Tensor, group: "Optional[list[Any]]") -> None:
        full = [i for i, n in enumerate(mask.sum(-1).tolist()) if n > 0]
        members: "dict[Any, list[int]]" = {}
        for i in full:
            members.setdefault(i if group is None else group[i], []).append(i)
        self.rows = torch.tensor([i for rows in members.values() for i in rows], dtype=torch.long, device=mask.device)
        self.sizes = [len(rows) for rows in members.values()]
        self.start = [sum(self.sizes[:k]) for k in range(len(self.sizes) + 1)]

    def of(self, values: Any) -> Any:
        """Rows of a tensor in this order; None of None."""
        return None if values is None else values[self.rows]


def _couples(row: Algorithm) -> bool:
    """Whether a response's loss needs the other responses of its group."""
    return row.field("ratio") in ("group_expectation", "self_normalised", "group_mean") or row.field("aggregate") == "group_token_mean"


def _advantage_of_responses(advantages: torch.Tensor, mask: torch.Tensor) -> torch.Tensor:
    first = torch.argmax(mask.to(torch.int8), dim=-1, keepdim=True)
    value = advantages.gather(-1, first)
    differs = ((advantages != value) & mask).any(-1)
    if differs.any():
        raise InputError(
            f"the advantages of response {int(differs.nonzero()[0])} differ from token to token; a row has one for a response: "
            "use an estimator of outcomes (gepolab, grpo, rloo, ...), with gamma 1"
        )
    return value.squeeze(-1)


def _groups(row: Algorithm) -> "Optional[list[Any]]":
    """The prompt of every response of the micro-batch; None where it is not known and not needed."""
    group: "Optional[list[Any]]" = getattr(_now, "fields", {}).get("uid")
    if group is not None:
        return group
    if _couples(row):
        raise InputError(
            f"{row.name} compares the responses of a prompt, and the batch has no 'uid' that says which belong together; keep "
            "uid in the actor's batch, or take a row that needs no group"
        )
    return None


def _whole(row: Algorithm, order: _Order, config: Any) -> None:
    n = config.get("rollout_n", None) if hasattr(config, "get") else getattr(config, "rollout_n", None)
    if _couples(row) and isinstance(n, int) and any(size != n for size in order.sizes):
        raise InputError(
            f"{row.name} needs whole groups of {n}, and a micro-batch has groups of {sorted(set(order.sizes))}: set "
            "use_dynamic_bsz: false, shuffle: false, trainer.balance_batch: false, and ppo_micro_batch_size_per_gpu to a multiple of n"
        )


def _share(row: Algorithm, info: "dict[str, Any]", responses: int, tokens: int) -> float:
    """What the loss of this micro-batch counts in that of the mini-batch over all ranks, as verl's agg_loss has it."""
    ranks = info.get("dp_size") or 1
    aggregate = row.field("aggregate")
    if aggregate == "token_sum":
        return float(ranks)
    whole = info.get("batch_num_tokens" if aggregate == "token_mean" else "global_batch_size")
    if whole is None:
        return float(ranks)
    return float((tokens if aggregate == "token_mean" else responses) / whole * ranks)


def policy_loss(algorithm: "Union[str, Mapping[str, Any], Algorithm]" = "gepo_released") -> Any:
    """A policy loss with the arguments and results of verl's own, for register_policy_loss()."""
    row = algorithm if isinstance(algorithm, Algorithm) else Algorithm(algorithm)

    def compute(
        old_log_prob: torch.Tensor,
        log_prob: torch.Tensor,
        advantages: torch.Tensor,
        response_mask: torch.Tensor,
        loss_agg_mode: str = "token-mean",
        config: Any = None,
        rollout_is_weights: Optional[torch.Tensor] = None,
    ) -> "tuple[torch.Tensor, dict[str, Any]]":
        if rollout_is_weights is not None:
            raise InputError(
                f"rollout_is_weights would not be heeded by {row.name}: set algorithm.rollout_correction.rollout_is to null; the "
                "row's own fields are tis_level and mis_level"
            )
        mask, seen = response_mask.bool(), getattr(_now, "fields", {})
        order = _Order(mask, _groups(row))
        _whole(row, order, config)
        if len(set(order.sizes)) > 1 and not _couples(row):
            order = _Order(mask, None)  # of torn groups every response still counts the same
        a = order.of(_advantage_of_responses(advantages, mask))
        behaviour = seen.get("rollout_log_probs")
        info = getattr(config, "global_batch_info", None) or {}
        value, result = loss(
            a, order.of(log_prob), order.of(old_log_prob if behaviour is None else behaviour), row, advantages=a, mask=order.of(mask),
            group_start=order.start, logprox=order.of(old_log_prob), logref=order.of(seen.get("ref_log_prob")),
            entropy=order.of(seen.get("entropy")), max_length=int(info.get("loss_scale_factor") or mask.shape[1]), weights=False,
            return_result=True,
        )  # fmt: skip
        metrics = {f"gepolab/{name}": result.metrics[name] for name in LOGGED if name in result.metrics}
        drift = ((old_log_prob - log_prob.detach()) * mask).sum() / mask.sum()
        metrics["actor/ppo_kl"] = float(drift)
        metrics["actor/pg_clipfrac"] = result.metrics.get("clip_fraction", 0.0)
        return value * _share(row, info, len(order.rows), int(mask.sum())), metrics

    return compute


def advantage_estimator(algorithm: "Union[str, Mapping[str, Any], Algorithm]" = "gepo_released") -> Any:
    """The row's advantages (its baseline and scale) as an estimator, for register_adv_est()."""
    row = algorithm if isinstance(algorithm, Algorithm) else Algorithm(algorithm)

    def estimate(
        token_level_rewards: torch.Tensor, response_mask: torch.Tensor, index: Any = None, config: Any = None, **_: Any
    ) -> "tuple[torch.Tensor, torch.Tensor]":
        if index is None:
            raise InputError("the groups of the responses (index, verl's uid) are needed and were not given")
        mask = response_mask.bool()
        order = _Order(mask, list(index))
        rewards = token_level_rewards.sum(-1)
        nothing = torch.zeros_like(token_level_rewards)[order.rows].cpu()
        result = policy(
            order.of(rewards).cpu(), nothing, nothing, row, group_start=order.start, mask=order.of(mask).cpu(), logref=nothing,
            entropy=nothing,
        )  # fmt: skip
        advantage = torch.zeros_like(rewards)
        advantage[order.rows] = result.advantage.to(rewards.device)
        advantages = advantage.unsqueeze(-1) * response_mask
        return advantages, advantages

    return estimate


def _fields_of(model_output: Any, data: Any) -> "dict[str, Any]":
    """What of a micro-batch a row may need besides verl's arguments of a policy loss."""
    from verl.utils import tensordict_utils
    from verl.workers.utils.padding import no_padding_2_padding

    found: "dict[str, Any]" = {}
    if "uid" in data:
        uid = tensordict_utils.get(data, "uid")
        found["uid"] = [str(u) for u in (uid.tolist() if hasattr(uid, "tolist") else uid)]
    wanted = [name for name in ("rollout_log_probs", "ref_log_prob") if name in data]
    if wanted:
        padded = data.select(*wanted).to_padded_tensor()
        found.update({name: padded[name] for name in wanted})
    entropy = model_output.get("entropy", None)
    if entropy is not None:
        found["entropy"] = no_padding_2_padding(entropy, data).detach()
    return found


def _reward_of_responses(data: Any) -> torch.Tensor:
    for name in ("token_level_rewards", "token_level_scores", "rm_scores"):
        if name in data:
            rewards = data.select(name).to_padded_tensor()[name]
            return torch.as_tensor(rewards.sum(-1))
    raise InputError(
        "the actor's batch has no token_level_rewards, token_level_scores or rm_scores, and a log needs rewards: keep one of them in "
        "what update_actor is given, or log without log_groups()"
    )


def _logs() -> Optional[GroupLog]:
    """This process's log; every rank but the first has one of its own."""
    if _log["log"] is None and _log["path"] is not None:
        spread = torch.distributed.is_available() and torch.distributed.is_initialized()
        rank = torch.distributed.get_rank() if spread else 0
        _log["log"] = GroupLog(_log["path"] if rank == 0 else f"{_log['path']}.rank{rank}")
    found: Optional[GroupLog] = _log["log"]
    return found


def _write_log(config: Any, model_output: Any, data: Any) -> None:
    log = _logs()
    if log is None:
        return
    from verl.utils import tensordict_utils
    from verl.workers.utils.padding import no_padding_2_padding

    seen = _now.fields
    if "uid" not in seen:
        raise InputError("the actor's batch has no 'uid', which says what prompt a response is of: keep it, or log without log_groups()")
    named = data.select("response_mask", "old_log_probs").to_padded_tensor()
    mask, prox = named["response_mask"].bool(), named["old_log_probs"]
    logp = no_padding_2_padding(model_output["log_probs"], data).detach()
    size = config.get("rollout_n", None) if hasattr(config, "get") else getattr(config, "rollout_n", None)
    order = _Order(mask, seen["uid"])
    rows, starts = _whole_groups(order, size if isinstance(size, int) else 0)
    log.left_out += len(order.sizes) - (len(starts) - 1)
    if not rows:
        return
    chosen = torch.tensor(rows, dtype=torch.long, device=mask.device)

    def of(values: Optional[torch.Tensor]) -> Optional[torch.Tensor]:
        return None if values is None else values[chosen]

    step = tensordict_utils.get(data, "global_steps", None) if "global_steps" in data else None
    log.write(
        of(_reward_of_responses(data)), of(logp), of(seen.get("rollout_log_probs", prox)), group_start=starts, mask=of(mask),
        logprox=of(prox), logref=of(seen.get("ref_log_prob")), entropy=of(seen.get("entropy")), max_length=mask.shape[1],
        step=None if step is None else float(step),
    )  # fmt: skip


def _whole_groups(order: _Order, size: int) -> "tuple[list[int], list[int]]":
    """Responses of the groups that have all of their `size` (0: not known) responses here, and where these groups start."""
    rows: "list[int]" = []
    starts = [0]
    every = order.rows.tolist()
    for first, n in zip(order.start, order.sizes):
        if size in (0, n):
            rows += every[first : first + n]
            starts.append(len(rows))
    return rows, starts


def log_groups(path: "Union[str, os.PathLike[str]]") -> None:
    """Appends every micro-batch that verl's actor computes its loss of to a log, for `gepolab whatif` and gepolab.whatif().

    With verl's own losses and with rows. Every rank but the first writes PATH.rankN. Of a prompt whose responses are not all
    in one micro-batch nothing is logged (GroupLog.left_out counts such groups): use_dynamic_bsz: false, shuffle: false,
    trainer.balance_batch: false and a ppo_micro_batch_size_per_gpu that is a multiple of rollout.n keep them together.
    logq is rollout_log_probs where the batch has them (calculate_log_probs: true), else old_log_probs; version_gap is not
    known here.
    """
    _log.update(path=os.fspath(path), log=None)
    watch_batches()


def watch_batches() -> None:
    """Lets the rows see groups, sampler's and reference log-probabilities, which verl does not hand to a policy loss.

    Wraps verl.workers.utils.losses.ppo_loss, once.
    """
    from verl.workers.utils import losses

    plain = losses.ppo_loss
    if getattr(plain, "gepolab", False):
        return

    def ppo_loss(config: Any, model_output: Any, data: Any, dp_group: Any = None) -> Any:
        _now.fields = _fields_of(model_output, data)
        try:
            _write_log(config, model_output, data)
            return plain(config, model_output, data, dp_group)
        finally:
            _now.fields = {}

    ppo_loss.gepolab = True  # type: ignore[attr-defined]
    holders: "tuple[Any, ...]" = (losses, sys.modules.get("verl.workers.engine_workers"), sys.modules.get("verl.trainer.distillation.losses"))
    for module in holders:
        if module is not None:
            module.ppo_loss = ppo_loss


def register(algorithm: "Union[str, Mapping[str, Any], Algorithm]" = "gepo_released", name: str = "gepolab") -> None:
    """Makes the row known to verl as policy loss and as advantage estimator `name`."""
    core_algos.register_policy_loss(name)(policy_loss(algorithm))
    core_algos.register_adv_est(name)(advantage_estimator(algorithm))
    watch_batches()
