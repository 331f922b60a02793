"""TRL's trainer with our losses: the example trains, its loss is ours, and rows equal TRL's own losses."""

import collections
import json
import os
import pathlib
import subprocess
import types

import numpy as np
import pytest

import gepolab

torch = pytest.importorskip("torch")
trl = pytest.importorskip("trl")
from gepolab.trl import GepolabDiagnostics, GepolabGRPOTrainer  # noqa: E402

# TRL's loss settings and the row that is the same loss. What else a setting needs is in `more`: beta, vLLM's correction, entropies.
GRPO = "{base: grpo, old_policy: sampler}"
SAME = [
    ("grpo", dict(loss_type="grpo", scale_rewards="group"), GRPO),
    ("grpo, one side wider", dict(loss_type="grpo", scale_rewards="group", epsilon_high=0.28), "{base: grpo, old_policy: sampler, eps_high: 0.28}"),
    ("grpo, scale_rewards batch", dict(loss_type="grpo", scale_rewards="batch"), "{base: grpo, old_policy: sampler, scale: reward_std}"),
    ("dr_grpo", dict(loss_type="dr_grpo", scale_rewards="none"), "{base: dr_grpo, old_policy: sampler}"),
    ("dapo", dict(loss_type="dapo", scale_rewards="group", epsilon_high=0.28), "{base: dapo, old_policy: sampler}"),
    ("bnpo (token mean)", dict(loss_type="bnpo", scale_rewards="group"), "{base: grpo, old_policy: sampler, aggregate: token_mean}"),
    ("gspo", dict(loss_type="grpo", importance_sampling_level="sequence", epsilon=3e-4, epsilon_high=4e-4), "{base: gspo, old_policy: sampler}"),
    ("luspo", dict(loss_type="luspo", importance_sampling_level="sequence", epsilon=3e-4, epsilon_high=4e-4), "{base: gspo_token, aggregate: sequence_sum}"),
    ("cispo", dict(loss_type="cispo", scale_rewards="group", epsilon_high=5.0), "{base: cispo, old_policy: sampler}"),
    ("sapo", dict(loss_type="sapo", scale_rewards="group"), f"{{base: sapo, old_policy: sampler, tau_negative: {float(np.float32(1.05))!r}}}"),  # TRL holds 1.05 in float32
    ("vespo", dict(loss_type="vespo", scale_rewards="group"), "{base: vespo, old_policy: sampler}"),
    ("vespo, token_truncate", dict(loss_type="vespo", vllm="token_truncate"), "{base: vespo, old_policy: proximal, tis_level: token, tis_max: 1.3}"),
    ("delta 1.5", dict(loss_type="grpo", scale_rewards="group", delta=1.5), "{base: grpo, old_policy: sampler, dual_clip: 1.5}"),
    ("beta", dict(loss_type="grpo", beta=0.1), "{base: grpo, old_policy: sampler, ref_kl_coef: 0.1}"),
    ("beta, bias correction", dict(loss_type="grpo", beta=0.1, use_bias_correction_kl=True), "{base: grpo, old_policy: sampler, ref_kl_coef: 0.1, ref_kl_ratio: true}"),
    ("gspo, beta, bias correction", dict(loss_type="grpo", importance_sampling_level="sequence", beta=0.1, use_bias_correction_kl=True),
     "{base: gspo, old_policy: sampler, eps_low: 0.2, eps_high: 0.2, ref_kl_coef: 0.1, ref_kl_ratio: true}"),
    ("off_policy_mask_threshold 0.02", dict(loss_type="grpo", off_policy_mask_threshold=0.02), "{base: grpo, old_policy: sampler, off_policy_mask: 0.02}"),
    ("top_entropy_quantile 0.3", dict(loss_type="dapo", top_entropy_quantile=0.3), "{base: dapo, old_policy: sampler, eps_high: 0.2, top_entropy: 0.3}"),
    ("vLLM token_truncate", dict(loss_type="grpo", vllm="token_truncate"), "{base: grpo, old_policy: proximal, tis_level: token, tis_max: 1.3}"),
    ("vLLM token_mask", dict(loss_type="grpo", vllm="token_mask"),
     "{base: grpo, old_policy: proximal, tis_level: token, tis_max: .inf, mis_level: token, mis_max: 1.3}"),
    ("vLLM sequence_truncate", dict(loss_type="grpo", vllm="sequence_truncate"), "{base: grpo, old_policy: proximal, tis_level: sequence, tis_max: 1.3}"),
    ("vLLM sequence_mask", dict(loss_type="grpo", vllm="sequence_mask"),
     "{base: grpo, old_policy: proximal, tis_level: sequence, tis_max: .inf, mis_level: sequence, mis_max: 1.3}"),
]  # fmt: skip


def advantages_of(scale, rewards, group_size):
    """As GRPOTrainer's generation step makes them."""
    r = rewards.view(-1, group_size)
    advantage = r - r.mean(1, keepdim=True)
    if scale == "group":
        advantage = advantage / (r.std(1, keepdim=True) + 1e-4)
    if scale == "batch":
        advantage = advantage / (rewards.std() + 1e-4)
    return advantage.reshape(-1)


def vllm_ratio(mode, logprox, logq, mask):
    """As GRPOTrainer's generation step makes it, with a maximum of 1.3."""
    difference = (logprox - logq) * mask
    ratio = torch.exp(difference.sum(-1, keepdim=True) if mode.startswith("sequence") else difference)
    return ratio.clamp(max=1.3) if mode.endswith("truncate") else ratio.masked_fill(ratio > 1.3, 0.0)


def theirs(config, logp, batch, group_size):
    """TRL's own loss on given log-probabilities: its method, on a stand-in for the trainer."""
    _, logq, rewards, mask, logprox, logref, entropy = batch
    args = dict(
        epsilon=0.2, epsilon_high=None, loss_type="grpo", scale_rewards="group", importance_sampling_level="token", delta=None, beta=0.0,
        use_bias_correction_kl=False, off_policy_mask_threshold=None, top_entropy_quantile=1.0, vllm=None,
    )
    args.update(config)
    mode = args.pop("vllm")
    full = types.SimpleNamespace(
        **args, sapo_temperature_pos=1.0, sapo_temperature_neg=1.05, vespo_k_pos=2.0, vespo_lambda_pos=3.0,
        vespo_k_neg=3.0, vespo_lambda_neg=2.0, steps_per_generation=1, entropy_target=None,
    )
    stand_in = types.SimpleNamespace(
        _get_per_token_logps_and_entropies=lambda *a, **k: (logp, entropy, None), aux_loss_enabled=False,
        top_entropy_quantile=args["top_entropy_quantile"], off_policy_mask_threshold=args["off_policy_mask_threshold"],
        importance_sampling_level=args["importance_sampling_level"], beta=args["beta"], get_off_policy_mask=trl.GRPOTrainer.get_off_policy_mask,
        args=full, loss_type=args["loss_type"], epsilon_low=args["epsilon"], epsilon_high=args["epsilon_high"] or args["epsilon"],
        use_vllm=mode is not None, vllm_importance_sampling_correction=mode is not None, model=types.SimpleNamespace(training=True),
        current_gradient_accumulation_steps=1, max_completion_length=logp.shape[1], _entropy_bonus_enabled=False,
        get_gamma_weights=trl.GRPOTrainer.get_gamma_weights, _metrics={"train": __import__("collections").defaultdict(list)},
        accelerator=types.SimpleNamespace(
            num_processes=1, reduce=lambda x, reduction: x, gather=lambda x: x, pad_across_processes=lambda x, dim, pad_index: x
        ),
    )
    stand_in.get_high_entropy_mask = types.MethodType(trl.GRPOTrainer.get_high_entropy_mask, stand_in)
    n, t = logp.shape
    inputs = dict(
        prompt_ids=torch.zeros(n, 1, dtype=torch.long), prompt_mask=torch.ones(n, 1, dtype=torch.long), completion_ids=torch.zeros(n, t, dtype=torch.long),
        completion_mask=mask.long(), advantages=advantages_of(args["scale_rewards"], rewards, group_size), num_items_in_batch=mask.sum(),
        old_per_token_logps=logq if mode is None else logprox, ref_per_token_logps=logref,
    )
    if mode is not None:
        inputs["importance_sampling_ratio"] = vllm_ratio(mode, logprox, logq, mask)
    return trl.GRPOTrainer._compute_loss(stand_in, None, inputs)


def random_batch(case, dtype):
    """logp, logq, rewards, mask, logprox, logref, entropy; entropies are exact in float32, in which TRL takes their quantile."""
    rng = np.random.default_rng(case)
    mask = np.arange(12)[None] < rng.integers(1, 13, 16)[:, None]
    logq = -rng.exponential(0.7, (16, 12)) - 0.02
    logp = np.minimum(logq + rng.choice([0.02, 0.3]) * rng.standard_normal((16, 12)), -1e-3)
    rewards = rng.choice([0.0, 1.0], 16) if case % 2 else rng.normal(size=16)
    logprox, logref = (np.minimum(logq + 0.1 * rng.standard_normal((16, 12)), -1e-3) for _ in range(2))
    entropy = rng.integers(0, 2**20, (16, 12)) / 2**18
    logp, logq, rewards, logprox, logref, entropy = (torch.tensor(x, dtype=dtype) for x in (logp, logq, rewards, logprox, logref, entropy))
    return logp, logq, rewards, torch.tensor(mask), logprox, logref, entropy


@pytest.mark.parametrize("name, config, row", SAME, ids=[case[0] for case in SAME])
@pytest.mark.parametrize("dtype, tolerance", [(torch.float64, 1e-10), (torch.float32, 1e-5)], ids=["float64", "float32"])
def test_rows_equal_trl(name, config, row, dtype, tolerance, table):
    worst = 0.0
    for case in range(20):
        batch = random_batch(case, dtype)
        logp, logq, rewards, mask, logprox, logref, entropy = batch
        a, b = logp.clone().requires_grad_(), logp.clone().requires_grad_()
        want = theirs(config, a, batch, 4)
        want.backward()
        got = gepolab.loss(
            rewards, b, logq, row, group_size=4, mask=mask, max_length=12, logprox=logprox if "vllm" in config else None,
            logref=logref, entropy=entropy,
        )  # fmt: skip
        got.backward()
        size = max(1.0, float(a.grad.abs().max()))
        worst = max(worst, abs(want.item() - got.item()) / max(1.0, abs(want.item())), float((a.grad - b.grad).abs().max()) / size)
    table.append(("TRL", name, str(dtype)[6:], row, worst, ""))
    assert worst < tolerance


@pytest.mark.parametrize("dtype, tolerance", [(torch.float64, 1e-10), (torch.float32, 1e-5)], ids=["float64", "float32"])
def test_rloo_is_is_with_a_clip(dtype, tolerance, table):
    """RLOOTrainer: leave-one-out, P/Q of responses, PPO's clip, mean over responses."""
    worst, row = 0.0, "{base: is, clip: ppo}"
    for case in range(20):
        logp, logq, rewards, mask, _, _, entropy = random_batch(case, dtype)
        a, b = logp.clone().requires_grad_(), logp.clone().requires_grad_()
        r = rewards.view(-1, 4)
        stand_in = types.SimpleNamespace(
            _get_per_token_logps_and_entropies=lambda *_, **__: (a, entropy, None), aux_loss_enabled=False, epsilon_low=0.2, epsilon_high=0.2,
            model=types.SimpleNamespace(training=True), _metrics={"train": __import__("collections").defaultdict(list)},
            accelerator=types.SimpleNamespace(reduce=lambda x, reduction: x, gather=lambda x: x),
        )  # fmt: skip
        ones = torch.ones(16, 1, dtype=torch.long)
        want = trl.RLOOTrainer._compute_loss(stand_in, None, dict(
            prompt_ids=ones, prompt_mask=ones, completion_ids=mask.long(), completion_mask=mask.long(), old_logps=(logq * mask).sum(1),
            advantages=(r - (r.sum(1, keepdim=True) - r) / 3).reshape(-1),
        ))  # fmt: skip
        want.backward()
        got = gepolab.loss(rewards, b, logq, row, group_size=4, mask=mask)
        got.backward()
        size = max(1.0, float(a.grad.abs().max()))
        worst = max(worst, abs(want.item() - got.item()) / max(1.0, abs(want.item())), float((a.grad - b.grad).abs().max()) / size)
    table.append(("TRL", "RLOOTrainer", str(dtype)[6:], row, worst, ""))
    assert worst < tolerance


def worst_difference(theirs_of, row, dtype, cases=20, **keywords):
    """The largest difference of loss or gradient, in units of their size, over random batches."""
    worst = 0.0
    for case in range(cases):
        batch = random_batch(case, dtype)
        logp, logq, rewards, mask = batch[:4]
        a, b = logp.clone().requires_grad_(), logp.clone().requires_grad_()
        want = theirs_of(a, batch)
        want.backward()
        got = gepolab.loss(rewards, b, logq, row, group_size=4, mask=mask, logref=batch[5], **keywords)
        got.backward()
        size = max(1.0, float(a.grad.abs().max()))
        worst = max(worst, abs(want.item() - got.item()) / max(1.0, abs(want.item())), float((a.grad - b.grad).abs().max()) / size)
    return worst


def one_process():
    return types.SimpleNamespace(num_processes=1, reduce=lambda x, reduction: x, gather=lambda x: x)


@pytest.mark.parametrize("dtype, tolerance", [(torch.float64, 1e-10), (torch.float32, 1e-5)], ids=["float64", "float32"])
@pytest.mark.parametrize("beta", [0.0, 0.1])
def test_the_experimental_gmpo_is_gmpo(beta, dtype, tolerance, table):
    GMPOTrainer = pytest.importorskip("trl.experimental.gmpo").GMPOTrainer

    def theirs_of(logp, batch):
        _, logq, rewards, mask, _, logref, entropy = batch
        stand_in = types.SimpleNamespace(
            _get_per_token_logps_and_entropies=lambda *_, **__: (logp, entropy, None), top_entropy_quantile=1.0, epsilon_low=0.4, epsilon_high=0.4,
            beta=beta, model=types.SimpleNamespace(training=True), current_gradient_accumulation_steps=1, accelerator=one_process(),
            _metrics={"train": collections.defaultdict(list)},
        )  # fmt: skip
        ones = torch.ones(16, 1, dtype=torch.long)
        inputs = dict(
            prompt_ids=ones, prompt_mask=ones, completion_ids=mask.long(), completion_mask=mask.long(), old_per_token_logps=logq,
            ref_per_token_logps=logref, advantages=advantages_of("group", rewards, 4),
        )  # fmt: skip
        return GMPOTrainer._compute_loss(stand_in, None, inputs)

    row = "{base: gmpo, old_policy: sampler" + (f", ref_kl_coef: {beta}}}" if beta else "}")
    worst = worst_difference(theirs_of, row, dtype)
    table.append(("TRL", "experimental gmpo" + (f", beta {beta}" if beta else ""), str(dtype)[6:], row, worst, ""))
    assert worst < tolerance


@pytest.mark.parametrize("dtype, tolerance", [(torch.float64, 1e-10), (torch.float32, 1e-5)], ids=["float64", "float32"])
def test_the_experimental_asynchronous_trainer_is_grpo_by_tokens(dtype, tolerance, table):
    """Its advantages divide by the deviation of all scored rewards of a group (no correction for its size) plus 1e-8."""
    AsyncGRPOTrainer = pytest.importorskip("trl.experimental.async_grpo").AsyncGRPOTrainer

    def theirs_of(logp, batch):
        _, logq, rewards, mask, _, _, entropy = batch
        r = rewards.view(-1, 4)
        advantage = ((r - r.mean(1, keepdim=True)) / (r.std(1, keepdim=True, unbiased=False) + 1e-8)).reshape(-1, 1).expand(mask.shape)
        n = int(mask.sum())
        outputs = types.SimpleNamespace(log_probs=logp[mask].unsqueeze(0), entropy=entropy[mask].unsqueeze(0))
        stand_in = types.SimpleNamespace(
            aux_loss_enabled=False, epsilon_low=0.2, epsilon_high=0.2, accelerator=one_process(), current_gradient_accumulation_steps=1,
            _metrics={"train": collections.defaultdict(list)}, _step_forward_tokens=0.0, _step_trained_tokens=0.0, _step_seq_len_weighted=0.0,
            _step_samples=0.0, _step_forward_s=0.0,
        )  # fmt: skip
        none, zeros = torch.full((1, 1), -1), torch.zeros(1, n, dtype=torch.long)
        inputs = dict(
            attention_mask=torch.ones(1, n, dtype=torch.long), input_ids=zeros, position_ids=zeros, shift_labels=zeros, token_index=torch.arange(n)[None],
            old_log_probs=logq[mask][None], advantages=advantage[mask][None], segment_id=torch.arange(16)[:, None].expand(mask.shape)[mask][None],
            tree_kv_index=none, tree_cu_seqlens_q=none, tree_cu_seqlens_k=none, tree_max_seqlens=torch.zeros(1, 2, dtype=torch.long),
            global_n_tokens=torch.tensor([float(n)], dtype=torch.float64), global_n_forward_tokens=torch.tensor([n]), mean_seq_len=torch.tensor([1.0]),
        )  # fmt: skip
        return AsyncGRPOTrainer.compute_loss(stand_in, lambda **_: outputs, inputs)

    row = "{base: grpo, old_policy: sampler, aggregate: token_mean, std_ddof: 0, scale_eps: 1e-8}"
    worst = worst_difference(theirs_of, row, dtype)
    table.append(("TRL", "experimental async_grpo", str(dtype)[6:], row, worst, ""))
    assert worst < tolerance


def arithmetic(n):
    import datasets

    return datasets.Dataset.from_list([{"prompt": f"{i % 10}+{i // 10 % 10}="} for i in range(n)])


def share_of_digits(completions, **_):
    return [sum(ch in "13579" for ch in text) / 8 for text in completions]


def trainer_of(kind, tiny, folder, **own):
    model, tokenizer = tiny()
    config = trl.GRPOConfig(
        output_dir=str(folder), max_steps=20, per_device_train_batch_size=8, steps_per_generation=2, num_generations=4, max_completion_length=8,
        learning_rate=5e-3, logging_steps=1, report_to=[], save_strategy="no", use_cpu=True, bf16=False, seed=3, disable_tqdm=True,
    )
    return kind(model=model, args=config, reward_funcs=share_of_digits, train_dataset=arithmetic(64), processing_class=tokenizer, **own)


def test_the_example_trains_and_its_loss_is_ours(tiny, tmp_path):
    trainer = trainer_of(GepolabGRPOTrainer, tiny, tmp_path, algorithm="{base: gepo, clip: none}")
    seen = []
    plain = GepolabGRPOTrainer._compute_loss

    def watched(self, model, inputs):
        value = plain(self, model, inputs)
        groups = inputs["gepolab_group"].view(-1, 4)
        assert (groups == groups[:, :1]).all()
        ids = torch.cat([inputs["prompt_ids"], inputs["completion_ids"]], 1)
        attention = torch.cat([inputs["prompt_mask"], inputs["completion_mask"]], 1)
        logp = self._get_per_token_logps_and_entropies(model, ids, attention, inputs["completion_ids"].size(1))[0].detach()
        old = inputs.get("old_per_token_logps", logp)
        again = gepolab.policy(
            inputs["gepolab_reward"], logp, old, "{base: gepo, clip: none}", group_size=4, mask=inputs["completion_mask"].bool(),
            logprox=inputs.get("old_per_token_logps"),
        )
        seen.append(abs(float(value) - again.loss))
        return value

    trainer._compute_loss = types.MethodType(watched, trainer)
    trainer.train()
    assert len(seen) == 20 and max(seen) < 1e-6
    history = [entry for entry in trainer.state.log_history if "gepolab/ess" in entry]
    assert len(history) == 20 and all(0 < entry["gepolab/ess"] <= 1.0001 for entry in history)
    assert any(entry["gepolab/staleness"] > 0 for entry in history)
    assert "gepolab/iw_variance" in history[-1] and "gepolab/log_ratio_spread" in history[-1]


def test_diagnostics_beside_their_own_loss(tiny, tmp_path):
    trainer = trainer_of(GepolabDiagnostics, tiny, tmp_path, diagnose="gepo")
    trainer.train()
    assert sum("gepolab/iw_variance_gepo" in entry for entry in trainer.state.log_history) == 20


@pytest.mark.parametrize("kind, own", [(GepolabGRPOTrainer, dict(algorithm="gepo")), (GepolabDiagnostics, dict(diagnose="gepo"))])
def test_a_run_is_logged_for_whatif(kind, own, tiny, tmp_path):
    """The log that TRL wrote, read by gepolab whatif: its means are those of the diagnostics that TRL logged."""
    log = tmp_path / "run.jsonl"
    trainer = trainer_of(kind, tiny, tmp_path, log_groups=str(log), **own)
    trainer.train()
    lines = [json.loads(line) for line in log.read_text().splitlines()]
    assert len(lines) == 20 and [line["step"] for line in lines] == list(range(20))
    assert all(len(group["rewards"]) == 4 for line in lines for group in line["groups"])
    program = pathlib.Path(os.environ.get("GEPOLAB", pathlib.Path(__file__).parents[2] / "build" / "gepolab"))
    if not program.exists():
        pytest.skip(f"{program} is not built")
    out = subprocess.run([program, "whatif", log, "-a", "gepo", "--json"], capture_output=True, check=True)
    told = json.loads(out.stdout)
    row = told["algorithms"][0]
    assert told["updates"] == 20 and row["updates"] == 20 and row["refused"] == 0 and told["unknown_staleness"] == 0
    history = [entry for entry in trainer.state.log_history if "gepolab/ess" in entry]
    for name, theirs in (("ess", "ess"), ("weight_mean", "iw_mean"), ("clip_fraction", "clip_fraction")):
        assert row[name]["mean"] == pytest.approx(np.mean([entry[f"gepolab/{theirs}"] for entry in history]), rel=1e-4, abs=1e-6)
    ages = told["by_staleness"]
    assert sum(age["updates"] for age in ages) == 20 and len(ages) == 2


def test_settings_that_the_fields_replace_are_named(tiny, tmp_path):
    model, tokenizer = tiny()
    config = trl.GRPOConfig(
        output_dir=str(tmp_path), loss_type="bnpo", epsilon=0.3, scale_rewards="none", per_device_train_batch_size=4, num_generations=4,
        report_to=[], use_cpu=True, bf16=False,
    )  # fmt: skip
    with pytest.warns(RuntimeWarning, match="loss_type 'bnpo' .*epsilon 0.3 .*scale_rewards 'none' .instead: scale"):
        GepolabGRPOTrainer(model=model, args=config, reward_funcs=share_of_digits, train_dataset=arithmetic(8), processing_class=tokenizer)


def test_settings_that_would_not_be_heeded_are_refused(tiny, tmp_path):
    model, tokenizer = tiny()
    config = trl.GRPOConfig(output_dir=str(tmp_path), beta=0.1, per_device_train_batch_size=4, num_generations=4, report_to=[], use_cpu=True, bf16=False)
    with pytest.raises(ValueError, match="GRPOConfig.beta is 0.1"):
        GepolabGRPOTrainer(model=model, args=config, reward_funcs=share_of_digits, train_dataset=arithmetic(8), processing_class=tokenizer)
