/* The fields of the section `world.model`, which describes a decoder. */
#include "core/config/fields.h"

#include "llm/model/internal.h"

#include <math.h>

static const field entries[] = {
    FIELD("world.model", "model", SECTION, "", NULL,
          "a folder {path: FOLDER}, or the shape of a decoder with random weights",
          .when = {{"world.kind", "llm"}}),
    FIELD("world.model.path", "model folder", TEXT, "", NULL,
          "a folder with Hugging Face's config.json and model.safetensors, also in shards. A key "
          "of config.json that asks for what is not computed here is refused, and one that is not "
          "known is named. {seed} in it is replaced by the run's seed: every seed begins from a "
          "start "
          "of its own",
          .is_file = true),
    FIELD("world.model.checksum", "model checksum", TEXT, "", NULL,
          "the checksum of that folder's config.json, tokenizer.json and parameters, and a run "
          "begins "
          "from no others. The cells of a sweep have it by themselves",
          .role = ROLE_PROVENANCE, .unless = {"world.model.path", NULL}),
    FIELD(
        "world.model.model_type", "model type", CHOICE("qwen3", "qwen2", "llama"), "", "qwen3",
        "as in config.json. qwen3 has an RMS norm of queries and keys; qwen2 has none, and biases "
        "of queries, keys and values; llama has neither",
        .when = {{"world.model.path", NULL}}),
    FIELD("world.model.layers", "layers", COUNT(1, MODEL_MAX_LAYERS), "", "2", "decoder layers",
          .when = {{"world.model.path", NULL}}),
    FIELD("world.model.hidden", "hidden size", COUNT(1, MODEL_MAX_SIZE), "", "64",
          "width of the residual stream", .when = {{"world.model.path", NULL}}),
    FIELD("world.model.intermediate", "intermediate size", COUNT(1, MODEL_MAX_SIZE), "", NULL,
          "width of the feed-forward layer", .rule = "3 × hidden"),
    FIELD("world.model.heads", "heads", COUNT(1, INFINITY), "", "4", "query heads",
          .when = {{"world.model.path", NULL}}),
    FIELD("world.model.kv_heads", "key-value heads", COUNT(1, INFINITY), "", NULL,
          "key and value heads; divides `heads`", .rule = "heads / 2, or heads where that is odd"),
    FIELD("world.model.head_dim", "head size", COUNT(2, 1 << 16), "", NULL,
          "width of a head, an even number",
          .rule = "hidden / heads, rounded down to an even number"),
    FIELD("world.model.context", "context", COUNT(1, MODEL_MAX_SIZE), "tokens", "256",
          "longest sequence of prompt and response", .when = {{"world.model.path", NULL}}),
    FIELD("world.model.tied", "tied embedding", FLAG, "", "true",
          "the output weights are those of the embedding", .when = {{"world.model.path", NULL}}),
    FIELD("world.model.rope_theta", "rotary base", POSITIVE, "", "10000",
          "base of the rotary embedding", .when = {{"world.model.path", NULL}}),
    FIELD("world.model.rms_eps", "norm eps", POSITIVE, "", "1e-06",
          "added to the mean square in RMS norms", .when = {{"world.model.path", NULL}}),
    FIELD("world.model.initializer_range", "initial weights", POSITIVE, "", "0.02",
          "standard deviation of the random weights", .when = {{"world.model.path", NULL}}),
};

FIELD_TABLE(llm_model_fields, entries);
