"""PyTorch and transformers at the work of `gepolab bench gpu`, on the same shapes.

Argument: cuda or cpu. Requests: `train SHAPE`, `decode SHAPE` with a shape
  hidden,layers,heads,kv_heads,head_dim,intermediate,vocabulary,sequences,length,prompt,draws,batch,repetitions
Answers with tokens a second and how they were reached.

What is compared is PyTorch at its best within reason: bfloat16 with float32 master weights and moments as
gepolab keeps them, scaled_dot_product_attention (which of its kernels ran is in the note), torch.compile (of
each decoder layer and of the output's log-probabilities; compiling all layers as one graph takes minutes),
fused AdamW; transformers' generate with a static cache, which it compiles by itself where it can, for each
batch size alone. Requests with the same model share it. On the CPU, to try this script, nothing is compiled.
"""
import functools
import re
import sys
from types import SimpleNamespace

try:
    import torch
    import transformers
    from torch import nn
except ImportError:
    sys.exit(127)  # not installed

import serve

DEVICE = sys.argv[1]
ON_GPU = DEVICE == "cuda"
DTYPE = torch.bfloat16 if ON_GPU else torch.float32
MODEL = "hidden layers heads kv_heads head_dim intermediate vocabulary".split()
NAMES = MODEL + "sequences length prompt draws batch repetitions".split()


def rates(run, amount, repetitions):
    def finished():
        run()
        if ON_GPU:
            torch.cuda.synchronize()
    return serve.rates(finished, amount, least=0, repetitions=repetitions)


def attention_of(run):
    """Names of the attention kernels that run() used."""
    with torch.profiler.profile(activities=torch.profiler.supported_activities()) as profile:
        run()
    names = {e.key for e in profile.key_averages()}
    found = {m[1] for n in names if (m := re.match(r"aten::_scaled_dot_product_(\w+?)(_backward)?$", n))}
    return "attention: " + (" ".join(sorted(found)) or "not told")


@functools.lru_cache(maxsize=1)
def model_of(sizes):
    s = SimpleNamespace(**dict(zip(MODEL, sizes, strict=True)))
    config = transformers.Qwen3Config(
        vocab_size=s.vocabulary, hidden_size=s.hidden, intermediate_size=s.intermediate,
        num_hidden_layers=s.layers, num_attention_heads=s.heads, num_key_value_heads=s.kv_heads,
        head_dim=s.head_dim, max_position_embeddings=8192, tie_word_embeddings=True,
        attn_implementation="sdpa", bos_token_id=None, eos_token_id=None, pad_token_id=0)
    with torch.device(DEVICE):
        return transformers.Qwen3ForCausalLM(config).to(DTYPE)


def token_logp(x, weight, target):
    z = (x @ weight.T).float()
    return z.gather(1, target[:, None])[:, 0] - z.logsumexp(1)


def make_model(s):
    return model_of(tuple(getattr(s, name) for name in MODEL))


def train(s):
    model = make_model(s)
    parameters, weight = list(model.parameters()), model.model.embed_tokens.weight
    logp = torch.compile(token_logp) if ON_GPU else token_logp
    for layer in model.model.layers if ON_GPU else ():
        layer.compile()
    # The optimiser's own float32 values, of which the model's are a copy.
    master = [p.detach().float().requires_grad_() if ON_GPU else p for p in parameters]
    optimizer = torch.optim.AdamW(master, lr=1e-6, weight_decay=0.01, fused=True)
    n, rows = s.sequences * s.length, 4096
    token = torch.randint(s.vocabulary, (n + 1,), device=DEVICE)
    slope = (1 - 2 * (torch.arange(n, device=DEVICE) % 2)) / n
    for p in master:
        p.grad = torch.zeros_like(p)

    def step():
        # No mask at all, so that attention runs causally by itself: its fastest kernels.
        x = model.model(input_ids=token[:n].view(s.sequences, s.length), use_cache=False,
                        attention_mask={"full_attention": None}).last_hidden_state.flatten(0, 1)
        sum((slope[i:i + rows] * logp(x[i:i + rows], weight, token[i + 1:n + 1][:rows])).sum()
            for i in range(0, n, rows)).backward()
        with torch.no_grad():
            if ON_GPU:
                torch._foreach_copy_([p.grad for p in master], [p.grad for p in parameters])
            nn.utils.clip_grad_norm_(master, 1.0)
            optimizer.step()
            if ON_GPU:
                torch._foreach_copy_(parameters, master)
        for p in parameters:
            p.grad = None
    found = rates(step, n, s.repetitions)
    return found, f"torch {torch.__version__}, {'compiled' if ON_GPU else 'eager'}, {attention_of(step)}"


def decode(s):
    model = make_model(s).eval()
    token = torch.randint(s.vocabulary, (s.batch, s.prompt), device=DEVICE)

    @torch.inference_mode()
    def generate(compiled):
        # dynamic=False: after a second batch size PyTorch would compile for all, which is slower or fails.
        out = model.generate(input_ids=token, attention_mask=torch.ones_like(token), do_sample=True,
                             temperature=1.0, top_k=0, top_p=1.0, max_new_tokens=s.draws,
                             cache_implementation="static", disable_compile=not compiled,
                             compile_config=transformers.CompileConfig(dynamic=False) if compiled else None)
        if out.shape[1] != s.prompt + s.draws:
            raise RuntimeError(f"{out.shape[1] - s.prompt} of {s.draws} tokens")
    for compiled in (True, False) if ON_GPU else (False,):
        try:
            found = rates(lambda: generate(compiled), s.batch * s.draws, s.repetitions)
            return found, f"static cache, {'compiled' if compiled else 'eager'}, {attention_of(lambda: generate(compiled))}"
        except Exception:
            if not compiled:
                raise


def work(kind, text):
    if ON_GPU and not torch.cuda.is_available():
        raise RuntimeError("PyTorch sees no CUDA device")
    torch.manual_seed(1)
    shape = SimpleNamespace(**dict(zip(NAMES, map(int, text.split(",")), strict=True)))
    return {"train": train, "decode": decode}[kind](shape)


serve.answer(work)
