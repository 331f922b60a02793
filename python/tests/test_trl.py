"""TRL's trainer with our losses: the example trains, its loss is ours, and rows equal TRL's own losses."""

import types

import numpy as np
import pytest

import gepolab

torch = pytest.importorskip("torch")
trl = pytest.importorskip("trl")
from gepolab.trl import GepolabDiagnostics, GepolabGRPOTrainer  # noqa: E402

# TRL's loss settings and the row that is the same loss.
SAME = [
    ("grpo", dict(loss_type="grpo", scale_rewards="group"), "{base: grpo, old_policy: sampler}"),
    ("grpo, one side wider", dict(loss_type="grpo", scale_rewards="group", epsilon_high=0.28), "{base: grpo, old_policy: sampler, eps_high: 0.28}"),
    ("dr_grpo", dict(loss_type="dr_grpo", scale_rewards="none"), "{base: dr_grpo, old_policy: sampler}"),
    ("dapo", dict(loss_type="dapo", scale_rewards="group", epsilon_high=0.28), "{base: dapo, old_policy: sampler}"),
    ("bnpo (token mean)", dict(loss_type="bnpo", scale_rewards="group"), "{base: grpo, old_policy: sampler, aggregate: token_mean}"),
    ("gspo", dict(loss_type="grpo", scale_rewards="group", importance_sampling_level="sequence", epsilon=3e-4, epsilon_high=4e-4), "{base: gspo, old_policy: sampler}"),
    ("cispo", dict(loss_type="cispo", scale_rewards="group", epsilon_high=5.0), "{base: cispo, old_policy: sampler}"),
    ("sapo", dict(loss_type="sapo", scale_rewards="group"), f"{{base: sapo, old_policy: sampler, tau_negative: {float(np.float32(1.05))!r}}}"),  # TRL holds 1.05 in float32
    ("vespo", dict(loss_type="vespo", scale_rewards="group"), "{base: vespo, old_policy: sampler}"),
    ("delta, a second clip above", dict(loss_type="grpo", scale_rewards="group", delta=1.5), None),
]


def theirs(config, logp, logq, rewards, mask, group_size):
    """TRL's own loss on given log-probabilities: its method, on a stand-in for the trainer."""
    args = dict(epsilon=0.2, epsilon_high=None, loss_type="grpo", scale_rewards="group", importance_sampling_level="token", delta=None)
    args.update(config)
    full = types.SimpleNamespace(
        **args, use_bias_correction_kl=False, sapo_temperature_pos=1.0, sapo_temperature_neg=1.05, vespo_k_pos=2.0, vespo_lambda_pos=3.0,
        vespo_k_neg=3.0, vespo_lambda_neg=2.0, steps_per_generation=1, entropy_target=None,
    )
    r = rewards.view(-1, group_size)
    advantage = r - r.mean(1, keepdim=True)
    if args["scale_rewards"] == "group":
        advantage = advantage / (r.std(1, keepdim=True) + 1e-4)
    stand_in = types.SimpleNamespace(
        _get_per_token_logps_and_entropies=lambda *a, **k: (logp, torch.zeros_like(logp), None), aux_loss_enabled=False,
        top_entropy_quantile=1.0, off_policy_mask_threshold=None, importance_sampling_level=args["importance_sampling_level"], beta=0.0,
        args=full, loss_type=args["loss_type"], epsilon_low=args["epsilon"], epsilon_high=args["epsilon_high"] or args["epsilon"],
        use_vllm=False, vllm_importance_sampling_correction=False, model=types.SimpleNamespace(training=True),
        current_gradient_accumulation_steps=1, max_completion_length=logp.shape[1], _entropy_bonus_enabled=False,
        get_gamma_weights=trl.GRPOTrainer.get_gamma_weights, _metrics={"train": __import__("collections").defaultdict(list)},
        accelerator=types.SimpleNamespace(num_processes=1, reduce=lambda x, reduction: x, gather=lambda x: x),
    )
    n, t = logp.shape
    inputs = dict(
        prompt_ids=torch.zeros(n, 1, dtype=torch.long), prompt_mask=torch.ones(n, 1, dtype=torch.long), completion_ids=torch.zeros(n, t, dtype=torch.long),
        completion_mask=mask.long(), advantages=advantage.reshape(-1), old_per_token_logps=logq, num_items_in_batch=mask.sum(),
    )
    return trl.GRPOTrainer._compute_loss(stand_in, None, inputs)


def random_batch(case, dtype):
    rng = np.random.default_rng(case)
    mask = np.arange(12)[None] < rng.integers(1, 13, 16)[:, None]
    logq = -rng.exponential(0.7, (16, 12)) - 0.02
    logp = np.minimum(logq + rng.choice([0.02, 0.3]) * rng.standard_normal((16, 12)), -1e-3)
    rewards = rng.choice([0.0, 1.0], 16) if case % 2 else rng.normal(size=16)
    return [torch.tensor(x, dtype=dtype) for x in (logp, logq, rewards)] + [torch.tensor(mask)]


@pytest.mark.parametrize("name, config, row", SAME, ids=[case[0] for case in SAME])
@pytest.mark.parametrize("dtype, tolerance", [(torch.float64, 1e-10), (torch.float32, 1e-5)], ids=["float64", "float32"])
def test_rows_equal_trl(name, config, row, dtype, tolerance):
    if row is None:
        pytest.skip("no row has TRL's delta: its dual clip acts on negative advantages with a ratio above, for both signs")
    worst = 0.0
    for case in range(20):
        logp, logq, rewards, mask = random_batch(case, dtype)
        a, b = logp.clone().requires_grad_(), logp.clone().requires_grad_()
        want = theirs(config, a, logq, rewards, mask, 4)
        want.backward()
        got = gepolab.loss(rewards, b, logq, row, group_size=4, mask=mask, max_length=12)
        got.backward()
        size = max(1.0, float(a.grad.abs().max()))
        worst = max(worst, abs(want.item() - got.item()) / max(1.0, abs(want.item())), float((a.grad - b.grad).abs().max()) / size)
    print(f"{name:28} {row:60} {str(dtype)[6:]:8} largest difference {worst:.1e}")
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


def test_settings_that_would_not_be_heeded_are_refused(tiny, tmp_path):
    model, tokenizer = tiny()
    config = trl.GRPOConfig(output_dir=str(tmp_path), beta=0.1, per_device_train_batch_size=4, num_generations=4, report_to=[], use_cpu=True, bf16=False)
    with pytest.raises(ValueError, match="GRPOConfig.beta is 0.1"):
        GepolabGRPOTrainer(model=model, args=config, reward_funcs=share_of_digits, train_dataset=arithmetic(8), processing_class=tokenizer)
