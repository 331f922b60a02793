/* A model's configuration: read from a recipe's section or from config.json, checked, and written
 * as config.json. */
#include "core/base/json.h"
#include "core/config/fields.h"
#include "llm/model/internal.h"

#include <stdlib.h>
#include <string.h>

static const model_traits types[MODEL_TYPES] = {
    [MODEL_QWEN3] = {"qwen3", "Qwen3ForCausalLM", 1, 0, 32768},
    [MODEL_QWEN2] = {"qwen2", "Qwen2ForCausalLM", 0, 1, 32768},
    [MODEL_LLAMA] = {"llama", "LlamaForCausalLM", 0, 0, 2048},
};

const model_traits *model_traits_of(const model_config *c) {
  return &types[c->type];
}

gl_status model_config_read(model_config *out, const cfg_node *section, size_t vocabulary,
                            gl_error *err) {
  cfg_reader r;
  model_config c = {.vocabulary = vocabulary, .begin = -1, .end = -1, .pad = -1};
  cfg_begin_at(&r, section, "world.model", "model", err);
  c.type = (model_type)field_choice(&r, "model_type");
  c.layers = field_count(&r, "layers");
  c.hidden = field_count(&r, "hidden");
  c.heads = cfg_count(&r, "heads", (size_t)field_default(&r, "heads"), 1, c.hidden);
  c.kv_heads = cfg_count(&r, "kv_heads", c.heads % 2 == 0 ? c.heads / 2 : c.heads, 1, c.heads);
  size_t even = c.hidden / c.heads / 2 * 2;
  c.head_dim = field_count_or(&r, "head_dim", even > 0 ? even : 2);
  c.intermediate = field_count_or(&r, "intermediate", 3 * c.hidden);
  c.max_positions = field_count(&r, "context");
  c.tied = field_flag(&r, "tied");
  c.rope_theta = field_real(&r, "rope_theta");
  c.rms_eps = field_real(&r, "rms_eps");
  c.initializer_range = field_real(&r, "initializer_range");
  if (cfg_end(&r) != GL_OK) return r.status;
  gl_error why = {0};
  gl_status status = model_config_check(&c, &why);
  if (status != GL_OK)
    return section != NULL ? cfg_fail(section, err, "%s", why.text)
                           : gl_fail(err, status, "%s", why.text);
  *out = c;
  return GL_OK;
}

int model_add_product(size_t *sum, size_t a, size_t b, size_t c) {
  size_t product;
  return !__builtin_mul_overflow(a, b, &product) && !__builtin_mul_overflow(product, c, &product) &&
         !__builtin_add_overflow(*sum, product, sum);
}

/* Returns 0 if an array of doubles could not hold that many parameters. */
static int count_parameters(const model_config *c, size_t *n) {
  const size_t q = c->heads, kv = c->kv_heads, d = c->head_dim, h = c->hidden, l = c->layers;
  const model_traits *t = model_traits_of(c);
  size_t width = 0, heads = 0, vectors = 0;
  *n = 0;
  return model_add_product(&heads, q + 2 * kv, d, 1) && model_add_product(&heads, q, d, 1) &&
         model_add_product(&width, c->intermediate, 3, 1) && model_add_product(n, l, heads, h) &&
         model_add_product(n, l, width, h) &&
         model_add_product(n, c->vocabulary, h, c->tied ? 1 : 2) &&
         model_add_product(&vectors, h + (t->qk_norm ? d : 0), 2, l) &&
         (!t->qkv_bias || model_add_product(&vectors, q + 2 * kv, d, l)) &&
         model_add_product(n, vectors, 1, 1) && model_add_product(n, h, 1, 1) &&
         *n <= SIZE_MAX / 2 / sizeof(double);
}

gl_status model_config_check(const model_config *c, gl_error *err) {
  size_t n;
  const size_t sizes[] = {c->vocabulary, c->hidden,   c->intermediate, c->layers,
                          c->heads,      c->kv_heads, c->head_dim,     c->max_positions};
  for (size_t i = 0; i < sizeof sizes / sizeof *sizes; ++i)
    if (sizes[i] < 1 || sizes[i] > MODEL_MAX_SIZE)
      return gl_fail(err, GL_EINPUT, "a model's sizes must be from 1 to %d, not %zu",
                     (int)MODEL_MAX_SIZE, sizes[i]);
  if (c->layers > MODEL_MAX_LAYERS)
    return gl_fail(err, GL_EINPUT, "%zu layers; at most %d are supported", c->layers,
                   (int)MODEL_MAX_LAYERS);
  if (c->heads % c->kv_heads != 0)
    return gl_fail(err, GL_EINPUT,
                   "%zu query heads cannot share %zu key and value heads; the first must be a "
                   "multiple of the second",
                   c->heads, c->kv_heads);
  if (c->head_dim % 2 != 0)
    return gl_fail(err, GL_EINPUT, "head_dim is %zu; rotary embedding needs an even one",
                   c->head_dim);
  if (!(c->rms_eps > 0) || !(c->rope_theta > 0) || !(c->initializer_range > 0))
    return gl_fail(err, GL_EINPUT, "rms_eps, rope_theta and initializer_range must be positive");
  if (c->begin >= (int32_t)c->vocabulary || c->end >= (int32_t)c->vocabulary ||
      c->pad >= (int32_t)c->vocabulary)
    return gl_fail(err, GL_EINPUT, "a special token's number lies outside the vocabulary of %zu",
                   c->vocabulary);
  if (!count_parameters(c, &n))
    return gl_fail(err, GL_EINPUT, "this model has more parameters than any memory holds");
  return GL_OK;
}

size_t model_config_parameters(const model_config *c) {
  size_t n;
  return count_parameters(c, &n) ? n : 0;
}

/* --- config.json of Hugging Face --- */

enum { MAX_CONFIG_BYTES = 1 << 20 };

gl_status model_read_text(char **out, size_t *size, const char *path, size_t most, gl_error *err) {
  FILE *from = fopen(path, "rb");
  if (from == NULL)
    return gl_fail(err, errno == ENOENT || errno == ENOTDIR ? GL_EINPUT : GL_EIO,
                   "%.400s: cannot be read: %s", path, strerror(errno));
  char *text = malloc(most + 1);
  gl_status status = GL_OK;
  if (text == NULL)
    status = gl_fail_memory(err, path);
  else {
    *size = fread(text, 1, most + 1, from);
    if (ferror(from))
      status = gl_fail(err, GL_EIO, "%.400s: cannot be read: %s", path, strerror(errno));
    else if (*size > most)
      status = gl_fail(err, GL_EINPUT, "%.400s: larger than %zu bytes, which no such file is", path,
                       most);
  }
  fclose(from);
  if (status != GL_OK) {
    free(text);
    text = NULL;
  }
  *out = text;
  return status;
}

/* --- config.json --- */

typedef enum key_kind {
  KEY_SIZE,   /* an integer from 1 to MODEL_MAX_SIZE */
  KEY_REAL,   /* a positive number */
  KEY_FLAG,   /* true or false */
  KEY_TOKEN,  /* a token's number, a list of them (the first is used) or null */
  KEY_WORD,   /* only one string is allowed */
  KEY_ONE,    /* only the number 1 is allowed, or null */
  KEY_OFF,    /* false, 0, null or empty: a feature that this model does not support */
  KEY_SPECIAL /* read by the key's own function */
} key_kind;

/* Values of keys that have their own functions. They are combined at the end, because keys may come
 * in any order. */
typedef struct config_parts {
  model_type type;
  unsigned architectures;       /* bit 1 << type for each class that `architectures` names */
  int has_architectures, ropes; /* ropes: how many objects have set `scaling` */
  double theta; /* rope_theta in rope_parameters, which has precedence over the top-level one; 0:
                   not given */
  rotary_scaling scaling;
} config_parts;

typedef struct config_key {
  const char *key;
  key_kind kind;
  size_t offset; /* offset of the value in model_config */
  int required;  /* 1: the key must be present; 0: the default of transformers applies */
  /* KEY_WORD: the allowed string; KEY_OFF, KEY_ONE: the feature that another value would enable */
  const char *word;
  void (*read)(json_reader *r, config_parts *parts);
} config_key;

static void read_model_type(json_reader *r, config_parts *parts);
static void read_rope(json_reader *r, config_parts *parts);
static void read_layer_types(json_reader *r, config_parts *parts);
static void read_architectures(json_reader *r, config_parts *parts);

#define AT(member) offsetof(model_config, member)
static const config_key config_keys[] = {
    {"model_type", KEY_SPECIAL, 0, 1, NULL, read_model_type},
    {"vocab_size", KEY_SIZE, AT(vocabulary), 1, NULL, NULL},
    {"hidden_size", KEY_SIZE, AT(hidden), 1, NULL, NULL},
    {"intermediate_size", KEY_SIZE, AT(intermediate), 1, NULL, NULL},
    {"num_hidden_layers", KEY_SIZE, AT(layers), 1, NULL, NULL},
    {"num_attention_heads", KEY_SIZE, AT(heads), 1, NULL, NULL},
    {"num_key_value_heads", KEY_SIZE, AT(kv_heads), 1, NULL, NULL},
    {"head_dim", KEY_SIZE, AT(head_dim), 0, NULL, NULL},
    {"max_position_embeddings", KEY_SIZE, AT(max_positions), 0, NULL, NULL},
    {"rms_norm_eps", KEY_REAL, AT(rms_eps), 0, NULL, NULL},
    {"rope_theta", KEY_REAL, AT(rope_theta), 0, NULL, NULL},
    {"initializer_range", KEY_REAL, AT(initializer_range), 0, NULL, NULL},
    {"tie_word_embeddings", KEY_FLAG, AT(tied), 0, NULL, NULL},
    {"bos_token_id", KEY_TOKEN, AT(begin), 0, NULL, NULL},
    {"eos_token_id", KEY_TOKEN, AT(end), 0, NULL, NULL},
    {"pad_token_id", KEY_TOKEN, AT(pad), 0, NULL, NULL},
    {"hidden_act", KEY_WORD, 0, 0, "silu", NULL},
    {"attention_bias", KEY_OFF, 0, 0, "biases of the attention's projections", NULL},
    {"attention_dropout", KEY_OFF, 0, 0, "dropout", NULL},
    {"use_sliding_window", KEY_OFF, 0, 0, "sliding-window attention", NULL},
    {"quantization_config", KEY_OFF, 0, 0, "quantised weights", NULL},
    /* Keys of other models and of variants of this one that change the forward pass. Logits: */
    {"logit_softcap", KEY_OFF, 0, 0, "soft-capped logits", NULL},
    {"logits_soft_cap", KEY_OFF, 0, 0, "soft-capped logits", NULL},
    {"final_logit_softcapping", KEY_OFF, 0, 0, "soft-capped logits", NULL},
    {"logit_scale", KEY_ONE, 0, 0, "scaled logits", NULL},
    {"logits_scaling", KEY_ONE, 0, 0, "scaled logits", NULL},
    {"output_multiplier_scale", KEY_ONE, 0, 0, "scaled logits", NULL},
    {"lm_head_bias", KEY_OFF, 0, 0, "a bias of the logits", NULL},
    /* attention: */
    {"attn_logit_softcap", KEY_OFF, 0, 0, "soft-capped attention", NULL},
    {"attn_logit_softcapping", KEY_OFF, 0, 0, "soft-capped attention", NULL},
    {"attn_temperature_tuning", KEY_OFF, 0, 0, "attention scaled by position", NULL},
    {"query_pre_attn_scalar", KEY_OFF, 0, 0, "another scale of attention", NULL},
    {"attention_multiplier", KEY_OFF, 0, 0, "another scale of attention", NULL},
    {"attention_scale", KEY_OFF, 0, 0, "another scale of attention", NULL},
    {"softmax_scale", KEY_OFF, 0, 0, "another scale of attention", NULL},
    {"attention_sink", KEY_OFF, 0, 0, "attention sinks", NULL},
    {"attention_sinks", KEY_OFF, 0, 0, "attention sinks", NULL},
    {"attention_chunk_size", KEY_OFF, 0, 0, "attention in chunks", NULL},
    {"sliding_window_pattern", KEY_OFF, 0, 0, "sliding-window attention", NULL},
    {"layer_window_sizes", KEY_OFF, 0, 0, "sliding-window attention", NULL},
    {"qkv_bias", KEY_OFF, 0, 0, "biases of the attention's projections", NULL},
    {"use_qkv_bias", KEY_OFF, 0, 0, "biases of the attention's projections", NULL},
    {"attention_out_bias", KEY_OFF, 0, 0, "biases of the attention's projections", NULL},
    {"attn_output_gate", KEY_OFF, 0, 0, "gated attention", NULL},
    {"kv_lora_rank", KEY_OFF, 0, 0, "keys and values of low rank", NULL},
    {"q_lora_rank", KEY_OFF, 0, 0, "queries of low rank", NULL},
    {"full_attention_interval", KEY_OFF, 0, 0, "layers of linear attention", NULL},
    {"alibi", KEY_OFF, 0, 0, "positions by attention biases", NULL},
    {"use_alibi", KEY_OFF, 0, 0, "positions by attention biases", NULL},
    /* rotary embeddings: */
    {"partial_rotary_factor", KEY_ONE, 0, 0, "rotary embedding of a part of each head", NULL},
    {"rotary_pct", KEY_ONE, 0, 0, "rotary embedding of a part of each head", NULL},
    {"rotary_dim", KEY_OFF, 0, 0, "rotary embedding of a part of each head", NULL},
    {"rope_local_base_freq", KEY_OFF, 0, 0, "a second base of rotary embeddings", NULL},
    {"rope_interleave", KEY_OFF, 0, 0, "interleaved rotary embeddings", NULL},
    {"rope_interleaved", KEY_OFF, 0, 0, "interleaved rotary embeddings", NULL},
    {"no_rope_layers", KEY_OFF, 0, 0, "layers without rotary embeddings", NULL},
    {"no_rope_layer_interval", KEY_OFF, 0, 0, "layers without rotary embeddings", NULL},
    {"use_mrope", KEY_OFF, 0, 0, "rotary embeddings of several axes", NULL},
    /* the feed-forward part and the rest: */
    {"hidden_activation", KEY_WORD, 0, 0, "silu", NULL},
    {"activation_function", KEY_WORD, 0, 0, "silu", NULL},
    {"mlp_bias", KEY_OFF, 0, 0, "biases of the feed-forward layers", NULL},
    {"use_bias", KEY_OFF, 0, 0, "biases", NULL},
    {"num_experts", KEY_OFF, 0, 0, "a mixture of experts", NULL},
    {"num_local_experts", KEY_OFF, 0, 0, "a mixture of experts", NULL},
    {"n_routed_experts", KEY_OFF, 0, 0, "a mixture of experts", NULL},
    {"n_shared_experts", KEY_OFF, 0, 0, "a mixture of experts", NULL},
    {"num_experts_per_tok", KEY_OFF, 0, 0, "a mixture of experts", NULL},
    {"moe_intermediate_size", KEY_OFF, 0, 0, "a mixture of experts", NULL},
    {"embedding_multiplier", KEY_ONE, 0, 0, "scaled embeddings", NULL},
    {"scale_emb", KEY_ONE, 0, 0, "scaled embeddings", NULL},
    {"normalize_embeddings", KEY_OFF, 0, 0, "normalised embeddings", NULL},
    {"residual_multiplier", KEY_ONE, 0, 0, "scaled residuals", NULL},
    {"scale_depth", KEY_OFF, 0, 0, "scaled residuals", NULL},
    {"num_nextn_predict_layers", KEY_OFF, 0, 0, "layers that predict several tokens", NULL},
    {"hidden_dropout", KEY_OFF, 0, 0, "dropout", NULL},
    {"hidden_dropout_prob", KEY_OFF, 0, 0, "dropout", NULL},
    {"embd_pdrop", KEY_OFF, 0, 0, "dropout", NULL},
    {"attn_pdrop", KEY_OFF, 0, 0, "dropout", NULL},
    {"resid_pdrop", KEY_OFF, 0, 0, "dropout", NULL},
    {"is_encoder_decoder", KEY_OFF, 0, 0, "an encoder", NULL},
    {"add_cross_attention", KEY_OFF, 0, 0, "cross-attention", NULL},
    {"cross_attention_hidden_size", KEY_OFF, 0, 0, "cross-attention", NULL},
    {"pruned_heads", KEY_OFF, 0, 0, "heads that were taken out", NULL},
    {"quantization", KEY_OFF, 0, 0, "quantised weights", NULL},
    {"auto_map", KEY_OFF, 0, 0, "code of its own", NULL},
    {"architectures", KEY_SPECIAL, 0, 0, NULL, read_architectures},
    {"layer_types", KEY_SPECIAL, 0, 0, NULL, read_layer_types},
    {"rope_parameters", KEY_SPECIAL, 0, 0, NULL, read_rope},
    {"rope_scaling", KEY_SPECIAL, 0, 0, NULL, read_rope},
};
enum { N_KEYS = sizeof config_keys / sizeof *config_keys };

/* Keys that do not affect what the model computes: the file's origin, how transformers stores and
 * runs it, and defaults of its generate(), which here come from the recipe. The window's size and
 * first layer have an effect only with use_sliding_window. */
static const char *const harmless[] = {
    "_attn_implementation",
    "_attn_implementation_autoset",
    "_commit_hash",
    "_name_or_path",
    "attn_implementation",
    "bad_words_ids",
    "begin_suppress_tokens",
    "chunk_size_feed_forward",
    "decoder_start_token_id",
    "diversity_penalty",
    "do_sample",
    "dtype",
    "early_stopping",
    "encoder_no_repeat_ngram_size",
    "exponential_decay_length_penalty",
    "finetuning_task",
    "forced_bos_token_id",
    "forced_eos_token_id",
    "gradient_checkpointing",
    "id2label",
    "is_decoder",
    "label2id",
    "length_penalty",
    "max_length",
    "max_window_layers",
    "min_length",
    "model_name",
    "name_or_path",
    "no_repeat_ngram_size",
    "num_beam_groups",
    "num_beams",
    "num_labels",
    "num_return_sequences",
    "output_attentions",
    "output_hidden_states",
    "output_scores",
    "prefix",
    "pretraining_tp",
    "problem_type",
    "remove_invalid_values",
    "repetition_penalty",
    "return_dict",
    "return_dict_in_generate",
    "sep_token_id",
    "sliding_window",
    "suppress_tokens",
    "task_specific_params",
    "temperature",
    "tf_legacy_loss",
    "tie_encoder_decoder",
    "tokenizer_class",
    "top_k",
    "top_p",
    "torch_dtype",
    "torchscript",
    "transformers_version",
    "typical_p",
    "unsloth_fixed",
    "unsloth_version",
    "use_bfloat16",
    "use_cache",
};

static int is_harmless(const char *key) {
  for (size_t i = 0; i < sizeof harmless / sizeof *harmless; ++i)
    if (strcmp(key, harmless[i]) == 0) return 1;
  return 0;
}

/* Adds a key to the list for messages. A long list is cut; control characters are replaced by '?'.
 */
static void name_unknown(char list[MODEL_UNKNOWN_SIZE], const char *key) {
  static const char more[] = ", …";
  size_t used = strlen(list), size = strlen(key), comma = used > 0 ? 2 : 0;
  if (used >= sizeof more - 1 && strcmp(list + used - (sizeof more - 1), more) == 0) return;
  if (used + comma + size + sizeof more > MODEL_UNKNOWN_SIZE) {
    if (used > 0)
      memcpy(list + used, more, sizeof more);
    else
      strcpy(list, "one with a very long name");
    return;
  }
  if (comma > 0) memcpy(list + used, ", ", 2);
  for (size_t i = 0; i <= size; ++i) {
    const unsigned char c = (unsigned char)key[i];
    list[used + comma + i] = c != '\0' && (c < ' ' || c == 0x7f) ? '?' : key[i];
  }
}

static void read_size(json_reader *r, const char *key, size_t *out) {
  size_t value = json_unsigned(r);
  if (value < 1 || value > MODEL_MAX_SIZE)
    json_fail(r, "%s must be from 1 to %d", key, (int)MODEL_MAX_SIZE);
  else
    *out = value;
}

static void read_positive(json_reader *r, const char *key, double *out) {
  double value = json_real(r);
  if (!(value > 0))
    json_fail(r, "%s must be positive", key);
  else
    *out = value;
}

static void read_token(json_reader *r, const char *key, int32_t *out) {
  int n = 0;
  if (json_peek(r) == 'n') {
    json_null(r);
    *out = -1;
    return;
  }
  if (json_peek(r) != '[') {
    size_t value = json_unsigned(r);
    if (value > MODEL_MAX_SIZE) json_fail(r, "%s is no token's number", key);
    *out = (int32_t)value;
    return;
  }
  json_enter(r, '[');
  while (json_element(r)) {
    size_t value = json_unsigned(r);
    if (value > MODEL_MAX_SIZE) json_fail(r, "%s is no token's number", key);
    if (n++ == 0) *out = (int32_t)value;
  }
}

static void must_be_word(json_reader *r, const char *key, const char *allowed) {
  json_string(r);
  if (r->status == GL_OK && strcmp(r->word, allowed) != 0)
    json_fail(r, "%s \"%.60s\" is not supported; only \"%s\" is", key, r->word, allowed);
}

/* Refuses a key whose value is not null, false, 0, {} or [], because it asks for a feature. */
static void must_be_off(json_reader *r, const char *key, const char *what) {
  int on = 1;
  switch (json_peek(r)) {
  case 'n':
    json_null(r);
    return;
  case 't':
  case 'f':
    on = json_truth(r);
    break;
  case '{':
    json_enter(r, '{');
    on = json_member(r);
    break;
  case '[':
    json_enter(r, '[');
    on = json_element(r);
    break;
  case '"':
    break;
  default:
    on = json_real(r) != 0;
  }
  if (on) json_fail(r, "%s asks for %s, which is not supported; use a model without it", key, what);
}

static void must_be_one(json_reader *r, const char *key, const char *what) {
  if (json_peek(r) == 'n')
    json_null(r);
  else if (json_real(r) != 1)
    json_fail(r, "%s other than 1 asks for %s, which is not supported; use a model without it", key,
              what);
}

static void read_model_type(json_reader *r, config_parts *parts) {
  json_string(r);
  while (r->status == GL_OK && parts->type < MODEL_TYPES &&
         strcmp(r->word, types[parts->type].word) != 0)
    ++parts->type;
  if (parts->type == MODEL_TYPES)
    json_fail(r, "model_type \"%.60s\" is not supported; qwen3, qwen2 and llama are", r->word);
}

/* The rope_type of an object: 1 for llama3, 0 for default. */
static int read_rope_type(json_reader *r) {
  json_string(r);
  const int scaled = r->status == GL_OK && strcmp(r->word, "llama3") == 0;
  if (r->status == GL_OK && !scaled && strcmp(r->word, "default") != 0)
    json_fail(r, "rope_type \"%.60s\" is not supported; only \"default\" and \"llama3\" are",
              r->word);
  return scaled;
}

/* Reads null, {"rope_type": "default", "rope_theta": …} or Llama 3's scaling: the value of
 * rope_parameters, or of rope_scaling in older files. */
static void read_rope(json_reader *r, config_parts *parts) {
  int scaled = 0;
  rotary_scaling s = {0};
  const struct {
    const char *key;
    double *at;
  } numbers[] = {{"rope_theta", &parts->theta},
                 {"factor", &s.factor},
                 {"low_freq_factor", &s.low},
                 {"high_freq_factor", &s.high},
                 {"original_max_position_embeddings", &s.positions}};
  enum { N_NUMBERS = sizeof numbers / sizeof *numbers };
  if (json_peek(r) == 'n') {
    json_null(r);
    return;
  }
  json_enter(r, '{');
  while (json_member(r)) {
    size_t i = 0;
    while (i < N_NUMBERS && strcmp(r->word, numbers[i].key) != 0) ++i;
    if (strcmp(r->word, "rope_type") == 0 || strcmp(r->word, "type") == 0)
      scaled = read_rope_type(r);
    else if (i < N_NUMBERS)
      read_positive(r, numbers[i].key, numbers[i].at);
    else if (strcmp(r->word, "partial_rotary_factor") == 0) {
      if (json_real(r) != 1) json_fail(r, "only a partial_rotary_factor of 1 is supported");
    } else
      json_fail(
          r,
          "scaled rotary embeddings (\"%.60s\") are not supported; only rope_type \"default\" "
          "with rope_theta, and \"llama3\"",
          r->word);
  }
  if (!scaled && (s.factor > 0 || s.low > 0 || s.high > 0 || s.positions > 0))
    json_fail(r, "a factor of rotary embeddings is given without rope_type \"llama3\"");
  if (scaled && !(s.factor > 0 && s.low > 0 && s.high > s.low && s.positions > 0))
    json_fail(r, "rope_type \"llama3\" needs factor, low_freq_factor, a high_freq_factor above it "
                 "and original_max_position_embeddings");
  if (parts->ropes++ > 0 && memcmp(&s, &parts->scaling, sizeof s) != 0)
    json_fail(r, "rope_scaling and rope_parameters differ; keep one");
  parts->scaling = s;
}

static void read_layer_types(json_reader *r, config_parts *parts) {
  (void)parts;
  if (json_peek(r) == 'n') {
    json_null(r);
    return;
  }
  json_enter(r, '[');
  while (json_element(r)) must_be_word(r, "layer_types", "full_attention");
}

static void read_architectures(json_reader *r, config_parts *parts) {
  if (json_peek(r) == 'n') {
    json_null(r);
    return;
  }
  json_enter(r, '[');
  while (json_element(r)) {
    json_string(r);
    for (size_t i = 0; i < MODEL_TYPES && r->status == GL_OK; ++i)
      if (strcmp(r->word, types[i].architecture) == 0) parts->architectures |= 1u << i;
  }
  parts->has_architectures = 1;
}

/* Reads the value of a known key as its kind requires. */
static void read_key(json_reader *r, const config_key *f, model_config *c, config_parts *parts) {
  void *at = (char *)c + f->offset;
  switch (f->kind) {
  case KEY_SIZE:
    /* null means the number of query heads, or the default, as in transformers */
    if ((f->offset == AT(kv_heads) || f->offset == AT(head_dim)) && json_peek(r) == 'n') {
      json_null(r);
      return;
    }
    read_size(r, f->key, at);
    return;
  case KEY_REAL:
    read_positive(r, f->key, at);
    return;
  case KEY_FLAG:
    *(int *)at = json_truth(r);
    return;
  case KEY_TOKEN:
    read_token(r, f->key, at);
    return;
  case KEY_WORD:
    must_be_word(r, f->key, f->word);
    return;
  case KEY_ONE:
    must_be_one(r, f->key, f->word);
    return;
  case KEY_OFF:
    must_be_off(r, f->key, f->word);
    return;
  case KEY_SPECIAL:
    f->read(r, parts);
  }
}

/* Combines the values in `parts` into c and fills in the defaults that depend on the type. */
static void finish_config(json_reader *r, model_config *c, const config_parts *parts) {
  if (r->status != GL_OK) return;
  const model_traits *t = &types[parts->type];
  if (parts->has_architectures && (parts->architectures & 1u << parts->type) == 0)
    json_fail(r, "architectures does not name %s, that of model_type \"%s\"", t->architecture,
              t->word);
  c->type = parts->type;
  c->scaling = parts->scaling;
  if (c->kv_heads == 0) c->kv_heads = c->heads;
  if (c->head_dim == 0) c->head_dim = c->type == MODEL_QWEN3 ? 128 : c->hidden / c->heads;
  if (c->max_positions == 0) c->max_positions = t->max_positions;
  if (parts->theta > 0) c->rope_theta = parts->theta;
}

gl_status model_config_parse(model_config *out, const char *json, size_t size, const char *name,
                             gl_error *err) {
  model_config c = {.rms_eps = 1e-6,
                    .rope_theta = 10000,
                    .initializer_range = 0.02,
                    .begin = -1,
                    .end = -1,
                    .pad = -1};
  unsigned char seen[N_KEYS] = {0};
  config_parts parts = {0};
  json_reader r;
  json_begin(&r, json, size, name, err);
  json_enter(&r, '{');
  while (json_member(&r)) {
    size_t i = 0;
    while (i < N_KEYS && strcmp(r.word, config_keys[i].key) != 0) ++i;
    if (i == N_KEYS) {
      if (!is_harmless(r.word)) name_unknown(c.unknown, r.word);
      json_skip(&r);
    } else if (seen[i]++)
      json_fail(&r, "%s is given twice", config_keys[i].key);
    else
      read_key(&r, &config_keys[i], &c, &parts);
  }
  for (size_t i = 0; i < N_KEYS && r.status == GL_OK; ++i)
    if (config_keys[i].required && !seen[i])
      json_fail(&r, "there is no %s; is this the config.json of a Qwen or Llama model?",
                config_keys[i].key);
  finish_config(&r, &c, &parts);
  gl_status status = json_end(&r);
  if (status != GL_OK) return status;
  gl_error why = {0};
  status = model_config_check(&c, &why);
  if (status != GL_OK) return gl_fail(err, status, "%.300s: %s", name, why.text);
  *out = c;
  return GL_OK;
}

gl_status model_config_load(model_config *out, const char *path, gl_error *err) {
  char *text = NULL;
  size_t size = 0;
  gl_status status = model_read_text(&text, &size, path, MAX_CONFIG_BYTES, err);
  if (status == GL_OK) status = model_config_parse(out, text, size, path, err);
  free(text);
  return status;
}

/* --- writing --- */

static int add_words(cJSON *to, const char *key, const char *word, size_t n) {
  cJSON *list = cJSON_AddArrayToObject(to, key);
  int good = list != NULL;
  for (size_t i = 0; good && i < n; ++i) good = json_add_string(list, NULL, word) != NULL;
  return good;
}

static int add_token(cJSON *to, const char *key, int32_t token) {
  return token < 0 ? cJSON_AddNullToObject(to, key) != NULL
                   : json_add_number(to, key, token) != NULL;
}

/* Adds rope_scaling or rope_parameters. Newer versions of transformers read rope_theta from
 * rope_parameters, older ones from the top level. It is written to both places. */
static int add_rope(cJSON *to, const char *key, const model_config *c, int parameters) {
  const rotary_scaling *s = &c->scaling;
  const int scaled = s->factor > 0;
  if (!parameters && !scaled) return cJSON_AddNullToObject(to, key) != NULL;
  cJSON *rope = cJSON_AddObjectToObject(to, key);
  return rope != NULL &&
         (!parameters || json_add_number(rope, "rope_theta", c->rope_theta) != NULL) &&
         json_add_string(rope, "rope_type", scaled ? "llama3" : "default") != NULL &&
         (!scaled ||
          (json_add_number(rope, "factor", s->factor) != NULL &&
           json_add_number(rope, "low_freq_factor", s->low) != NULL &&
           json_add_number(rope, "high_freq_factor", s->high) != NULL &&
           json_add_number(rope, "original_max_position_embeddings", s->positions) != NULL));
}

/* Switches off the options that gepolab's models do not have. The options differ by type, as in
 * transformers' configuration classes. */
static int add_keys_off(cJSON *to, model_type type) {
  return (type == MODEL_QWEN2 || cJSON_AddFalseToObject(to, "attention_bias") != NULL) &&
         cJSON_AddFalseToObject(to, type == MODEL_LLAMA ? "mlp_bias" : "use_sliding_window") !=
             NULL &&
         json_add_number(to, "attention_dropout", 0) != NULL;
}

static int add_config_keys(cJSON *to, const model_config *c) {
  const model_traits *t = model_traits_of(c);
  int good = add_words(to, "architectures", t->architecture, 1) &&
             json_add_string(to, "model_type", t->word) != NULL &&
             json_add_string(to, "hidden_act", "silu") != NULL && add_keys_off(to, c->type) &&
             add_rope(to, "rope_scaling", c, 0) &&
             (c->type == MODEL_LLAMA || add_words(to, "layer_types", "full_attention", c->layers));
  for (size_t i = 0; i < N_KEYS && good; ++i) {
    const config_key *f = &config_keys[i];
    const void *at = (const char *)c + f->offset;
    if (f->kind == KEY_SIZE)
      good = json_add_number(to, f->key, (double)*(const size_t *)at) != NULL;
    else if (f->kind == KEY_REAL)
      good = json_add_number(to, f->key, *(const double *)at) != NULL;
    else if (f->kind == KEY_FLAG)
      good = cJSON_AddBoolToObject(to, f->key, *(const int *)at) != NULL;
    else if (f->kind == KEY_TOKEN)
      good = add_token(to, f->key, *(const int32_t *)at);
  }
  return good && add_rope(to, "rope_parameters", c, 1);
}

char *model_config_json(const model_config *c) {
  cJSON *json = cJSON_CreateObject();
  char *text = json != NULL && add_config_keys(json, c) ? cJSON_Print(json) : NULL;
  cJSON_Delete(json);
  return text;
}
