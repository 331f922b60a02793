/* Fates of responses as tables: by fate, by the difficulty of their prompts, by length. */
#include "experiments/cli/print_fates.h"

#include "core/base/json.h"
#include "sim/schedule.h"

#include <math.h>
#include <string.h>

typedef struct total {
  double responses, tokens, reward;
} total;

/* Which records a total is of; NULL and 0: any. */
typedef struct choice {
  const char *fate;
  int32_t quarter;
  int64_t tokens_from;
} choice;

static total fates_total_of(const fate_record *fates, size_t n, choice which) {
  total sum = {0};
  for (size_t i = 0; i < n; ++i) {
    const fate_record *r = &fates[i];
    if ((which.fate != NULL && strcmp(r->fate, which.fate) != 0) ||
        (which.quarter != 0 && r->quarter != which.quarter) ||
        (which.tokens_from != 0 && r->tokens_from != which.tokens_from))
      continue;
    sum.responses += (double)r->responses;
    sum.tokens += r->tokens;
    sum.reward += r->reward;
  }
  return sum;
}

static double fates_mean(double sum, total of) {
  return of.responses > 0 ? sum / of.responses : NAN;
}

static double fates_share(total part, total of) {
  return of.responses > 0 ? part.responses / of.responses : NAN;
}

/* The k-th class of a table: quarters of prompts, or lengths. */
static choice class_at(size_t k, int by_length, const char *fate) {
  return by_length ? (choice){.fate = fate, .tokens_from = (int64_t)1 << k}
                   : (choice){.fate = fate, .quarter = (int32_t)k + 1};
}

static size_t classes(int by_length) {
  return by_length ? LENGTH_CLASSES : STORE_QUARTERS;
}

/* JSON --- */

static cJSON *fates_add_row(cJSON *to) {
  cJSON *row = cJSON_CreateObject();
  return row != NULL && cJSON_AddItemToArray(to, row) ? row : NULL;
}

static int add_total(cJSON *to, const char *name, total t, total drawn) {
  cJSON *row = fates_add_row(to);
  return row != NULL && json_add_string(row, "fate", name) != NULL &&
         json_add_number(row, "responses", t.responses) != NULL &&
         json_add_number(row, "share", fates_share(t, drawn)) != NULL &&
         json_add_number(row, "mean_tokens", fates_mean(t.tokens, t)) != NULL &&
         json_add_number(row, "mean_reward", fates_mean(t.reward, t)) != NULL;
}

static int fates_add_classes(cJSON *to, const fate_record *fates, size_t n, int by_length) {
  cJSON *rows = cJSON_AddArrayToObject(to, by_length ? "drawn_by_length" : "drawn_by_prompt");
  int ok = rows != NULL;
  for (size_t k = 0; k < classes(by_length) && ok; ++k) {
    const total drawn = fates_total_of(fates, n, class_at(k, by_length, NULL)),
                trained = fates_total_of(fates, n, class_at(k, by_length, "trained"));
    if (drawn.responses == 0) continue;
    cJSON *row = fates_add_row(rows);
    ok = row != NULL &&
         json_add_number(row, by_length ? "tokens_from" : "quarter",
                         by_length ? ldexp(1, (int)k) : (double)(k + 1)) != NULL &&
         json_add_number(row, "drawn", drawn.responses) != NULL &&
         json_add_number(row, "trained", trained.responses) != NULL &&
         json_add_number(row, "mean_reward", fates_mean(drawn.reward, drawn)) != NULL &&
         json_add_number(row, "trained_reward", fates_mean(trained.reward, trained)) != NULL;
  }
  return ok;
}

int fates_to_json(cJSON *to, const fate_record *fates, size_t n) {
  if (n == 0) return 1;
  const total drawn = fates_total_of(fates, n, (choice){0});
  cJSON *rows = cJSON_AddArrayToObject(to, "fates");
  int ok = rows != NULL && add_total(rows, "drawn", drawn, drawn);
  for (int f = 0; f < FATES && ok; ++f) {
    const char *name = unit_fate_name((unit_fate)f);
    ok = add_total(rows, name, fates_total_of(fates, n, (choice){.fate = name}), drawn);
  }
  return ok && fates_add_classes(to, fates, n, 0) && fates_add_classes(to, fates, n, 1);
}

/* --- tables --- */

static void print_total(const char *name, total t, total drawn, FILE *to) {
  if (t.responses == 0) return;
  fprintf(to, "    %-18s %10.0f %9.2f %% %10.1f %10.4f\n", name, t.responses,
          100 * fates_share(t, drawn), fates_mean(t.tokens, t), fates_mean(t.reward, t));
}

static void fates_print_classes(const fate_record *fates, size_t n, int by_length, FILE *to) {
  fprintf(to, "    %-18s %10s %11s %10s %10s\n", by_length ? "tokens" : "quarter of prompts",
          "drawn", "trained", "reward", "trained's");
  for (size_t k = 0; k < classes(by_length); ++k) {
    const total drawn = fates_total_of(fates, n, class_at(k, by_length, NULL)),
                trained = fates_total_of(fates, n, class_at(k, by_length, "trained"));
    char name[40];
    if (drawn.responses == 0) continue;
    if (by_length)
      snprintf(name, sizeof name, "%.0f to %.0f", ldexp(1, (int)k), ldexp(1, (int)k + 1) - 1);
    else
      snprintf(name, sizeof name, "%zu%s", k + 1,
               k == 0                    ? " (hardest)"
               : k + 1 == STORE_QUARTERS ? " (easiest)"
                                         : "");
    fprintf(to, "    %-18s %10.0f %9.2f %% %10.4f", name, drawn.responses,
            100 * fates_share(trained, drawn), fates_mean(drawn.reward, drawn));
    if (trained.responses > 0) fprintf(to, " %10.4f", fates_mean(trained.reward, trained));
    fputc('\n', to);
  }
}

void fates_print(const fate_record *fates, size_t n, FILE *to) {
  if (n == 0) return;
  const total drawn = fates_total_of(fates, n, (choice){0});
  fprintf(to, "  what was drawn and what became of it\n    %-18s %10s %11s %10s %10s\n", "fate",
          "responses", "share", "tokens", "reward");
  print_total("drawn", drawn, drawn, to);
  for (int f = 0; f < FATES; ++f) {
    const char *name = unit_fate_name((unit_fate)f);
    print_total(name, fates_total_of(fates, n, (choice){.fate = name}), drawn, to);
  }
  fates_print_classes(fates, n, 0, to);
  fates_print_classes(fates, n, 1, to);
}
