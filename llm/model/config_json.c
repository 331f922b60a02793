/* What a model is made of, from a folder's config.json and back. */
#include "core/base/json.h"
#include "core/base/json_read.h"
#include "llm/model/internal.h"

#include <stdlib.h>
#include <string.h>

enum { MAX_CONFIG_BYTES = 1 << 20 };

/* --- config.json -------------------------------------------------------------------------------
 */

typedef enum field_kind {
  FIELD_SIZE,   /* a whole number from 1 to MODEL_MAX_SIZE */
  FIELD_REAL,   /* a positive number */
  FIELD_FLAG,   /* true or false */
  FIELD_TOKEN,  /* a token's number, a list of them (the first counts) or null */
  FIELD_WORD,   /* one word is allowed */
  FIELD_OFF,    /* false, 0 or null: a feature this model has not */
  FIELD_SPECIAL /* read by a function of its own */
} field_kind;

typedef struct config_field {
  const char *key;
  field_kind kind;
  size_t offset;    /* of the value in model_config */
  int required;     /* other keys keep the default of transformers' Qwen3Config */
  const char *word; /* FIELD_WORD: what is allowed; FIELD_OFF: what it would be */
  /* theta: where rope_parameters has it, which counts more than rope_theta beside it. */
  void (*read)(json_reader *r, double *theta);
} config_field;

static void read_rope(json_reader *r, double *theta);
static void read_layer_types(json_reader *r, double *theta);
static void read_architectures(json_reader *r, double *theta);

#define AT(member) offsetof(model_config, member)
static const config_field fields[] = {
    {"model_type", FIELD_WORD, 0, 1, "qwen3", NULL},
    {"vocab_size", FIELD_SIZE, AT(vocabulary), 1, NULL, NULL},
    {"hidden_size", FIELD_SIZE, AT(hidden), 1, NULL, NULL},
    {"intermediate_size", FIELD_SIZE, AT(intermediate), 1, NULL, NULL},
    {"num_hidden_layers", FIELD_SIZE, AT(layers), 1, NULL, NULL},
    {"num_attention_heads", FIELD_SIZE, AT(heads), 1, NULL, NULL},
    {"num_key_value_heads", FIELD_SIZE, AT(kv_heads), 1, NULL, NULL},
    {"head_dim", FIELD_SIZE, AT(head_dim), 0, NULL, NULL},
    {"max_position_embeddings", FIELD_SIZE, AT(max_positions), 0, NULL, NULL},
    {"rms_norm_eps", FIELD_REAL, AT(rms_eps), 0, NULL, NULL},
    {"rope_theta", FIELD_REAL, AT(rope_theta), 0, NULL, NULL},
    {"initializer_range", FIELD_REAL, AT(initializer_range), 0, NULL, NULL},
    {"tie_word_embeddings", FIELD_FLAG, AT(tied), 0, NULL, NULL},
    {"bos_token_id", FIELD_TOKEN, AT(begin), 0, NULL, NULL},
    {"eos_token_id", FIELD_TOKEN, AT(end), 0, NULL, NULL},
    {"pad_token_id", FIELD_TOKEN, AT(pad), 0, NULL, NULL},
    {"hidden_act", FIELD_WORD, 0, 0, "silu", NULL},
    {"attention_bias", FIELD_OFF, 0, 0, "biases of the attention's projections", NULL},
    {"attention_dropout", FIELD_OFF, 0, 0, "dropout", NULL},
    {"use_sliding_window", FIELD_OFF, 0, 0, "sliding-window attention", NULL},
    {"quantization_config", FIELD_OFF, 0, 0, "quantised weights", NULL},
    {"architectures", FIELD_SPECIAL, 0, 0, NULL, read_architectures},
    {"layer_types", FIELD_SPECIAL, 0, 0, NULL, read_layer_types},
    {"rope_parameters", FIELD_SPECIAL, 0, 0, NULL, read_rope},
    {"rope_scaling", FIELD_SPECIAL, 0, 0, NULL, read_rope},
};
enum { N_FIELDS = sizeof fields / sizeof *fields };

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
  case '[':
  case '"':
    break;
  default:
    on = json_real(r) != 0;
  }
  if (on) json_fail(r, "%s asks for %s, which is not supported; use a model without it", key, what);
}

/* null or {"rope_type": "default", "rope_theta": …}: rope_parameters, and rope_scaling of older
 * files. */
static void read_rope(json_reader *r, double *theta) {
  if (json_peek(r) == 'n') {
    json_null(r);
    return;
  }
  json_enter(r, '{');
  while (json_member(r)) {
    if (strcmp(r->word, "rope_type") == 0 || strcmp(r->word, "type") == 0)
      must_be_word(r, "rope_type", "default");
    else if (strcmp(r->word, "rope_theta") == 0)
      read_positive(r, "rope_theta", theta);
    else if (strcmp(r->word, "partial_rotary_factor") == 0) {
      if (json_real(r) != 1) json_fail(r, "only a partial_rotary_factor of 1 is supported");
    } else
      json_fail(
          r,
          "scaled rotary embeddings (\"%.60s\") are not supported; only rope_type \"default\" "
          "with rope_theta",
          r->word);
  }
}

static void read_layer_types(json_reader *r, double *theta) {
  (void)theta;
  if (json_peek(r) == 'n') {
    json_null(r);
    return;
  }
  json_enter(r, '[');
  while (json_element(r)) must_be_word(r, "layer_types", "full_attention");
}

static void read_architectures(json_reader *r, double *theta) {
  int found = 0;
  (void)theta;
  if (json_peek(r) == 'n') {
    json_null(r);
    return;
  }
  json_enter(r, '[');
  while (json_element(r)) {
    json_string(r);
    found |= r->status == GL_OK && strcmp(r->word, "Qwen3ForCausalLM") == 0;
  }
  if (!found) json_fail(r, "architectures does not name Qwen3ForCausalLM, the only one supported");
}

static void read_field(json_reader *r, const config_field *f, model_config *c, double *theta) {
  void *at = (char *)c + f->offset;
  switch (f->kind) {
  case FIELD_SIZE:
    /* transformers: as many as there are query heads */
    if (f->offset == AT(kv_heads) && json_peek(r) == 'n') {
      json_null(r);
      return;
    }
    read_size(r, f->key, at);
    return;
  case FIELD_REAL:
    read_positive(r, f->key, at);
    return;
  case FIELD_FLAG:
    *(int *)at = json_truth(r);
    return;
  case FIELD_TOKEN:
    read_token(r, f->key, at);
    return;
  case FIELD_WORD:
    must_be_word(r, f->key, f->word);
    return;
  case FIELD_OFF:
    must_be_off(r, f->key, f->word);
    return;
  case FIELD_SPECIAL:
    f->read(r, theta);
  }
}

gl_status model_config_parse(model_config *out, const char *json, size_t size, const char *name,
                             gl_error *err) {
  model_config c = {.head_dim = 128,
                    .max_positions = 32768,
                    .rms_eps = 1e-6,
                    .rope_theta = 10000,
                    .initializer_range = 0.02,
                    .begin = -1,
                    .end = -1,
                    .pad = -1};
  unsigned char seen[N_FIELDS] = {0};
  double theta = 0;
  json_reader r;
  json_begin(&r, json, size, name, err);
  json_enter(&r, '{');
  while (json_member(&r)) {
    size_t i = 0;
    while (i < N_FIELDS && strcmp(r.word, fields[i].key) != 0) ++i;
    if (i == N_FIELDS)
      json_skip(&r);
    else if (seen[i]++)
      json_fail(&r, "%s is given twice", fields[i].key);
    else
      read_field(&r, &fields[i], &c, &theta);
  }
  for (size_t i = 0; i < N_FIELDS && r.status == GL_OK; ++i)
    if (fields[i].required && !seen[i])
      json_fail(&r, "there is no %s; is this the config.json of a Qwen3 model?", fields[i].key);
  gl_status status = json_end(&r);
  if (status != GL_OK) return status;
  if (c.kv_heads == 0) c.kv_heads = c.heads;
  if (theta > 0) c.rope_theta = theta;
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

/* --- writing -----------------------------------------------------------------------------------
 */

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

static int add_all(cJSON *to, const model_config *c) {
  int good = add_words(to, "architectures", "Qwen3ForCausalLM", 1) &&
             json_add_string(to, "model_type", "qwen3") != NULL &&
             json_add_string(to, "hidden_act", "silu") != NULL &&
             cJSON_AddFalseToObject(to, "attention_bias") != NULL &&
             cJSON_AddFalseToObject(to, "use_sliding_window") != NULL &&
             json_add_number(to, "attention_dropout", 0) != NULL &&
             cJSON_AddNullToObject(to, "rope_scaling") != NULL &&
             add_words(to, "layer_types", "full_attention", c->layers);
  for (size_t i = 0; i < N_FIELDS && good; ++i) {
    const config_field *f = &fields[i];
    const void *at = (const char *)c + f->offset;
    if (f->kind == FIELD_SIZE)
      good = json_add_number(to, f->key, (double)*(const size_t *)at) != NULL;
    else if (f->kind == FIELD_REAL)
      good = json_add_number(to, f->key, *(const double *)at) != NULL;
    else if (f->kind == FIELD_FLAG)
      good = cJSON_AddBoolToObject(to, f->key, *(const int *)at) != NULL;
    else if (f->kind == FIELD_TOKEN)
      good = add_token(to, f->key, *(const int32_t *)at);
  }
  /* Newer transformers keep theta here; older ones read the key beside it. */
  cJSON *rope = good ? cJSON_AddObjectToObject(to, "rope_parameters") : NULL;
  return rope != NULL && json_add_number(rope, "rope_theta", c->rope_theta) != NULL &&
         json_add_string(rope, "rope_type", "default") != NULL;
}

char *model_config_json(const model_config *c) {
  cJSON *json = cJSON_CreateObject();
  char *text = json != NULL && add_all(json, c) ? cJSON_Print(json) : NULL;
  cJSON_Delete(json);
  return text;
}
