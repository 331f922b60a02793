"""Agreement of rows with the code of their authors and of trainers, in float64.

    python tests/golden/methods_agreement.py GEPOLAB FOLDER > tests/golden/methods_agreement.txt

FOLDER has clones (bare or not) of the repositories named in SOURCES; what is missing is said and left out. Functions are taken out of the
files at the commit named, and run with the few helpers written here; nothing of them is stored. A line for each row: the largest
difference of the gradients over all cases, relative where those are above 1.
"""
import ast
import json
import math
import pathlib
import random
import subprocess
import sys
import tempfile
import types

import torch

torch.set_default_dtype(torch.float64)
GROUP, GROUPS, LONGEST, CASES = 4, 3, 9, 12

# repository, commit, file
SOURCES = {
    "prime-rl": ("559b44772", "src/prime_rl/trainer/rl/loss.py"),
    "SkyRL": ("a9564572e", "skyrl/backends/skyrl_train/utils/ppo_utils.py"),
    "slime": ("624b824a8", "slime/utils/ppo_utils.py"),
    "ROLL": ("8eb27cc2", "roll/pipeline/agentic/agentic_actor_pg_worker.py"),
    "BAPO": ("7287044", "recipe/bapo/policy_loss.py"),
    "CE-GPPO": ("10558fe", "verl/trainer/ppo/core_algos.py"),
    "DCPO": ("01787b0", "verl/trainer/ppo/core_algos.py"),
    "Archer2.0": ("b08d963", "verl/trainer/ppo/core_algos.py"),
    "AReaL": ("cbff54d64", "areal/trainer/ppo/actor.py"),
    "vcpo": ("c7f030f0", "recipe/fully_async_policy/staleness_utils.py"),
    "REAL": ("1c30726", "verl/verl/trainer/ppo/core_algos.py"),
    "ERC": ("f1885c5", "verl/trainer/ppo/core_algos.py"),
    "Minimal-RL": ("e3b49f0", "verl/trainer/ppo/core_algos.py"),
    "verl": ("b178a3cd5", "verl/trainer/ppo/rollout_corr_helper.py"),
    "ppo-ewma": ("625dac7", "ppo_ewma/ppo.py"),
    "RL": ("7ea279abf", "nemo_rl/algorithms/loss/loss_functions.py"),
    "OpenRLHF": ("3c3be62", "openrlhf/models/loss.py"),
}
# other files of the same repositories
FILES = {"AReaL": "areal/utils/functional/functional.py", "slime": "slime/backends/megatron_utils/loss.py"}


def repository(folder, name, commit):
    """The git directory of a clone called NAME or OWNER+NAME, bare, with a work tree, or in a folder `repo`, that has the commit."""
    for path in sorted(pathlib.Path(folder).iterdir()):
        if path.name.lower().split("+")[-1] != name.lower():
            continue
        for at in (path, path / "repo", path / ".git"):
            if (at / "HEAD").exists() and subprocess.run(["git", f"--git-dir={at}", "cat-file", "-e", commit], capture_output=True).returncode == 0:
                return at
    return None


def functions(folder, name, *wanted, **helpers):
    """The functions (or CLASS.METHOD, under the method's name) of those names, without decorators and annotations, in a namespace of helpers."""
    found = {}
    for path in [SOURCES[name][1], *([FILES[name]] if name in FILES else [])]:
        found.update(functions_of(folder, name, path, wanted, helpers))
    missing = [w for w in wanted if w.split(".")[-1] not in found]
    if missing:
        raise ValueError(f"{name} has no {', '.join(missing)}")
    return types.SimpleNamespace(**found)


def functions_of(folder, name, path, wanted, helpers):
    commit = SOURCES[name][0]
    at = repository(folder, name, commit)
    if at is None:
        raise FileNotFoundError(name)
    text = subprocess.run(["git", f"--git-dir={at}", "show", f"{commit}:{path}"], check=True, capture_output=True, text=True).stdout
    space = dict(torch=torch, math=math, **helpers)
    tree = ast.parse(text)
    methods = [(f"{c.name}.{f.name}", f) for c in ast.walk(tree) if isinstance(c, ast.ClassDef) for f in c.body if isinstance(f, ast.FunctionDef)]
    for label, node in [(n.name, n) for n in ast.walk(tree) if isinstance(n, ast.FunctionDef)] + methods:
        if label in wanted:
            for f in ast.walk(node):
                if isinstance(f, ast.FunctionDef):
                    f.decorator_list, f.returns = [], None
                    for a in f.args.args + f.args.kwonlyargs + [v for v in (f.args.vararg, f.args.kwarg) if v]:
                        a.annotation = None
            exec(compile(ast.fix_missing_locations(ast.Module([node], [])), path, "exec"), space)
    return {w.split(".")[-1]: space[w.split(".")[-1]] for w in wanted if w.split(".")[-1] in space}


class Config(dict):
    __getattr__ = dict.get


def masked_mean(values, mask, axis=None, dim=None):
    axis = axis if axis is not None else dim
    return (values * mask).sum(axis) / mask.sum(axis).clamp(min=1) if axis is not None else (values * mask).sum() / mask.sum()


def token_mean(loss_mat, loss_mask, loss_agg_mode=None, **more):
    return masked_mean(loss_mat, loss_mask)


VERL = types.SimpleNamespace(masked_mean=masked_mean)


# Each takes (functions, batch) and returns a loss whose gradient is compared; batch: logp (leaf), logq, A [n, 1], mask, gap, rewards.
def prime(f, b, ipo):
    total = 0
    config = Config(dppo_mask_high=0.2, dppo_mask_low=0.2, adv_tau=1.0, kl_tau=1e-3, ipo_threshold=0.1)
    for p, q, a, m in zip(b.logp, b.logq, b.A, b.mask):
        inputs = types.SimpleNamespace(trainer_logprobs=p[m], inference_logprobs=q[m], advantages=a.expand(int(m.sum())), loss_mask=m[m], loss_weights=None)
        total = total + (f.ipo_loss_fn if ipo else f.default_loss_fn)(inputs, config).loss
    return total / b.mask.sum()


def skyrl(f, b, name, **config):
    config = Config(eps_clip_low=0.2, eps_clip_high=0.2, dppo=Config(config), off_policy_correction=None)
    scaled = (b.A * b.mask) / b.mask.sum()
    return getattr(f, name)(b.logp, b.logq, scaled, config, b.mask.double(), b.logq)[0]


def slime_opsm(f, b):
    lists = [[v[m] for v, m in zip(x, b.mask)] for x in (b.logp, b.logq, b.A.expand_as(b.logp), b.mask.double())]
    keep, _ = f.compute_opsm_mask(types.SimpleNamespace(opsm_delta=1e-4), lists[0], lists[1], lists[2], lists[3])
    loss, _ = f.compute_policy_loss(torch.cat(lists[1]) - torch.cat(lists[0]), torch.cat(lists[2]), 0.2, 0.2)
    weight = torch.cat([torch.ones(len(v)) / len(v) for v in lists[0]]) / len(b.A)
    return (loss * keep * weight).sum()


def roll_kimi(f, b):
    me = types.SimpleNamespace(_get_or_cache_config=lambda name, default: default, _kimi15_config_logged=True, _cached_metrics={})
    loss = f._compute_kimi15_loss(me, torch.exp(b.logp - b.logq), b.logp, b.logq, b.A.expand_as(b.logp))
    return ((loss * b.mask).sum(-1) / b.mask.sum(-1)).mean()


def bapo(f, b):
    bounds = dict(ratio_lower_start=0.6, ratio_lower_max=0.9, ratio_lower_step=0.05, ratio_upper_start=1.2, ratio_upper_max=3.0, ratio_upper_step=0.05,
                  adv_ratio_target=1.0, eps=1e-8)  # fmt: skip
    config = Config(clip_ratio=0.2, clip_ratio_c=3.0, policy_loss=types.SimpleNamespace(**bounds))
    return f.compute_policy_loss_bapo(b.logq, b.logp, b.A.expand_as(b.logp), b.mask.double(), config=Proxy(config))[0]


class Proxy(types.SimpleNamespace):
    """An object with attributes and get(), as verl's configurations are."""

    def __init__(self, values):
        super().__init__(**values)

    def get(self, name, default=None):
        return getattr(self, name, default)


def gppo(f, b, low):
    return f.compute_gppo_loss_general_beta(b.logq, b.logp, b.A.expand_as(b.logp), b.mask.double(), cliprange=0.2, clip_ratio_c=1e30,
                                            gppo_loss_beta1=low, gppo_loss_beta2=1.0)[0]  # fmt: skip


def dcpo(f, b):
    """The mean over each response's tokens, then over responses, as the row has it."""
    config = Proxy(dict(clip_type="dynamic", clip_ratio=0.2, clip_ratio_low=0.16, clip_ratio_high=0.2, clip_ratio_c=10.0))
    parts = [f.compute_policy_loss_dcpo(q[None], p[None], a[None].expand(1, len(p)), m[None].double(), config=config)[0]
             for p, q, a, m in zip(b.logp, b.logq, b.A, b.mask)]  # fmt: skip
    return sum(parts) / len(parts)


def aspo(f, b):
    widths = dict(negative_low_entropy_clip_ratio_low=0.2, negative_high_entropy_clip_ratio_low=0.2, positive_low_entropy_clip_ratio_high=0.2,
                  positive_high_entropy_clip_ratio_high=0.2)  # fmt: skip
    return f.compute_policy_loss_archer(b.logq, b.logp, b.A.expand_as(b.logp), b.mask, b.mask, **widths)[0]


def a3po(f, b):
    versions = 100 - b.gap
    near = f.compute_prox_logp_approximations(b.logq, b.logp.detach(), versions, 100, "loglinear")["loglinear"]
    ratio, a = torch.exp(b.logp - near), b.A
    loss = -torch.minimum(ratio * a, ratio.clamp(0.8, 1.2) * a) * torch.exp(near - b.logq)
    return masked_mean(loss, b.mask)


def vcpo(f, b):
    total = 0
    ratio = torch.exp(((b.logp - b.logq) * b.mask).sum(-1)).detach()
    for g in range(GROUPS):
        s = slice(g * GROUP, (g + 1) * GROUP)
        records = [types.SimpleNamespace(group_uid=g, reward_scalar=float(r), rollout_seq_is=float(w), grad_norm_unscaled=math.sqrt(float(m.sum())))
                   for r, w, m in zip(b.rewards[s], ratio[s], b.mask[s])]  # fmt: skip
        a = b.rewards[s] - float(f.compute_opob_baseline(records, g, eps=0.0))
        total = total - ((a * ratio[s].clamp(max=8))[:, None] * b.logp[s] * b.mask[s] / b.mask[s].sum(-1, keepdim=True)).sum()
    return total / (GROUPS * GROUP)


def real(f, b):
    groups = torch.arange(GROUPS).repeat_interleave(GROUP)
    return f.compute_policy_loss_real(b.logq, b.logp, None, b.mask.double(), groups, b.rewards, delta=1e-4, tau=0.5)[0]


def erc(f, b):
    config = Proxy(dict(clip_ratio=0.2, clip_ratio_low=0.2, clip_ratio_high=0.28, clip_ratio_c=10.0, tis_imp_ratio_cap=-1, entropy_mask_low=0.95, entropy_mask_high=1.05))
    return f.compute_policy_loss_grpo_erc(b.logprox, b.logp, b.entropy_prox, b.entropy, b.A.expand_as(b.logp), b.mask.double(), config=config)[0]


def raft(f, b, loss):
    advantages, _ = f.compute_raft_outcome_advantage(b.rewards[:, None] * (torch.arange(LONGEST) == b.mask.sum(1, keepdim=True) - 1), b.mask.double())
    return getattr(f, loss)(b.logq, b.logp, advantages, b.mask.double(), cliprange=0.2)[0]


def trm(f, b):
    mask, _ = f.compute_rollout_rejection_mask(b.logp.detach() - b.logq, b.mask.double(), "seq_max_k3", 0.5)
    assert 0 < mask.sum() < b.mask.sum()
    ratio = torch.exp(b.logp - b.logq)
    return masked_mean(-torch.minimum(ratio * b.A, ratio.clamp(0.8, 1.2) * b.A), mask)


def ewma(f, b):
    """Its model answers with the batch's log-probabilities, its averaged model with logprox; the mean is over all tokens that there are."""
    pick = lambda x: [None, None, x[b.mask]]
    fake = lambda x: lambda **_: (types.SimpleNamespace(log_prob=lambda ac: x, entropy=lambda: x * 0), x * 0, None, None)
    p, q, near = b.logp[b.mask], b.logq[b.mask], b.logprox[b.mask]
    losses, _ = f.compute_losses(fake(p), fake(near), None, None, None, q, None, q * 0, b.A.expand_as(b.logp)[b.mask], None, 0.2, 0.0, 0.0, 0.0, 0.0)
    return losses["pi"]


def areal(f, b, **changes):
    given = dict(logprobs=b.logp, proximal_logprobs=b.logq, old_logprobs=b.logq, advantages=b.A.expand_as(b.logp), eps_clip=0.2, loss_mask=b.mask)
    return f.ppo_actor_loss_fn(**{**given, **changes})[0]


def areal_cispo(f, b):
    return f.cispo_loss_fn(b.logp, b.logq, b.A.expand_as(b.logp), 1.0, b.mask, eps_clip_higher=4.0)[0]


def areal_sapo(f, b):
    return f.sapo_loss_fn(b.logp, b.logq, b.A.expand_as(b.logp), 1.0, 1.05, b.mask)[0]


def slime(f, b, kind, low, high):
    """Its sum_of_sample_mean: the mean over a sample's tokens, then over samples."""
    lists = [[v[m] for v, m in zip(x, b.mask)] for x in (b.logp, b.logq, b.A.expand_as(b.logp), b.mask.double())]
    apart = f.compute_gspo_kl(lists[0], lists[1], lists[0], lists[3]) if kind == "gspo" else torch.cat(lists[1]) - torch.cat(lists[0])
    if kind == "cispo":
        loss, _ = f.compute_cispo_loss(apart, torch.cat(lists[0]), torch.cat(lists[2]), low, high)
    else:
        loss, _ = f.compute_policy_loss(apart, torch.cat(lists[2]), low, high)
    weight = torch.cat([torch.ones(len(v)) / len(v) for v in lists[0]]) / len(b.A)
    return (loss * weight).sum()


def slime_icepop(f, b):
    lists = [[v[m] for v, m in zip(x, b.mask)] for x in (b.logp, b.logprox, b.A.expand_as(b.logp), b.logq)]
    loss, _ = f.compute_policy_loss(torch.cat(lists[1]) - torch.cat(lists[0]), torch.cat(lists[2]), 0.2, 0.2)
    args = types.SimpleNamespace(tis_clip_low=0.5, tis_clip=5.0)
    loss, _, _ = f.icepop_function(args, pg_loss=loss, train_log_probs=lists[1], rollout_log_probs=lists[3], loss_masks=None)
    weight = torch.cat([torch.ones(len(v)) / len(v) for v in lists[0]]) / len(b.A)
    return (loss * weight).sum()


def nemo(f, b, prox=False, **config):
    """The loss of next-token log-probabilities; its data have a column for the first token, which has none."""
    wide = lambda x: torch.cat([x[:, :1] * 0, x], 1)
    me = dict(ratio_clip_min=0.2, ratio_clip_max=0.2, ratio_clip_c=None, reference_policy_kl_penalty=0.0, reference_policy_kl_type="k3", disable_ppo_ratio=False,
              force_on_policy_ratio=False, use_cispo=False, sequence_level_importance_ratios=False, truncated_importance_sampling_ratio=None,
              truncated_importance_sampling_ratio_min=None, truncated_importance_sampling_type=None, use_importance_sampling_correction=False,
              loss_type="sequence", positive_example_nll_weight=0)  # fmt: skip
    me = types.SimpleNamespace(**{**me, **config})
    data = dict(token_mask=wide(b.mask.double()), sample_mask=torch.ones(len(b.A)), advantages=wide(b.A.expand_as(b.logp)),
                prev_logprobs=wide(b.logprox if prox else b.logq), generation_logprobs=wide(b.logq))  # fmt: skip
    return getattr(f, "__call__")(me, b.logp, data, torch.tensor(float(len(b.A))), b.mask.sum())[0]


def nemo_mean(values, mask, dim=None, global_normalization_factor=None):
    total = (values * mask).sum() if dim is None else (values * mask).sum(dim)
    return total / (global_normalization_factor if global_normalization_factor is not None else mask.sum() if dim is None else mask.sum(dim).clamp(min=1))


def roll(f, b, name, **config):
    config = Config(dict(pg_clip=0.2, pg_clip_low=0.2, pg_clip_high=0.28, use_pg_clip_range=False, dual_clip_loss=False, loss_agg_mode="token-mean", **config))
    me = types.SimpleNamespace(pipeline_config=config, _cached_metrics={}, _get_or_cache_config=lambda name, default: config.get(name, default), _cispo_config_logged=True)
    ratio, a = torch.exp(b.logp - b.logq), b.A.expand_as(b.logp)
    counts = dict(response_mask=b.mask.sum())
    loss = f._compute_ppo_loss(me, ratio, a, b.mask, counts, counts) if name == "ppo" else f._compute_cispo_loss(me, ratio, b.logp, a)
    return masked_mean(loss, b.mask) if name == "cispo" else ((loss * b.mask).sum(-1) / b.mask.sum(-1)).mean()


def openrlhf(f, b, prox=False, **config):
    me = dict(policy_loss_type="ppo", enable_vllm_is_correction=False, clip_eps_low=0.2, clip_eps_high=0.2, dual_clip=None, token_level_loss=True,
              vllm_is_truncated_threshold=[0.5, 5.0], vllm_is_correction_type="tis")  # fmt: skip
    me = types.SimpleNamespace(**{**me, **config})
    return f.forward(me, b.logp, b.logprox if prox else b.logq, b.A.expand_as(b.logp), b.mask.double(), b.logq)[0]


def rlhf_aggregate(loss, mask, token_level_loss=True, **more):
    return masked_mean(loss, mask) if token_level_loss else ((loss * mask).sum(-1) / mask.sum(-1)).mean()


def sky(f, b, name, mean="sequence", **config):
    """reduce_loss() sums; the trainer divides advantages before."""
    weight = b.mask / b.mask.sum(1, keepdim=True) / len(b.A) if mean == "sequence" else b.mask / b.mask.sum()
    given = Config(eps_clip_low=0.2, eps_clip_high=0.2, policy_loss_type="regular", loss_reduction="sequence_mean", off_policy_correction=None)
    given.update(config)
    return getattr(f, name)(b.logp, b.logq, b.A * weight, given, b.mask.double(), b.logq)[0]


def weighted_mean(values, weights, eps=1e-8):
    v, w = torch.tensor(values), torch.tensor(weights)
    return (v * w).sum() / (w.sum() + eps)


PRIME = dict(_safe_mean=lambda values, mask: 0.0, LossOutputs=lambda loss, metrics: types.SimpleNamespace(loss=loss))
SKY = dict(safe_exp_delta=lambda x, clip, out_dtype: torch.exp(x.clamp(-clip, clip)), masked_mean=masked_mean,
           apply_off_policy_correction=lambda loss, old, rollout, mask, config: (loss, mask, {}), reduce_loss=lambda loss, mask: (loss * mask).sum())  # fmt: skip
CORRECTION = dict(verl_F=types.SimpleNamespace(masked_mean=masked_mean, masked_sum=lambda x, m, axis=None: (x * m).sum(axis)),
                  compute_rs_metrics=lambda **more: {}, SAFETY_BOUND=20.0, TOKEN_LEVEL_ROLLOUT_RS_OPTIONS={"token_k1", "token_k2", "token_k3"},
                  SUPPORTED_ROLLOUT_RS_OPTIONS={"seq_max_k2", "seq_max_k3"}, Optional=None)  # fmt: skip
NEMO = dict(masked_mean=nemo_mean, calculate_kl=lambda logprobs, logprobs_reference, **more: logprobs - logprobs_reference,
            LossType=types.SimpleNamespace(TOKEN_LEVEL="token"))  # fmt: skip
RLHF = dict(masked_mean=lambda x, m, dim=None: masked_mean(x, m, axis=dim), aggregate_loss=rlhf_aggregate)
# rows that see the learner at the batch's first update, and entropies
PROXIMAL = {"erc", "ppo_ewma", "icepop"}
ROWS = [
    ("prime_rl", "", "prime-rl", ("default_loss_fn", "compute_importance_ratio_and_mismatch_kl"), PRIME, lambda f, b: prime(f, b, False)),
    ("prime_rl_ipo", "", "prime-rl", ("ipo_loss_fn", "compute_importance_ratio_and_mismatch_kl"), PRIME, lambda f, b: prime(f, b, True)),
    ("rollout_is", "token_log_clamp=20", "SkyRL", ("rollout_is_policy_loss",), SKY, lambda f, b: skyrl(f, b, "rollout_is_policy_loss")),
    ("dppo_tv", "cap=.inf aggregate=token_mean", "SkyRL", ("dppo_policy_loss",), SKY,
     lambda f, b: skyrl(f, b, "dppo_policy_loss", dppo_type="binary_tv", delta_low=0.15, delta_high=0.15)),
    ("opsm", "", "slime", ("compute_opsm_mask", "compute_policy_loss"), {}, slime_opsm),
    ("kimi15", "", "ROLL", ("_compute_kimi15_loss",), {}, roll_kimi),
    ("bapo", "", "BAPO", ("compute_policy_loss_bapo", "_compute_effective_advantage", "_append_metric"), dict(verl_F=VERL, agg_loss=token_mean), bapo),
    ("ce_gppo", "", "CE-GPPO", ("compute_gppo_loss_general_beta",), dict(verl_F=VERL, agg_loss=token_mean), lambda f, b: gppo(f, b, 0.75)),
    ("gppo", "", "CE-GPPO", ("compute_gppo_loss_general_beta",), dict(verl_F=VERL, agg_loss=token_mean), lambda f, b: gppo(f, b, 1.0)),
    ("dcpo", "", "DCPO", ("compute_policy_loss_dcpo", "get_clip_low_high"),
     dict(verl_F=VERL, agg_loss=token_mean, AlgoConfig=int, Optional=None), dcpo),
    ("aspo", "", "Archer2.0", ("compute_policy_loss_archer",), dict(verl_F=VERL, agg_loss=token_mean), aspo),
    ("a3po", "", "AReaL", ("compute_prox_logp_approximations",),
     dict(PROX_APPROX_METHOD_LOGLINEAR="loglinear", PROX_APPROX_METHOD_LINEAR="linear", PROX_APPROX_METHOD_ROLLOUT="rollout"), a3po),
    ("vcpo", "", "vcpo", ("compute_opob_baseline",), dict(get_weighted_mean=weighted_mean), vcpo),
    ("real", "", "REAL", ("compute_policy_loss_real",), dict(verl_F=VERL), real),
    ("erc", "", "ERC", ("compute_policy_loss_grpo_erc",), dict(verl_F=VERL, agg_loss=token_mean, AlgoConfig=int), erc),
    ("raft", "", "Minimal-RL", ("compute_raft_outcome_advantage", "compute_policy_loss_vanilla"), dict(verl_F=VERL, agg_loss=token_mean),
     lambda f, b: raft(f, b, "compute_policy_loss_vanilla")),
    ("raft_plus_plus", "", "Minimal-RL", ("compute_raft_outcome_advantage", "compute_policy_loss"), dict(verl_F=VERL, agg_loss=token_mean),
     lambda f, b: raft(f, b, "compute_policy_loss")),
    ("trm", "mis_max=0.5", "verl", ("compute_rollout_rejection_mask", "_parse_rollout_rs_thresholds"), CORRECTION, trm),
    ("ppo_ewma", "", "ppo-ewma", ("compute_losses",), dict(th=torch, tu=types.SimpleNamespace(sum_nonbatch=lambda x: x)), ewma),
    ("grpo", "aggregate=token_mean", "AReaL", ("ppo_actor_loss_fn",), {}, areal),
    ("dapo", "", "AReaL", ("ppo_actor_loss_fn",), {}, lambda f, b: areal(f, b, eps_clip_higher=0.28)),
    ("gspo", "aggregate=token_mean eps_low=0.2 eps_high=0.2", "AReaL", ("ppo_actor_loss_fn", "_compute_sequence_level_ratio_and_advantages"), {},
     lambda f, b: areal(f, b, importance_sampling_level="sequence")),
    ("cispo", "eps_low=1", "AReaL", ("cispo_loss_fn",), {}, areal_cispo),
    ("sapo", "aggregate=token_mean", "AReaL", ("sapo_loss_fn",), {}, areal_sapo),
    ("grpo", "", "slime", ("compute_policy_loss",), {}, lambda f, b: slime(f, b, "grpo", 0.2, 0.2)),
    ("gspo", "", "slime", ("compute_policy_loss", "compute_gspo_kl"), {}, lambda f, b: slime(f, b, "gspo", 3e-4, 4e-4)),
    ("cispo", "eps_low=1 aggregate=sequence_mean", "slime", ("compute_cispo_loss",), {}, lambda f, b: slime(f, b, "cispo", 1.0, 4.0)),
    ("icepop", "", "slime", ("compute_policy_loss", "icepop_function"), {}, slime_icepop),
    ("grpo", "", "RL", ("ClippedPGLossFn.__call__",), NEMO, nemo),
    ("dapo", "", "RL", ("ClippedPGLossFn.__call__",), NEMO, lambda f, b: nemo(f, b, ratio_clip_max=0.28, loss_type="token")),
    ("gspo", "", "RL", ("ClippedPGLossFn.__call__",), NEMO,
     lambda f, b: nemo(f, b, ratio_clip_min=3e-4, ratio_clip_max=4e-4, sequence_level_importance_ratios=True)),
    ("cispo", "", "RL", ("ClippedPGLossFn.__call__",), NEMO, lambda f, b: nemo(f, b, use_cispo=True, ratio_clip_min=10, ratio_clip_max=4, loss_type="token")),
    ("icepop", "", "RL", ("ClippedPGLossFn.__call__",), NEMO,
     lambda f, b: nemo(f, b, prox=True, truncated_importance_sampling_ratio=5.0, truncated_importance_sampling_ratio_min=0.5,
                       truncated_importance_sampling_type="icepop", use_importance_sampling_correction=True)),
    ("reinforce", "aggregate=token_mean", "RL", ("ClippedPGLossFn.__call__",), NEMO, lambda f, b: nemo(f, b, disable_ppo_ratio=True, loss_type="token")),
    ("grpo", "token_log_clamp=20", "SkyRL", ("ppo_policy_loss",), SKY, lambda f, b: sky(f, b, "ppo_policy_loss")),
    ("dapo", "token_log_clamp=20", "SkyRL", ("ppo_policy_loss",), SKY, lambda f, b: sky(f, b, "ppo_policy_loss", "token", eps_clip_high=0.28)),
    ("gspo_token", "log_cap=10", "SkyRL", ("gspo_policy_loss",), SKY, lambda f, b: sky(f, b, "gspo_policy_loss", eps_clip_low=3e-4, eps_clip_high=4e-4)),
    ("sapo", "token_log_clamp=20", "SkyRL", ("sapo_policy_loss",), SKY,
     lambda f, b: sky(f, b, "sapo_policy_loss", sapo=Config(tau_pos=1.0, tau_neg=1.05))),
    ("cispo", "token_log_clamp=20", "SkyRL", ("compute_policy_loss_cispo",), SKY,
     lambda f, b: sky(f, b, "compute_policy_loss_cispo", "token", cispo=Config(cispo_anchor="old", cispo_eps_clip_low=10, cispo_eps_clip_high=4))),
    ("dppo_kl", "cap=.inf aggregate=token_mean", "SkyRL", ("dppo_policy_loss",), SKY,
     lambda f, b: skyrl(f, b, "dppo_policy_loss", dppo_type="binary_kl", delta_low=0.05, delta_high=0.05)),
    ("grpo", "", "ROLL", ("_compute_ppo_loss",), dict(agg_loss=lambda **more: torch.zeros(1)), lambda f, b: roll(f, b, "ppo")),
    ("cispo", "eps_low=0.1 eps_high=0.1", "ROLL", ("_compute_cispo_loss",), {}, lambda f, b: roll(f, b, "cispo")),
    ("grpo", "token_log_clamp=20 aggregate=token_mean", "OpenRLHF", ("PolicyLoss.forward",), RLHF, openrlhf),
    ("dapo", "token_log_clamp=20", "OpenRLHF", ("PolicyLoss.forward",), RLHF, lambda f, b: openrlhf(f, b, clip_eps_high=0.28)),
    ("gspo", "", "OpenRLHF", ("PolicyLoss.forward",), RLHF,
     lambda f, b: openrlhf(f, b, policy_loss_type="gspo", token_level_loss=False, clip_eps_low=3e-4, clip_eps_high=4e-4)),
    ("icepop", "token_log_clamp=20", "OpenRLHF", ("PolicyLoss.forward",), RLHF,
     lambda f, b: openrlhf(f, b, prox=True, enable_vllm_is_correction=True, vllm_is_correction_type="icepop", token_level_loss=False)),
]  # fmt: skip


def make(case):
    """Ragged responses with log-ratios large enough for every clip."""
    rng = random.Random(case)
    groups, n = [], GROUP * GROUPS
    for _ in range(GROUPS):
        lengths = [rng.randint(1, LONGEST) for _ in range(GROUP)]
        logq = [[-rng.expovariate(1.2) - 0.02 for _ in range(t)] for t in lengths]
        drift = [rng.choice([-0.5, 0, 0.5]) for _ in lengths]
        logp = [[min(q + d + rng.choice([0.05, 0.4, 1.2]) * rng.gauss(0, 1), -1e-3) for q in row] for row, d in zip(logq, drift)]
        groups.append(dict(rewards=[1.0, 0.0] + [float(rng.random() < 0.5) for _ in range(GROUP - 2)], logp=logp, logq=logq,
                           version_gap=[[rng.randint(0, 5)] * t for t in lengths]))  # fmt: skip
    later = random.Random(1000 + case)  # a generator of its own: these came later than the rest
    for g in groups:
        g["logprox"] = [[min(q + 0.3 * later.gauss(0, 1), -1e-3) for q in row] for row in g["logq"]]
        g["entropy"] = [[later.uniform(0.1, 3) for _ in row] for row in g["logq"]]
        g["entropy_prox"] = [[h * (1 + 0.06 * later.gauss(0, 1)) for h in row] for row in g["entropy"]]
    names = ("logp", "logq", "version_gap", "logprox", "entropy", "entropy_prox")
    flat = {k: [row for g in groups for row in g[k]] for k in names}
    pad = {k: torch.zeros(n, LONGEST) for k in flat}
    mask = torch.zeros(n, LONGEST, dtype=torch.bool)
    for k, rows in flat.items():
        for i, row in enumerate(rows):
            pad[k][i, : len(row)] = torch.tensor([float(v) for v in row])
            mask[i, : len(row)] = True
    rewards = torch.tensor([r for g in groups for r in g["rewards"]])
    more = {k: pad[k] for k in ("logp", "logq", "logprox", "entropy", "entropy_prox")}
    return dict(groups=groups), types.SimpleNamespace(gap=pad["version_gap"].long(), mask=mask, rewards=rewards, **more)


def ours(gepolab, row, changes, document):
    if row not in PROXIMAL:
        document = dict(groups=[{k: v for k, v in g.items() if not k.endswith("prox")} for g in document["groups"]])
    with tempfile.NamedTemporaryFile("w", suffix=".json") as f:
        json.dump(document, f)
        f.flush()
        out = subprocess.run([gepolab, "policy", "--json", "-a", row, *changes.split(), f.name], check=True, capture_output=True, text=True).stdout
    answer = json.loads(out)
    return answer


def flat_of(answer, key):
    """Of all responses, in order."""
    return [v for g in answer["groups"] for v in g[key]]


def difference(gepolab, row, changes, f, theirs):
    worst = 0.0
    for case in range(CASES):
        document, b = make(case)
        answer = ours(gepolab, row, changes, document)
        b.A = torch.tensor([float(a) for a in flat_of(answer, "advantages")])[:, None].detach()
        b.logp = b.logp.requires_grad_()
        theirs(f, b).backward()
        mine = torch.zeros_like(b.logq)
        for i, c in enumerate(flat_of(answer, "coefficients")):
            mine[i, : len(c)] = torch.tensor(c)
        worst = max(worst, float((mine + b.logp.grad * b.mask).abs().max()) / max(1.0, float(mine.abs().max())))
    return worst


def main():
    gepolab, folder = sys.argv[1:]
    print("# row, changes, repository, commit, largest difference of gradients (float64); tests/golden/methods_agreement.py")
    for row, changes, name, wanted, helpers, theirs in ROWS:
        try:
            f = functions(folder, name, *wanted, **helpers)
        except FileNotFoundError:
            print(f"{row:16} not run: there is no clone of {name}")
            continue
        worst = difference(gepolab, row, changes, f, theirs)
        print(f"{row:16} {changes or '-':32} {name:10} {SOURCES[name][0]:10} {worst:.1e}")


if __name__ == "__main__":
    main()
