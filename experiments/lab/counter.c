/* Counts what threads finish, and shows it. */
#include "experiments/lab/counter.h"

void lab_counter_init(lab_counter *c, const char *name, const char *unit, size_t total, double cost,
                      size_t threads, progress_mode mode) {
  *c = (lab_counter){.bar = progress_new(name, unit, total, mode), .left = cost};
  pthread_mutex_init(&c->lock, NULL);
  progress_workers(c->bar, threads < total ? threads : total);
  progress_cost(c->bar, 0, cost);
  progress_at(c->bar, 0, NULL);
}

void lab_counter_add(lab_counter *c, double cost) {
  pthread_mutex_lock(&c->lock);
  c->spent += cost;
  c->left -= cost;
  progress_cost(c->bar, c->spent, c->left);
  progress_at(c->bar, ++c->done, NULL);
  pthread_mutex_unlock(&c->lock);
}

void lab_counter_fini(lab_counter *c) {
  progress_free(c->bar);
  pthread_mutex_destroy(&c->lock);
}
