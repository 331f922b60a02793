/* config.json and the `model` section of recipes. */
#include "llm/model/model.h"
#include "tests/support/files.h"
#include "tests/support/suite.h"

#include <stdlib.h>
#include <string.h>

SUITE("llm: model configuration");

#define FIXTURE "tests/golden/qwen3/"

TEST(configs_of_two_generations_of_transformers_are_read) {
  model_config c;
  ASSERT_OK(model_config_load(&c, FIXTURE "tied/config.json", &err));
  CU_ASSERT(c.vocabulary == 37 && c.hidden == 32 && c.intermediate == 48 && c.layers == 2);
  CU_ASSERT(c.heads == 4 && c.kv_heads == 2 && c.head_dim == 16 && c.max_positions == 64);
  CU_ASSERT(c.rms_eps == 1e-6 && c.rope_theta == 1000 && c.initializer_range == 0.05 && c.tied);
  CU_ASSERT(c.begin == 1 && c.end == 2 && c.pad == 0);
  ASSERT_OK(model_config_load(&c, FIXTURE "untied/config.json", &err));
  CU_ASSERT(c.vocabulary == 29 && c.layers == 3 && c.kv_heads == 1 && c.rms_eps == 1e-5);
  CU_ASSERT(c.rope_theta == 10000 && !c.tied);
}

TEST(a_config_written_here_reads_back_the_same) {
  model_config c = {.vocabulary = 151936,
                    .hidden = 1024,
                    .intermediate = 3072,
                    .layers = 28,
                    .heads = 16,
                    .kv_heads = 8,
                    .head_dim = 128,
                    .rms_eps = 1e-6,
                    .max_positions = 40960,
                    .rope_theta = 1e6,
                    .tied = 1,
                    .initializer_range = 0.02,
                    .begin = 151643,
                    .end = 151645,
                    .pad = -1};
  model_config d;
  ASSERT_OK(model_config_check(&c, &err));
  /* Qwen3-0.6B: 596,049,920 parameters, as its card says (0.6 B) and transformers counts. */
  CU_ASSERT_EQUAL(model_config_parameters(&c), 596049920);
  char *text = model_config_json(&c);
  CU_ASSERT_PTR_NOT_NULL_FATAL(text);
  ASSERT_OK(model_config_parse(&d, text, strlen(text), "written", &err));
  CU_ASSERT(c.vocabulary == d.vocabulary && c.hidden == d.hidden &&
            c.intermediate == d.intermediate && c.layers == d.layers && c.heads == d.heads &&
            c.kv_heads == d.kv_heads && c.head_dim == d.head_dim &&
            c.max_positions == d.max_positions && c.rms_eps == d.rms_eps &&
            c.rope_theta == d.rope_theta && c.initializer_range == d.initializer_range &&
            c.tied == d.tied && c.begin == d.begin && c.end == d.end && c.pad == d.pad);
  free(text);
}

/* The config.json that Qwen2.5-0.5B and Llama-3.2-1B are published with, without what is not read;
 * the numbers of parameters are those that transformers counts. */
TEST(configs_of_qwen2_and_llama_are_recognised) {
  static const struct {
    const char *json;
    model_type type;
    size_t parameters, head_dim;
    double factor;
  } published[] = {
      {"{\"architectures\":[\"Qwen2ForCausalLM\"],\"attention_dropout\":0.0,"
       "\"bos_token_id\":151643,\"eos_token_id\":151643,\"hidden_act\":\"silu\","
       "\"hidden_size\":896,\"initializer_range\":0.02,\"intermediate_size\":4864,"
       "\"max_position_embeddings\":32768,\"max_window_layers\":24,\"model_type\":\"qwen2\","
       "\"num_attention_heads\":14,\"num_hidden_layers\":24,\"num_key_value_heads\":2,"
       "\"rms_norm_eps\":1e-06,\"rope_theta\":1000000.0,\"sliding_window\":32768,"
       "\"tie_word_embeddings\":true,\"torch_dtype\":\"bfloat16\",\"use_mrope\":false,"
       "\"use_sliding_window\":false,\"vocab_size\":151936}",
       MODEL_QWEN2, 494032768, 64, 0},
      {"{\"architectures\":[\"LlamaForCausalLM\"],\"attention_bias\":false,"
       "\"attention_dropout\":0.0,\"bos_token_id\":128000,\"eos_token_id\":128001,"
       "\"head_dim\":64,\"hidden_act\":\"silu\",\"hidden_size\":2048,"
       "\"initializer_range\":0.02,\"intermediate_size\":8192,"
       "\"max_position_embeddings\":131072,\"mlp_bias\":false,\"model_type\":\"llama\","
       "\"num_attention_heads\":32,\"num_hidden_layers\":16,\"num_key_value_heads\":8,"
       "\"pretraining_tp\":1,\"rms_norm_eps\":1e-05,\"rope_scaling\":{\"factor\":32.0,"
       "\"high_freq_factor\":4.0,\"low_freq_factor\":1.0,"
       "\"original_max_position_embeddings\":8192,\"rope_type\":\"llama3\"},"
       "\"rope_theta\":500000.0,\"tie_word_embeddings\":true,\"vocab_size\":128256}",
       MODEL_LLAMA, 1235814400, 64, 32},
  };
  for (size_t i = 0; i < sizeof published / sizeof *published; ++i) {
    const char *json = published[i].json;
    model_config c, d;
    ASSERT_OK(model_config_parse(&c, json, strlen(json), "published", &err));
    CU_ASSERT(c.type == published[i].type && c.head_dim == published[i].head_dim && c.tied);
    CU_ASSERT_EQUAL(model_config_parameters(&c), published[i].parameters);
    CU_ASSERT_EQUAL(c.scaling.factor, published[i].factor);
    char *text = model_config_json(&c);
    CU_ASSERT_PTR_NOT_NULL_FATAL(text);
    ASSERT_OK(model_config_parse(&d, text, strlen(text), "written", &err));
    CU_ASSERT(d.type == c.type && d.rope_theta == c.rope_theta);
    CU_ASSERT_EQUAL(memcmp(&d.scaling, &c.scaling, sizeof c.scaling), 0);
    free(text);
  }
}

/* --- what is not supported --- */

#define SIZES                                                                                      \
  "\"vocab_size\":10,\"hidden_size\":8,\"intermediate_size\":16,\"num_hidden_layers\":1,"          \
  "\"num_attention_heads\":2,\"num_key_value_heads\":1,\"head_dim\":4"
#define LLAMA3                                                                                     \
  "{\"rope_type\":\"llama3\",\"factor\":8.0,\"low_freq_factor\":1.0,\"high_freq_factor\":4.0,"     \
  "\"original_max_position_embeddings\":8192}"
#define QWEN "\"model_type\":\"qwen3\"," SIZES

static const struct {
  const char *json, *says;
} configs[] = {
    {"{" QWEN "}", NULL},
    {"{" QWEN ",\"rope_scaling\":null,\"rope_theta\":5,\"sliding_window\":4096}", NULL},
    {"{" QWEN ",\"rope_scaling\":{\"rope_type\":\"default\"}}", NULL},
    {"{" QWEN ",\"eos_token_id\":[3,4],\"whatever\":[{\"a\":[]}]}", NULL},
    {"{" QWEN ",\"architectures\":[\"Qwen3ForCausalLM\"],\"hidden_act\":\"silu\"}", NULL},
    {"{" QWEN ",\"rope_scaling\":{\"rope_type\":\"yarn\",\"factor\":4}}", "rope_type \"yarn\""},
    {"{" QWEN ",\"rope_parameters\":{\"rope_type\":\"default\",\"factor\":4}}", "factor"},
    {"{" QWEN ",\"attention_bias\":true}", "attention_bias"},
    {"{" QWEN ",\"use_sliding_window\":true}", "use_sliding_window"},
    {"{" QWEN ",\"layer_types\":[\"sliding_attention\"]}", "layer_types"},
    {"{" QWEN ",\"hidden_act\":\"gelu\"}", "hidden_act \"gelu\""},
    {"{" QWEN ",\"attention_dropout\":0.1}", "attention_dropout"},
    {"{" QWEN ",\"quantization_config\":{\"bits\":4}}", "quantization_config"},
    {"{" QWEN ",\"architectures\":[\"Qwen3ForTokenClassification\"]}", "Qwen3ForCausalLM"},
    {"{" QWEN ",\"logit_softcap\":30}", "logit_softcap asks for soft-capped logits"},
    {"{" QWEN ",\"logit_softcap\":null}", NULL},
    {"{" QWEN ",\"final_logit_softcapping\":30.0}", "final_logit_softcapping"},
    {"{" QWEN ",\"attn_logit_softcapping\":50.0}", "attn_logit_softcapping"},
    {"{" QWEN ",\"query_pre_attn_scalar\":256}", "query_pre_attn_scalar"},
    {"{" QWEN ",\"mlp_bias\":true}", "mlp_bias"},
    {"{" QWEN ",\"mlp_bias\":false}", NULL},
    {"{" QWEN ",\"partial_rotary_factor\":0.5}", "partial_rotary_factor"},
    {"{" QWEN ",\"partial_rotary_factor\":1.0}", NULL},
    {"{" QWEN ",\"embedding_multiplier\":12}", "embedding_multiplier"},
    {"{" QWEN ",\"residual_multiplier\":0.22}", "residual_multiplier"},
    {"{" QWEN ",\"num_experts\":128}", "num_experts"},
    {"{" QWEN ",\"pruned_heads\":{\"0\":[1]}}", "pruned_heads"},
    {"{" QWEN ",\"pruned_heads\":{},\"no_rope_layers\":[]}", NULL},
    {"{" QWEN ",\"no_rope_layers\":[0,1]}", "no_rope_layers"},
    {"{" QWEN ",\"auto_map\":{\"AutoModelForCausalLM\":\"m.M\"}}", "auto_map"},
    {"{" QWEN ",\"hidden_activation\":\"gelu_pytorch_tanh\"}", "hidden_activation"},
    {"{" QWEN ",\"hidden_dropout\":0.1}", "hidden_dropout"},
    {"{" QWEN ",\"vocab_size\":10}", "given twice"},
    {"{" QWEN ",\"eos_token_id\":10}", "special token"},
    {"{" QWEN ",\"rms_norm_eps\":0}", "positive"},
    {"{" QWEN ",\"rms_norm_eps\":1e999}", "too large"},
    {"{\"model_type\":\"mistral\"," SIZES "}", "model_type \"mistral\" is not supported"},
    {"{\"model_type\":\"llama\"," SIZES ",\"architectures\":[\"LlamaForCausalLM\"]}", NULL},
    {"{\"model_type\":\"llama\"," SIZES ",\"architectures\":[\"Qwen2ForCausalLM\"]}",
     "does not name LlamaForCausalLM"},
    {"{" SIZES ",\"architectures\":[\"Qwen2ForCausalLM\"],\"model_type\":\"qwen2\"}", NULL},
    {"{\"model_type\":\"llama\"," SIZES ",\"attention_bias\":true}", "attention_bias"},
    {"{\"model_type\":\"llama\"," SIZES ",\"rope_scaling\":" LLAMA3 "}", NULL},
    {"{\"model_type\":\"llama\"," SIZES ",\"rope_scaling\":" LLAMA3 ",\"rope_parameters\":"
     "{\"rope_type\":\"default\"}}",
     "rope_scaling and rope_parameters differ"},
    {"{\"model_type\":\"llama\"," SIZES
     ",\"rope_scaling\":{\"rope_type\":\"llama3\",\"factor\":8}}",
     "needs factor, low_freq_factor"},
    {"{\"model_type\":\"llama\"," SIZES ",\"rope_scaling\":{\"type\":\"linear\",\"factor\":2}}",
     "rope_type \"linear\""},
    {"{" SIZES "}", "there is no model_type"},
    {"{\"model_type\":\"qwen3\"}", "there is no vocab_size"},
    {"{\"model_type\":\"qwen3\",\"vocab_size\":-3}", "not negative"},
    {"{\"model_type\":\"qwen3\",\"vocab_size\":0}", "from 1"},
    {"{\"model_type\":\"qwen3\",\"vocab_size\":\"10\"}", "expected a number"},
    {"{\"model_type\":\"qwen3\",\"vocab_size\":1e3}", "whole number"},
    {"[]", "expected an object"},
    {"", "cut short"},
};

TEST(what_the_model_has_not_is_refused_by_its_key) {
  for (size_t i = 0; i < sizeof configs / sizeof *configs; ++i) {
    gl_error err = {0};
    model_config c;
    gl_status status =
        model_config_parse(&c, configs[i].json, strlen(configs[i].json), "x/config.json", &err);
    int right = configs[i].says == NULL
                    ? status == GL_OK
                    : status == GL_EINPUT && strstr(err.text, configs[i].says) != NULL &&
                          strstr(err.text, "x/config.json") == err.text;
    if (!right) fprintf(stderr, "%s: %s\n", configs[i].json, err.text);
    CU_ASSERT(right);
  }
}

TEST(other_keys_are_passed_over_and_those_not_known_are_named) {
  static const struct {
    const char *json, *unknown;
  } read[] = {
      {"{" QWEN "}", ""},
      {"{" QWEN
       ",\"torch_dtype\":\"bfloat16\",\"transformers_version\":\"4.51.0\",\"use_cache\":true,"
       "\"sliding_window\":4096,\"max_window_layers\":28,\"id2label\":{\"0\":\"x\"}}",
       ""},
      {"{" QWEN ",\"logit_soft_cap\":30}", "logit_soft_cap"},
      {"{\"mystery\":1," QWEN ",\"Use_Cache\":true}", "mystery, Use_Cache"},
      {"{" QWEN ",\"a\\nb\":1}", "a?b"},
  };
  for (size_t i = 0; i < sizeof read / sizeof *read; ++i) {
    gl_error err = {0};
    model_config c;
    CU_ASSERT_EQUAL_FATAL(model_config_parse(&c, read[i].json, strlen(read[i].json), "c", &err),
                          GL_OK);
    CU_ASSERT_STRING_EQUAL(c.unknown, read[i].unknown);
  }
  /* More than there is room for: what is left out is said to be. */
  char many[4096] = "{" QWEN, key[32];
  for (int i = 0; i < 60; ++i) {
    snprintf(key, sizeof key, ",\"unheard_of_%d\":0", i);
    strcat(many, key);
  }
  strcat(many, "}");
  gl_error err = {0};
  model_config c;
  CU_ASSERT_EQUAL_FATAL(model_config_parse(&c, many, strlen(many), "c", &err), GL_OK);
  CU_ASSERT_PTR_NOT_NULL(strstr(c.unknown, "unheard_of_0, unheard_of_1, "));
  CU_ASSERT_STRING_EQUAL(c.unknown + strlen(c.unknown) - strlen(", …"), ", …");
  CU_ASSERT_PTR_NULL(strstr(c.unknown, "unheard_of_59"));
}

/* A config.json cut short or with one bit flipped is an error with a text, or another valid one
 * (a digit, a key that is not looked at); the sanitizers watch. */
TEST(damaged_configs_are_survived) {
  size_t size;
  unsigned char *text = files_read(FIXTURE "tied/config.json", &size);
  CU_ASSERT_PTR_NOT_NULL_FATAL(text);
  while (size > 0 && text[size - 1] == '\n') --size;
  for (size_t i = 0; i < 9 * size; ++i) {
    const size_t n = i < size ? i : size;
    gl_error err = {0};
    model_config c;
    char *copy = malloc(n + 1); /* exact, so that a byte read beyond it is seen */
    CU_ASSERT_PTR_NOT_NULL_FATAL(copy);
    memcpy(copy, text, n);
    if (i >= size) copy[(i - size) / 8] ^= (char)(1 << (i - size) % 8);
    char *exact = realloc(copy, n > 0 ? n : 1);
    gl_status status = model_config_parse(&c, exact, n, "damaged.json", &err);
    if (i < size) CU_ASSERT_EQUAL(status, GL_EINPUT);
    CU_ASSERT(status == GL_OK || strstr(err.text, "damaged.json") == err.text);
    free(exact);
  }
  free(text);
}

TEST(sizes_that_do_not_fit_together_are_refused) {
  gl_error err = {0};
  const model_config good = {.vocabulary = 8,
                             .hidden = 8,
                             .intermediate = 8,
                             .layers = 1,
                             .heads = 4,
                             .kv_heads = 2,
                             .head_dim = 2,
                             .rms_eps = 1,
                             .max_positions = 4,
                             .rope_theta = 1,
                             .begin = -1,
                             .initializer_range = 1,
                             .end = -1,
                             .pad = -1};
  CU_ASSERT_EQUAL(model_config_check(&good, &err), GL_OK);
  model_config c = good;
  c.kv_heads = 3;
  CU_ASSERT_EQUAL(model_config_check(&c, &err), GL_EINPUT);
  c = good;
  c.head_dim = 3;
  CU_ASSERT_EQUAL(model_config_check(&c, &err), GL_EINPUT);
  c = good;
  c.hidden = 0;
  CU_ASSERT_EQUAL(model_config_check(&c, &err), GL_EINPUT);
  c = good;
  c.vocabulary = c.hidden = c.intermediate = c.head_dim = (size_t)1 << 30;
  c.layers = 4096;
  c.heads = c.kv_heads = (size_t)1 << 30;
  CU_ASSERT_EQUAL(model_config_check(&c, &err), GL_EINPUT);
  CU_ASSERT_EQUAL(model_config_parameters(&c), 0);
}

static gl_status read_section(const char *text, model_config *c, gl_error *err) {
  cfg_doc *doc = NULL;
  gl_status status = cfg_load_text(&doc, text, strlen(text), "r.yaml", err);
  if (status == GL_OK) status = model_config_read(c, cfg_find(cfg_root(doc), "model"), 17, err);
  cfg_free(doc);
  return status;
}

TEST(a_recipe_describes_a_model) {
  gl_error err = {0};
  model_config c;
  CU_ASSERT_EQUAL(
      read_section("model: {layers: 3, hidden: 48, heads: 6, context: 99, tied: false}\n", &c,
                   &err),
      GL_OK);
  CU_ASSERT(c.vocabulary == 17 && c.layers == 3 && c.hidden == 48 && c.heads == 6);
  CU_ASSERT(c.kv_heads == 3 && c.head_dim == 8 && c.intermediate == 144 && c.max_positions == 99);
  CU_ASSERT(!c.tied && c.end == -1);
  CU_ASSERT_EQUAL(c.type, MODEL_QWEN3);
  CU_ASSERT_EQUAL(read_section("model: {model_type: llama}\n", &c, &err), GL_OK);
  CU_ASSERT_EQUAL(c.type, MODEL_LLAMA);
  CU_ASSERT_EQUAL(read_section("model: {model_type: gpt2}\n", &c, &err), GL_EINPUT);
  gl_error_clear(&err);
  CU_ASSERT_EQUAL(read_section("model: {hidden: 32, heads: 4, kv_heads: 3}\n", &c, &err),
                  GL_EINPUT);
  CU_ASSERT_PTR_NOT_NULL(strstr(err.text, "r.yaml:1:"));
  gl_error_clear(&err);
  CU_ASSERT_EQUAL(read_section("model: {layer: 3}\n", &c, &err), GL_EINPUT);
  CU_ASSERT_PTR_NOT_NULL(strstr(err.text, "layers"));
}
