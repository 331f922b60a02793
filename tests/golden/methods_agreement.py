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
}


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
    """The functions of those names, without decorators and annotations, in a namespace of helpers."""
    commit, path = SOURCES[name]
    at = repository(folder, name, commit)
    if at is None:
        raise FileNotFoundError(name)
    text = subprocess.run(["git", f"--git-dir={at}", "show", f"{commit}:{path}"], check=True, capture_output=True, text=True).stdout
    space = dict(torch=torch, math=math, **helpers)
    for node in ast.walk(ast.parse(text)):
        if isinstance(node, ast.FunctionDef) and node.name in wanted:
            for f in ast.walk(node):
                if isinstance(f, ast.FunctionDef):
                    f.decorator_list, f.returns = [], None
                    for a in f.args.args + f.args.kwonlyargs:
                        a.annotation = None
            exec(compile(ast.fix_missing_locations(ast.Module([node], [])), path, "exec"), space)
    return types.SimpleNamespace(**{w: space[w] for w in wanted})


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


def weighted_mean(values, weights, eps=1e-8):
    v, w = torch.tensor(values), torch.tensor(weights)
    return (v * w).sum() / (w.sum() + eps)


PRIME = dict(_safe_mean=lambda values, mask: 0.0, LossOutputs=lambda loss, metrics: types.SimpleNamespace(loss=loss))
SKY = dict(safe_exp_delta=lambda x, clip, out_dtype: torch.exp(x.clamp(-clip, clip)), masked_mean=masked_mean,
           apply_off_policy_correction=lambda loss, old, rollout, mask, config: (loss, mask, {}), reduce_loss=lambda loss, mask: (loss * mask).sum())  # fmt: skip
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
    flat = {k: [row for g in groups for row in g[k]] for k in ("logp", "logq", "version_gap")}
    pad = {k: torch.zeros(n, LONGEST) for k in flat}
    mask = torch.zeros(n, LONGEST, dtype=torch.bool)
    for k, rows in flat.items():
        for i, row in enumerate(rows):
            pad[k][i, : len(row)] = torch.tensor([float(v) for v in row])
            mask[i, : len(row)] = True
    rewards = torch.tensor([r for g in groups for r in g["rewards"]])
    return dict(groups=groups), types.SimpleNamespace(logp=pad["logp"], logq=pad["logq"], gap=pad["version_gap"].long(), mask=mask, rewards=rewards)


def ours(gepolab, row, changes, document):
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
        b.A = torch.tensor([float(a) for a in flat_of(answer, "advantages")])[:, None]
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
