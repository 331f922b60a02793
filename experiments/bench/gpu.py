"""PyTorch and transformers at the work of `gepolab bench gpu`, on the same shapes.

  gpu.py PART --shape JSON [--device cuda | cpu] [--seconds N] [--compile yes | no]

PART is train, decode or logp. Each number is a line of JSON on stdout: {"key", "unit", "value",
"low", "high", "n", "note"}, or {"key", "missing"} saying why there is none. No new measurement
starts once --seconds are over.

What is compared is PyTorch at its best within reason: bfloat16 with float32 master weights and
moments as gepolab keeps them, scaled_dot_product_attention (which of its kernels ran is in the
note), torch.compile (of each decoder layer and of the output's log-probabilities; compiling all
layers as one graph takes minutes), fused AdamW; transformers' generate with a static cache, which
it compiles by itself where it can.
"""
import argparse
import json
import re
import statistics
import sys
import time
from types import SimpleNamespace

try:
    import torch
    import transformers
    from torch import nn
except ImportError:
    sys.exit(127)

STARTED = time.perf_counter()


def say(what, **values):
    print(json.dumps({"key": f"{s.name}.{what}", **values}), flush=True)


def say_rates(what, seconds, amount, note):
    rates = [amount / x for x in seconds]
    say(what, unit="tokens/s", value=statistics.median(rates), low=min(rates), high=max(rates),
        n=len(rates), note=note)


def attempt(what, work):
    """work() unless time is over; a failure is an answer too."""
    if time.perf_counter() - STARTED > options.seconds:
        return say(what, missing="no time left")
    try:
        work()
    except Exception as e:
        print(e, file=sys.stderr)
        say(what, missing=f"{type(e).__name__}: {e}".split("\n")[0][:140])


def wait():
    if options.device == "cuda":
        torch.cuda.synchronize()


def measure(run, repetitions, most=12.0):
    """Seconds of each run after one (two where functions are compiled) to warm up."""
    for _ in range(2 if options.compile else 1):
        run()
    wait()
    seconds = []
    while len(seconds) < repetitions and (len(seconds) < 2 or sum(seconds) < most):
        before = time.perf_counter()
        run()
        wait()
        seconds.append(time.perf_counter() - before)
    return seconds


def attention_of(run):
    """Names of the attention kernels that run() used."""
    with torch.profiler.profile(activities=torch.profiler.supported_activities()) as profile:
        run()
        wait()
    names = {e.key for e in profile.key_averages()}
    found = {m[1] for n in names if (m := re.match(r"aten::_scaled_dot_product_(\w+?)(_backward)?$", n))}
    return "attention: " + (" ".join(sorted(found)) or "not told")


def make_model():
    config = transformers.Qwen3Config(
        vocab_size=s.vocabulary, hidden_size=s.hidden, intermediate_size=s.intermediate,
        num_hidden_layers=s.layers, num_attention_heads=s.heads, num_key_value_heads=s.kv_heads,
        head_dim=s.head_dim, max_position_embeddings=s.positions, tie_word_embeddings=True,
        bos_token_id=None, eos_token_id=None, pad_token_id=0)
    config._attn_implementation = "sdpa"
    with torch.device(options.device):
        return transformers.Qwen3ForCausalLM(config).to(DTYPE)


# --- training ---


def token_logp(x, weight, target):
    z = (x @ weight.T).float()
    return z.gather(1, target[:, None])[:, 0] - z.logsumexp(1)


def train():
    model = make_model()
    parameters, weight = list(model.parameters()), model.model.embed_tokens.weight
    logp = torch.compile(token_logp) if options.compile else token_logp
    for layer in model.model.layers if options.compile else ():
        layer.compile()
    # The optimiser's own float32 values; the model's are their copy.
    master = [p.detach().float().requires_grad_() if p.dtype != torch.float32 else p
              for p in parameters]
    copied = master[0] is not parameters[0]
    optimizer = torch.optim.AdamW(master, lr=1e-6, weight_decay=0.01, fused=True)
    n, rows = s.sequences * s.length, 4096
    token = torch.randint(s.vocabulary, (n + 1,), device=options.device)
    slope = (1 - 2 * (torch.arange(n, device=options.device) % 2)) / n
    for p in master if copied else ():
        p.grad = torch.zeros_like(p)

    def step():
        # No mask at all, so that attention runs causally by itself: its fastest kernels.
        x = model.model(input_ids=token[:n].view(s.sequences, s.length), use_cache=False,
                        attention_mask={"full_attention": None}).last_hidden_state.flatten(0, 1)
        loss = sum((slope[i:i + rows] * logp(x[i:i + rows], weight, token[i + 1:n + 1][:rows])).sum()
                   for i in range(0, n, rows))
        loss.backward()
        with torch.no_grad():
            if copied:
                torch._foreach_copy_([p.grad for p in master], [p.grad for p in parameters])
            nn.utils.clip_grad_norm_(master, 1.0)
            optimizer.step()
            if copied:
                torch._foreach_copy_(parameters, master)
        for p in parameters:
            p.grad = None
    seconds = measure(step, s.repetitions)
    say_rates("train", seconds, n, f"{HOW}, {attention_of(step)}")


# --- log-probabilities and entropy over the vocabulary ---


def logp_entropy(x, weight, target):
    z = (x @ weight.T).float()
    norm = z.logsumexp(1)
    entropy = norm - ((z - norm[:, None]).exp() * z).sum(1)
    return z.gather(1, target[:, None])[:, 0] - norm, entropy


def logp():
    n, rows = s.rows, 2048
    x = torch.randn(n, s.hidden, device=options.device, dtype=DTYPE)
    weight = torch.randn(s.vocabulary, s.hidden, device=options.device, dtype=DTYPE) * 0.02
    target = torch.randint(s.vocabulary, (n,), device=options.device)
    forward, chunk = logp_entropy, token_logp
    if options.compile:
        forward, chunk = torch.compile(logp_entropy), torch.compile(token_logp)
    parts = [slice(i, min(i + rows, n)) for i in range(0, n, rows)]

    @torch.no_grad()
    def score():
        return [forward(x[p], weight, target[p]) for p in parts]
    say_rates("logp", measure(score, s.repetitions), n, HOW)
    x.requires_grad_()
    weight.requires_grad_()

    def both():
        x.grad = weight.grad = None
        for p in parts:
            (-chunk(x[p], weight, target[p]).sum() / n).backward()
    say_rates("logp_backward", measure(both, s.repetitions), n, HOW)


# --- generation ---


def generate(model, batch, draws, compiled):
    token = torch.randint(s.vocabulary, (batch, s.prompt), device=options.device)
    with torch.inference_mode():
        out = model.generate(input_ids=token, attention_mask=torch.ones_like(token), do_sample=True,
                             temperature=1.0, top_k=0, top_p=1.0, max_new_tokens=draws,
                             cache_implementation="static", disable_compile=not compiled)
    if out.shape[1] != s.prompt + draws:
        raise RuntimeError(f"{out.shape[1] - s.prompt} of {draws} tokens")


def decode(model, batch):
    compiled = options.compile
    try:
        generate(model, batch, s.draws, compiled)
    except Exception as e:
        if not compiled:
            raise
        print(f"{batch}: {e}", file=sys.stderr)
        compiled = False
    repetitions = min(s.repetitions, 3)
    whole = measure(lambda: generate(model, batch, s.draws, compiled), repetitions)
    how = "static cache, " + ("compiled" if compiled else "eager")
    say_rates(f"decode.{batch}", whole, batch * s.draws,
              f"{how}, {attention_of(lambda: generate(model, batch, 2, compiled))}")
    first = min(measure(lambda: generate(model, batch, 1, compiled), repetitions))
    if min(whole) > first:
        say_rates(f"steps.{batch}", [w - first for w in whole], batch * (s.draws - 1), how)


def decode_all():
    model = make_model().eval()
    for batch in s.batches:
        attempt(f"decode.{batch}", lambda: decode(model, batch))


parser = argparse.ArgumentParser(description=__doc__,
                                 formatter_class=argparse.RawDescriptionHelpFormatter)
parser.add_argument("part", choices=("train", "decode", "logp"))
parser.add_argument("--shape", type=lambda x: SimpleNamespace(**json.loads(x)), required=True)
parser.add_argument("--device", choices=("cuda", "cpu"), default="cuda")
parser.add_argument("--seconds", type=float, default=240)
parser.add_argument("--compile", choices=("yes", "no"))
options = parser.parse_args()
options.compile = options.compile == "yes" or (options.compile is None and options.device == "cuda")
s = options.shape
DTYPE = torch.bfloat16 if options.device == "cuda" else torch.float32
HOW = f"torch {torch.__version__}, {'compiled' if options.compile else 'eager'}"
torch.manual_seed(1)
if options.device == "cuda" and not torch.cuda.is_available():
    say(options.part, missing="PyTorch sees no CUDA device")
else:
    attempt(options.part, {"train": train, "decode": decode_all, "logp": logp}[options.part])
