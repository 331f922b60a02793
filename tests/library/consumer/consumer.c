/* A program that knows nothing but <gepolab.h>, as C11 and as C++: what a stranger's build sees. It
 * prints numbers that tests/library/consumer/check.sh compares between the shared and the static
 * library and with `gepolab policy`. */
#include <gepolab.h>

#include <stdio.h>
#include <string.h>

static int failed(const char *what, const gepolab_error *err) {
  fprintf(stderr, "consumer: %s: %s\n", what, err->text);
  return 1;
}

int main(void) {
  static const double reward[2] = {1, 0};
  static const float logp[3] = {-1.0f, -0.5f, -2.0f}, logq[3] = {-1.25f, -0.375f, -1.75f};
  static const int64_t token_start[3] = {0, 2, 3};
  double coefficient[3];
  gepolab_error err;
  gepolab_algorithm *algorithm = NULL;
  gepolab_workspace *workspace = NULL;
  gepolab_batch batch = GEPOLAB_INIT(gepolab_batch);
  gepolab_result result = GEPOLAB_INIT(gepolab_result);

  memset(&err, 0, sizeof err);
  if (gepolab_interface() / 1000 != GEPOLAB_INTERFACE_MAJOR) return 2;
  if (gepolab_algorithm_new(&algorithm, "{base: gepo, clip: none}", &err) != GEPOLAB_OK)
    return failed("algorithm", &err);
  if (gepolab_workspace_new(&workspace, &err) != GEPOLAB_OK) return failed("workspace", &err);
  batch.n_responses = 2;
  batch.n_groups = 1;
  batch.group_size = 2;
  batch.token_start = token_start;
  batch.reward.data = reward;
  batch.reward.type = GEPOLAB_FLOAT64;
  batch.reward.stride = 1;
  batch.logp.data = logp;
  batch.logp.type = GEPOLAB_FLOAT32;
  batch.logp.token_stride = 1;
  batch.logq.data = logq;
  batch.logq.type = GEPOLAB_FLOAT32;
  batch.logq.token_stride = 1;
  result.coefficient.data = coefficient;
  result.coefficient.type = GEPOLAB_FLOAT64;
  result.coefficient.token_stride = 1;
  if (gepolab_policy(algorithm, &batch, &result, workspace, &err) != GEPOLAB_OK)
    return failed("policy", &err);
  printf("loss %.10g\n", result.loss);
  for (int t = 0; t < 3; ++t) printf("coefficient %.7g\n", coefficient[t]);
  batch.size = 1;
  if (gepolab_policy(algorithm, &batch, &result, workspace, &err) != GEPOLAB_EINPUT) return 3;
  gepolab_workspace_free(workspace);
  gepolab_algorithm_free(algorithm);
  return 0;
}
