#!/usr/bin/env python3
"""What a device's limits allow for a decoding step and a training step, kernel by kernel.

A kernel takes the longer of two times, its bytes at the copy rate and its operations at the rate of a large
product, and a time for each launch. Its bytes are those that it reads and writes once, as if nothing stayed in a
cache; what stays makes it faster. The line `limit` is that of `gepolab bench gpu`: of a decoding step the weights
and the keys and values, of a training step the operations that the result needs; nothing else and no launches.
Sizes are those of the table in gpu.c, numbers bfloat16 with float32 logits, sums, moments and master weights.
Rates are those measured on an H100 (experiments/BENCHMARKS.md, November 2026), as are the speeds beside the sums.

  experiments/bench/roofline.py                                   both steps of Qwen3 0.6B
  experiments/bench/roofline.py decode --shape 1.7b --batch 64 --position 4096
  experiments/bench/roofline.py train --copy 4.23e12 --json       at an H200's copy rate
"""
import argparse
import json
import pathlib
import re

COPY, PRODUCT, LAUNCH = 3.02e12, 784e12, 3e-6
# Tokens a second on an H100: decoding by batch size, without prompts, commit 417450d0; training.
MEASURED = {"0.6b": {1: 871, 64: 29460, 256: 50930, "train": 96040},
            "1.7b": {1: 502, 64: 19710, 256: 36650, "train": 44260}}
LOGITS, CHUNK_ROWS = 1 << 27, 8192  # that training holds at a time (output.cu)
HEADS_IN_ATTENTION = 64  # rows up to which cached attention prepares its own heads (decode.cu)


class Shape:
    def __init__(self, name):
        text = pathlib.Path(__file__).with_name("gpu.c").read_text()
        row = re.search(r'\{"%s", QWEN3\(([\d, ]+)\),\s*([\d, ]+),\s*\{([\d, ]+)\}' % re.escape(name), text)
        model, work, batch = ([int(x) for x in re.findall(r"\d+", part)] for part in row.groups())
        self.hidden, self.layers, self.vocabulary, heads, kv, self.dim = model
        self.inner, self.q, self.kv = 3 * self.hidden, heads * self.dim, kv * self.dim
        self.heads, self.all = heads, self.q + 2 * self.kv
        self.sequences, self.length, self.prompt, self.draws = work[:4]
        self.batch = sorted(batch)
        # Results and terms of a layer's products.
        self.products = {"product: queries, keys, values": (self.all, self.hidden),
                         "product: attention's output": (self.hidden, self.q),
                         "product: gated unit": (2 * self.inner, self.hidden),
                         "product: its output": (self.hidden, self.inner)}
        self.weights = (self.layers * sum(m * k for m, k in self.products.values())
                        + self.vocabulary * self.hidden)
        self.parameters = self.weights + self.layers * 2 * (self.hidden + self.dim) + self.hidden


def kernel(name, launches, bytes, operations=0, needed=0):
    """All launches of a kernel in a step. needed: its part of the limit, in bytes or operations."""
    return {"kernel": name, "launches": launches, "bytes": bytes, "operations": operations, "needed": needed}


def decode(s, rows, positions, e):
    n, h, v = s.layers, s.hidden, s.vocabulary
    cache = 2 * s.kv * positions * rows * e
    all = [kernel("embedding of the last draws", 1, 2 * rows * h * e),
           kernel("norms", 2 * n + 1, (2 * n + 1) * 4 * rows * h * e)]
    for name, (m, k) in s.products.items():
        out = m // 2 if name.endswith("unit") else m
        all.append(kernel(name, n, n * (m * k + rows * (k + out)) * e, n * 2 * rows * m * k, n * m * k * e))
    if rows > HEADS_IN_ATTENTION:
        all.append(kernel("heads", n, n * 2 * rows * s.all * e))
    return all + [kernel("cached attention", n, n * (cache + rows * (s.all + s.q) * e),
                         n * 4 * rows * s.q * positions, n * cache),
                  kernel("product: logits", 1, (v * h + rows * h) * e + 4 * rows * v, 2 * rows * v * h, v * h * e),
                  kernel("draws: maxima and sums", 2, 2 * 4 * rows * v), kernel("draws: tokens", 1, 4 * rows * 4096)]


def train(s, sequences, length, e):
    n, h, v, rows = s.layers, s.hidden, s.vocabulary, sequences * length
    chunk_rows, chunk_columns = -(-rows // CHUNK_ROWS), -(-v // (LOGITS // min(rows, CHUNK_ROWS)))
    chunks = chunk_rows * chunk_columns
    pairs = 2 * s.q * rows * (length + 1) / 2  # operations of one product of attention
    vocabulary = 2 * rows * v * h
    all = [kernel("embedding and last rows", 3, 6 * rows * h * e),
           kernel("norms", 2 * n + 1, (2 * n + 1) * 4 * rows * h * e)]
    for name, (m, k) in s.products.items():
        f = n * 2 * rows * m * k
        all += [kernel(name, n, n * (m * k + rows * (m + k)) * e, f, f),
                kernel(name + ", to its input", n, n * (m * k + rows * (m + k)) * e, f, f),
                kernel(name + ", to its weight", n, n * (8 * m * k + rows * (m + k) * e), f, f)]
    both, wide = n * rows * e, s.q + s.kv
    return all + [
        kernel("heads", n, 2 * both * wide),
        kernel("attention", n, both * (s.all + s.q), n * 2 * pairs, n * 2 * pairs),
        kernel("gated unit", n, 3 * both * s.inner),
        kernel("gated unit, backward", n, 5 * both * s.inner),
        kernel("attention: row sums", n, 2 * both * s.q),
        kernel("attention, to queries", n, both * (s.all + 2 * s.q), n * 3 * pairs, n * 2 * pairs),
        kernel("attention, to keys and values", n, both * (s.all + s.q + 2 * s.kv), n * 4 * pairs, n * 2 * pairs),
        kernel("heads, backward", 3 * n, 3 * both * wide),
        kernel("norms, backward", 4 * n + 2, (2 * n + 1) * 4 * rows * h * e),
        kernel("output: logits", chunks, chunk_rows * v * h * e + chunk_columns * rows * h * e + 4 * rows * v,
               vocabulary, vocabulary),
        kernel("output: log-probabilities", chunks + chunk_rows, 4 * rows * v),
        kernel("output: logits again, if not stored", chunks, chunk_rows * v * h * e + chunk_columns * rows * h * e + 4 * rows * v,
               vocabulary),
        kernel("output: their gradients", chunks, (4 + e) * rows * v),
        kernel("output: to its input", chunks + chunk_rows, chunk_rows * v * h * e + rows * v * e
               + chunk_columns * 8 * rows * h, vocabulary, vocabulary),
        kernel("output: to its weight", chunks, chunk_rows * 8 * v * h + rows * v * e, vocabulary, vocabulary),
        kernel("rows to their embeddings", 15, 10 * rows * h),
        kernel("gradients: zeros, norm", 4, 8 * s.parameters + 2 * rows * h * e),
        kernel("AdamW", 2, (28 + e) * s.parameters)]


def step(what, tokens, kernels, device, measured):
    by_bytes = what.startswith("decode")
    for k in kernels:
        k["bytes_s"], k["operations_s"] = k["bytes"] / device.copy, k["operations"] / device.product
        k["seconds"] = max(k["bytes_s"], k["operations_s"]) + k["launches"] * device.launch
    total = {name: sum(k[name] for k in kernels) for name in ("launches", "bytes", "operations", "seconds")}
    needed = sum(k["needed"] for k in kernels)
    return {"step": what, "kernels": kernels, **total, "tokens_a_second": tokens / total["seconds"],
            "limit": tokens * (device.copy if by_bytes else device.product) / needed, "measured": measured}


def show(s):
    print(f"{s['step']}\n  {'':45} launches       MB     GFLOP  us: bytes  products       all")
    for k in s["kernels"]:
        print(f"  {k['kernel']:45} {k['launches']:8} {k['bytes'] / 1e6:8.1f} {k['operations'] / 1e9:9.1f} "
              f"{1e6 * k['bytes_s']:10.1f} {1e6 * k['operations_s']:9.1f} {1e6 * k['seconds']:9.1f}")
    print(f"  {'sum':45} {s['launches']:8} {s['bytes'] / 1e6:8.1f} {s['operations'] / 1e9:9.1f} {'':20} "
          f"{1e6 * s['seconds']:9.1f}")
    beside = f"; measured {s['measured']:,}, {s['measured'] / s['tokens_a_second']:.2f} of it" if s["measured"] else ""
    print(f"  tokens a second: {s['tokens_a_second']:,.0f}{beside}; limit {s['limit']:,.0f}\n")


def main():
    a = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    a.add_argument("what", nargs="?", choices=("decode", "train", "both"), default="both")
    a.add_argument("--shape", choices=("0.6b", "1.7b", "tiny"), default="0.6b")
    a.add_argument("--batch", type=int, help="rows of a decoding step (default: those of the benchmark)")
    a.add_argument("--position", type=float, help="positions that a row reads (default: the benchmark's mean)")
    a.add_argument("--sequences", type=int, help="of a training step")
    a.add_argument("--length", type=int, help="tokens of each")
    a.add_argument("--copy", type=float, default=COPY, help="bytes a second, read and written (%(default).3g)")
    a.add_argument("--product", type=float, default=PRODUCT, help="operations a second (%(default).3g)")
    a.add_argument("--launch", type=float, default=LAUNCH, help="seconds for each launch (%(default).1g)")
    a.add_argument("--element", type=int, default=2, help="bytes of a weight and an activation (%(default)d)")
    a.add_argument("--json", action="store_true", help="the same numbers as JSON")
    o = a.parse_args()
    s = Shape(o.shape)
    found, steps = MEASURED.get(o.shape, {}), []
    own = (o.copy, o.product, o.element) == (COPY, PRODUCT, 2)
    position = o.position or s.prompt + s.draws / 2
    for rows in ([o.batch] if o.batch else s.batch) if o.what != "train" else []:
        usual = own and position == s.prompt + s.draws / 2
        steps.append(step(f"decode {o.shape}, {rows} rows at position {position:g}", rows,
                          decode(s, rows, position, o.element), o, found.get(rows) if usual else None))
    if o.what != "decode":
        n, length = o.sequences or s.sequences, o.length or s.length
        usual = own and (n, length) == (s.sequences, s.length)
        steps.append(step(f"train {o.shape}, {n} sequences of {length} tokens", n * length,
                          train(s, n, length, o.element), o, found.get("train") if usual else None))
    if o.json:
        print(json.dumps(steps, indent=1))
    else:
        for one in steps:
            show(one)


if __name__ == "__main__":
    main()
