/* The lines of PyTorch of every row and of changed fields: a loss that returns, and takes what the
 * row needs. That gradients agree is tested where there is PyTorch: python/tests/test_policy.py. */
#include "experiments/policy/torch_lines.h"
#include "experiments/policy/formula_lines.h"
#include "experiments/policy/whatif.h"
#include "tests/support/suite.h"

#include <stdlib.h>
#include <string.h>

SUITE("policy: formulas and lines of PyTorch");

TEST(every_row_is_a_loss_that_takes_what_it_needs) {
  for (size_t i = 0; i < policy_algorithms_count(); i++) {
    const policy_algorithm *a = policy_algorithms_at(i);
    char *text = torch_lines(a), *head = strstr(text, "def loss("), *end = NULL;
    CU_ASSERT_PTR_NOT_NULL_FATAL(head);
    CU_ASSERT_PTR_NOT_NULL_FATAL(end = strchr(head, ':'));
    CU_ASSERT(strstr(end, "    return -") != NULL || strstr(end, "    return total") != NULL);
    CU_ASSERT_PTR_NULL(strstr(text, "without"));
    *end = '\0';
    CU_ASSERT((strstr(head, "logref") != NULL) == policy_needs_reference(a));
    CU_ASSERT((strstr(head, "gap") != NULL) == policy_needs_version_gap(a));
    CU_ASSERT((strstr(head, "entropy,") != NULL) == policy_needs_entropy(a));
    CU_ASSERT(a->old_policy != OLD_PROXIMAL || strstr(head, "logprox") != NULL);
    free(text);
  }
}

/* Unbounded limits are not written as numbers, and no number is undefined. */
TEST(bounds_that_do_nothing_are_not_written) {
  for (size_t i = 0; i < policy_algorithms_count(); i++) {
    char *text = torch_lines(policy_algorithms_at(i));
    CU_ASSERT_PTR_NULL(strstr(text, "nan"));
    for (const char *at = strstr(text, "inf"); at != NULL; at = strstr(at + 1, "inf"))
      CU_ASSERT(at - text > 6 && strncmp(at - 6, "torch.inf", 9) == 0);
    free(text);
  }
}

/* Formulas of papers, by algorithm: GRPO (2402.03300, Eq. 3), GSPO (2507.18071, Eq. 5 and 7), GEPO
 * (2508.17850, Eq. 2 and 3), Dr. GRPO (2503.20783), CISPO (2506.13585, Eq. 4). */
TEST(formulas_are_those_of_the_papers) {
  static const struct {
    const char *algorithm, *has[4];
  } papers[] = {
      {"grpo",
       {"A_i = (r_i − mean_j r_j) / (std_j r_j + 0.0001)\n", "u[i,t] = exp(l[i,t])\n",
        "f[i,t] = min(A_i u[i,t], A_i clip(u[i,t], 0.8, 1.2))\n",
        "loss = −mean_i (1/T_i) Σ_t f[i,t]\n"}},
      {"gspo",
       {"log P_i = (1/T_i) Σ_t lp[i,t],  log Q_i = (1/T_i) Σ_t lq[i,t]\n", "u_i = P_i / Q_i\n",
        "f_i = min(A_i u_i, A_i clip(u_i, 0.9997, 1.0004))\n", "loss = −mean_i f_i\n"}},
      {"gepo",
       {"A_i = r_i − mean_j r_j\n", "log P_i = Σ_t lp[i,t],  log Q_i = Σ_t lq[i,t]\n",
        "D = Σ_j Q_j² / Σ_j Q_j,  u_i = P_i / D\n", "loss = −mean_i f_i\n"}},
      {"dr_grpo",
       {"A_i = r_i − mean_j r_j\n", "u[i,t] = exp(l[i,t])\n",
        "f[i,t] = min(A_i u[i,t], A_i clip(u[i,t], 0.8, 1.2))\n",
        "loss = −mean_i (1/L) Σ_t f[i,t]\n"}},
      {"cispo",
       {"A_i = (r_i − mean_j r_j) / (std_j r_j + 0.0001)\n", "u[i,t] = exp(l[i,t])\n",
        "f[i,t] = A_i clip(u[i,t], 0, 5)\n", "loss = −Σ_{i,t} sg(f[i,t]) lp[i,t] / Σ_i T_i\n"}}};
  const policy_algorithm *plain = policy_algorithms_find("reinforce");
  for (size_t i = 0; i < sizeof papers / sizeof *papers; i++) {
    char *text = formula_lines(policy_algorithms_find(papers[i].algorithm), plain);
    for (int n = 0; n < 4; n++) CU_ASSERT_PTR_NOT_NULL(strstr(text, papers[i].has[n]));
    CU_ASSERT_PTR_NULL(strstr(text, "besides"));
    free(text);
  }
}

/* Formulas of the code where a field is replaced or has no effect: BNPO's limit (paper/methods.md
 * §4.14), M2PO's set and form (§3.9), the clamp with a proximal policy (§3.5), REAL's loss (§4.55).
 */
TEST(formulas_are_those_of_the_code) {
  static const struct {
    const char *algorithm, *has[3];
  } cases[] = {
      {"bnpo", {"A_i = (r_i − mean_j r_j) / max(Beta(mean_j r_j; α, β), 1e-06)\n"}},
      {"m2po",
       {"m = 0 for the largest l² of S until the others' mean is at most 0.04\n",
        "  with S the tokens with A_i l[i,t] > 0\n"}},
      {"{base: m2po, m2_form: threshold, m2_set: all}",
       {"f[i,t] = min(A_i u[i,t], A_i clip(u[i,t], exp(−b), exp(b)))\n",
        "  with b the largest |l| of S for which the mean over S of min(l², b²) is below 0.04\n",
        "  with S all tokens\n"}},
      {"{base: m2po, m2_set: clipped}",
       {"  with S the tokens with u[i,t] > 1.2 (A_i > 0) or u[i,t] < 0.8 (A_i < 0)\n"}},
      {"erc", {"l[i,t] = lp[i,t] − lx[i,t]\n", "  with −20 ≤ lp[i,t] − lx[i,t] ≤ 20\n"}},
      {"{base: gspo, old_policy: proximal}",
       {"log P_i = (1/T_i) Σ_t lp[i,t],  log Q_i = (1/T_i) Σ_t lx[i,t]\n"}},
      {"real",
       {"s_i = (1/T_i) Σ_t l[i,t]\n",
        "loss = mean over groups of log(1 + Σ_{W} exp(s/0.5)) + log(1 + Σ_{R} exp(−s/0.5))\n"}}};
  for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
    policy_algorithm a;
    gl_error err;
    CU_ASSERT_EQUAL_FATAL(whatif_algorithm(&a, cases[i].algorithm, NULL, 0, &err), GL_OK);
    char *text = formula_lines(&a, policy_algorithms_find("reinforce"));
    for (int n = 0; n < 3 && cases[i].has[n] != NULL; n++)
      CU_ASSERT_PTR_NOT_NULL(strstr(text, cases[i].has[n]));
    CU_ASSERT_PTR_NULL(strstr(text, "m2_"));
    free(text);
  }
  char *real = formula_lines(policy_algorithms_find("real"), policy_algorithms_find("reinforce"));
  CU_ASSERT_PTR_NULL(strstr(real, "A_i"));
  free(real);
}

/* A field without a formula is named; a number that is no bound is not written. */
TEST(formulas_name_the_fields_that_they_lack) {
  const policy_algorithm *plain = policy_algorithms_find("reinforce");
  for (size_t i = 0; i < policy_algorithms_count(); i++) {
    char *text = formula_lines(policy_algorithms_at(i), plain);
    CU_ASSERT(strstr(text, "loss = ") != NULL || strstr(text, "objective = ") != NULL);
    CU_ASSERT_PTR_NULL(strstr(text, "inf"));
    CU_ASSERT_PTR_NULL(strstr(text, "nan"));
    CU_ASSERT_PTR_NULL(strstr(text, "(null)"));
    free(text);
  }
  char *text = formula_lines(policy_algorithms_find("gepo_plus"), plain);
  CU_ASSERT_PTR_NOT_NULL(strstr(text, "besides: kappa: 0.01\n"));
  free(text);
  text = formula_lines(policy_algorithms_find("fipo"), plain);
  CU_ASSERT_PTR_NOT_NULL(strstr(text, "besides: tis_level: future"));
  free(text);
}
