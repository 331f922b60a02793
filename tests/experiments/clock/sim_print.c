/* A schedule worked out by hand, in every form it is printed in. */
#include "experiments/clock/sim_print.h"

#include "sim/schedule.h"
#include "tests/support/sim.h"
#include "tests/support/suite.h"

#include <stdlib.h>
#include <string.h>

SUITE("cli: printed schedules");

/* One sampler begins a batch at 0, 4 and 8 s, an update takes 2 s, and weights arrive 1 s after it:
 * those of the first update, ready at 6 s, at 7 s, in time for the third batch. */
#define CLUSTER "{preset: fifo, samplers: 1, generation: 4, delay: 1, learner: {step: 2}"
static const char with_measured[] =
    CLUSTER ", compare: {name: \"ru\\e[1mn\", source: \"a\\nb\", histogram: [0, 3]}}";

static char *printed(const char *cluster,
                     void print(const schedule *, const cluster_spec *, FILE *)) {
  schedule s;
  cluster_spec *spec;
  gl_error err = {0};
  char *text = NULL;
  size_t size = 0;
  if (sim_build(&s, &spec, cluster, 1, 3, &err) != GL_OK) fprintf(stderr, "%s\n", err.text);
  CU_ASSERT_EQUAL_FATAL(err.status, GL_OK);
  FILE *to = open_memstream(&text, &size);
  CU_ASSERT_PTR_NOT_NULL_FATAL(to);
  print(&s, spec, to);
  fclose(to);
  return text;
}

static void print_csv(const schedule *s, const cluster_spec *spec, FILE *to) {
  (void)spec;
  schedule_print_csv(s, to);
}

TEST(every_batch_is_a_line_of_csv) {
  char *text = printed(CLUSTER "}", print_csv);
  CU_ASSERT_STRING_EQUAL(text, "step,sampler,version,staleness,segments,tokens,bytes,start_s,"
                               "generated_s,arrived_s,trained_s,end_s,from_weights,"
                               "from_generation,from_transit,from_queue,from_pause\n"
                               "1,0,0,0,1,0,0,0,4,4,4,6,0,0,0,0,0\n"
                               "2,0,0,1,1,0,0,4,8,8,8,10,0,1,0,0,0\n"
                               "3,0,1,1,1,0,0,8,12,12,12,14,0,1,0,0,0\n");
  free(text);
}

/* The learner works 6 of 14 s; 64 responses a batch. */
TEST(the_table_has_the_sums_of_the_schedule) {
  static const char *const lines[] = {
      "preset                fifo\n",
      "updates               3 \n",
      "simulated_s           14 s\n",
      "learner_utilisation   0.428571 \n",
      "sampler_utilisation   1 \n",
      "samples_per_s         13.7143 1/s\n",
      "batches_generated     3 \n",
      "batches_trained       3 \n",
      "batches_dropped       0 \n",
      "retransmissions       0 \n",
      "staleness             mean 0.6667, median 1, p95 1, max 1\n",
      "\n  from weights        0 before its generation began: late weights\n",
      "\n  from generation     0.6667 while it was generated\n"};
  char *text = printed(CLUSTER "}", schedule_print_table);
  for (size_t i = 0; i < sizeof lines / sizeof *lines; ++i)
    CU_ASSERT_PTR_NOT_NULL(strstr(text, lines[i]));
  CU_ASSERT_PTR_NULL(strstr(text, "ks_distance"));
  free(text);
}

/* Shares 1/3 and 2/3 of staleness 0 and 1 against all of it at 1. */
TEST(the_distance_to_measured_staleness_is_named_and_sourced) {
  char *text = printed(with_measured, schedule_print_table);
  CU_ASSERT_PTR_NOT_NULL(strstr(text, "ks_distance           0.3333 to ru\\x1b[1mn (a\\nb)\n"));
  free(text);
  text = printed(CLUSTER ", compare: {name: run, histogram: [1, 2]}}", schedule_print_table);
  CU_ASSERT_PTR_NOT_NULL(strstr(text, "ks_distance           0.0000 to run\n"));
  free(text);
}

TEST(json_has_the_same_numbers) {
  schedule s;
  cluster_spec *spec;
  cJSON *json = NULL;
  ASSERT_OK(sim_build(&s, &spec, with_measured, 1, 3, &err));
  ASSERT_OK(schedule_to_json(&s, spec, &json, &err));
  char *text = cJSON_PrintUnformatted(json);
  CU_ASSERT_PTR_NOT_NULL(
      strstr(text, "\"preset\":\"fifo\",\"staleness\":{\"mean\":0.6666666666666"));
  CU_ASSERT_PTR_NOT_NULL(strstr(text, "\"max\":1,\"p50\":1,\"p95\":1,\"histogram\":[1,2],\"from\":{"
                                      "\"weights\":{\"versions\":0,\"mean\":0},"
                                      "\"generation\":{\"versions\":2,\"mean\":0.6666666666"));
  CU_ASSERT_PTR_NOT_NULL(strstr(text, "\"updates\":3,\"simulated_s\":14,"));
  CU_ASSERT_PTR_NOT_NULL(strstr(text, "\"ks_distance\":0.333333333333333"));
  /* data are data */
  CU_ASSERT_PTR_NOT_NULL(strstr(text, "\"compared_with\":\"ru\\u001b[1mn\""));
  CU_ASSERT_PTR_NOT_NULL(strstr(text, "\"compared_source\":\"a\\nb\""));
  free(text);
  cJSON_Delete(json);
}
