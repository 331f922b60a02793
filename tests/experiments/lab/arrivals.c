/* The gradient of what arrives, against a list of all groups. */
#include "experiments/lab/arrivals.h"

#include "tests/support/suite.h"
#include "toy/lab/prompt_tables.h"
#include "toy/world/toy_world.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

SUITE("lab: gradients of what arrives");

enum { MOST = 256, GROUP = 3 };

/* Of all responses to all prompts, each prompt's means taken off. */
static double correlation(const enumerable *view, const double *theta) {
  double rr = 0, ll = 0, rl = 0;
  for (size_t x = 0; x < view->n_prompts; ++x) {
    lab_tables t;
    double r = 0, l = 0;
    ASSERT_OK(lab_tables_init(&t, view, x, theta, theta, LAB_WEIGHTS_RAW, &err));
    for (size_t y = 0; y < t.n; ++y)
      r += t.draw[y] * t.reward[y], l += t.draw[y] * (double)t.length[y];
    for (size_t y = 0; y < t.n; ++y) {
      const double of_length = (double)t.length[y];
      rr += t.draw[y] * (t.reward[y] * t.reward[y] - r * r);
      ll += t.draw[y] * (of_length * of_length - l * l);
      rl += t.draw[y] * (t.reward[y] * of_length - r * l);
    }
    lab_tables_fini(&t);
  }
  return rl / sqrt(rr * ll);
}

typedef struct listed {
  double probability, reward, length, gradient[MOST];
} listed;

/* Adds every group of three responses to a prompt, with the probability that it arrives. */
static void list_groups(listed *out, const lab_tables *t, double prompt, const double *arrives) {
  for (size_t a = 0; a < t->n; ++a)
    for (size_t b = 0; b < t->n; ++b)
      for (size_t c = 0; c < t->n; ++c) {
        const size_t y[GROUP] = {a, b, c};
        double p = prompt, mean = 0, length = 0;
        size_t longest = 0;
        for (size_t i = 0; i < GROUP; ++i) {
          p *= t->draw[y[i]];
          mean += t->reward[y[i]] / GROUP;
          length += (double)t->length[y[i]] / GROUP;
          if (t->length[y[i]] > longest) longest = t->length[y[i]];
        }
        p *= arrives[longest];
        out->probability += p;
        out->reward += p * mean;
        out->length += p * length;
        for (size_t i = 0; i < GROUP; ++i)
          for (size_t k = 0; k < t->length[y[i]]; ++k)
            for (size_t j = 0; j < t->n_parameters; ++j)
              out->gradient[j] += p * (t->reward[y[i]] - mean) / GROUP *
                                  t->score[(y[i] * t->width + k) * t->n_parameters + j];
      }
}

TEST(gradients_are_those_of_all_groups) {
  static const char world_text[] =
      "world: {kind: sequence, vocabulary: 3, horizon: 3, prompts: 2, end_token: true}\n";
  cfg_doc *doc = NULL;
  toy_world *world = NULL;
  gl_error err = {0};
  CU_ASSERT_FATAL(cfg_load_text(&doc, world_text, strlen(world_text), "test", &err) == GL_OK);
  CU_ASSERT_FATAL(toy_world_new(&world, cfg_find(cfg_root(doc), "world"), NULL, 1, &err) == GL_OK);
  const enumerable view = toy_world_enumerable(world);
  CU_ASSERT_FATAL(view.n_parameters <= MOST && view.max_length == 3);
  double theta[MOST];
  for (size_t i = 0; i < view.n_parameters; ++i) theta[i] = sin(1.7 * (double)i);
  static const double arrives[][4] = {
      {1, 1, 1, 1}, {0, 1, 0.7, 0.1}, {0, 0, 1, 0}, {0, 0.2, 0.3, 0.9}};
  for (size_t k = 0; k < sizeof arrives / sizeof *arrives; ++k) {
    listed of_list = {0};
    arrivals exact;
    for (size_t x = 0; x < view.n_prompts; ++x) {
      lab_tables t;
      CU_ASSERT_FATAL(lab_tables_init(&t, &view, x, theta, theta, LAB_WEIGHTS_RAW, &err) == GL_OK);
      list_groups(&of_list, &t, 1 / (double)view.n_prompts, arrives[k]);
      lab_tables_fini(&t);
    }
    CU_ASSERT_FATAL(arrivals_measure(&exact, &view, theta, GROUP, arrives[k], &err) == GL_OK);
    ASSERT_CLOSE(exact.probability, of_list.probability, 1e-12);
    ASSERT_CLOSE(exact.correlation, correlation(&view, theta), 1e-12);
    ASSERT_CLOSE(exact.arrived.reward, of_list.reward / of_list.probability, 1e-12);
    ASSERT_CLOSE(exact.arrived.length, of_list.length / of_list.probability, 1e-12);
    double largest = 0;
    for (size_t j = 0; j < view.n_parameters; ++j) {
      const double listed_gradient = of_list.gradient[j] / of_list.probability;
      CU_ASSERT(fabs(exact.arrived.gradient[j] - listed_gradient) < 1e-13);
      if (k == 0) CU_ASSERT(fabs(exact.drawn.gradient[j] - listed_gradient) < 1e-13);
      largest = fmax(largest, fabs(listed_gradient));
    }
    CU_ASSERT(largest > 0.001);
    if (k == 0)
      ASSERT_CLOSE(exact.cosine, 1, 1e-12);
    else
      CU_ASSERT(exact.cosine < 1 - 1e-6);
    double shares = 0;
    for (size_t longest = 0; longest <= 3; ++longest) shares += exact.longest[longest];
    ASSERT_CLOSE(shares, 1, 1e-12);
    arrivals_fini(&exact);
  }
  arrivals none;
  CU_ASSERT(arrivals_measure(&none, &view, theta, GROUP, (double[]){0, 0, 0, 0}, &err) ==
            GL_EINPUT);
  CU_ASSERT_PTR_NULL(none.longest);
  toy_world_free(world);
  cfg_free(doc);
}
