/* Prints plans as text and as JSON. */
#include "experiments/plan/plan.h"

#include "core/base/display_text.h"
#include "experiments/base/memory.h"
#include "experiments/base/print_json.h"

#include <math.h>
#include <string.h>

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
  case PLAN_WITHOUT_SITE:
    return "site";
  }
  return "";
}

/* Formats 12345.6 as "12,346"; two decimals below ten, one below a thousand. */
static const char *amount(double x, bool sign, char text[40]) {
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

/* --- text --- */

static void print_limits(const plan_limits *l, FILE *to) {
  char a[40];
  const char *before = "\nlimits: ";
  if (isfinite(l->staleness)) fprintf(to, "%smean staleness at most %g", before, l->staleness);
  if (isfinite(l->staleness)) before = ", ";
  if (isfinite(l->staleness_p95)) fprintf(to, "%s95 %% at most %g", before, l->staleness_p95);
  if (isfinite(l->staleness_p95)) before = ", ";
  if (l->throughput > 0)
    fprintf(to, "%sat least %s responses/h", before, amount(l->throughput, false, a));
}

/* Says which fields that are left out make messages take no time. */
static void print_assumed(const plan_description *d, FILE *to) {
  const cfg_node *root = cfg_root(d->doc);
  if (cfg_find(root, "cluster.weights_bytes") == NULL)
    fputs("assumed: cluster.weights_bytes is 0, so links add nothing but latency to weights\n", to);
  if (cfg_find(root, "plan.inside") == NULL)
    fputs("assumed: no plan.inside, so the network within a site has no limit\n", to);
}

static void plan_print_head(const plan_result *r, FILE *to) {
  fprintf(to, "%s: %zu candidates", r->d->name, r->n);
  if (r->n_too_slow > 0) fprintf(to, ", %zu of them too slow by a closed form", r->n_too_slow);
  if (r->n_stalled > 0) fprintf(to, ", %zu of them stand still", r->n_stalled);
  fprintf(to, "; %zu simulations of %zu updates", r->simulations, r->d->rigour.updates);
  print_limits(&r->d->limits, to);
  fputs("\n", to);
  print_assumed(r->d, to);
  fputs("\n", to);
}

static void plan_print_choices(const plan_candidate *c, const plan_description *d, FILE *to) {
  if (d->n_decoding > 0) fprintf(to, "concurrency %zu, ", d->decoding[c->decoding].concurrency);
  fprintf(to,
          "%lld batch%s an update, window %lld,\n                 published every %lld update%s\n",
          (long long)c->batches, c->batches == 1 ? "" : "es", (long long)c->window,
          (long long)c->publish, plural_ending((size_t)c->publish));
}

/* Prints the error rate and the error that it bounds: "5 %, that one within the limits is more than
 * 2 % faster". */
static void print_promise(const plan_result *r, double zone, FILE *to) {
  const plan_limits *l = &r->d->limits;
  const bool fresh = l->throughput > 0 && isinf(l->staleness) && isinf(l->staleness_p95);
  fprintf(to, "%g %%, that one within the limits is ", 100 * r->d->rigour.error_rate);
  if (fresh)
    fprintf(to, "more than %.3g updates fresher\n", zone);
  else
    fprintf(to, "more than %.3g %% faster\n", 100 * zone);
}

static void print_confidence(const plan_result *r, FILE *to) {
  const plan_rigour *g = &r->d->rigour;
  const plan_limits *l = &r->d->limits;
  const bool fresh = l->throughput > 0 && isinf(l->staleness) && isinf(l->staleness_p95);
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
            "  as good        %zu candidates, shown to be within this zone;\n"
            "                 this is the %s\n",
            r->ranking.as_good, fresh ? "fastest" : "least stale");
}

static void plan_print_chosen(const plan_result *r, FILE *to) {
  const plan_system *s = &r->system[r->chosen];
  const plan_estimate t = plan_throughput(s), k = plan_tokens(s), a = plan_staleness(s);
  char split[PLAN_SPLIT_SIZE], x[40], y[40];
  fprintf(to, "recommended: %s\n", plan_candidate_split(&s->candidate, r->d, split));
  fputs("  choices        ", to);
  plan_print_choices(&s->candidate, r->d, to);
  fprintf(to, "  throughput     %s ± %s responses/h", amount(t.mean, false, x),
          amount(t.half, false, y));
  if (k.mean > 0) fprintf(to, ", %s tokens/h", amount(k.mean, false, x));
  fprintf(to, "\n  staleness      mean %.2f ± %.2f, 95 %% %.2f updates\n", a.mean, a.half,
          plan_staleness_p95(s).mean);
  fprintf(to, "  thrown away    %.1f %% of what samplers finished or broke off\n",
          100 * plan_wasted(s).mean);
  print_confidence(r, to);
}

/* Prints the GPUs that were removed from the selected candidate because it is as good without
 * them. */
static void print_left_out(const plan_result *r, FILE *to) {
  char x[40], y[40];
  size_t n = 0;
  for (size_t i = 0; i < r->d->n_sites; ++i)
    if (r->left_out[i] > 0)
      fprintf(to, "%s %zu GPU%s at %.60s", n++ > 0 ? "," : "  left out      ",
              r->left_out[i] * r->d->sampler_gpus,
              plural_ending((size_t)(r->left_out[i] * r->d->sampler_gpus)), r->d->sites[i].name);
  if (n > 0)
    fprintf(
        to, ";\n                 they would bring %s ± %s responses/h, %+.2f ± %.2f staleness\n",
        amount(r->left_out_throughput.mean, true, x), amount(r->left_out_throughput.half, false, y),
        r->left_out_staleness.mean, r->left_out_staleness.half);
}

static void print_use(const plan_result *r, FILE *to) {
  const plan_system *s = &r->system[r->chosen];
  fprintf(to, "  in use         learner %.0f %%, samplers %.0f %%",
          100 * plan_use(s, PLAN_LEARNER, 0), 100 * plan_use(s, PLAN_SAMPLERS, 0));
  for (plan_resource k = PLAN_WEIGHTS; k < PLAN_RESOURCES; ++k)
    for (size_t i = 0; i < r->d->n_sites; ++i)
      if (plan_use(s, k, i) >= 0.005)
        fprintf(to, "\n                 %s %s %.0f %%",
                k == PLAN_WEIGHTS ? "weights to" : "responses from", r->d->sites[i].name,
                100 * plan_use(s, k, i));
  fputs("\n  binds          ", to);
  switch (r->bottleneck) {
  case PLAN_LEARNER:
    fputs("the learner\n", to);
    break;
  case PLAN_SAMPLERS:
    fputs("the samplers\n", to);
    break;
  case PLAN_WEIGHTS:
    fprintf(to, "the network: weights to %s\n", r->d->sites[r->bottleneck_site].name);
    break;
  case PLAN_RESPONSES:
    fprintf(to, "the network: responses from %s\n", r->d->sites[r->bottleneck_site].name);
    break;
  case PLAN_RESOURCES:
    fprintf(to,
            "no resource is in use for %.0f %% of the time: window, delays and\n"
            "                 the longest responses set the pace\n",
            100 * PLAN_BOTTLENECK_USE);
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
             plural_ending((size_t)r->d->learner_gpus));
    break;
  case PLAN_MORE_BANDWIDTH:
    snprintf(what, sizeof what, "twice the bandwidth %.60s", r->d->sites[g->site].name);
    break;
  case PLAN_MORE_WINDOW:
    snprintf(what, sizeof what, "an update of the window");
    break;
  case PLAN_WITHOUT_SITE:
    snprintf(what, sizeof what, "without %.60s", r->d->sites[g->site].name);
    break;
  }
  if (g->stalls) {
    fprintf(to, "  %-32s stands still\n", what);
    return;
  }
  const double base = plan_throughput(&r->system[r->chosen]).mean;
  fprintf(to, "  %-32s %9s ± %-6s %+7.2f %% %+6.2f ± %.2f\n", what,
          amount(g->throughput.mean, true, x), amount(g->throughput.half, false, y),
          100 * g->throughput.mean / base, g->staleness.mean, g->staleness.half);
}

/* Prints the gain from one more of each resource, or (`without`) the loss without each site. */
static void print_gains(const plan_result *r, bool without, FILE *to) {
  size_t n = 0;
  for (size_t i = 0; i < r->n_gains; ++i) {
    if ((r->gains[i].more == PLAN_WITHOUT_SITE) != without) continue;
    if (n++ == 0)
      fprintf(to, "\n%-32sresponses/h, and in %%       staleness\n",
              without ? "without each site" : "one more of each");
    print_more(r, &r->gains[i], to);
  }
}

static void print_point(const plan_result *r, size_t at, FILE *to) {
  const plan_system *s = &r->system[at];
  const plan_estimate t = plan_throughput(s), a = plan_staleness(s);
  char x[40], y[40];
  fprintf(to, "%c%c%9s ± %-6s %5.2f ± %-5.2f %5.2f ", at == r->chosen ? '*' : ' ',
          plan_keeps_limits(s, &r->d->limits) ? ' ' : '!', amount(t.mean, false, x),
          amount(t.half, false, y), a.mean, a.half, plan_staleness_p95(s).mean);
  fprintf(to, "%4.0f %3.0f ", 100 * plan_use(s, PLAN_LEARNER, 0),
          100 * plan_use(s, PLAN_SAMPLERS, 0));
  fprintf(to, "%4zu %4zu ", s->candidate.learner_gpus,
          plan_candidate_samplers(&s->candidate, r->d));
  if (r->d->n_decoding > 0) fprintf(to, "%4zu ", r->d->decoding[s->candidate.decoding].concurrency);
  fprintf(to, "%3lld %3lld %3lld", (long long)s->candidate.batches, (long long)s->candidate.window,
          (long long)s->candidate.publish);
  if (r->d->n_sites > 1) fprintf(to, " %2zu", s->candidate.learner_site + 1);
  putc('\n', to);
}

static void print_front(const plan_result *r, FILE *to) {
  const bool decodes = r->d->n_decoding > 0, several = r->d->n_sites > 1;
  fputs("\nPareto front (means with 95 % intervals; * recommended, ! beyond the limits)\n", to);
  fprintf(to, "%-21s%-14s%5s %8s %9s %sbat win pub%s\n", "  responses/h", "staleness", "95 %",
          "in use %", "GPUs", decodes ? "conc " : "", several ? " at" : "");
  fprintf(to, "%45s %3s %4s %4s\n", "lea", "sam", "lea", "sam");
  for (size_t i = 0; i < r->n_front; ++i) print_point(r, r->front[i], to);
  fputs("  lea: learner, sam: samplers", to);
  for (size_t i = 0; i < r->d->n_sites && several; ++i)
    fprintf(to, "%s %zu %.60s", i == 0 ? ", at: the learner's site," : ",", i + 1,
            r->d->sites[i].name);
  if (decodes) fputs(",\n  conc: responses that a sampler decodes at once", to);
  fputs(",\n  bat: batches of an update, win: window, pub: updates between publishing\n", to);
}

void plan_print(const plan_result *r, FILE *to) {
  plan_print_head(r, to);
  if (r->chosen == SIZE_MAX) {
    fputs("no candidate keeps the limits; the Pareto front shows the choice\n", to);
  } else {
    plan_print_chosen(r, to);
    print_left_out(r, to);
    print_use(r, to);
    plan_verdict_print(r, to);
    print_gains(r, false, to);
    print_gains(r, true, to);
  }
  print_front(r, to);
}

/* --- advice from a stored study --- */

const int plan_studied_staleness[PLAN_STUDIED] = {0, 4, 16, 64, 256};

static const plan_studied studied[] = {
    {"gepo released", {0.4375, 0.25, 0.125, 0, 0.0625}},
    {"gepo unclipped", {0.5, 0.5625, 0.5, 0.5, 0.5}},
    {"gspo 0.2", {0.4375, 0.25, 0.3125, 0.125, 0.0625}},
    {"gspo", {0.3125, 0.25, 0.0625, 0.125, 0.0625}},
    {"grpo", {0.3125, 0.25, 0.5, 0.5625, 0.5}},
    {"dr_grpo", {0.375, 0.25, 0.5, 0.5625, 0.5}},
    {"bnpo", {0.4375, 0.25, 0.5, 0.5625, 0.5625}},
    {"cispo", {0.375, 0.5, 0.5, 0.6875, 0.625}},
    {"m2po", {0.375, 0.3125, 0.5, 0.5, 0.5}},
    {"decoupled_ppo", {0.375, 0.5, 0.5, 0.625, 0.75}},
    {"topr +-1", {0.5625, 0.75, 0.5, 0.5, 0.25}},
    {"vtrace", {0.375, 0.5625, 0.5625, 0.6875, 0.8125}},
    {"defensive", {0.375, 0.5625, 0.6875, 0.75, 0.75}},
};

const plan_studied *plan_studied_at(size_t i) {
  return i < sizeof studied / sizeof *studied ? &studied[i] : NULL;
}

/* "gepo_released" is the study's "gepo released". */
static bool is_same_name(const char *a, const char *b) {
  while (*a != '\0' && (*a == *b || (*a == '_' && *b == ' '))) ++a, ++b;
  return *a == *b;
}

static void print_collapses(const plan_studied *m, FILE *to) {
  fprintf(to, "%s collapsed", m->algorithm);
  for (size_t i = 0; i < PLAN_STUDIED; ++i)
    fprintf(to, "%s in %.0f %%%s %d", i > 0 ? "," : "", 100 * m->collapsed[i],
            i > 0 ? " at" : " of 16 runs at staleness", plan_studied_staleness[i]);
}

void plan_warn(const plan_result *r, FILE *to) {
  const plan_limits *l = &r->d->limits;
  if (r->chosen == SIZE_MAX || isfinite(l->staleness) || isfinite(l->staleness_p95) ||
      l->throughput > 0)
    return;
  fprintf(
      to,
      "gepolab: note: plan.limits is not given, so the fastest candidate is recommended however "
      "stale its data (mean %.3g updates); plan.limits.staleness=4 sets a limit. ",
      plan_staleness(&r->system[r->chosen]).mean);
  const plan_studied *m = NULL;
  for (size_t i = 0; m == NULL && i < sizeof studied / sizeof *studied; ++i)
    if (is_same_name(r->d->algorithm, studied[i].algorithm)) m = &studied[i];
  fputs("In the study frontier ", to);
  if (m == NULL) fprintf(to, "(which has no %s) ", shown(r->d->algorithm).text);
  print_collapses(m != NULL ? m : &studied[0], to);
  if (m == NULL) fputs(", and ", to), print_collapses(&studied[4], to);
  fputs("; each over four learning rates (paper/findings.md)\n", to);
}

/* --- JSON --- */

static void put_estimate(cJSON *to, const char *key, plan_estimate e) {
  json_put(json_object(to, key), "mean %g, low %g, high %g", e.mean, e.mean - e.half,
           e.mean + e.half);
}

static void put_use_of_sites(cJSON *to, const char *key, const plan_system *s, plan_resource which,
                             const plan_description *d) {
  cJSON *o = json_object(to, key);
  for (size_t i = 0; i < d->n_sites; ++i) json_number(o, d->sites[i].name, plan_use(s, which, i));
}

/* Writes a candidate, its measurements and the resources it uses. */
static void put_system(cJSON *to, const plan_system *s, const plan_description *d) {
  const plan_candidate *c = &s->candidate;
  json_put(json_object(to, "learner"), "site %s, gpus %zu", d->sites[c->learner_site].name,
           c->learner_gpus);
  cJSON *samplers = json_object(to, "samplers");
  for (size_t i = 0; i < d->n_sites; ++i)
    json_number(samplers, d->sites[i].name, (double)c->samplers[i]);
  if (d->n_decoding > 0) json_put(to, "concurrency %zu", d->decoding[c->decoding].concurrency);
  json_number(to, "batches", (double)c->batches);
  json_number(to, "window", (double)c->window);
  json_number(to, "publish_every", (double)c->publish);
  put_estimate(to, "responses_per_hour", plan_throughput(s));
  put_estimate(to, "tokens_per_hour", plan_tokens(s));
  put_estimate(to, "staleness", plan_staleness(s));
  put_estimate(to, "staleness_p95", plan_staleness_p95(s));
  put_estimate(to, "thrown_away", plan_wasted(s));
  cJSON *use = json_object(to, "use");
  json_put(use, "learner %g, samplers %g", plan_use(s, PLAN_LEARNER, 0),
           plan_use(s, PLAN_SAMPLERS, 0));
  put_use_of_sites(use, "weights", s, PLAN_WEIGHTS, d);
  put_use_of_sites(use, "responses", s, PLAN_RESPONSES, d);
  json_put(to, "keeps_limits %i, replicates %zu", plan_keeps_limits(s, &d->limits), s->n);
}

static void put_gain(cJSON *to, const plan_result *r, const plan_gain *g) {
  if (g->more != PLAN_WITHOUT_SITE) json_put(to, "of %s", more_name(g->more));
  if (g->more == PLAN_MORE_SAMPLER || g->more == PLAN_MORE_BANDWIDTH ||
      g->more == PLAN_WITHOUT_SITE)
    json_put(to, "site %s", r->d->sites[g->site].name);
  if (g->stalls) {
    json_put(to, "stands_still %i", true);
    return;
  }
  put_estimate(to, "responses_per_hour", g->throughput);
  put_estimate(to, "tokens_per_hour", g->tokens);
  put_estimate(to, "staleness", g->staleness);
}

static void put_chosen(cJSON *to, const plan_result *r, cJSON *recipe) {
  if (r->chosen == SIZE_MAX) {
    must_have(cJSON_AddNullToObject(to, "recommended"), "JSON");
    cJSON_Delete(recipe);
    return;
  }
  cJSON *o = json_object(to, "recommended");
  put_system(o, &r->system[r->chosen], r->d);
  if (recipe != NULL) json_attach(o, "recipe", recipe);
  cJSON *left_out = json_object(o, "left_out");
  for (size_t i = 0; i < r->d->n_sites; ++i)
    json_number(left_out, r->d->sites[i].name, (double)(r->left_out[i] * r->d->sampler_gpus));
  const plan_verdict verdict = plan_verdict_of(r);
  json_put(json_object(to, "verdict"), "most %g, brings %g", verdict.overlap_limit,
           verdict.overlap_gain);
  json_put(to, "binds %s", resource_name(r->bottleneck));
  if (r->bottleneck == PLAN_WEIGHTS || r->bottleneck == PLAN_RESPONSES)
    json_put(to, "bottleneck_site %s", r->d->sites[r->bottleneck_site].name);
}

cJSON *plan_to_json(const plan_result *r, cJSON *recipe) {
  const plan_rigour *g = &r->d->rigour;
  cJSON *d = json_new();
  put_chosen(d, r, recipe);
  json_put(d, "name %s", r->d->name);
  cJSON *front = json_list(d, "front"), *more = json_list(d, "more");
  for (size_t i = 0; i < r->n_front; ++i) {
    cJSON *o = json_object(front, NULL);
    put_system(o, &r->system[r->front[i]], r->d);
    json_put(o, "recommended %i", r->front[i] == r->chosen);
  }
  cJSON *without = json_list(d, "without");
  for (size_t i = 0; i < r->n_gains; ++i)
    put_gain(json_object(r->gains[i].more == PLAN_WITHOUT_SITE ? without : more, NULL), r,
             &r->gains[i]);
  json_put(json_object(d, "selection"),
           "error_rate %g, indifference_zone %g, reached_zone %g, separated %i, as_good %zu, "
           "first_stage %zu, updates %zu, warm_up %zu",
           g->error_rate, r->ranking.zone, r->ranking.reached, r->ranking.separated,
           r->ranking.as_good, g->replicates, g->updates, g->warm_up);
  json_put(d, "candidates %zu, stand_still %zu, too_slow %zu, simulations %zu", r->n, r->n_stalled,
           r->n_too_slow, r->simulations);
  return d;
}
