/* The published algorithms. Each is a plain baseline algorithm plus the settings of its source.
 * `notes` lists the fields that no source specifies and that are therefore gepolab's own choice,
 * and where two versions of a trainer differ. Settings of trainers: core/policy/trainer_settings.c.
 */
#include "core/policy/algorithm.h"

#include "core/config/fields.h"

#include <math.h>
#include <string.h>
#include <strings.h>

/* Algorithms override designators of PLAIN on purpose: the later designator wins. */
#pragma GCC diagnostic ignored "-Woverride-init"

#define PLAIN                                                                                      \
  .baseline = BASELINE_NONE, .baseline_temperature = 1, .scale_eps = 1e-4, .std_ddof = 1,          \
  .microbatch = 8, .mixture = 0.1, .mixture_midpoint = 8, .mixture_slope = 1,                      \
  .gate.negative_above = INFINITY, .gate.positive_above = INFINITY,                                \
  .gate.log_prob = LOG_PROB_MEAN, .rho_bar = 1, .c_bar = 1, .token_log_clamp = INFINITY,           \
  .log_floor = -INFINITY, .log_cap = INFINITY, .eps_low = 0.2, .eps_high = 0.2,                    \
  .dual_clip = INFINITY, .keep_low = 1, .keep_high = 1, .balance_step = 0.05, .balance_low = 0.9,  \
  .balance_high = 3, .future_half_life = 32, .mis_free_high = INFINITY, .cap = 1,                  \
  .clip_power = 0.5, .positive_low = 1, .positive_high = 1, .negative_low = 0, .negative_high = 1, \
  .tau_positive = 1, .tau_negative = 1.05, .tanh_scale = 1.5, .hazard_power_up = 1.5,              \
  .hazard_width_up = 1, .hazard_power_down = 2, .hazard_width_down = 0.8, .gamma_k_positive = 2,   \
  .gamma_rate_positive = 3, .gamma_k_negative = 3, .gamma_rate_negative = 2, .m2_tau = 0.04,       \
  .mask_low = 0.2, .mask_high = 0.2, .length_power = 0.75, .kl_share = 1, .kl_form = KL_CPPO,      \
  .ref_kl_form = REF_KL_K3, .tis_max = 2, .tis_log_clamp = INFINITY, .mis_max = 3, .mis2_max = 3,  \
  .mis_log_clamp = INFINITY, .off_policy_mask = INFINITY, .top_entropy = 1,                        \
  .entropy_ratio_high = INFINITY, .disco_tau = 10, .penalty = 1e3, .penalty_margin = 1e-4
#define NAMED(n) .name = n, .base = n, PLAIN
#define GN .baseline = BASELINE_GROUP_MEAN, .scale = SCALE_GROUP_STD
#define CENTRED .baseline = BASELINE_GROUP_MEAN
#define LOO .baseline = BASELINE_LEAVE_ONE_OUT
#define TOKEN .ratio = RATIO_TOKEN, .ratio_gradient = 1
#define SEQUENCE .ratio = RATIO_SEQUENCE
#define GEPO CENTRED, .ratio = RATIO_GROUP_EXPECTATION, .ratio_gradient = 1, .clip = CLIP_PPO, SM
#define PPO(low, high) .clip = CLIP_PPO, .eps_low = low, .eps_high = high
#define SS .aggregate = AGGREGATE_SEQUENCE_SUM
#define SM .aggregate = AGGREGATE_SEQUENCE_MEAN
#define TM .aggregate = AGGREGATE_TOKEN_MEAN
#define REC                                                                                        \
  .mis_level = MASK_LEVEL_TOKEN, .mis_min = 0.8, .mis_max = 1.2, .correction_of = CORRECTION_LEARNER
#define DISCO(b) .objective = OBJECTIVE_DISCO, .negatives = b

typedef struct entry {
  policy_algorithm algorithm;
  policy_algorithm_info info;
} entry;

static const entry table[] = {
    {{NAMED("reinforce"), LOO, SS}, {"score function with leave-one-out baseline (RLOO)", ""}},
    {{NAMED("is"), LOO, SEQUENCE, .ratio_gradient = 1, SS},
     {"importance sampling; unbiased for the gradient of J",
      "TRL's RLOOTrainer (1.16) is this row with clip: ppo, both widths epsilon"}},
    {{NAMED("tis"), LOO, SEQUENCE, .clip = CLIP_CAP, .cap = 1, SS},
     {"1802.01561", "cap 1 is V-trace's rho-bar"}},
    {{NAMED("snis"), LOO, .ratio = RATIO_SELF_NORMALISED, SS},
     {"self-normalised importance sampling", ""}},
    {{NAMED("defensive"), LOO, .ratio = RATIO_MIXTURE, SS},
     {"defensive mixture", "gepolab's choice: mixture 0.1"}},
    {{NAMED("grpo"), GN, TOKEN, PPO(0.2, 0.2), SM},
     {"2402.03300",
      "verl's vanilla loss adds dual_clip 3 and token_log_clamp 20, its advantages scale_eps 1e-6; "
      "its default aggregation is token-mean, TRL's is dapo's"}},
    {{NAMED("dr_grpo"), CENTRED, TOKEN, PPO(0.2, 0.2), .aggregate = AGGREGATE_FIXED_LENGTH},
     {"2503.20783",
      "without max_length the longest response of the batch is used; verl b178a3c multiplies "
      "seq-mean-token-sum-norm by the number of responses, 0.9.1 does not"}},
    {{NAMED("dapo"), GN, TOKEN, PPO(0.2, 0.28), TM},
     {"2503.14476",
      "drop_equal: true adds its dynamic sampling's filter; with train.filter_groups samplers "
      "draw again, too"}},
    {{NAMED("gspo"), GN, SEQUENCE, .log_prob = LOG_PROB_MEAN, .ratio_gradient = 1, PPO(3e-4, 4e-4),
      SM},
     {"2507.18071",
      "verl caps the log ratio (log_cap 10) and differentiates as gspo_token does: the same "
      "gradient, but not with token weights (rollout_is token), which are gspo_token's"}},
    {{NAMED("gepo"), GEPO},
     {"2508.17850",
      "log_prob sum is the paper's Eq. 2-3; at hundreds of tokens a response one of a group has "
      "all "
      "the weight, on-policy too: train with gepo_released"}},
    {{NAMED("gepo_released"), GEPO, .log_prob = LOG_PROB_MEAN},
     {"Hetero-RL ebda3d6",
      "gepo with log_prob mean, as the released code, whose micro-batches mix prompts: "
      "group_scope microbatch"}},
    {{NAMED("gepo_plus"), GEPO, .log_prob = LOG_PROB_MEAN, .kappa = 0.01},
     {"Hetero-RL ebda3d6",
      "gepolab's choice: kappa 0.01; the response's term is the token mean of exp(-l)+l-1; "
      "log_prob mean as the released code"}},
    {{NAMED("eqp"), GEPO, .log_prob = LOG_PROB_MEAN, .denominator = DENOMINATOR_EXPECTED_P,
      .denominator_gradient = 1},
     {"Hetero-RL ebda3d6", "log_prob mean as the released code"}},
    {{NAMED("vtrace"), LOO, .ratio = RATIO_VTRACE, SS},
     {"1802.01561",
      "reward at the end, no discount; gepolab's choice: the value is the leave-one-out mean"}},
    {{NAMED("bnpo"), CENTRED, .scale = SCALE_BETA, TOKEN, PPO(0.2, 0.28), .dual_clip = 10, SS},
     {"2506.02864, BNPO a9c51b9",
      "clip and aggregation are the released code's; gepolab's choice: equal group means give "
      "alpha = beta = 1; TRL's loss_type bnpo is a token mean, without Beta"}},
    {{NAMED("delta_l"), GN, TOKEN, PPO(0.2, 0.3), .dual_clip = 3,
      .aggregate = AGGREGATE_LENGTH_POWER},
     {"2509.07558, Delta-L-Normalization 89da5b9",
      "gepolab's choice: M is the longest response of the batch"}},
    {{NAMED("gspo_token"), GN, .ratio = RATIO_SEQUENCE_TOKEN, .log_prob = LOG_PROB_MEAN,
      .ratio_gradient = 1, PPO(3e-4, 4e-4), SM},
     {"2507.18071 eq. 13-14",
      "the gradient of gspo while A is constant in a response; verl's gspo with rollout_is token "
      "is "
      "this row with tis_level: token; TRL 1.16 has no sequence_token any more, and its loss_type "
      "luspo "
      "(2602.05261) is this row with aggregate: sequence_sum"}},
    {{NAMED("gmpo"), GN, SEQUENCE, .log_prob = LOG_PROB_MEAN, .ratio_gradient = 1,
      .clip = CLIP_TOKEN_LOG, .eps_low = 0.4, .eps_high = 0.4, SM},
     {"2507.20673, GMPO 205b2bf", "verl's truncation with it: tis_level token_geometric"}},
    {{NAMED("cispo"), GN, .ratio = RATIO_TOKEN, .clip = CLIP_CLAMP, .eps_low = 10, .eps_high = 4,
      TM},
     {"2506.13585",
      "gepolab's choice: eps_high 4, that is a cap of 5; token_mask is the optional M1"}},
    {{NAMED("topr"), SEQUENCE, .clip = CLIP_SIGNED_CLAMP, SM},
     {"2503.14286",
      "for rewards +1 and -1; with 0/1 rewards set baseline: constant and baseline_value"}},
    {{NAMED("aipo"), CENTRED, .ratio = RATIO_TOKEN, .clip = CLIP_CAP, .cap = 4, SS},
     {"2505.24034",
      "gepolab's choice: cap 4 (the paper gives 2 to 10), no length normalisation, no KL term"}},
    {{NAMED("decoupled_ppo"), GN, TOKEN, .old_policy = OLD_PROXIMAL, PPO(0.2, 0.2), TM,
      .tis_level = LEVEL_TOKEN, .tis_max = INFINITY},
     {"2110.00641, 2505.24298",
      "gepolab's choice: no cap; AReaL's: mis_level token, mis_max 5 or tis_max 5"}},
    {{NAMED("icepop"), GN, TOKEN, .old_policy = OLD_PROXIMAL, PPO(0.2, 0.2), SM,
      .tis_level = LEVEL_TOKEN, .tis_max = INFINITY, .mis_level = MASK_LEVEL_TOKEN, .mis_min = 0.5,
      .mis_max = 5},
     {"2510.18855 (Ring-1T)",
      "second-hand; the ratio of learner and sampler at the step's start weighs a token where it "
      "is "
      "in [0.5, 5], else the token is dropped; gepolab's choice: eps 0.2, no KL term; prime-rl's "
      "has ratio: token, old_policy: sampler, clip: none and aggregate: token_mean"}},
    {{NAMED("mois"), CENTRED, .ratio = RATIO_TOKEN_MIXTURE, .ratio_gradient = 1, PPO(0.2, 0.2), SM,
      .mixture_anneal = 1},
     {"Hetero-RL, get_loss_MoIS",
      "annealed weights of the released code, where no loss calls them: the denominator's fraction "
      "of "
      "p "
      "falls from 1 to 0 around a staleness of 8; p is not detached there, so that fresh tokens "
      "have "
      "almost no gradient; gepolab's choice: baseline, no scale, aggregation"}},
    {{NAMED("m2po"), GN, TOKEN, .clip = CLIP_SECOND_MOMENT, TM},
     {"2510.01161 Alg. 1, M2PO af54a3e",
      "gepolab's choice: ties leave in order of position; m2_form threshold is the official code"}},
    {{NAMED("ctpo"), GN, .ratio = RATIO_PREFIX, .ratio_gradient = 1, .clip = CLIP_PPO_POWER,
      .eps_low = 0.025, .eps_high = 0.05, SM},
     {"2605.07331, CTPO acc4021",
      "gepolab's choice: the script's widths, no dual clip, gradient through token t only; the "
      "code "
      "adds token_log_clamp 20, log_cap 10, dual_clip 0.05, aggregate token_mean, a sequence TIS "
      "of 5"}},
    {{NAMED("mhpo"), GN, TOKEN, .clip = CLIP_TANH_HAZARD, SM},
     {"2603.16929", "gepolab's choice: no KL term, standard deviation with ddof 1 and 1e-4"}},
    {{NAMED("sapo"), GN, TOKEN, .clip = CLIP_SIGMOID, SM}, {"2511.20347", ""}},
    {{NAMED("vespo"), GN, SEQUENCE, .clip = CLIP_GAMMA, TM, .token_log_clamp = 20,
      .log_floor = -18.420680743952367, .log_cap = 20},
     {"2602.10693, VESPO aa1f304",
      "truncation factors enter ln W; the log floor is ln 1e-8; TRL's token_mask lets a masked "
      "token put ln 1e-8 into ln W, mask_denominator: kept leaves it out of it"}},
    {{NAMED("magistral"), CENTRED, .scale = SCALE_BATCH_STD, TOKEN, PPO(0.2, 0.28), .drop_equal = 1,
      .aggregate = AGGREGATE_GROUP_TOKEN_MEAN},
     {"2506.10910",
      "gepolab's choice: eps_low 0.2, eps_high 0.28, ddof 1 and 1e-4, groups averaged, dropped "
      "groups outside the batch's deviation"}},
    {{NAMED("disco"), DISCO(NEGATIVES_SOFTMAX), SM},
     {"2505.12366, DisCO bd2b078",
      "log-L score; no factor 2 in the penalty's gradient (not established)"}},
    {{NAMED("disco_b"), DISCO(NEGATIVES_MEAN), SM},
     {"2505.12366", "wrong answers equally weighted; log-L score"}},
    {{NAMED("disco_l_ratio"), DISCO(NEGATIVES_SOFTMAX), TOKEN, .disco_tau = 1, SM},
     {"2505.12366", "token-ratio score"}},
    {{NAMED("reinforce_plus_plus"), .scale = SCALE_TOKEN_STD, .scale_eps = 1e-8, TOKEN,
      PPO(0.2, 0.2), TM},
     {"2501.03262", "reward at the end, no discount; its KL in the reward is not part of the row"}},
    {{NAMED("reinforce_plus_plus_baseline"), CENTRED, .scale = SCALE_TOKEN_STD, .scale_eps = 1e-8,
      TOKEN, PPO(0.2, 0.2), TM},
     {"2501.03262", ""}},
    {{NAMED("gpg"), CENTRED, .scale = SCALE_NONZERO_SHARE, TM},
     {"2504.02546", "alpha is over the batch; f_norm 1, verl's default"}},
    {{NAMED("opo"), .baseline = BASELINE_LENGTH_WEIGHTED, TM},
     {"2505.23585", "exactly on-policy; gepolab's choice: no ratio, token mean"}},
    {{NAMED("grpo_passk"), .baseline = BASELINE_RUNNER_UP, .scale = SCALE_GROUP_STD, TOKEN,
      .scale_eps = 1e-6, PPO(0.2, 0.2), TM},
     {"2503.19595", "the loss about the advantages is verl's default without its dual clip"}},
    {{NAMED("kl_cov"), GN, TOKEN, TM, .kl_form = KL_ABS, .kl_coef = 1, .kl_share = 2e-3},
     {"2505.22617",
      "the term is from the sampler, verl's from old_log_prob; its defaults: kl_share 2e-4, "
      "kl_coef 0.1"}},
    {{NAMED("dppo_tv"), CENTRED, .ratio = RATIO_TOKEN, .clip = CLIP_BINARY_TV, .eps_low = 0.15,
      .eps_high = 0.15, .cap = 1e4, .token_log_clamp = 20, .aggregate = AGGREGATE_FIXED_LENGTH},
     {"2602.04879", "widths, cap and aggregation are those of verl's example"}},
    {{NAMED("dppo_kl"), CENTRED, .ratio = RATIO_TOKEN, .clip = CLIP_BINARY_KL, .eps_low = 0.05,
      .eps_high = 0.05, .cap = 1e4, .token_log_clamp = 20, .aggregate = AGGREGATE_FIXED_LENGTH},
     {"2602.04879", "widths, cap and aggregation are those of verl's example"}},
    {{NAMED("maxrl"), CENTRED, .scale = SCALE_GROUP_MEAN, .scale_eps = 1e-6, TOKEN, PPO(0.2, 0.2),
      TM},
     {"2602.02710",
      "the advantage is the row, in prime-rl and SkyRL too; the loss about it is grpo's with a "
      "token mean; "
      "rewards of 0 or more"}},
    {{NAMED("prime_rl"), CENTRED, .ratio = RATIO_TOKEN, .clip = CLIP_BINARY_TV, .eps_low = 0.2,
      .eps_high = 0.2, .cap = INFINITY, TM, .kl_form = KL_K2, .kl_coef = 2e-3},
     {"prime-rl 559b447, loss.py; 2602.04879, 2602.02276",
      "the default loss: DPPO's mask and tau l^2 with tau 1e-3, here kl_coef / 2"}},
    {{NAMED("prime_rl_ipo"), CENTRED, .ratio = RATIO_TOKEN, TM, .mis_level = MASK_LEVEL_TOKEN,
      .mis_test = MIS_TV, .mis_max = 0.1, .correction_of = CORRECTION_LEARNER, .kl_form = KL_K2,
      .kl_coef = 2e-3},
     {"prime-rl 559b447, loss.py",
      "loss type ipo, no relation to the preference method of that name"}},
    {{NAMED("opsm"), GN, TOKEN, PPO(0.2, 0.2), SM, .off_policy_mask = 1e-4},
     {"2512.02556 3.1; slime 624b824",
      "grpo with off-policy sequence masking; delta is slime's default"}},
    {{NAMED("raft"), TM},
     {"2504.11343, Minimal-RL e3b49f0",
      "right answers only: rewards of 0 and 1 (negative scores count as 0); the script adds "
      "ref_kl_coef 1e-3"}},
    {{NAMED("raft_plus_plus"), TOKEN, PPO(0.2, 0.2), TM},
     {"2504.11343, Minimal-RL e3b49f0",
      "raft with ratio and clip (policy_loss plusplus); the script adds ref_kl_coef 1e-3"}},
    {{NAMED("asymre"), CENTRED, .baseline_value = -0.1, SS},
     {"2506.20520, Trinity-RFT",
      "no ratio, whatever the staleness; the shift -0.1 is Trinity-RFT's default"}},
    {{NAMED("rec_one_side"), CENTRED, TM, REC, .mis_free_low = 0.8, .mis_free_high = 1.2},
     {"2509.24203, Trinity-RFT",
      "NoIS; with importance sampling ratio: token, which is grpo's gradient"}},
    {{NAMED("rec_two_side"), CENTRED, TM, REC},
     {"2509.24203, Trinity-RFT", "NoIS; with importance sampling ratio: token"}},
    {{NAMED("rec_ring"), CENTRED, TM, REC, .mis_free_low = 0.4, .mis_free_high = 3},
     {"2509.24203, Trinity-RFT", "NoIS; with importance sampling ratio: token"}},
    {{NAMED("rollout_is"), GN, .ratio = RATIO_TOKEN, TM, REC},
     {"SkyRL a956457, ppo_utils.py",
      "policy_loss_type rollout_is; SkyRL's interval is open, and clamps l to +-20"}},
    {{NAMED("kimi15"), CENTRED, SM, .kl_form = KL_K2, .kl_coef = 0.1},
     {"2501.12599 eq. 3; ROLL 8eb27cc",
      "ROLL's pg_variant kimi15 has the square of each token's log-ratio, the paper that of the "
      "response's"}},
    {{NAMED("bapo"), GN, TOKEN, PPO(0.4, 0.2), .dual_clip = 3, .token_log_clamp = 20, TM,
      .balance = 1},
     {"2510.18927, BAPO 7287044",
      "as the released code: first the lower bound rises, then the upper, steps of 0.05; ranges "
      "are the paper's, rho_0 = 0.5 is balance 1"}},
    {{NAMED("ce_gppo"), GN, .ratio = RATIO_TOKEN, PPO(0.2, 0.2), .keep_low = 0.75, TM},
     {"2509.20712, CE-GPPO 10558fe",
      "beta_1 0.75, beta_2 1; the code adds a dual clip of 10 without gradient"}},
    {{NAMED("gppo"), GN, .ratio = RATIO_TOKEN, PPO(0.2, 0.2), TM},
     {"2508.07629, CE-GPPO 10558fe",
      "clipped tokens keep the gradient of the bound; the code adds a dual clip of 3"}},
    {{NAMED("dcpo"), GN, TOKEN, .clip = CLIP_PROBABILITY, .eps_low = 0.16, .eps_high = 0.2,
      .cap = 10, .dual_clip = 10, SM},
     {"2509.02333, DCPO 01787b0",
      "dynamic clipping alone: the smoothed advantages look at earlier steps; widths are those of "
      "its README's table, its script has 0.2 and 0.28; gepolab's choice: aggregation"}},
    {{NAMED("aspo"), GN, .ratio = RATIO_TOKEN, .clip = CLIP_RECIPROCAL, .dual_clip = 3, TM},
     {"2510.06062, Archer2.0 b08d963",
      "one width for all tokens; the code has 0.4 for those of high entropy"}},
    {{NAMED("trm"), GN, TOKEN, PPO(0.2, 0.2), TM, .mis_level = MASK_LEVEL_SEQUENCE_MAX,
      .mis_test = MIS_K3, .mis_max = 0.05, .mask_denominator = MASK_KEPT},
     {"2512.23075, verl b178a3c", "the test is the authors', in verl (rollout_rs seq_max_k3, with "
                                  "seq_max_k2 for mis_test: k2); "
                                  "gepolab's choice: threshold 0.05, the loss about it"}},
    {{NAMED("a3po"), GN, TOKEN, .old_policy = OLD_INTERPOLATED, PPO(0.2, 0.2), TM,
      .tis_level = LEVEL_TOKEN, .tis_max = INFINITY},
     {"2512.06547, AReaL cbff54d",
      "needs the staleness of every token; the version before the learner's stands for the "
      "proximal policy"}},
    {{NAMED("fipo"), GN, TOKEN, PPO(0.2, 0.28), .dual_clip = 10, .token_log_clamp = 20, TM,
      .tis_level = LEVEL_FUTURE, .tis_min = 1, .tis_max = 1.2, .correction_of = CORRECTION_LEARNER},
     {"2603.19835, loss_mode future_kl",
      "weights in [1, 1.2] (future_kl_clip_high_only); the code also drops responses with two or "
      "more tokens beyond the dual clip"}},
    {{NAMED("vcpo"), .baseline = BASELINE_OFF_POLICY, SEQUENCE, .clip = CLIP_CAP, .cap = 8, SM},
     {"2602.17616, vcpo c7f030f",
      "lengths stand for squared norms of scores; its learning rate, scaled by the effective "
      "sample size, is no part of a loss"}},
    {{NAMED("opmd"), .baseline = BASELINE_SOFT_MAXIMUM, TM},
     {"2505.17826, Trinity-RFT 51d229f",
      "opmd_baseline logavgexp with tau 1; its default baseline is the mean; the code divides the "
      "loss by 1 + tau"}},
    {{NAMED("tba"), CENTRED, SS, .reward_kl_coef = 1e-2, .reward_kl_of = REWARD_KL_REFERENCE},
     {"2503.18929, TBA c6075e2",
      "the gradient of the squared trajectory balance times beta / 2; needs a reference policy; "
      "gepolab's choice: beta"}},
    {{NAMED("real"), .objective = OBJECTIVE_REAL, TOKEN, .disco_tau = 0.5},
     {"2602.05630, REAL 1c30726",
      "rewards of 0 and 1; the score is the mean token log-ratio; tau is the script's"}},
    {{NAMED("erc"), GN, TOKEN, .old_policy = OLD_PROXIMAL, PPO(0.2, 0.28), .dual_clip = 10,
      .token_log_clamp = 20, TM, .entropy_ratio_low = 0.95, .entropy_ratio_high = 1.05},
     {"2512.05591, ERC f1885c5",
      "dapo with entropy ratio clipping (loss_mode grpo_erc; gppo_erc is the same on gppo); needs "
      "entropies; the code keeps the values of masked tokens in the loss, without their gradient"}},
    {{NAMED("ppo_ewma"), GN, TOKEN, .old_policy = OLD_PROXIMAL, .proximal_decay = 0.889,
      PPO(0.2, 0.2), TM, .tis_level = LEVEL_TOKEN, .tis_max = INFINITY},
     {"2110.00641, ppo-ewma 625dac7",
      "decoupled_ppo, whose proximal policy is a moving average of the learner's parameters; "
      "gepolab's choice: decay 0.889, aggregation; toy worlds only"}},
};
_Static_assert(sizeof table / sizeof table[0] <= POLICY_MOST_ALGORITHMS, "callers have room");

size_t policy_algorithms_count(void) {
  return sizeof table / sizeof table[0];
}

const policy_algorithm *policy_algorithms_at(size_t i) {
  return &table[i].algorithm;
}

const policy_algorithm_info *policy_algorithms_info(size_t i) {
  return &table[i].info;
}

const policy_algorithm *policy_algorithms_find(const char *name) {
  for (size_t i = 0; i < policy_algorithms_count(); ++i)
    if (strcasecmp(table[i].algorithm.name, name) == 0) return &table[i].algorithm;
  return NULL;
}

/* --- recipe fields of the section algorithm --- */

static const char *algorithm_base_at(size_t i) {
  return i < policy_algorithms_count() ? policy_algorithms_at(i)->name : NULL;
}

static const field entries[] = {
    FIELD(
        "algorithm", "algorithm", SECTION, "", NULL,
        "an algorithm's name, or {base: NAME, FIELD: value, …}; `gepolab list algorithms --fields` "
        "lists the fields",
        .role = ROLE_ALGORITHM),
    FIELD("algorithm.base", "base", CHOICE_AT(algorithm_base_at), "", "grpo",
          "the algorithm whose fields are taken where none is stated", .role = ROLE_ALGORITHM,
          .shorthand = "algorithm"),
    FIELD("algorithm.name", "shown name", TEXT, "", NULL,
          "how the algorithm is called in tables and figures; it may not be the name of a "
          "published algorithm whose fields differ",
          .role = ROLE_PROVENANCE, .rule = "the base and what was changed, as in gepo(clip=none)"),
    FIELD("algorithm.gate", "gate", SECTION, "", NULL,
          "which responses are removed from the policy term because of their own likelihood: "
          "{negative_below, "
          "negative_above, "
          "positive_above, of: group_expectation | sampler, scope: prompt | microbatch, log_prob: "
          "mean | sum}, for any algorithm but disco's",
          .role = ROLE_ALGORITHM),
};

FIELD_TABLE(policy_fields, entries);
