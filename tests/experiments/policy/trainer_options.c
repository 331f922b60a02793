/* Switches of trainers: each setting of the table that a test runs against the trainer's own code
 * gives the row of that table; the order of switches does not matter; what is not known is
 * refused. */
#include "experiments/policy/trainer_options.h"
#include "tests/support/cli.h"
#include "tests/support/suite.h"

#include <string.h>

SUITE("cli: settings of trainers");

enum { MOST = 6 };
typedef struct example {
  policy_trainer trainer;
  const char *switches[MOST];
  const char *name;
  int is_published;
  const char *note; /* NULL: none */
} example;

/* The rows are those that python/tests/test_verl.py and test_trl.py find equal to the trainers'
 * losses and advantages. */
static const example examples[] = {
    {TRAINER_TRL, {"loss_type=grpo"}, "grpo", 1, NULL},
    {TRAINER_TRL, {"loss_type=dr_grpo", "scale_rewards=none"}, "dr_grpo", 1, NULL},
    {TRAINER_TRL, {"loss_type=dapo", "epsilon_high=0.28"}, "dapo", 1, NULL},
    {TRAINER_TRL, {"epsilon_high=5", "loss_type=cispo"}, "cispo", 1, NULL},
    {TRAINER_TRL,
     {"loss_type=cispo"},
     "aipo(scale=group_std, cap=0.2, aggregate=token_mean)",
     0,
     NULL}, /* epsilon_high is 0.2 */
    {TRAINER_TRL, {"loss_type=sapo"}, "sapo", 1, NULL},
    {TRAINER_TRL, {"loss_type=vespo"}, "vespo", 1, NULL},
    {TRAINER_TRL,
     {"loss_type=grpo", "importance_sampling_level=sequence", "epsilon=3e-4", "epsilon_high=4e-4"},
     "gspo",
     1,
     NULL},
    {TRAINER_TRL, {"loss_type=grpo", "off_policy_mask_threshold=1e-4"}, "opsm", 1, NULL},
    {TRAINER_TRL, {"loss_type=grpo", "delta=1.5"}, "grpo(dual_clip=1.5)", 0, NULL},
    {TRAINER_TRL, {"loss_type=bnpo"}, "dapo(eps_high=0.2)", 0, "without BNPO's Beta"},
    {TRAINER_PRIME_RL, {"loss=default"}, "prime_rl", 1, NULL},
    {TRAINER_PRIME_RL, {"ipo_threshold=0.1", "loss=ipo"}, "prime_rl_ipo", 1, NULL},
    {TRAINER_VERL,
     {"clip_ratio_high=4", "clip_ratio_low=10", "actor.policy_loss.loss_mode=cispo"},
     "cispo(scale_eps=1e-06, token_log_clamp=20)",
     0,
     NULL},
    {TRAINER_VERL,
     {"loss_mode=dppo_tv", "clip_ratio=0.15", "clip_ratio_c=10000",
      "loss_agg_mode=seq-mean-token-sum-norm", "norm_adv_by_std_in_grpo=False"},
     "dppo_tv",
     1,
     "multiplies it by the number"},
    {TRAINER_VERL,
     {"loss_mode=gspo", "clip_ratio_low=3e-4", "clip_ratio_high=4e-4"},
     "gspo_token(scale_eps=1e-06, log_cap=10)",
     0,
     "the gradient of gspo"},
    {TRAINER_AREAL,
     {"reward_norm.mean_level=group", "actor.reward_norm.std_level=group", "eps_clip_higher=0.28"},
     "dapo(scale_eps=1e-05)",
     0,
     NULL},
    {TRAINER_AREAL,
     {"actor.use_cispo_loss=true", "eps_clip=1.0", "eps_clip_higher=4.0",
      "reward_norm.mean_level=group", "reward_norm.std_level=group"},
     "cispo(scale_eps=1e-05, eps_low=1)",
     0,
     NULL},
    {TRAINER_AREAL,
     {"use_decoupled_loss=true", "prox_logp_method=loglinear", "reward_norm.mean_level=group",
      "reward_norm.std_level=group"},
     "a3po(scale_eps=1e-05)",
     0,
     "float32"},
    {TRAINER_SLIME,
     {"--advantage-estimator=gspo", "--eps-clip=3e-4", "eps_clip_high=4e-4"},
     "gspo(scale_eps=1e-06)",
     0,
     NULL},
    {TRAINER_SLIME, {"use_opsm=true"}, "opsm(scale_eps=1e-06)", 0, NULL},
    {TRAINER_SLIME,
     {"use_tis=true", "tis_clip_low=0.5", "tis_clip=5",
      "custom_tis_function_path=slime.x.icepop_function"},
     "icepop(scale_eps=1e-06)",
     0,
     "icepop_function"},
    {TRAINER_NEMO_RL,
     {"use_leave_one_out_baseline=false", "token_level_loss=false",
      "loss_fn.reference_policy_kl_penalty=0", "ratio_clip_min=0.2"},
     "grpo(scale_eps=1e-06)",
     0,
     "+-10"},
    {TRAINER_NEMO_RL,
     {"use_leave_one_out_baseline=true", "normalize_rewards=false", "disable_ppo_ratio=true",
      "reference_policy_kl_penalty=0"},
     "reinforce(aggregate=token_mean)",
     0,
     "+-10"},
    {TRAINER_SKYRL,
     {"policy_loss_type=gspo", "loss_reduction=sequence_mean", "use_kl_loss=false",
      "eps_clip_low=3e-4", "eps_clip_high=4e-4"},
     "gspo_token(scale_eps=1e-06, log_cap=10)",
     0,
     NULL},
    {TRAINER_SKYRL,
     {"policy_loss_type=sapo", "loss_reduction=sequence_mean", "use_kl_loss=false"},
     "sapo(scale_eps=1e-06, token_log_clamp=20)",
     0,
     NULL},
    {TRAINER_ROLL, {"adv_estimator=grpo", "pg_variant=ppo"}, "grpo(scale_eps=1e-06)", 0, NULL},
    {TRAINER_ROLL,
     {"norm_mean_type=group", "pg_variant=kimi15", "kimi15_tau=0.1"},
     "kimi15",
     1,
     NULL},
    {TRAINER_OPENRLHF,
     {"--algo.advantage.estimator=group_norm", "--actor.policy_loss_type=gspo",
      "algo.advantage.is_correction_enable=true"},
     NULL,
     0,
     NULL},
    {TRAINER_OPENRLHF,
     {"advantage.estimator=group_norm", "eps_clip_low_high=0.1,0.3"},
     "dapo(scale_eps=1e-09, token_log_clamp=20, eps_low=0.1, eps_high=0.3)",
     0,
     NULL},
    {TRAINER_TRL,
     {"importance_sampling_level=sequence", "epsilon=0.2", "scale_rewards=none", "loss_type=grpo"},
     "gspo(scale=none, eps_low=0.2, eps_high=0.2)",
     0,
     NULL},
    {TRAINER_VERL, {"loss_mode=clip_cov"}, NULL, 0, "random tokens"},
    {TRAINER_VERL, {"entropy_coeff=0.01"}, NULL, 0, "an entropy bonus"},
};

static size_t count_of(const example *e) {
  size_t n = 0;
  while (n < MOST && e->switches[n] != NULL) n++;
  return n;
}

TEST(switches_give_the_rows_that_equal_the_trainers_losses) {
  for (size_t k = 0; k < sizeof examples / sizeof *examples; k++) {
    const example *e = &examples[k];
    const char *backwards[MOST];
    const size_t n = count_of(e);
    trainer_reading r, other;
    for (size_t i = 0; i < n; i++) backwards[i] = e->switches[n - 1 - i];
    ASSERT_OK(trainer_read(&r, e->trainer, e->switches, n, &err));
    ASSERT_OK(trainer_read(&other, e->trainer, backwards, n, &err));
    CU_ASSERT_STRING_EQUAL(r.algorithm.name, other.algorithm.name);
    if (e->name != NULL) CU_ASSERT_STRING_EQUAL(r.algorithm.name, e->name);
    CU_ASSERT_EQUAL(r.is_published, e->is_published);
    CU_ASSERT_EQUAL(r.n_notes, e->note != NULL);
    if (e->note != NULL && r.n_notes > 0) CU_ASSERT_PTR_NOT_NULL(strstr(r.notes[0], e->note));
  }
}

TEST(what_is_not_known_is_refused_with_the_nearest) {
  static const char *const wrong[][2] = {
      {"loss_mode=gsp", "did you mean 'gspo'"},
      {"loss_mod=gspo", "did you mean 'loss_mode'"},
      {"clip_ratio=wide", "has no value 'wide'"},
      {"loss_agg_mode=x", "it takes token-mean, token-sum, seq-"},
      {"clip_ratio", "write name=value"},
      {"clip_ratio_low=-1", "eps_low"}};
  for (size_t k = 0; k < sizeof wrong / sizeof *wrong; k++) {
    trainer_reading r;
    gl_error err = {0};
    CU_ASSERT_EQUAL(trainer_read(&r, TRAINER_VERL, wrong[k], 1, &err), GL_EINPUT);
    if (strstr(err.text, wrong[k][1]) == NULL) fprintf(stderr, "%s: %s\n", wrong[k][0], err.text);
    CU_ASSERT_PTR_NOT_NULL(strstr(err.text, wrong[k][1]));
  }
}

TEST(switches_that_are_missing_are_asked_for) {
  REFUSED(2, "switches of TRL are given as name=value", "list", "algorithms", "--from", "trl");
}

TEST(a_configuration_file_is_read_for_the_switches_that_are_known) {
  static const char text[] =
      "actor_rollout_ref:\n  actor:\n    clip_ratio: 0.2\n    strategy: fsdp\n"
      "    loss_agg_mode: seq-mean-token-mean\n"
      "    policy_loss: {loss_mode: sapo}\n"
      "algorithm: {adv_estimator: grpo, gamma: 1}\n";
  char folder[64], path[128];
  cli_scratch_make(folder);
  cli_write(cli_path(path, folder, "verl.yaml"), text, sizeof text - 1);
  trainer_reading r;
  ASSERT_OK(trainer_read_file(&r, TRAINER_VERL, path, &err));
  CU_ASSERT_STRING_EQUAL(r.algorithm.name, "sapo(scale_eps=1e-06, token_log_clamp=20)");
  gl_error err = {0};
  CU_ASSERT_EQUAL(trainer_read_file(&r, TRAINER_PRIME_RL, path, &err), GL_EINPUT);
}

/* A value that is too long for a switch is refused, and is not left out. */
TEST(long_values_of_a_configuration_file_are_read_or_refused) {
  char folder[64], path[128], text[4096];
  trainer_reading r;
  gl_error err = {0};
  cli_scratch_make(folder);
  for (int length = 300; length <= 2000; length += 1700) {
    const int n =
        snprintf(text, sizeof text,
                 "use_tis: true\ncustom_tis_function_path: %.*d.icepop_function\n", length, 0);
    cli_write(cli_path(path, folder, "slime.yaml"), text, (size_t)n);
    const gl_status status = trainer_read_file(&r, TRAINER_SLIME, path, &err);
    CU_ASSERT_EQUAL(status, length == 300 ? GL_OK : GL_EINPUT);
    if (status == GL_OK) CU_ASSERT_PTR_NOT_NULL(strstr(r.algorithm.name, "icepop"));
  }
  CU_ASSERT_PTR_NOT_NULL(strstr(err.text, "longer than 1023 characters"));
}

/* Every setting is of a published algorithm, and of each algorithm and trainer there is one. */
TEST(the_table_of_settings_is_of_algorithms_and_says_each_once) {
  for (size_t i = 0; i < policy_settings_count(); i++) {
    const policy_setting *s = policy_settings_at(i);
    CU_ASSERT_PTR_NOT_NULL(policy_algorithms_find(s->algorithm));
    CU_ASSERT_PTR_EQUAL(policy_settings_find(s->algorithm, s->trainer), s);
    CU_ASSERT(strlen(s->setting) > 0 && strlen(s->place) > 0);
    CU_ASSERT(strlen(policy_trainer_about(s->trainer)->version) > 0);
  }
}

/* Settings that make an algorithm of another name, each with what makes it another. */
static const struct {
  const char *algorithm;
  policy_trainer trainer;
  const char *makes;
} others[] = {
    {"reinforce", TRAINER_SKYRL, "raft_plus_plus(baseline=leave_one_out, token_log_clamp=20)"},
    {"is", TRAINER_OPENRLHF, "raft_plus_plus(baseline=leave_one_out, token_log_clamp=20)"},
    {"tis", TRAINER_VERL,
     "reinforce(correction_of=learner, tis_level=sequence, tis_max=1, tis_log_clamp=20)"},
    {"tis", TRAINER_ROLL,
     "cispo(baseline=none, scale=none, eps_low=1, eps_high=0, aggregate=sequence_mean)"},
    {"grpo", TRAINER_AREAL, "dapo(scale_eps=1e-05, eps_high=0.2)"},
    {"grpo", TRAINER_OPENRLHF, "dapo(scale_eps=1e-09, token_log_clamp=20, eps_high=0.2)"},
    {"gspo", TRAINER_VERL, "gspo_token(scale_eps=1e-06, log_cap=10)"},
    {"m2po", TRAINER_AREAL, "dapo(scale_eps=1e-05, eps_high=0.2)"},
    {"dppo_tv", TRAINER_PRIME_RL, "prime_rl(kl_coef=0)"},
    {"maxrl", TRAINER_PRIME_RL, "prime_rl(scale=group_mean, scale_eps=0)"},
};

static const char *other_of(const policy_setting *s) {
  for (size_t k = 0; k < sizeof others / sizeof *others; k++)
    if (others[k].trainer == s->trainer && strcmp(others[k].algorithm, s->algorithm) == 0)
      return others[k].makes;
  return NULL;
}

/* Small addends and limits of log-ratios: shown in the name, without a word of their own. */
static int is_small_field(const char *name) {
  static const char *const small[] = {"scale_eps", "token_log_clamp", "log_cap", "dual_clip"};
  for (size_t k = 0; k < sizeof small / sizeof *small; k++)
    if (strcmp(name, small[k]) == 0) return 1;
  return 0;
}

/* Every setting that a card prints makes the card's algorithm again; where a field differs that
 * changes the method, the card says how. */
TEST(settings_of_cards_make_their_algorithms_again) {
  size_t without_switch = 0;
  for (size_t i = 0; i < policy_settings_count(); i++) {
    const policy_setting *s = policy_settings_at(i);
    const policy_algorithm *want = policy_algorithms_find(s->algorithm);
    trainer_reading r;
    gl_error e = {0};
    if (s->setting[0] == '(') {
      without_switch++;
      CU_ASSERT_EQUAL(trainer_read_text(&r, s->trainer, s->setting, &e), GL_EINPUT);
      continue;
    }
    const gl_status status = trainer_read_text(&r, s->trainer, s->setting, &e);
    if (status != GL_OK) fprintf(stderr, "%s: %s\n", s->setting, e.text);
    CU_ASSERT_EQUAL_FATAL(status, GL_OK);
    if (other_of(s) != NULL) {
      CU_ASSERT_STRING_EQUAL(r.algorithm.name, other_of(s));
      CU_ASSERT(s->differs[0] != '\0');
      continue;
    }
    if (strcmp(r.algorithm.base, s->algorithm) != 0)
      fprintf(stderr, "%s makes %s\n", s->setting, r.algorithm.name);
    CU_ASSERT_STRING_EQUAL(r.algorithm.base, s->algorithm);
    for (size_t f = 0; f < policy_fields_count(); f++) {
      char one[POLICY_FIELD_TEXT_SIZE], other[POLICY_FIELD_TEXT_SIZE];
      const char *name = policy_fields_at(f)->name;
      if (strcmp(policy_algorithm_field(&r.algorithm, f, one),
                 policy_algorithm_field(want, f, other)) == 0 ||
          is_small_field(name))
        continue;
      if (s->differs[0] == '\0') fprintf(stderr, "%s of '%s'\n", name, s->setting);
      CU_ASSERT(s->differs[0] != '\0');
    }
  }
  CU_ASSERT_EQUAL(without_switch, 2); /* trainers of TRL that have classes of their own */
}

/* Lines of tests/golden/methods_agreement.txt: row, changes, repository, commit, difference. */
static int was_compared(const char *algorithm, const char *commit) {
  char line[256], row[64], at[64];
  double worst;
  int found = 0;
  FILE *f = fopen("tests/golden/methods_agreement.txt", "r");
  CU_ASSERT_PTR_NOT_NULL_FATAL(f);
  while (fgets(line, sizeof line, f)) {
    if (line[0] == '#') continue;
    const char *end = strrchr(line, ' '), *name = line;
    CU_ASSERT_FATAL(sscanf(name, "%63s", row) == 1 && sscanf(end, "%lf", &worst) == 1);
    CU_ASSERT(worst < 1e-10);
    CU_ASSERT_PTR_NOT_NULL(policy_algorithms_find(row));
    snprintf(at, sizeof at, " %s", commit);
    found = found || (strcmp(row, algorithm) == 0 && strstr(line, at) != NULL);
  }
  fclose(f);
  return found;
}

/* The loss of prime-rl's row dppo_tv is that of prime_rl without its squared log-ratio. */
TEST(what_was_run_agrees_to_rounding) {
  static const char *const commits[TRAINER_COUNT] = {
      [TRAINER_AREAL] = "cbff54d",   [TRAINER_PRIME_RL] = "559b447", [TRAINER_SLIME] = "624b824",
      [TRAINER_SKYRL] = "a956457",   [TRAINER_ROLL] = "8eb27cc",     [TRAINER_NEMO_RL] = "7ea279a",
      [TRAINER_OPENRLHF] = "3c3be62"};
  size_t compared = 0;
  for (size_t i = 0; i < policy_settings_count(); i++) {
    const policy_setting *s = policy_settings_at(i);
    const char *commit = commits[s->trainer];
    if (s->basis != SETTING_RUN || s->trainer == TRAINER_TRL || s->trainer == TRAINER_VERL)
      continue;
    CU_ASSERT_PTR_NOT_NULL_FATAL(commit);
    CU_ASSERT_PTR_NOT_NULL(strstr(policy_trainer_about(s->trainer)->version, commit));
    const char *row = s->trainer == TRAINER_PRIME_RL && strcmp(s->algorithm, "dppo_tv") == 0
                          ? "prime_rl"
                          : s->algorithm;
    CU_ASSERT(was_compared(row, commit));
    compared++;
  }
  CU_ASSERT(compared >= 30);
}
