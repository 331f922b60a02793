/* Plans as text and as JSON. */
#include "experiments/plan/plan.h"

#include "core/base/json.h"

#include <math.h>
#include <string.h>

/* --- words --- */

static const char *resource_name(plan_resource r) {
  switch (r) {
  case PLAN_LEARNER:
    return "learner";
  case PLAN_SAMPLERS:
    return "samplers";
  case PLAN_WEIGHTS:
    return "weights";
  case PLAN_RESPONSES:
    return "responses";
  case PLAN_RESOURCES:
    return "none";
  }
  return "";
}

static const char *more_name(plan_more m) {
  switch (m) {
  case PLAN_MORE_SAMPLER:
    return "sampler";
  case PLAN_MORE_LEARNER:
    return "learner";
  case PLAN_MORE_BANDWIDTH:
    return "bandwidth";
  case PLAN_MORE_WINDOW:
    return "window";
  }
  return "";
}

/* 12345.6 as "12,346"; below ten with two places, below a thousand with one. */
static const char *amount(double x, int sign, char text[40]) {
  char digits[32];
  const double size = fabs(x);
  snprintf(digits, sizeof digits, size < 10 ? "%.2f" : size < 1000 ? "%.1f" : "%.0f", size);
  const char *dot = strchr(digits, '.');
  const size_t whole = dot != NULL ? (size_t)(dot - digits) : strlen(digits);
  size_t used = 0;
  if (x < 0)
    text[used++] = '-';
  else if (sign)
    text[used++] = '+';
  for (size_t i = 0; digits[i] != '\0' && used < 36; ++i) {
    if (i > 0 && i < whole && (whole - i) % 3 == 0) text[used++] = ',';
    text[used++] = digits[i];
  }
  text[used] = '\0';
  return text;
}

static const char *plural(long long n) {
  return n == 1 ? "" : "s";
}

/* --- text --- */

static void print_limits(const plan_limits *l, FILE *to) {
  char a[40];
  if (isfinite(l->staleness)) fprintf(to, ", mean staleness at most %g", l->staleness);
  if (isfinite(l->staleness_p95)) fprintf(to, ", 95 %% staleness at most %g", l->staleness_p95);
  if (l->throughput > 0) fprintf(to, ", at least %s responses/h", amount(l->throughput, 0, a));
}

static void plan_print_head(const plan_result *r, FILE *to) {
  fprintf(to, "%s: %zu candidates", r->d->name, r->n);
  if (r->n_too_slow > 0) fprintf(to, ", %zu of them too slow by a closed form", r->n_too_slow);
  if (r->n_stalled > 0) fprintf(to, ", %zu of them stand still", r->n_stalled);
  fprintf(to, "; %zu simulations of %zu updates", r->simulations, r->d->rigour.updates);
  print_limits(&r->d->limits, to);
  fputs("\n\n", to);
}

static void plan_print_choices(const plan_candidate *c, const plan_description *d, FILE *to) {
  if (d->n_decoding > 0) fprintf(to, "concurrency %zu, ", d->decoding[c->decoding].concurrency);
  fprintf(to, "%lld batch%s an update, window %lld, published every %lld update%s\n",
          (long long)c->batches, c->batches == 1 ? "" : "es", (long long)c->window,
          (long long)c->publish, plural(c->publish));
}

/* "5 %, that a candidate within the limits is more than 2 % faster" */
static void print_promise(const plan_result *r, double zone, FILE *to) {
  const plan_limits *l = &r->d->limits;
  const int fresh = l->throughput > 0 && isinf(l->staleness) && isinf(l->staleness_p95);
  fprintf(to, "%g %%, that a candidate within the limits is ", 100 * r->d->rigour.error_rate);
  if (fresh)
    fprintf(to, "more than %.3g updates fresher\n", zone);
  else
    fprintf(to, "more than %.3g %% faster\n", 100 * zone);
}

static void print_sureness(const plan_result *r, FILE *to) {
  const plan_rigour *g = &r->d->rigour;
  const plan_limits *l = &r->d->limits;
  const int fresh = l->throughput > 0 && isinf(l->staleness) && isinf(l->staleness_p95);
  const double wanted = fresh ? g->staleness : g->throughput;
  const double factor = fresh ? 1 : g->throughput / r->ranking.zone;
  fputs("  error rate     ", to);
  if (isinf(r->ranking.reached))
    fprintf(to, "not kept: %zu replicates did not show whether it keeps the limits\n", g->most);
  else
    print_promise(r, r->ranking.separated ? wanted : r->ranking.reached * factor, to);
  if (!r->ranking.separated)
    fprintf(to, "                 not %g%s, as wanted; raise plan.selection.most or .updates\n",
            fresh ? wanted : 100 * wanted, fresh ? " updates" : " %");
  if (r->ranking.as_good > 1)
    fprintf(to,
            "  as good        %zu candidates are shown to be within this zone; of them this is "
            "the %s\n",
            r->ranking.as_good, fresh ? "fastest" : "least stale");
}

static void plan_print_chosen(const plan_result *r, FILE *to) {
  const plan_system *s = &r->system[r->chosen];
  const plan_estimate t = plan_throughput(s), k = plan_tokens(s), a = plan_staleness(s);
  char split[PLAN_SPLIT_SIZE], x[40], y[40];
  fprintf(to, "recommended: %s\n", plan_candidate_split(&s->candidate, r->d, split));
  fputs("  choices        ", to);
  plan_print_choices(&s->candidate, r->d, to);
  fprintf(to, "  throughput     %s ± %s responses/h", amount(t.mean, 0, x), amount(t.half, 0, y));
  if (k.mean > 0) fprintf(to, ", %s tokens/h", amount(k.mean, 0, x));
  fprintf(to, "\n  staleness      mean %.2f ± %.2f, 95 %% %.2f updates\n", a.mean, a.half,
          plan_staleness_p95(s).mean);
  print_sureness(r, to);
}

static void print_use(const plan_result *r, FILE *to) {
  const plan_system *s = &r->system[r->chosen];
  fprintf(to, "  in use         learner %.0f %%, samplers %.0f %%",
          100 * plan_use(s, PLAN_LEARNER, 0), 100 * plan_use(s, PLAN_SAMPLERS, 0));
  for (plan_resource k = PLAN_WEIGHTS; k < PLAN_RESOURCES; ++k)
    for (size_t i = 0; i < r->d->n_sites; ++i)
      if (plan_use(s, k, i) >= 0.005)
        fprintf(to, ", %s %s %.0f %%", k == PLAN_WEIGHTS ? "weights to" : "responses from",
                r->d->sites[i].name, 100 * plan_use(s, k, i));
  fputs("\n  binds          ", to);
  switch (r->binds) {
  case PLAN_LEARNER:
    fputs("the learner\n", to);
    break;
  case PLAN_SAMPLERS:
    fputs("the samplers\n", to);
    break;
  case PLAN_WEIGHTS:
    fprintf(to, "the network: weights to %s\n", r->d->sites[r->binding_site].name);
    break;
  case PLAN_RESPONSES:
    fprintf(to, "the network: responses from %s\n", r->d->sites[r->binding_site].name);
    break;
  case PLAN_RESOURCES:
    fprintf(to,
            "no resource is in use for %.0f %% of the time: window, delays and the longest "
            "responses set the pace\n",
            100 * PLAN_BINDS);
    break;
  }
}

static void print_more(const plan_result *r, const plan_gain *g, FILE *to) {
  char what[120], x[40], y[40];
  switch (g->more) {
  case PLAN_MORE_SAMPLER:
    snprintf(what, sizeof what, "a sampler at %.60s", r->d->sites[g->site].name);
    break;
  case PLAN_MORE_LEARNER:
    snprintf(what, sizeof what, "%zu GPU%s of the learner", r->d->learner_gpus,
             plural((long long)r->d->learner_gpus));
    break;
  case PLAN_MORE_BANDWIDTH:
    snprintf(what, sizeof what, "twice the bandwidth %.60s", r->d->sites[g->site].name);
    break;
  case PLAN_MORE_WINDOW:
    snprintf(what, sizeof what, "an update of the window");
    break;
  }
  if (g->stalls) {
    fprintf(to, "  %-32s stands still\n", what);
    return;
  }
  const double base = plan_throughput(&r->system[r->chosen]).mean;
  fprintf(to, "  %-32s %10s ± %-8s %+7.2f %%  %+6.2f ± %.2f\n", what,
          amount(g->throughput.mean, 1, x), amount(g->throughput.half, 0, y),
          100 * g->throughput.mean / base, g->staleness.mean, g->staleness.half);
}

static void print_point(const plan_result *r, size_t at, FILE *to) {
  const plan_system *s = &r->system[at];
  const plan_estimate t = plan_throughput(s), a = plan_staleness(s);
  char x[40], y[40];
  fprintf(to, "%c %10s ± %-8s %6.2f ± %.2f %6.2f  ", at == r->chosen ? '*' : ' ',
          amount(t.mean, 0, x), amount(t.half, 0, y), a.mean, a.half, plan_staleness_p95(s).mean);
  fprintf(to, "%4.0f %% %4.0f %%  ", 100 * plan_use(s, PLAN_LEARNER, 0),
          100 * plan_use(s, PLAN_SAMPLERS, 0));
  fprintf(to, "%7zu %8zu ", s->candidate.learner_gpus,
          plan_candidate_samplers(&s->candidate, r->d));
  if (r->d->n_decoding > 0)
    fprintf(to, "%11zu ", r->d->decoding[s->candidate.decoding].concurrency);
  fprintf(to, "%7lld %6lld %7lld  %s%s\n", (long long)s->candidate.batches,
          (long long)s->candidate.window, (long long)s->candidate.publish,
          r->d->sites[s->candidate.learner_site].name,
          plan_keeps_limits(s, &r->d->limits) ? "" : "  (beyond the limits)");
}

static void print_front(const plan_result *r, FILE *to) {
  fprintf(to, "\nPareto front (means with 95 %% intervals; * the recommended one)\n"
              "  responses/h              staleness   95 %%     learner samplers ");
  fputs("  GPUs of samplers ", to);
  if (r->d->n_decoding > 0) fputs("concurrency ", to);
  fputs("batches window publish  learner at\n", to);
  for (size_t i = 0; i < r->n_front; ++i) print_point(r, r->front[i], to);
}

void plan_print(const plan_result *r, FILE *to) {
  plan_print_head(r, to);
  if (r->chosen == SIZE_MAX) {
    fputs("no candidate keeps the limits; the Pareto front shows what there is to choose from\n",
          to);
  } else {
    plan_print_chosen(r, to);
    print_use(r, to);
    fputs("\none more of each              responses/h, and in %        staleness\n", to);
    for (size_t i = 0; i < r->n_gains; ++i) print_more(r, &r->gains[i], to);
  }
  print_front(r, to);
}

/* JSON --- */

static int plan_add_estimate(cJSON *to, const char *key, plan_estimate e) {
  cJSON *o = cJSON_AddObjectToObject(to, key);
  return o != NULL && json_add_number(o, "mean", e.mean) != NULL &&
         json_add_number(o, "low", e.mean - e.half) != NULL &&
         json_add_number(o, "high", e.mean + e.half) != NULL;
}

static int add_candidate(cJSON *to, const plan_candidate *c, const plan_description *d) {
  cJSON *learner = cJSON_AddObjectToObject(to, "learner");
  int ok = learner != NULL &&
           json_add_string(learner, "site", d->sites[c->learner_site].name) != NULL &&
           json_add_number(learner, "gpus", (double)c->learner_gpus) != NULL;
  cJSON *samplers = ok ? cJSON_AddObjectToObject(to, "samplers") : NULL;
  ok = samplers != NULL;
  for (size_t i = 0; i < d->n_sites && ok; ++i)
    ok = json_add_number(samplers, d->sites[i].name, (double)c->samplers[i]) != NULL;
  if (ok && d->n_decoding > 0)
    ok = json_add_number(to, "concurrency", (double)d->decoding[c->decoding].concurrency) != NULL;
  return ok && json_add_number(to, "batches", (double)c->batches) != NULL &&
         json_add_number(to, "window", (double)c->window) != NULL &&
         json_add_number(to, "publish_every", (double)c->publish) != NULL;
}

static int add_sites(cJSON *to, const char *key, const plan_system *s, plan_resource which,
                     const plan_description *d) {
  cJSON *o = cJSON_AddObjectToObject(to, key);
  for (size_t i = 0; i < d->n_sites && o != NULL; ++i)
    if (json_add_number(o, d->sites[i].name, plan_use(s, which, i)) == NULL) return 0;
  return o != NULL;
}

static int add_use(cJSON *to, const plan_system *s, const plan_description *d) {
  cJSON *o = cJSON_AddObjectToObject(to, "use");
  return o != NULL && json_add_number(o, "learner", plan_use(s, PLAN_LEARNER, 0)) != NULL &&
         json_add_number(o, "samplers", plan_use(s, PLAN_SAMPLERS, 0)) != NULL &&
         add_sites(o, "weights", s, PLAN_WEIGHTS, d) &&
         add_sites(o, "responses", s, PLAN_RESPONSES, d);
}

static int add_system(cJSON *to, const plan_system *s, const plan_description *d) {
  return add_candidate(to, &s->candidate, d) &&
         plan_add_estimate(to, "responses_per_hour", plan_throughput(s)) &&
         plan_add_estimate(to, "tokens_per_hour", plan_tokens(s)) &&
         plan_add_estimate(to, "staleness", plan_staleness(s)) &&
         plan_add_estimate(to, "staleness_p95", plan_staleness_p95(s)) && add_use(to, s, d) &&
         cJSON_AddBoolToObject(to, "keeps_limits", plan_keeps_limits(s, &d->limits)) != NULL &&
         json_add_number(to, "replicates", (double)s->n) != NULL;
}

static int add_front(cJSON *to, const plan_result *r) {
  cJSON *list = cJSON_AddArrayToObject(to, "front");
  int ok = list != NULL;
  for (size_t i = 0; i < r->n_front && ok; ++i) {
    cJSON *o = json_append_object(list);
    ok = o != NULL && add_system(o, &r->system[r->front[i]], r->d) &&
         cJSON_AddBoolToObject(o, "recommended", r->front[i] == r->chosen) != NULL;
  }
  return ok;
}

static int add_gains(cJSON *to, const plan_result *r) {
  cJSON *list = cJSON_AddArrayToObject(to, "more");
  int ok = list != NULL;
  for (size_t i = 0; i < r->n_gains && ok; ++i) {
    const plan_gain *g = &r->gains[i];
    cJSON *o = json_append_object(list);
    ok = o != NULL && json_add_string(o, "of", more_name(g->more)) != NULL;
    if (ok && (g->more == PLAN_MORE_SAMPLER || g->more == PLAN_MORE_BANDWIDTH))
      ok = json_add_string(o, "site", r->d->sites[g->site].name) != NULL;
    if (ok && g->stalls) ok = cJSON_AddTrueToObject(o, "stands_still") != NULL;
    if (ok && !g->stalls)
      ok = plan_add_estimate(o, "responses_per_hour", g->throughput) &&
           plan_add_estimate(o, "tokens_per_hour", g->tokens) &&
           plan_add_estimate(o, "staleness", g->staleness);
  }
  return ok;
}

static int add_selection(cJSON *to, const plan_result *r) {
  const plan_rigour *g = &r->d->rigour;
  cJSON *o = cJSON_AddObjectToObject(to, "selection");
  return o != NULL && json_add_number(o, "error_rate", g->error_rate) != NULL &&
         json_add_number(o, "indifference_zone", r->ranking.zone) != NULL &&
         json_add_number(o, "reached_zone", r->ranking.reached) != NULL &&
         cJSON_AddBoolToObject(o, "separated", r->ranking.separated) != NULL &&
         json_add_number(o, "as_good", (double)r->ranking.as_good) != NULL &&
         json_add_number(o, "first_stage", (double)g->replicates) != NULL &&
         json_add_number(o, "updates", (double)g->updates) != NULL &&
         json_add_number(o, "warm_up", (double)g->warm_up) != NULL;
}

static int plan_add_chosen(cJSON *to, const plan_result *r, cJSON *recipe) {
  const int none = r->chosen == SIZE_MAX;
  cJSON *o =
      none ? cJSON_AddNullToObject(to, "recommended") : cJSON_AddObjectToObject(to, "recommended");
  if (none || o == NULL || !add_system(o, &r->system[r->chosen], r->d)) {
    cJSON_Delete(recipe);
    return none && o != NULL;
  }
  if (recipe != NULL && !cJSON_AddItemToObject(o, "recipe", recipe)) {
    cJSON_Delete(recipe);
    return 0;
  }
  int ok = json_add_string(to, "binds", resource_name(r->binds)) != NULL;
  if (ok && (r->binds == PLAN_WEIGHTS || r->binds == PLAN_RESPONSES))
    ok = json_add_string(to, "binding_site", r->d->sites[r->binding_site].name) != NULL;
  return ok;
}

cJSON *plan_to_json(const plan_result *r, cJSON *recipe) {
  cJSON *d = cJSON_CreateObject();
  if (d == NULL) {
    cJSON_Delete(recipe);
    return NULL;
  }
  int ok = plan_add_chosen(d, r, recipe);
  ok = ok && json_add_string(d, "name", r->d->name) != NULL && add_front(d, r) && add_gains(d, r) &&
       add_selection(d, r) && json_add_number(d, "candidates", (double)r->n) != NULL &&
       json_add_number(d, "stand_still", (double)r->n_stalled) != NULL &&
       json_add_number(d, "too_slow", (double)r->n_too_slow) != NULL &&
       json_add_number(d, "simulations", (double)r->simulations) != NULL;
  if (ok) return d;
  cJSON_Delete(d);
  return NULL;
}
