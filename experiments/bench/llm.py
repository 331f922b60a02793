"""A Qwen3 decoder in PyTorch on the CPU: what llm.c is measured beside.

Argument: threads. Requests: KIND HOW SHAPE with a shape
  hidden,layers,heads,kv_heads,head_dim,intermediate,vocabulary,sequences,length,prompt
`train eager`, `train compiled`: forward, backward, gradient norm and AdamW on a batch of sequences x
length tokens. `generate loop`: as many sequences, from `prompt` to `length` tokens, keys and values
in a static cache, drawn by torch.multinomial. `generate transformers`: the same tokens by its Qwen3
and generate() with a cache. Answers with tokens a second of five repetitions.
"""
import os
import sys

os.environ.setdefault("TORCHINDUCTOR_COMPILE_THREADS", "1")  # a child's work that we wait for

import torch
from torch import nn
from torch.nn import functional as F

import serve

torch.set_num_threads(int(sys.argv[1]))


class Norm(nn.Module):
    def __init__(self, width):
        super().__init__()
        self.weight = nn.Parameter(torch.ones(width))

    def forward(self, x):
        return F.rms_norm(x, (x.shape[-1],), self.weight, 1e-6)


def rotate(x, cosine, sine):
    half = x.shape[-1] // 2
    turned = torch.cat((-x[..., half:], x[..., :half]), -1)
    return x * cosine + turned * sine


class Layer(nn.Module):
    def __init__(self, hidden, heads, kv_heads, dim, inter):
        super().__init__()
        self.heads, self.kv_heads, self.dim = heads, kv_heads, dim
        self.q = nn.Linear(hidden, heads * dim, bias=False)
        self.k = nn.Linear(hidden, kv_heads * dim, bias=False)
        self.v = nn.Linear(hidden, kv_heads * dim, bias=False)
        self.o = nn.Linear(heads * dim, hidden, bias=False)
        self.gate = nn.Linear(hidden, inter, bias=False)
        self.up = nn.Linear(hidden, inter, bias=False)
        self.down = nn.Linear(inter, hidden, bias=False)
        self.q_norm, self.k_norm = Norm(dim), Norm(dim)
        self.input_norm, self.post_norm = Norm(hidden), Norm(hidden)

    def forward(self, x, cosine, sine, cache, at):
        b, t, _ = x.shape
        y = self.input_norm(x)
        q = self.q_norm(self.q(y).view(b, t, self.heads, self.dim)).transpose(1, 2)
        k = self.k_norm(self.k(y).view(b, t, self.kv_heads, self.dim)).transpose(1, 2)
        v = self.v(y).view(b, t, self.kv_heads, self.dim).transpose(1, 2)
        q, k = rotate(q, cosine, sine), rotate(k, cosine, sine)
        if cache is not None:
            cache[0][:, :, at:at + t] = k
            cache[1][:, :, at:at + t] = v
            k, v = cache[0][:, :, :at + t], cache[1][:, :, :at + t]
        y = F.scaled_dot_product_attention(q, k, v, is_causal=t > 1, enable_gqa=True)
        x = x + self.o(y.transpose(1, 2).reshape(b, t, -1))
        y = self.post_norm(x)
        return x + self.down(F.silu(self.gate(y)) * self.up(y))


class Decoder(nn.Module):
    def __init__(self, hidden, layers, heads, kv_heads, dim, inter, vocabulary, length):
        super().__init__()
        self.embed = nn.Embedding(vocabulary, hidden)
        self.layers = nn.ModuleList(Layer(hidden, heads, kv_heads, dim, inter)
                                    for _ in range(layers))
        self.norm = Norm(hidden)
        for p in self.parameters():
            if p.dim() > 1:
                nn.init.normal_(p, std=0.02)
        angle = torch.arange(length)[:, None] / 10000 ** (torch.arange(0, dim, 2) / dim)
        self.cosine = torch.cat((angle.cos(), angle.cos()), -1)
        self.sine = torch.cat((angle.sin(), angle.sin()), -1)

    def forward(self, token, caches=None, at=0):
        x, t = self.embed(token), token.shape[1]
        cosine, sine = self.cosine[at:at + t], self.sine[at:at + t]
        for i, layer in enumerate(self.layers):
            x = layer(x, cosine, sine, None if caches is None else caches[i], at)
        if caches is not None:
            x = x[:, -1:]
        return F.linear(self.norm(x), self.embed.weight)


def train(model, vocabulary, sequences, length):
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-4, fused=True)
    token = torch.randint(vocabulary, (sequences, length + 1))

    def step():
        optimizer.zero_grad(set_to_none=False)
        logits = model(token[:, :-1])
        F.cross_entropy(logits.flatten(0, 1), token[:, 1:].flatten()).backward()
        nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
    return serve.rates(step, sequences * length)


@torch.inference_mode()
def generate(model, vocabulary, sequences, length, prompt):
    token = torch.randint(vocabulary, (sequences, prompt))

    def run():
        caches = [(torch.zeros(sequences, layer.kv_heads, length, layer.dim),
                   torch.zeros(sequences, layer.kv_heads, length, layer.dim))
                  for layer in model.layers]
        logits, at = model(token, caches), prompt
        while True:
            logp = F.log_softmax(logits[:, -1], -1)
            drawn = torch.multinomial(logp.exp(), 1)
            logp.gather(1, drawn)
            at += 1
            if at == length:
                return
            logits = model(drawn, caches, at - 1)
    return serve.rates(run, sequences * (length - prompt))


@torch.inference_mode()
def generate_transformers(shape):
    from transformers import Qwen3Config, Qwen3ForCausalLM
    hidden, layers, heads, kv_heads, dim, inter, vocabulary, sequences, length, prompt = shape
    config = Qwen3Config(
        vocab_size=vocabulary, hidden_size=hidden, intermediate_size=inter,
        num_hidden_layers=layers, num_attention_heads=heads, num_key_value_heads=kv_heads,
        head_dim=dim, max_position_embeddings=length, tie_word_embeddings=True,
        attn_implementation="sdpa", bos_token_id=None, eos_token_id=None, pad_token_id=0)
    model = Qwen3ForCausalLM(config).eval()
    token = torch.randint(1, vocabulary, (sequences, prompt))
    mask = torch.ones_like(token)

    def run():
        drawn = model.generate(token, attention_mask=mask, do_sample=True, top_k=0, top_p=1.0,
                               use_cache=True, max_new_tokens=length - prompt,
                               min_new_tokens=length - prompt)
        assert drawn.shape == (sequences, length)
    return serve.rates(run, sequences * (length - prompt))


def work(kind, how, text):
    shape = [int(x) for x in text.split(",")]
    hidden, layers, heads, kv_heads, dim, inter, vocabulary, sequences, length, prompt = shape
    torch.manual_seed(1)
    if how == "transformers":
        return generate_transformers(shape)
    model = Decoder(hidden, layers, heads, kv_heads, dim, inter, vocabulary, length)
    if kind == "generate":
        return generate(model, vocabulary, sequences, length, prompt)
    if how == "compiled":
        torch._dynamo.reset()
        model = torch.compile(model)
    return train(model, vocabulary, sequences, length)


serve.answer(work)
