/* The fields of a transformer's world. */
#include "core/config/fields.h"

#include "llm/learner/run_spec.h"

#include <math.h>

static const field entries[] = {

    /* world: llm */
    FIELD("world.backend", "backend", CHOICE("auto", "cpu", "cuda"), "", "auto",
          "cpu, cuda, or auto: CUDA where there is a device. Runs on the CPU are bit for bit the "
          "same whatever the number of threads; a GPU's differ from them in rounding",
          .when = {{"world.kind", "llm"}}),
    FIELD("world.dtype", "number format", CHOICE("float32", "float64", "bfloat16"), "", "float32",
          "float32; bfloat16 (CUDA only; parameters, moments and sums stay in float32); float64 "
          "(CPU only)",
          .when = {{"world.kind", "llm"}}),
    FIELD("world.devices", "devices", COUNT(1, LLM_MOST_DEVICES), "", "1",
          "data parallelism: so many replicas of the model, each on a GPU of its own, share "
          "generation and updates. Responses do not depend on it; gradients are summed in another "
          "order, so runs differ in rounding. On the CPU replicas share its threads and memory",
          .when = {{"world.kind", "llm"}}),
    FIELD("world.tokenizer", "tokenizer", SECTION, "", NULL,
          "what the transformer reads and writes: a kind, or {kind: …, unused: …}",
          .when = {{"world.kind", "llm"}}),
    FIELD("world.tokenizer.kind", "tokenizer kind", TEXT, "", NULL,
          "char (the task's alphabet), byte, or the path of a tokenizer.json (byte-level BPE)",
          .rule = "the folder's, or char", .is_file = true, .shorthand = "world.tokenizer"),
    FIELD(
        "world.tokenizer.unused", "unused tokens", COUNT(0, 1u << 20), "tokens", "0",
        "tokens without a meaning that are added to char or byte: a tail of the vocabulary that no "
        "right answer has",
        .when = {{"world.kind", "llm"}}),
    FIELD("world.template", "prompt template", TEXT, "", "{prompt}",
          "text around a prompt, such as a chat's turns", .when = {{"world.kind", "llm"}}),
    FIELD(
        "world.stop", "stop token", LIST, "", NULL,
        "special token, or list of them, that ends a response; the first one ends a taught answer",
        .rule = "</s> of the built-in tokenizers, else eos_token_id of config.json"),
    FIELD("world.max_tokens", "longest answer", COUNT(1, (1u << 20) - 1), "tokens", NULL,
          "most tokens of a response, its end included",
          .rule = "longest answer + 1; required for math", .when = {{"world.kind", "llm"}}),
    FIELD("world.slots", "slots", COUNT(0, 1u << 20), "", "0",
          "responses decoded side by side, on each device; 0: as many as memory allows",
          .role = ROLE_PROVENANCE, .when = {{"world.kind", "llm"}}),
    FIELD("world.micro_batch", "micro-batch", COUNT(1, (size_t)1 << 40), "tokens", "4096",
          "most packed tokens of one forward and backward, on each device; one that holds a whole "
          "update saves a forward. A GPU stores their logits for the backward, 4 bytes a token and "
          "word of the vocabulary, where that is at most a quarter of the memory that is left",
          .when = {{"world.kind", "llm"}}),
    FIELD("world.recompute", "recompute", FLAG, "", "false",
          "keep only each layer's input for the backward and compute the rest again, which saves "
          "memory and costs time",
          .role = ROLE_PROVENANCE, .when = {{"world.kind", "llm"}}),
    FIELD("world.stochastic_rounding", "stochastic rounding", FLAG, "", "false",
          "with bfloat16: after each update of reinforcement learning, the copy of the parameters "
          "that generation and forward read is rounded up or down at random, so that its mean is "
          "the float32 master's value. No update is lost without it: the master has them all",
          .when = {{"world.kind", "llm"}}),
    FIELD("world.tf32", "TF32", FLAG, "", "false",
          "a GPU's products of float32 may round their factors to TF32 (10 bits of mantissa "
          "instead of 23), which is several times as fast: training's log-probabilities and "
          "gradients are then off by about 1e-3, generation's stay float32. Only with `dtype: "
          "float32`, not with `backend: cpu`; without effect where auto finds no GPU",
          .when = {{"world.kind", "llm"}}),
    FIELD("world.warmup", "supervised warm-up", SECTION, "", NULL,
          "supervised training on the task's answers before reinforcement learning",
          .when = {{"world.kind", "llm"}}),
    FIELD("world.warmup.steps", "warm-up steps", COUNT(0, 100000000), "steps", "0",
          "optimiser steps (AdamW) on the cross-entropy of answers; 0: no warm-up",
          .when = {{"world.kind", "llm"}}),
    FIELD("world.warmup.batch", "warm-up batch", COUNT(1, 1u << 20), "", "64",
          "problems of each step", .when = {{"world.kind", "llm"}}),
    FIELD("world.warmup.lr", "warm-up learning rate", REAL(0, 1e3), "", "0.001", "learning rate",
          .when = {{"world.kind", "llm"}}),
    FIELD("world.warmup.rise", "warm-up rise", COUNT(0, INFINITY), "steps", NULL,
          "steps over which the rate rises linearly", .when = {{"world.kind", "llm"}},
          .rule = "steps / 20"),
    FIELD("world.warmup.decay", "warm-up decay", CHOICE("none", "linear", "cosine"), "", "cosine",
          "how the rate decreases until `steps`: none, linear or cosine",
          .when = {{"world.kind", "llm"}}),
    FIELD("world.warmup.beta1", "warm-up beta1", REAL(0, FIELD_BELOW_1), "", "0.9",
          "of AdamW, as optimizer.beta1", .when = {{"world.kind", "llm"}}),
    FIELD("world.warmup.beta2", "warm-up beta2", REAL(0, FIELD_BELOW_1), "", "0.99",
          "of AdamW, as optimizer.beta2", .when = {{"world.kind", "llm"}}),
    FIELD("world.warmup.eps", "warm-up eps", POSITIVE, "", "1e-08", "of AdamW, as optimizer.eps",
          .when = {{"world.kind", "llm"}}),
    FIELD("world.warmup.weight_decay", "warm-up weight decay", REAL(0, 1e3), "", "0",
          "of AdamW, as optimizer.weight_decay", .when = {{"world.kind", "llm"}}),
    FIELD("world.warmup.clip_grad_norm", "warm-up gradient norm limit", REAL(0, 1e300), "", "1",
          "a longer gradient is scaled down to this norm; 0: no limit",
          .when = {{"world.kind", "llm"}}),
    FIELD("world.warmup.until", "warm-up target", REAL(0, 1), "", NULL,
          "stop as soon as the evaluation score is this high", .when = {{"world.kind", "llm"}},
          .rule = "never"),
    FIELD("world.warmup.check_every", "warm-up check interval", COUNT(1, 100000000), "steps", "50",
          "steps between two looks at that score", .when = {{"world.kind", "llm"}}),
    FIELD("world.warmup.cache", "warm-up cache", FLAG, "", "true",
          "keep the warmed parameters for later runs", .role = ROLE_PROVENANCE,
          .when = {{"world.kind", "llm"}}),
    FIELD("world.reference", "reference model", TEXT, "", "initial",
          "the policy of ref_kl_coef: initial (after the warm-up) or the folder of a model of the "
          "same shape. Where it is stated, kl_ref is measured even if the algorithm has no use for "
          "it",
          .is_file = true, .when = {{"world.kind", "llm"}}),
};

FIELD_TABLE(llm_fields, entries);
