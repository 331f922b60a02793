"""TRL's GRPOTrainer with any of gepolab's losses, and gepolab's diagnostics for any GRPOTrainer.

    from gepolab.trl import GepolabGRPOTrainer
    trainer = GepolabGRPOTrainer(model=model, args=config, reward_funcs=reward, train_dataset=data, algorithm="gepo_released")
    trainer.train()

Tested with TRL 1.16 on the CPU. The trainer keeps everything of GRPOTrainer but the loss: generation, rewards, logging,
checkpoints. What of GRPOConfig belongs to the loss (loss_type, epsilon, epsilon_high, scale_rewards, beta,
importance_sampling_level, ...) is replaced by the algorithm's fields, with a warning where it was chosen; settings that would be left unheeded are refused by
name.
"""

from __future__ import annotations

import dataclasses
import warnings
from typing import TYPE_CHECKING, Any, Mapping, Optional, Union

import torch
from trl import GRPOTrainer

from ._group_log import GroupLog
from ._library import InputError
from ._policy import Algorithm, PolicyResult, policy
from ._torch import loss

#: diagnostics that are logged, as gepolab/NAME
LOGGED = (
    "ess iw_mean iw_max iw_variance log_iw_variance iw_variance_gepo iw_variance_pq aw_variance clip_fraction kl_k3 kl_k3_seq "
    "cppo_kl staleness staleness_max"
).split()

# GRPOConfig's settings of the loss that an algorithm's fields do not follow, with what leaves the loss alone.
_UNHEEDED = {
    "beta": (0.0, "ref_kl_coef of the algorithm, with logref, is not wired to TRL's reference model"),
    "off_policy_mask_threshold": (None, "use off_policy_mask of the algorithm"),
    "top_entropy_quantile": (1.0, "use top_entropy of the algorithm"),
    "entropy_coef": (0.0, "no algorithm has an entropy bonus, whose gradient is none of drawn tokens' log-probabilities"),
    "use_adaptive_entropy": (False, "no algorithm has an entropy bonus"),
    "multi_objective_aggregation": ("sum_then_normalize", "an algorithm has one reward a response: normalise each in the reward function"),
    "use_liger_kernel": (False, "the loss is gepolab's"),
}

# GRPOConfig's settings whose place the fields of an algorithm take.
_REPLACED = {
    "loss_type": "ratio, clip and aggregate",
    "epsilon": "eps_low and eps_high",
    "epsilon_high": "eps_high",
    "delta": "dual_clip",
    "scale_rewards": "scale",
    "importance_sampling_level": "ratio and log_prob",
    "use_bias_correction_kl": "ref_kl_ratio",
}


def _warn_of_replaced(args: Any, algorithm: Algorithm) -> None:
    """Names the settings that somebody chose and that the algorithm's fields replace."""
    usual = {f.name: f.default for f in dataclasses.fields(args)} if dataclasses.is_dataclass(args) else {}
    chosen = {name: getattr(args, name) for name in _REPLACED if name in usual and getattr(args, name) != usual[name]}
    if chosen:
        told = ", ".join(f"{name} {value!r} (instead: {_REPLACED[name]})" for name, value in chosen.items())
        warnings.warn(f"{algorithm.name} does not heed these settings of GRPOConfig; set the algorithm's fields: {told}", RuntimeWarning, stacklevel=3)


def spread_of_log_ratios(logp: torch.Tensor, logq: torch.Tensor, mask: torch.Tensor, group_size: int) -> float:
    """Mean over groups of the standard deviation of ln P - ln Q of responses: how unlike a group's weights are."""
    log_ratio = ((logp - logq) * mask).sum(-1).view(-1, group_size)
    return float(log_ratio.std(dim=1, unbiased=False).mean())


def _diagnostics(trainer: GRPOTrainer, result: PolicyResult, spread: float) -> None:
    mode = "train" if trainer.model.training else "eval"
    for name in LOGGED:
        if name in result.metrics:
            trainer._metrics[mode][f"gepolab/{name}"].append(result.metrics[name])
    trainer._metrics[mode]["gepolab/log_ratio_spread"].append(spread)


def _group_log(trainer: GRPOTrainer, path: Optional[str]) -> Optional[GroupLog]:
    """The log of a process; every process but the first has one of its own."""
    if path is None:
        return None
    rank = trainer.accelerator.process_index
    return GroupLog(path if rank == 0 else f"{path}.rank{rank}")


# Both classes below are GRPOTrainers, whose methods this one finds by super().
_Base: Any = GRPOTrainer if TYPE_CHECKING else object


class _Groups(_Base):
    """What both classes need of GRPOTrainer: rewards and group numbers that travel with a batch, and whole groups."""

    _gepolab_new_batch = False
    _gepolab_log: Optional[GroupLog] = None

    def _calculate_rewards(self, *arguments: Any, **keywords: Any) -> torch.Tensor:
        per_function: torch.Tensor = super()._calculate_rewards(*arguments, **keywords)
        weights = self.reward_weights.to(per_function.device)
        self._gepolab_rewards = (per_function * weights.unsqueeze(0)).nansum(dim=1)
        if torch.isnan(per_function).all(dim=1).any():
            raise InputError("a completion got no reward from any reward function: give every one a number")
        return per_function

    def _generate_and_score_completions(self, inputs: Any) -> "dict[str, Any]":
        output: "dict[str, Any]" = super()._generate_and_score_completions(inputs)
        n = output["completion_ids"].shape[0]
        size = self.num_generations if self.model.training else self.num_generations_eval
        first = self.accelerator.process_index * n
        if n % size:
            raise InputError(f"{n} completions on a process are no whole number of groups of {size}: every process needs whole groups")
        device = output["completion_ids"].device
        output["gepolab_reward"] = self._gepolab_rewards[first : first + n].to(device)
        output["gepolab_group"] = torch.arange(n, device=device) // size
        output["gepolab_step"] = torch.full((n,), self.state.global_step, device=device)
        self._gepolab_new_batch = True
        return output

    def _prepare_inputs(self, generation_batch: Any) -> "dict[str, Any]":
        inputs: "dict[str, Any]" = super()._prepare_inputs(generation_batch)
        if not (self._gepolab_new_batch and self.model.training):
            return inputs
        self._gepolab_new_batch = False
        self._buffered_inputs: "list[dict[str, Any]]" = _whole_groups(self._buffered_inputs)
        part: "dict[str, Any]" = self._buffered_inputs[self._step % self.args.steps_per_generation]
        return part


def _whole_groups(parts: "list[dict[str, Any]]") -> "list[dict[str, Any]]":
    """The same responses in the same number of parts, with all of a group in one part; groups in an order by chance.

    TRL shuffles responses over the parts, which tears the groups apart that a group's weights and baseline need.
    """
    group = torch.cat([part["gepolab_group"] for part in parts])
    rank = torch.randperm(int(group.max()) + 1, device=group.device)[group]
    order = torch.argsort(rank, stable=True)
    size = parts[0]["gepolab_group"].shape[0]
    in_group = int((group == group[0]).sum())
    if size % in_group:
        raise InputError(
            f"a step trains on {size} completions, which are no whole number of groups of {in_group}: make "
            "per_device_train_batch_size a multiple of num_generations"
        )
    joined: "dict[str, Any]" = {}
    for key, value in parts[0].items():
        if isinstance(value, torch.Tensor) and value.dim() > 0 and value.shape[0] == size:
            joined[key] = torch.cat([part[key] for part in parts])[order]
        elif isinstance(value, torch.Tensor) and value.dim() == 0 or value is None:
            joined[key] = value
        else:
            raise InputError(f"batches with '{key}' (images and other fields of their own shape) are not supported")
    return [
        {key: value[k * size : (k + 1) * size] if torch.is_tensor(value) and value.dim() > 0 else value for key, value in joined.items()}
        for k in range(len(parts))
    ]


class GepolabGRPOTrainer(_Groups, GRPOTrainer):
    """GRPOTrainer with a gepolab algorithm as its loss.

    algorithm: a name, a map in YAML, or an Algorithm. logq is what the sampler recorded (vLLM) or what the model said when
    it generated; the diagnostics gepolab/... go to whatever the trainer reports to. log_groups="run.jsonl" appends every batch
    that is trained on to a log, for `gepolab whatif run.jsonl`.
    """

    def __init__(
        self, model: Any, *arguments: Any, args: Any = None, algorithm: "Union[str, Mapping[str, Any], Algorithm]" = "gepo_released",
        log_groups: Optional[str] = None, **keywords: Any,
    ) -> None:  # fmt: skip
        self.gepolab_algorithm = algorithm if isinstance(algorithm, Algorithm) else Algorithm(algorithm)
        for name, (neutral, why) in _UNHEEDED.items():
            given = getattr(args, name, neutral)
            if given != neutral:
                raise InputError(f"GRPOConfig.{name} is {given}, which the loss would not heed ({why}): leave it at {neutral}")
        _warn_of_replaced(args, self.gepolab_algorithm)
        super().__init__(model, *arguments, args=args, **keywords)
        self._gepolab_log = _group_log(self, log_groups)

    def _compute_loss(self, model: Any, inputs: "dict[str, Any]") -> torch.Tensor:
        value, result, spread = _evaluate(self, model, inputs, self.gepolab_algorithm, with_gradient=True)
        _diagnostics(self, result, spread)
        mode = "train" if self.model.training else "eval"
        return torch.as_tensor(value / (self.current_gradient_accumulation_steps if mode == "train" else 1.0))


def _evaluate(
    trainer: Any, model: Any, inputs: "dict[str, Any]", algorithm: Algorithm, with_gradient: bool, logp: Optional[torch.Tensor] = None
) -> "tuple[Any, PolicyResult, float]":
    """The algorithm on one of the trainer's batches, whose groups are whole and lie together."""
    ids = torch.cat([inputs["prompt_ids"], inputs["completion_ids"]], dim=1)
    attention = torch.cat([inputs["prompt_mask"], inputs["completion_mask"]], dim=1)
    entropy = None
    wants_entropy = float(algorithm.field("top_entropy")) < 1
    if logp is None or wants_entropy:
        found = trainer._get_per_token_logps_and_entropies(
            model, ids, attention, inputs["completion_ids"].size(1), compute_entropy=wants_entropy
        )
        logp = found[0] if logp is None else logp
        entropy = found[1].detach().to(logp.dtype) if wants_entropy else None
    mask = inputs["completion_mask"].bool()
    if "tool_mask" in inputs:
        mask = mask & inputs["tool_mask"].bool()
    prox = inputs.get("old_per_token_logps")
    logq = inputs.get("sampling_per_token_logps")
    logq = prox if logq is None else logq
    logq = logp.detach() if logq is None else logq
    size = int((inputs["gepolab_group"] == inputs["gepolab_group"][0]).sum())
    gap = (trainer.state.global_step - inputs["gepolab_step"]).to(torch.float32)[:, None].expand(logp.shape)
    keywords: "dict[str, Any]" = dict(
        group_size=size, mask=mask, logprox=prox, version_gap=gap, entropy=entropy,
        max_length=int(trainer.max_completion_length or 0), weights=False,
    )  # fmt: skip
    rewards = inputs["gepolab_reward"]
    if trainer._gepolab_log is not None and trainer.model.training:
        trainer._gepolab_log.write(
            rewards, logp, logq, group_size=size, mask=mask, logprox=prox, version_gap=gap, step=trainer.state.global_step,
            max_length=int(trainer.max_completion_length or 0),
        )  # fmt: skip
    spread = spread_of_log_ratios(logp.detach().float(), logq.float(), mask, size)
    if with_gradient:
        value, result = loss(rewards, logp, logq, algorithm, return_result=True, **keywords)
        return value, result, spread
    on_cpu: "dict[str, Any]" = {name: value.cpu() if torch.is_tensor(value) else value for name, value in keywords.items()}
    plain = logp.detach().float().cpu()
    result = policy(rewards.float().cpu(), plain, logq.float().cpu(), algorithm, **on_cpu)
    return None, result, spread


class GepolabDiagnostics(_Groups, GRPOTrainer):
    """GRPOTrainer with its own loss and gepolab's diagnostics beside it, of `diagnose` (an algorithm) on the same batches."""

    def __init__(
        self, *arguments: Any, diagnose: "Union[str, Mapping[str, Any], Algorithm]" = "gepo_released", log_groups: Optional[str] = None, **keywords: Any
    ) -> None:
        super().__init__(*arguments, **keywords)
        self._gepolab_log = _group_log(self, log_groups)
        self.gepolab_algorithm = diagnose if isinstance(diagnose, Algorithm) else Algorithm(diagnose)

    def _get_per_token_logps_and_entropies(self, *arguments: Any, **keywords: Any) -> Any:
        found = super()._get_per_token_logps_and_entropies(*arguments, **keywords)
        self._gepolab_logp = found[0]
        return found

    def _compute_loss(self, model: Any, inputs: "dict[str, Any]") -> torch.Tensor:
        value: torch.Tensor = super()._compute_loss(model, inputs)
        _, result, spread = _evaluate(self, model, inputs, self.gepolab_algorithm, with_gradient=False, logp=self._gepolab_logp)
        _diagnostics(self, result, spread)
        return value
