"""PyTorch and transformers at the work of `gepolab bench gpu`, on the same shapes.

  gpu.py [--device cuda | cpu] [--seconds N] [--only PART] [--quick] [--compile yes | no] SHAPE...

A SHAPE is NAME=hidden,layers,heads,kv_heads,head_dim,intermediate,vocabulary,positions,train
sequences,train length,prompt,draws,rows of log-probabilities,repetitions,batch:batch:... as the
command writes it. Each number is a line of JSON on stdout: {"key", "value", "low", "high", "n"}, or
{"key", "missing"} saying why there is none. No new measurement starts once --seconds are over.

What is compared is PyTorch at its best within reason: bfloat16 with float32 master weights and
moments as gepolab keeps them, scaled_dot_product_attention, torch.compile (of each decoder layer and
of the output's log-probabilities; compiling all layers as one graph takes minutes), fused AdamW;
transformers' generate with a static cache, which it compiles by itself where it can.
"""
import argparse
import json
import statistics
import sys
import time

try:
    import torch
    from torch import nn
    from torch.nn import functional as F
except ImportError:
    sys.exit(127)
try:
    import transformers
except ImportError:
    transformers = None

STARTED = time.perf_counter()


class Shape:
    FIELDS = ("hidden layers heads kv_heads head_dim intermediate vocabulary positions "
              "train_sequences train_length prompt draws logp_rows repetitions").split()

    def __init__(self, text):
        self.name, numbers = text.split("=")
        *numbers, batches = numbers.split(",")
        for field, number in zip(self.FIELDS, numbers, strict=True):
            setattr(self, field, int(number))
        self.batches = [int(x) for x in batches.split(":")]


# --- answers ---


def say(key, **values):
    print(json.dumps({"key": key, **values}), flush=True)


def say_rates(key, seconds, amount, note=""):
    rates = [amount / s for s in seconds]
    say(key, value=statistics.median(rates), low=min(rates), high=max(rates), n=len(rates),
        note=note)


def attempt(key, needs, work):
    """work() unless time is over; a failure is an answer too. needs: seconds it may well take."""
    left = options.seconds - (time.perf_counter() - STARTED)
    if left < (needs if options.device == "cuda" else 0):
        return say(key, missing="no time left")
    try:
        work()
    except Exception as e:
        say(key, missing=f"{type(e).__name__}: {e}".split("\n")[0][:140])
    if options.device == "cuda":
        torch.cuda.empty_cache()


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


# --- limits ---


def limits():
    on_gpu, calls = options.device == "cuda", 8
    side = 256 if not on_gpu else 4096 if options.quick else 8192
    size = (8 if not on_gpu else 256 if options.quick else 2048) << 20
    x, y = (torch.randn(side, side, device=options.device, dtype=DTYPE) for _ in range(2))
    z = torch.empty_like(x)
    say_rates("limit.product", measure(lambda: [torch.mm(x, y.T, out=z) for _ in range(calls)], 10),
              calls * 2e-12 * side ** 3)
    source = torch.zeros(size, dtype=torch.uint8, device=options.device)
    to = torch.empty_like(source)
    say_rates("limit.copy", measure(lambda: [to.copy_(source) for _ in range(calls)], 10),
              calls * 2e-9 * size)


# --- the model where transformers is not installed ---


class Norm(nn.Module):
    def __init__(self, width):
        super().__init__()
        self.weight = nn.Parameter(torch.ones(width))

    def forward(self, x):
        return F.rms_norm(x, (x.shape[-1],), self.weight, 1e-6)


class Layer(nn.Module):
    def __init__(self, s):
        super().__init__()
        self.shape = s
        q, kv = s.heads * s.head_dim, s.kv_heads * s.head_dim
        self.qkv = nn.Linear(s.hidden, q + 2 * kv, bias=False)
        self.o = nn.Linear(q, s.hidden, bias=False)
        self.gate_up = nn.Linear(s.hidden, 2 * s.intermediate, bias=False)
        self.down = nn.Linear(s.intermediate, s.hidden, bias=False)
        self.q_norm, self.k_norm = Norm(s.head_dim), Norm(s.head_dim)
        self.input_norm, self.post_norm = Norm(s.hidden), Norm(s.hidden)

    def heads(self, x, norm, rotation):
        x = norm(x.unflatten(-1, (-1, self.shape.head_dim))).transpose(1, 2)
        half = x.shape[-1] // 2
        turned = torch.cat((-x[..., half:], x[..., :half]), -1)
        return x * rotation[0] + turned * rotation[1]

    def forward(self, x, rotation):
        s = self.shape
        kv = s.kv_heads * s.head_dim
        q, k, v = self.qkv(self.input_norm(x)).split((s.heads * s.head_dim, kv, kv), -1)
        v = v.unflatten(-1, (-1, s.head_dim)).transpose(1, 2)
        y = F.scaled_dot_product_attention(self.heads(q, self.q_norm, rotation),
                                           self.heads(k, self.k_norm, rotation), v,
                                           is_causal=True, enable_gqa=True)
        x = x + self.o(y.transpose(1, 2).flatten(2))
        gate, up = self.gate_up(self.post_norm(x)).chunk(2, -1)
        return x + self.down(F.silu(gate) * up)


class Decoder(nn.Module):
    def __init__(self, s):
        super().__init__()
        self.embed = nn.Embedding(s.vocabulary, s.hidden)
        self.layers = nn.ModuleList(Layer(s) for _ in range(s.layers))
        self.norm = Norm(s.hidden)
        for p in self.parameters():
            if p.dim() > 1:
                nn.init.normal_(p, std=0.02)
        i = torch.arange(0, s.head_dim, 2)
        angle = torch.arange(s.train_length)[:, None] / 1e6 ** (i / s.head_dim)
        angle = torch.cat((angle, angle), -1)
        self.rotation = angle.cos().to(DTYPE), angle.sin().to(DTYPE)

    def forward(self, token):
        x = self.embed(token)
        for layer in self.layers:
            x = layer(x, self.rotation)
        return self.norm(x)


# --- the model ---


def make_model(s):
    """Qwen3 of transformers."""
    config = transformers.Qwen3Config(
        vocab_size=s.vocabulary, hidden_size=s.hidden, intermediate_size=s.intermediate,
        num_hidden_layers=s.layers, num_attention_heads=s.heads, num_key_value_heads=s.kv_heads,
        head_dim=s.head_dim, max_position_embeddings=s.positions, tie_word_embeddings=True,
        bos_token_id=None, eos_token_id=None, pad_token_id=0)
    config._attn_implementation = "sdpa"
    with torch.device(options.device):
        return transformers.Qwen3ForCausalLM(config).to(DTYPE)


def body_of(s):
    """(tokens -> rows after the last norm, parameters, output weight, layers)"""
    if transformers is not None:
        model = make_model(s)
        # No mask at all, so that attention runs causally by itself: its fastest kernels.
        mask = {"full_attention": None}
        return (lambda token: model.model(input_ids=token, attention_mask=mask,
                                          use_cache=False).last_hidden_state,
                list(model.parameters()), model.model.embed_tokens.weight, model.model.layers)
    with torch.device(options.device):
        model = Decoder(s).to(DTYPE)
    return model, list(model.parameters()), model.embed.weight, model.layers


# --- training ---


def token_logp(x, weight, target):
    z = (x @ weight.T).float()
    return z.gather(1, target[:, None])[:, 0] - z.logsumexp(1)


def train(s):
    body, parameters, weight, layers = body_of(s)
    logp = token_logp
    if options.compile:
        logp = torch.compile(token_logp)
        for layer in layers:
            layer.compile()
    # The optimiser's own float32 values; the model's are their copy.
    master = [p.detach().float().requires_grad_() if p.dtype != torch.float32 else p
              for p in parameters]
    copied = master[0] is not parameters[0]
    optimizer = torch.optim.AdamW(master, lr=1e-6, weight_decay=0.01, fused=True)
    n = s.train_sequences * s.train_length
    token = torch.randint(s.vocabulary, (n + 1,), device=options.device)
    slope = (1 - 2 * (torch.arange(n, device=options.device) % 2)) / n
    rows = 4096
    if copied:
        for p in master:
            p.grad = torch.zeros_like(p)

    def step():
        x = body(token[:n].view(s.train_sequences, s.train_length)).flatten(0, 1)
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
    how = "transformers" if transformers is not None else "plain module"
    say_rates(f"{s.name}.train", measure(step, s.repetitions), n,
              how + (", compiled" if options.compile else ", eager"))


# --- log-probabilities and entropy over the vocabulary ---


def logp_entropy(x, weight, target):
    z = (x @ weight.T).float()
    norm = z.logsumexp(1)
    entropy = norm - ((z - norm[:, None]).exp() * z).sum(1)
    return z.gather(1, target[:, None])[:, 0] - norm, entropy


def logp(s):
    n, rows = s.logp_rows, 2048
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
    say_rates(f"{s.name}.logp", measure(score, s.repetitions), n)
    x.requires_grad_()
    weight.requires_grad_()

    def both():
        x.grad = weight.grad = None
        for p in parts:
            (-chunk(x[p], weight, target[p]).sum() / n).backward()
    say_rates(f"{s.name}.logp_backward", measure(both, s.repetitions), n)


# --- generation ---


def generate(s, model, batch, draws, compiled):
    token = torch.randint(s.vocabulary, (batch, s.prompt), device=options.device)
    with torch.inference_mode():
        out = model.generate(input_ids=token, attention_mask=torch.ones_like(token), do_sample=True,
                             temperature=1.0, top_k=0, top_p=1.0, max_new_tokens=draws,
                             cache_implementation="static", disable_compile=not compiled)
    if out.shape[1] != s.prompt + draws:
        raise RuntimeError(f"{out.shape[1] - s.prompt} of {draws} tokens")


def decode(s, model, batch):
    compiled = bool(options.compile)
    try:
        generate(s, model, batch, s.draws, compiled)
    except Exception as e:
        if not compiled:
            raise
        print(f"{batch}: {e}", file=sys.stderr)
        compiled = False
    whole = measure(lambda: generate(s, model, batch, s.draws, compiled), s.repetitions)
    how = "static cache, " + ("compiled" if compiled else "eager")
    say_rates(f"{s.name}.decode.{batch}", whole, batch * s.draws, how)
    first = min(measure(lambda: generate(s, model, batch, 1, compiled), s.repetitions))
    if min(whole) > first:
        say_rates(f"{s.name}.steps.{batch}", [w - first for w in whole], batch * (s.draws - 1), how)


def decode_all(s):
    if transformers is None:
        for batch in s.batches:
            say(f"{s.name}.decode.{batch}", missing="not installed")
        return
    model = make_model(s).eval()
    for batch in s.batches:
        attempt(f"{s.name}.decode.{batch}", 30, lambda: decode(s, model, batch))


# --- all ---


def versions():
    return f"torch {torch.__version__}, transformers " + (
        transformers.__version__ if transformers is not None else "not installed")


def wanted(part):
    return options.only in (None, part)


def main():
    if options.device == "cuda" and not torch.cuda.is_available():
        return say("limit.peer", missing="PyTorch sees no CUDA device")
    say("limit.peer", note=versions())
    attempt("limit.product", 5, limits)
    for s in shapes:
        if wanted("train"):
            attempt(f"{s.name}.train", 30, lambda: train(s))
        if wanted("logp"):
            attempt(f"{s.name}.logp", 15, lambda: logp(s))
    for s in shapes:
        if wanted("decode"):
            attempt(f"{s.name}.decode", 5, lambda: decode_all(s))


parser = argparse.ArgumentParser(description=__doc__,
                                 formatter_class=argparse.RawDescriptionHelpFormatter)
parser.add_argument("--device", choices=("cuda", "cpu"), default="cuda")
parser.add_argument("--seconds", type=float, default=240)
parser.add_argument("--only")
parser.add_argument("--quick", action="store_true")
parser.add_argument("--compile", choices=("yes", "no"))
parser.add_argument("shapes", nargs="*")
options = parser.parse_args()
options.compile = options.compile == "yes" or (options.compile is None and options.device == "cuda")
DTYPE = torch.bfloat16 if options.device == "cuda" else torch.float32
shapes = [Shape(text) for text in options.shapes]
torch.manual_seed(1)
main()
