"""verl's losses and advantage estimators against rows, and rows as verl's losses."""

import contextlib
import itertools
import json
import os
import pathlib
import subprocess
import sys
import textwrap

import numpy as np
import pytest

import gepolab

torch = pytest.importorskip("torch")
core_algos = pytest.importorskip("verl.trainer.ppo.core_algos")
import gepolab.verl as adapter  # noqa: E402
import verl.utils.torch_functional as verl_functions  # noqa: E402
from verl.trainer.ppo import rollout_corr_helper  # noqa: E402
from verl.workers.config import ActorConfig  # noqa: E402
from verl.workers.config.actor import PolicyLossConfig  # noqa: E402

N, T, GROUP = 16, 12, 4
TYPES = pytest.mark.parametrize("dtype, tolerance", [(torch.float64, 1e-10), (torch.float32, 1e-5)], ids=["float64", "float32"])


@contextlib.contextmanager
def without_small_addend():
    """verl's masked_mean, which whitens advantages, with 0 where it adds 1e-8 to the number of tokens.

    That shows in the tenth digit; elsewhere the sum is of an integer and rounds to it.
    """
    f = verl_functions.masked_mean
    kept = f.__code__
    constants = tuple(0.0 if value == 1e-8 else value for value in kept.co_consts)
    assert constants != kept.co_consts
    try:
        f.__code__ = kept.replace(co_consts=constants)
        yield
    finally:
        f.__code__ = kept


def random_batch(case, dtype, spread=(0.02, 0.3)):
    rng = np.random.default_rng(1000 + case)
    mask = np.arange(T)[None] < rng.integers(1, T + 1, N)[:, None]
    logq = -rng.exponential(0.7, (N, T)) - 0.02
    logprox = np.minimum(logq + 0.1 * rng.standard_normal((N, T)), -1e-3)
    logp = np.minimum(logq + rng.choice(spread) * rng.standard_normal((N, T)), -1e-3)
    rewards = rng.choice([0.0, 1.0], N) if case % 2 else rng.normal(size=N)
    tensors = [torch.tensor(x, dtype=dtype) for x in (logp, logq, logprox, rewards)]
    return [*tensors, torch.tensor(mask)]


def actor(**changes):
    """An actor's configuration as verl makes it, with what a loss reads."""
    own = {name: changes.pop(name) for name in list(changes) if name in PolicyLossConfig.__dataclass_fields__}
    correction = changes.pop("rollout_correction", None)
    config = ActorConfig(strategy="fsdp", rollout_n=GROUP, ppo_micro_batch_size_per_gpu=N, **changes)
    object.__setattr__(config, "policy_loss", PolicyLossConfig(**own))
    if correction is not None:
        object.__setattr__(config.policy_loss, "rollout_correction", correction)
    return config


def gap(want, got, theirs, mine):
    """Largest of the differences of losses and of gradients, relative where those are large."""
    loss = abs(want.item() - got.item()) / max(1.0, abs(want.item()))
    return max(loss, float((theirs.grad - mine.grad).abs().max()) / max(1.0, float(theirs.grad.abs().max())))


MODES = {
    "token-mean": "token_mean",
    "token-sum": "token_sum",
    "seq-mean-token-mean": "sequence_mean",
    "seq-mean-token-sum": "sequence_sum",
    "seq-mean-token-sum-norm": "fixed_length",
}
VANILLA = "{{base: grpo, old_policy: sampler, dual_clip: 3, token_log_clamp: 20, aggregate: {}}}"
# name, loss of verl, its configuration, its aggregation, the row that is the same loss
LOSSES = [
    *[(f"vanilla, {mode}", "vanilla", {}, mode, VANILLA.format(ours)) for mode, ours in MODES.items()],
    ("vanilla, clip higher", "vanilla", dict(clip_ratio_high=0.28), "token-mean", "{base: dapo, dual_clip: 3, token_log_clamp: 20}"),
    ("gspo", "gspo", dict(clip_ratio_low=3e-4, clip_ratio_high=4e-4), "seq-mean-token-mean", "{base: gspo, log_cap: 10}"),
    ("gspo, token-mean", "gspo", dict(clip_ratio_low=3e-4, clip_ratio_high=4e-4), "token-mean", "{base: gspo_token, aggregate: token_mean}"),
    ("sapo", "sapo", dict(tau_pos=1.0, tau_neg=1.05), "seq-mean-token-mean", "{base: sapo, token_log_clamp: 20, tau_negative: TAU}"),
    ("cispo", "cispo", dict(clip_ratio_low=10.0, clip_ratio_high=4.0), "token-mean", "{base: cispo, token_log_clamp: 20}"),
    ("cispo, verl's widths", "cispo", {}, "token-mean", "{base: cispo, eps_low: 0.2, eps_high: 0.2, token_log_clamp: 20}"),
    ("geo_mean", "geo_mean", dict(clip_ratio_low=0.4, clip_ratio_high=0.4), "token-mean", "gmpo"),
    ("gpg", "gpg", {}, "token-mean", "gpg"),
    ("kl_cov", "kl_cov", dict(kl_cov_ratio=0.02, ppo_kl_coef=1.0), "token-mean", "{base: kl_cov, kl_share: 0.02}"),
    ("dppo_tv", "dppo_tv", dict(clip_ratio_low=0.15, clip_ratio_high=0.15, clip_ratio_c=1e4), "seq-mean-token-sum-norm", "dppo_tv"),
    ("dppo_tv, narrow", "dppo_tv", dict(clip_ratio_low=0.02, clip_ratio_high=0.05, clip_ratio_c=1.2), "token-mean",
     "{base: dppo_tv, eps_low: 0.02, eps_high: 0.05, cap: 1.2, aggregate: token_mean}"),
    ("dppo_kl", "dppo_kl", dict(clip_ratio_low=0.05, clip_ratio_high=0.05, clip_ratio_c=1e4), "seq-mean-token-sum-norm", "dppo_kl"),
    ("dppo_kl, narrow", "dppo_kl", dict(clip_ratio_low=1e-3, clip_ratio_high=2e-3, clip_ratio_c=1.2), "token-mean",
     "{base: dppo_kl, eps_low: 0.001, eps_high: 0.002, cap: 1.2, aggregate: token_mean}"),
    ("dro, beta 0.3", "dro", dict(dro_beta=0.3), "token-mean", "{base: gpg, kl_form: k2, kl_coef: 0.3}"),
]  # fmt: skip


def theirs(name, config, mode, logp, logq, advantages, mask, weights=None):
    return core_algos.get_policy_loss_fn(name)(
        old_log_prob=logq, log_prob=logp, advantages=advantages[:, None] * mask, response_mask=mask, loss_agg_mode=mode,
        config=config, rollout_is_weights=weights,
    )[0]  # fmt: skip


def record(table, setting, dtype, row, worst, tolerance, note=""):
    table.append(("verl", setting, str(dtype)[6:], row, worst, note))
    assert worst < tolerance


def compare(table, setting, dtype, tolerance, row, their_loss, **keywords):
    """Loss and gradient of their_loss(logp, batch) and of the row on twenty batches; keywords: batch -> arguments of ours."""
    worst = 0.0
    for case in range(20):
        batch = random_batch(case, dtype)
        logp, logq, _, advantages, mask = batch
        mine, other = logp.clone().requires_grad_(), logp.clone().requires_grad_()
        more = {name: value(batch) for name, value in keywords.items()}
        got = gepolab.loss(advantages, mine, logq, row, advantages=advantages, group_size=GROUP, mask=mask, max_length=T, **more)
        got.backward()
        want = their_loss(other, batch)
        want.backward()
        worst = max(worst, gap(want, got, other, mine))
    record(table, setting, dtype, row, worst, tolerance)


@TYPES
@pytest.mark.parametrize("setting, name, changes, mode, row", LOSSES, ids=[case[0] for case in LOSSES])
def test_rows_equal_losses(setting, name, changes, mode, row, dtype, tolerance, table):
    row = row.replace("TAU", repr(float(torch.tensor(1.05, dtype=dtype))))  # verl holds it in the advantages' type

    def their_loss(logp, batch):
        return theirs(name, actor(**changes), mode, logp, batch[1], batch[3], batch[4])

    compare(table, setting, dtype, tolerance, row, their_loss)


def test_every_loss_of_verl_has_a_line():
    """clip_cov takes a random subset of tokens (torch.randperm), which no row does; python/README.md says so."""
    assert set(core_algos.POLICY_LOSS_REGISTRY) - {"gepolab"} == {case[1] for case in LOSSES} | {"bypass_mode", "clip_cov"}


# What bypass_mode computes by itself: weights and rejection of the learner's against the sampler's distribution.
RS = [
    ("token_k1", "0.8_1.25", "token", "k1", 0.8, 1.25), ("token_k2", "0.02", "token", "k2", 0, 0.02), ("token_k3", "0.02", "token", "k3", 0, 0.02),
    ("seq_sum_k1", "0.6_1.6", "sequence", "k1", 0.6, 1.6), ("seq_sum_k2", "0.1", "sequence", "k2", 0, 0.1),
    ("seq_sum_k3", "0.1", "sequence", "k3", 0, 0.1), ("seq_mean_k1", "0.9_1.1", "sequence_mean", "k1", 0.9, 1.1),
    ("seq_mean_k2", "0.03", "sequence_mean", "k2", 0, 0.03), ("seq_mean_k3", "0.03", "sequence_mean", "k3", 0, 0.03),
    ("seq_max_k2", "0.05", "sequence_max", "k2", 0, 0.05), ("seq_max_k3", "0.05", "sequence_max", "k3", 0, 0.05),
]  # fmt: skip


def bypass(correction, mode="token-mean"):
    def their_loss(logp, batch):
        config = actor(rollout_correction=correction)
        config.global_batch_info["global_batch_size"] = N
        return theirs("bypass_mode", config, mode, logp, batch[1], batch[3], batch[4])

    return their_loss


MASKED = "mask_denominator: kept, mis_log_clamp: 20, correction_of: learner, mis_level: {2}, mis_test: {3}, mis_min: {4}, mis_max: {5}"


@TYPES
@pytest.mark.parametrize("rs", RS, ids=[rs[0] for rs in RS])
@pytest.mark.parametrize("mode", ["token-mean", "seq-mean-token-mean"])
def test_rows_equal_rejection(rs, mode, dtype, tolerance, table):
    row = "{base: gpg, name: rejection, tis_level: token, tis_log_clamp: 20, " + MASKED.format(*rs) + f", aggregate: {MODES[mode]}" + "}"
    correction = dict(loss_type="reinforce", rollout_is="token", rollout_is_threshold=2.0, rollout_rs=rs[0], rollout_rs_threshold=rs[1])
    compare(table, f"bypass_mode reinforce, {rs[0]}, {mode}"[:44], dtype, tolerance, row, bypass(correction, mode))


@TYPES
def test_rows_equal_chained_rejection(dtype, tolerance, table):
    second = "mis2_level: sequence_max, mis2_test: k3, mis2_max: 0.2"
    row = "{base: grpo, name: rejection, dual_clip: 3, token_log_clamp: 20, aggregate: token_mean, " + MASKED.format(*RS[0]) + f", {second}" + "}"
    correction = dict(loss_type="ppo_clip", rollout_is=None, rollout_rs="token_k1,seq_max_k3", rollout_rs_threshold="0.8_1.25,0.2")
    compare(table, "bypass_mode ppo_clip, token_k1,seq_max_k3", dtype, tolerance, row, bypass(correction))


WEIGHTS = [
    ("vanilla, TIS token", "vanilla", dict(rollout_is="token"), "{base: decoupled_ppo, dual_clip: 3, token_log_clamp: 20, tis_max: 2, tis_log_clamp: 20}"),
    ("vanilla, TIS sequence", "vanilla", dict(rollout_is="sequence"),
     "{base: decoupled_ppo, dual_clip: 3, token_log_clamp: 20, tis_level: sequence, tis_max: 2, tis_log_clamp: 20}"),
    ("vanilla, TIS token, normalised", "vanilla", dict(rollout_is="token", rollout_is_batch_normalize=True),
     "{base: decoupled_ppo, dual_clip: 3, token_log_clamp: 20, tis_max: 2, tis_log_clamp: 20, tis_normalise: true}"),
    ("vanilla, TIS sequence, normalised", "vanilla", dict(rollout_is="sequence", rollout_is_batch_normalize=True),
     "{base: decoupled_ppo, dual_clip: 3, token_log_clamp: 20, tis_level: sequence, tis_max: 2, tis_log_clamp: 20, tis_normalise: true}"),
    ("vanilla, IcePop 0.8_1.25", "vanilla", dict(rollout_is="token", rollout_is_threshold="0.8_1.25"),
     "{base: decoupled_ppo, dual_clip: 3, token_log_clamp: 20, tis_max: .inf, mis_level: token, mis_min: 0.8, mis_max: 1.25}"),
    ("gspo, TIS token", "gspo", dict(rollout_is="token"),
     "{base: gspo_token, eps_low: 0.2, eps_high: 0.2, old_policy: proximal, tis_level: token, aggregate: token_mean}"),
    ("geo_mean, TIS token", "geo_mean", dict(rollout_is="token"), "{base: gmpo, eps_low: 0.2, eps_high: 0.2, old_policy: proximal, tis_level: token_geometric}"),
]  # fmt: skip


@TYPES
@pytest.mark.parametrize("setting, name, correction, row", WEIGHTS, ids=[case[0] for case in WEIGHTS])
def test_rows_equal_weighted_losses(setting, name, correction, row, dtype, tolerance, table):
    def their_loss(logp, batch):
        _, logq, logprox, advantages, mask = batch
        weights, _ = rollout_corr_helper.compute_rollout_correction_weights(logprox - logq, mask, **correction)
        return theirs(name, actor(), "token-mean", logp, logprox, advantages, mask, weights)

    if name == "geo_mean":  # adds 1e-10 to weights before their logarithm
        tolerance = max(tolerance, 1e-9)
    compare(table, setting, dtype, tolerance, row, their_loss, logprox=lambda batch: batch[2])


@TYPES
@pytest.mark.parametrize("form, ours", [("k1", "k1"), ("abs", "abs"), ("k2", "k2"), ("k3", "k3"), ("k1+", "k1_plus"), ("k3+", "k3_plus")])
def test_rows_equal_kl_losses(form, ours, dtype, tolerance, table):
    row = f"{{base: gpg, ref_kl_coef: 0.3, ref_kl_form: {ours}}}"

    def their_loss(logp, batch):
        policy = theirs("gpg", actor(), "token-mean", logp, batch[1], batch[3], batch[4])
        return policy + 0.3 * core_algos.agg_loss(core_algos.kl_penalty(logp, batch[2], form), batch[4], "token-mean")

    compare(table, f"kl_loss_type {form}", dtype, tolerance, row, their_loss, logref=lambda batch: batch[2])


def outcome(rewards, mask):
    """verl's rewards of tokens: the response's at its last token."""
    token_level = torch.zeros(mask.shape, dtype=rewards.dtype)
    token_level[torch.arange(len(rewards)), mask.sum(1) - 1] = rewards
    return token_level


class Settings(dict):
    gamma = 1.0


INDEX = np.array([f"prompt {i // GROUP}" for i in range(N)], dtype=object)
# name, estimator, its keywords, the row; the row sees rewards less `less`
ESTIMATORS = [
    ("grpo", "grpo", {}, "{base: grpo, scale_eps: 1e-6}"),
    ("grpo, not by the deviation", "grpo", dict(norm_adv_by_std_in_grpo=False), "dr_grpo"),
    ("grpo_vectorized", "grpo_vectorized", {}, "{base: grpo, scale_eps: 1e-6}"),
    ("rloo", "rloo", {}, "reinforce"),
    ("rloo_vectorized", "rloo_vectorized", {}, "reinforce"),
    ("opo", "opo", {}, "opo"),
    ("gpg", "gpg", {}, "gpg"),
    ("grpo_passk", "grpo_passk", {}, "grpo_passk"),
    ("grpo_passk, not by the deviation", "grpo_passk", dict(config=Settings(norm_adv_by_std_in_grpo=False)), "{base: grpo_passk, scale: none}"),
    ("reinforce_plus_plus, gamma 1", "reinforce_plus_plus", {}, "reinforce_plus_plus"),
    ("reinforce_plus_plus_baseline", "reinforce_plus_plus_baseline", {}, "reinforce_plus_plus_baseline"),
    ("remax", "remax", {}, "{base: grpo, baseline: none, scale: none}"),
    ("gdpo, two rewards", "gdpo", {}, "{base: reinforce_plus_plus}"),
]  # fmt: skip


@TYPES
@pytest.mark.parametrize("setting, name, keywords, row", ESTIMATORS, ids=[case[0] for case in ESTIMATORS])
def test_rows_equal_estimators(setting, name, keywords, row, dtype, tolerance, table):
    worst = plain = 0.0
    for case in range(20):
        _, _, _, rewards, mask = random_batch(case, dtype)
        given = dict(dict(token_level_rewards=outcome(rewards, mask), response_mask=mask.to(dtype), index=INDEX, config=Settings()), **keywords)
        ours = rewards
        if name == "remax":  # the reward of a greedy response: subtracted before, since no row draws one
            given["reward_baselines"] = torch.linspace(0, 1, N, dtype=dtype)
            ours = rewards - given["reward_baselines"]
        if name == "gdpo":  # several rewards: each made an advantage of its own by a row, their sum scaled by another
            second = random_batch(case + 50, dtype)[3].to(torch.float32)
            first = rewards.to(torch.float32)
            given.update(two_rewards(first, second, mask))
            parts = [gepolab.policy(r, torch.zeros_like(r)[:, None], torch.zeros_like(r)[:, None], "{base: grpo, scale_eps: 1e-6}", group_size=GROUP) for r in (first, second)]
            ours = (parts[0].advantage + 0.5 * parts[1].advantage).to(dtype)
        nothing = torch.zeros(N, T, dtype=dtype)
        got = gepolab.policy(ours, nothing, nothing, row, group_size=GROUP, mask=mask).advantage
        for context in (contextlib.nullcontext(), without_small_addend()):
            with context:
                want = core_algos.get_adv_estimator_fn(name)(**{key: value.clone() if torch.is_tensor(value) else value for key, value in given.items()})[0]
            difference = float(((want - got[:, None]) * mask).abs().max()) / max(1.0, float(want.abs().max()))
            if isinstance(context, contextlib.nullcontext):
                plain = max(plain, difference)
            else:
                worst = max(worst, difference)
    note = f"{plain:.0e} with verl's 1e-8" if plain > 1e-10 and dtype == torch.float64 else ""
    if name in ("gdpo", "grpo_vectorized", "gpg"):  # rewards, moments, or n over the number of rewards
        tolerance, note = 1e-5, "verl computes in float32 here"
    record(table, f"advantages {setting}", dtype, row, worst, tolerance, note)


def two_rewards(first, second, mask):
    """verl's arguments of gdpo for two rewards with weights 1 and 0.5."""
    prompts = torch.zeros(N, 1, dtype=torch.long)
    attention = torch.cat([torch.ones(N, 1, dtype=torch.long), mask.long()], 1)
    return dict(
        config=Settings(gdpo_reward_keys=["first", "second"], gdpo_reward_weights=[1.0, 0.5]),
        non_tensor_batch=dict(first=first.numpy(), second=second.numpy()), batch=dict(prompts=prompts, attention_mask=attention),
    )  # fmt: skip


def test_every_estimator_of_verl_has_a_line():
    """gae and the two optimal token baselines give every token an advantage of its own; python/README.md says why no row does."""
    names = {str(getattr(name, "value", name)) for name in core_algos.ADV_ESTIMATOR_REGISTRY} - {"gepolab"}
    assert names == {case[1] for case in ESTIMATORS} | {"gae", "optimal_token_baseline", "tir_optimal_token_baseline"}


# --- rows inside verl ---------------------------------------------------------------------------


@pytest.fixture
def registered():
    """The registries as they were, after the test too."""
    kept = dict(core_algos.POLICY_LOSS_REGISTRY), dict(core_algos.ADV_ESTIMATOR_REGISTRY)
    yield core_algos
    core_algos.POLICY_LOSS_REGISTRY.clear(), core_algos.POLICY_LOSS_REGISTRY.update(kept[0])
    core_algos.ADV_ESTIMATOR_REGISTRY.clear(), core_algos.ADV_ESTIMATOR_REGISTRY.update(kept[1])


def test_a_registered_row_is_verls_loss(registered):
    adapter.register("{base: dapo, old_policy: sampler}")
    logp, logq, _, rewards, mask = random_batch(1, torch.float64)
    advantages, _ = registered.get_adv_estimator_fn("gepolab")(outcome(rewards, mask), mask.double(), index=INDEX)
    mine = logp.clone().requires_grad_()
    value, metrics = registered.get_policy_loss_fn("gepolab")(logq, mine, advantages, mask, "token-mean", actor())
    value.backward()
    want = gepolab.policy(rewards, logp, logq, "{base: dapo, old_policy: sampler}", group_size=GROUP, mask=mask)
    assert abs(value.item() - want.loss) < 1e-12 and (mine.grad + want.coefficient).abs().max() < 1e-12
    assert metrics["gepolab/kl_k3"] == pytest.approx(want.metrics["kl_k3"]) and 0 < metrics["gepolab/ess"] <= 1
    assert set(metrics) >= {"gepolab/iw_variance", "gepolab/clip_fraction", "actor/ppo_kl", "actor/pg_clipfrac"}


@pytest.mark.parametrize("aggregate, mode", [(ours, mode) for mode, ours in MODES.items()])
def test_micro_batches_and_ranks_add_up_as_verls_do(aggregate, mode):
    compute = adapter.policy_loss(VANILLA.format(aggregate))
    logp, logq, _, advantages, mask = random_batch(3, torch.float64)
    mask[5] = False  # a response that was filtered out
    info = dict(dp_size=2, batch_num_tokens=int(mask.sum()) * 3, global_batch_size=40, loss_scale_factor=50)
    for rows in (slice(0, 4), slice(4, 16)):
        config = actor()
        config.global_batch_info.update(info)
        given = (logq[rows], logp[rows], (advantages[:, None] * mask)[rows], mask[rows], mode, config)
        want, _ = core_algos.get_policy_loss_fn("vanilla")(*given)
        got, _ = compute(*given)
        assert abs(float(want) - float(got)) < (1e-7 if mode == "seq-mean-token-mean" else 1e-12)  # verl's 1e-8


def nested(rows, lengths):
    return torch.nested.as_nested_tensor([row[:n] for row, n in zip(rows, lengths)], layout=torch.jagged)


def batch_of_verl(logp, logq, logprox, advantages, mask, order):
    """A micro-batch as verl's worker has it: responses in `order`, without padding, and the model's output."""
    from tensordict import TensorDict
    from verl.utils import tensordict_utils

    prompts = torch.ones(N, 2, dtype=torch.long)
    ids = torch.ones(N, T, dtype=torch.long)
    lengths = mask.sum(1)[order].tolist()
    values = dict(
        prompts=nested(prompts, [2] * N), responses=nested(ids, lengths), response_mask=nested(mask[order].long(), lengths),
        old_log_probs=nested(logprox[order], lengths), rollout_log_probs=nested(logq[order], lengths),
        advantages=nested((advantages[:, None] * mask)[order], lengths),
        attention_mask=torch.nested.as_nested_tensor([torch.ones(n + 2, dtype=torch.long) for n in lengths], layout=torch.jagged),
    )  # fmt: skip
    data = TensorDict(values, batch_size=[N])
    tensordict_utils.assign_non_tensor(data, dp_size=1, batch_num_tokens=None, global_batch_size=None, max_response_len=T)
    data["uid"] = tensordict_utils.NonTensorStack(*[INDEX[i] for i in order.tolist()])
    flat = [torch.cat([torch.zeros(1, dtype=logp.dtype), row[:n], torch.zeros(1, dtype=logp.dtype)]) for row, n in zip(logp[order], lengths)]
    return data, torch.nested.as_nested_tensor(flat, layout=torch.jagged)


def test_rows_that_need_groups_see_them_in_verls_actor(registered):
    """gepo through verl's own ppo_loss: prompts by uid in any order, the sampler's distribution from rollout_log_probs."""
    from verl.workers.utils import losses

    adapter.register("{base: gepo, clip: none}")
    logp, logq, logprox, rewards, mask = random_batch(5, torch.float64)
    advantages, _ = registered.get_adv_estimator_fn("gepolab")(outcome(rewards, mask), mask.double(), index=INDEX)
    data, flat = batch_of_verl(logp, logq, logprox, advantages[:, 0], mask, torch.randperm(N, generator=torch.Generator().manual_seed(1)))
    config = actor(loss_agg_mode="token-mean")
    object.__setattr__(config.policy_loss, "loss_mode", "gepolab")
    value, metrics = losses.ppo_loss(config, {"log_probs": flat}, data)
    want = gepolab.policy(rewards, logp, logq, "{base: gepo, clip: none}", group_size=GROUP, mask=mask)
    assert abs(float(value) - want.loss) < 1e-10
    assert float(metrics["gepolab/iw_variance_gepo"].aggregate()) == pytest.approx(want.metrics["iw_variance_gepo"])


@pytest.fixture
def log(registered, tmp_path):
    """A log that verl's actor writes, and none after the test."""
    adapter.log_groups(tmp_path / "run.jsonl")
    yield tmp_path / "run.jsonl"
    adapter._log.update(path=None, log=None)


def cases_that_fill_the_width(rows=N):
    """verl pads fields to the longest of a micro-batch and the model's output to max_response_len: here both are T."""
    return (case for case in range(5, 500) if int(random_batch(case, torch.float64)[4][:rows].sum(1).max()) == T)


def one_micro_batch(case, order, rows=None):
    """A micro-batch of verl with its rewards; the same in our form."""
    from tensordict import TensorDict  # noqa: F401
    from verl.utils import tensordict_utils

    logp, logq, logprox, rewards, mask = random_batch(case, torch.float64)
    data, flat = batch_of_verl(logp, logq, logprox, rewards, mask, order)
    data["token_level_rewards"] = outcome(rewards, mask)[order]  # padded, as update_actor has it
    tensordict_utils.assign_non_tensor(data, global_steps=case)
    if rows is not None:
        data, flat = data[:rows], torch.nested.as_nested_tensor(list(flat.unbind())[:rows], layout=torch.jagged)
    return data, flat, (logp, logq, logprox, rewards, mask)


def test_what_verls_actor_trains_on_is_logged_for_whatif(log, registered):
    """Two micro-batches through verl's own ppo_loss with its own loss; whatif says what policy() says of them."""
    from verl.workers.utils import losses

    ess = []
    cases = list(itertools.islice(cases_that_fill_the_width(), 2))
    for case in cases:
        order = torch.randperm(N, generator=torch.Generator().manual_seed(case))
        data, flat, (logp, logq, logprox, rewards, mask) = one_micro_batch(case, order)
        value, _ = losses.ppo_loss(actor(loss_agg_mode="token-mean"), {"log_probs": flat}, data)
        want = core_algos.get_policy_loss_fn("vanilla")(logprox[order], logp[order], (rewards[:, None] * mask)[order], mask[order], "token-mean", actor())[0]
        assert abs(float(value) - float(want)) < 1e-12  # verl's loss is as it was
        ess.append(gepolab.policy(rewards, logp, logq, "gepo", group_size=GROUP, mask=mask, logprox=logprox).metrics["ess"])
    lines = [json.loads(line) for line in log.read_text().splitlines()]
    assert [line["step"] for line in lines] == cases and all(len(line["groups"]) == N // GROUP for line in lines)
    assert {len(group["rewards"]) for line in lines for group in line["groups"]} == {GROUP}
    assert sum(sum(group["rewards"]) for group in lines[1]["groups"]) == pytest.approx(float(rewards.sum()))
    told = gepolab.whatif(log, ["gepo"])
    assert told["updates"] == 2 and told["algorithms"][0]["ess"]["mean"] == pytest.approx(np.mean(ess), rel=1e-7)


def test_torn_groups_are_left_out_of_the_log_and_counted(log, registered):
    from verl.workers.utils import losses

    data, flat, _ = one_micro_batch(next(cases_that_fill_the_width(6)), torch.arange(N), rows=6)  # one whole group, and half of another
    losses.ppo_loss(actor(loss_agg_mode="token-mean"), {"log_probs": flat}, data)
    assert [len(json.loads(line)["groups"]) for line in log.read_text().splitlines()] == [1]
    assert adapter._logs().left_out == 1


def test_a_batch_without_rewards_cannot_be_logged(log, registered):
    from verl.workers.utils import losses

    data, flat, _ = one_micro_batch(next(cases_that_fill_the_width()), torch.arange(N))
    del data["token_level_rewards"]
    with pytest.raises(gepolab.InputError, match="token_level_rewards"):
        losses.ppo_loss(actor(loss_agg_mode="token-mean"), {"log_probs": flat}, data)


@pytest.mark.parametrize("says, changes", [
    ("needs whole groups of 4", dict(rows=slice(0, 6), uid=True)), ("has no 'uid'", {}), ("rollout_is_weights", dict(weights=True)),
    ("advantages of response 2 differ", dict(uneven=True)),
])  # fmt: skip
def test_what_a_row_cannot_do_is_refused_by_name(says, changes):
    compute = adapter.policy_loss("gepo")
    logp, logq, _, advantages, mask = random_batch(7, torch.float64)
    mask[2] = True
    rows = changes.get("rows", slice(None))
    given = (advantages[:, None] * mask).clone()
    if changes.get("uneven"):
        given[2, 3] += 1
    adapter._now.fields = {"uid": list(INDEX[rows])} if changes.get("uid") or changes.get("uneven") else {}
    try:
        with pytest.raises(gepolab.InputError, match=says):
            compute(logq[rows], logp[rows], given[rows], mask[rows], "token-mean", actor(), torch.ones(N, T) if changes.get("weights") else None)
    finally:
        adapter._now.fields = {}


def test_verl_finds_the_row_by_an_external_module(tmp_path):
    (tmp_path / "my_losses.py").write_text("from gepolab.verl import register\nregister('gspo')\n")
    program = textwrap.dedent("""
        from verl.trainer.ppo.core_algos import get_adv_estimator_fn, get_policy_loss_fn
        from verl.workers.utils.losses import ppo_loss
        print(get_policy_loss_fn("gepolab").__module__, get_adv_estimator_fn("gepolab").__module__, ppo_loss.gepolab)
    """)
    paths = [str(tmp_path), str(pathlib.Path(gepolab.__file__).parent.parent), os.environ.get("PYTHONPATH", "")]
    environment = {**os.environ, "VERL_USE_EXTERNAL_MODULES": "my_losses", "PYTHONPATH": os.pathsep.join(paths)}
    found = subprocess.run([sys.executable, "-c", program], env=environment, capture_output=True, text=True)
    assert found.stdout.split() == ["gepolab.verl", "gepolab.verl", "True"], found.stderr
