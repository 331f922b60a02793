/* The meter's arithmetic, with readings and texts made up here: which share of the machine others
 * took, and what counts as quiet. */
#include "experiments/bench/bench.h"
#include "tests/support/suite.h"

#include <string.h>

SUITE("bench: meter");

TEST(the_machines_times_are_read_from_its_text) {
  static const char text[] = "cpu  100 20 30 5000 7 3 4 50 99 98\n"
                             "cpu0 50 10 15 2500 3 1 2 25 0 0\n"
                             "cpu1 50 10 15 2500 4 2 2 25 0 0\n"
                             "intr 12345\nctxt 77\n";
  meter_reading r = {0};
  CU_ASSERT_EQUAL(meter_read_machine(&r, text, 100, NULL), GL_OK);
  CU_ASSERT_EQUAL(r.cores, 2);
  /* User, nice, system and interrupts; not idle, waiting, nor guests, who are users already. */
  ASSERT_CLOSE(r.busy_s, 1.57, 1e-12);
  ASSERT_CLOSE(r.steal_s, 0.5, 1e-12);
}

TEST(texts_that_are_something_else_are_refused) {
  meter_reading r = {0};
  gl_error err = {.status = GL_OK};
  CU_ASSERT_EQUAL(meter_read_machine(&r, "", 100, &err), GL_EINPUT);
  CU_ASSERT_PTR_NOT_NULL(strstr(err.text, "/proc/stat"));
  CU_ASSERT_EQUAL(meter_read_machine(&r, "cpu 1 2 3 4 5 6 7\ncpu0 1\n", 100, NULL), GL_EINPUT);
  CU_ASSERT_EQUAL(meter_read_machine(&r, "cpu 1 2 3 4 5 6 7 8\nintr 9\n", 100, NULL), GL_EINPUT);
  CU_ASSERT_EQUAL(meter_read_machine(&r, "cpu 1 2 3 4 5 6 7 8\ncpu0 1\n", 0, NULL), GL_EINPUT);
}

TEST(a_process_is_read_with_its_children_whatever_its_name) {
  static const char text[] = "17 (a ) b (c) S 1 17 17 0 -1 4194560 900 0 3 0 "
                             "250 50 1000 200 20 0 3 0 99999 1 2 3\n";
  ASSERT_CLOSE(meter_read_process(text, 100), 15, 1e-12);
  CU_ASSERT(isnan(meter_read_process("17 (name", 100)));
  CU_ASSERT(isnan(meter_read_process("17 (name) S 1 2", 100)));
}

static meter_reading reading(double wall, double busy, double steal, double own) {
  return (meter_reading){
      .wall_s = wall, .busy_s = busy, .steal_s = steal, .own_s = own, .cores = 4};
}

/* In 10 s four cores have 40 s: 30 were used, 22 of them by us. */
TEST(others_have_what_is_neither_ours_nor_idle) {
  const meter_reading before = reading(100, 500, 7, 20), after = reading(110, 530, 9, 42);
  const meter_load load = meter_between(&before, &after);
  ASSERT_CLOSE(load.others, 8.0 / 40, 1e-12);
  ASSERT_CLOSE(load.steal, 2.0 / 40, 1e-12);
}

/* Two stretches of one second on four cores, with ten seconds of others' work between them. */
TEST(stretches_that_are_added_up_leave_out_what_lies_between) {
  const meter_reading at[] = {reading(100, 500, 7, 20), reading(101, 502, 7, 21.5),
                              reading(111, 542, 8, 21.5), reading(112, 544, 8, 23)};
  meter_reading sum = {0};
  meter_add(&sum, &at[0], &at[1]);
  meter_add(&sum, &at[2], &at[3]);
  ASSERT_CLOSE(sum.own_s, 3, 1e-12);
  ASSERT_CLOSE(meter_load_of(&sum).others, 1.0 / 8, 1e-12);
  CU_ASSERT_EQUAL(meter_load_of(&sum).steal, 0);
}

TEST(ticks_that_lag_behind_give_no_negative_share) {
  const meter_reading before = reading(100, 500, 7, 20), after = reading(101, 500.98, 7, 21);
  const meter_load load = meter_between(&before, &after);
  CU_ASSERT_EQUAL(load.others, 0);
  CU_ASSERT_EQUAL(load.steal, 0);
}

/* Two ticks of each of four cores fall into a millisecond. */
TEST(ticks_of_a_short_measurement_give_no_share_above_all) {
  const meter_reading before = reading(100, 500, 7, 20), after = reading(100.001, 500.08, 7.08, 20);
  const meter_load load = meter_between(&before, &after);
  CU_ASSERT_EQUAL(load.others, 1);
  CU_ASSERT_EQUAL(load.steal, 1);
}

TEST(above_a_tenth_for_others_and_steal_together_it_is_not_quiet) {
  CU_ASSERT(meter_is_quiet((meter_load){0, 0}));
  CU_ASSERT(meter_is_quiet((meter_load){0.06, 0.04}));
  CU_ASSERT_FALSE(meter_is_quiet((meter_load){0.07, 0.04}));
  CU_ASSERT_FALSE(meter_is_quiet((meter_load){0, 0.11}));
}

TEST(what_is_not_known_is_not_quiet) {
  const meter_reading nowhere = {.wall_s = 1, .busy_s = NAN, .steal_s = NAN, .cores = NAN};
  const meter_reading later = {.wall_s = 2, .busy_s = NAN, .steal_s = NAN, .cores = NAN};
  const meter_reading same = reading(1, 2, 3, 1);
  CU_ASSERT_FALSE(meter_is_quiet(meter_between(&nowhere, &later)));
  CU_ASSERT_FALSE(meter_is_quiet(meter_between(&same, &same)));
}

TEST(the_heavier_of_two_loads_is_kept) {
  const meter_load light = {0.01, 0}, heavy = {0, 0.3}, unknown = {NAN, 0};
  CU_ASSERT_EQUAL(meter_heavier(light, heavy).steal, 0.3);
  CU_ASSERT_EQUAL(meter_heavier(heavy, light).steal, 0.3);
  CU_ASSERT(isnan(meter_heavier(unknown, heavy).others));
  CU_ASSERT(isnan(meter_heavier(heavy, unknown).others));
}

/* Not how much, which is the machine's business: that the clock goes on and work is counted. */
TEST(two_readings_of_this_machine_have_our_work_between_them) {
  const meter_reading before = meter_now(0);
  double sum = 0;
  meter_reading after = before;
  while (after.own_s - before.own_s < 0.05) {
    for (int i = 1; i < 100000; ++i) sum += 1.0 / i;
    after = meter_now(0);
  }
  CU_ASSERT(sum > 0);
  CU_ASSERT(after.wall_s > before.wall_s);
  CU_ASSERT(after.cores >= 1);
  CU_ASSERT(meter_between(&before, &after).others >= 0);
}
