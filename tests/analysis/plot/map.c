/* Cells and contours of maps against a surface whose contour is known. */
#include "analysis/plot/map.h"
#include "analysis/plot/draw.h"
#include "tests/support/suite.h"

#include <stdlib.h>
#include <string.h>

static const char *script(const char *path) {
  (void)path;
  return "";
}

static void edges_lie_halfway(void) {
  const double x[] = {1, 2, 4}, one[] = {3};
  double edge[4];
  map_edges(x, 3, 0, edge);
  CU_ASSERT(edge[0] == 0.5 && edge[1] == 1.5 && edge[2] == 3 && edge[3] == 5);
  map_edges(x, 3, 1, edge);
  for (int i = 0; i < 4; i++) ASSERT_CLOSE(edge[i], pow(2, i - 0.5), 1e-12);
  map_edges(one, 1, 0, edge);
  CU_ASSERT(edge[0] == 2.5 && edge[1] == 3.5);
}

/* x / y on logarithmic axes: the contour at 1 is the diagonal, which interpolation of logarithms
 * meets exactly. */
static void the_contour_of_a_ratio_is_where_it_is_one(void) {
  enum { N = 5 };
  double at[N], edge[N + 1], value[N * N];
  for (int i = 0; i < N; i++) at[i] = pow(3, i);
  map_edges(at, N, 1, edge);
  for (int y = 0; y < N; y++)
    for (int x = 0; x < N; x++) value[y * N + x] = 1.2 * at[x] / at[y];
  const figure_map m = {N, N, edge, edge, value};
  const figure_request q = {.folder = "build/map_test", .script = script};
  static const char *const line = "cell";
  gl_error err = {0};
  figure_page p;
  CU_ASSERT_EQUAL_FATAL(file_make_folder(q.folder, &err), GL_OK);
  page_init(&p, &q, "map", "map");
  CU_ASSERT_EQUAL_FATAL(page_open(&p, 1, "x", &err), GL_OK);
  p.x_logarithmic = p.panels[0].logarithmic = 1;
  page_bar_diverging(&p, "ratio", 30, 1);
  page_map(&p, 0, &m);
  page_contour(&p, 0, &m, 1);
  CU_ASSERT_EQUAL(page_set_lines(&p, &line, 1, &err), GL_OK);
  CU_ASSERT_EQUAL(page_close(&p, GL_OK, &err), GL_OK);
  FILE *f = fopen("build/map_test/map.tsv", "r");
  CU_ASSERT_PTR_NOT_NULL_FATAL(f);
  char text[256];
  size_t cells = 0, points = 0;
  for (double x, y; fgets(text, sizeof text, f);) {
    cells += strncmp(text, "0\tcell\t", 7) == 0;
    if (sscanf(text, "0\tcontour\t%lf\t%lf", &x, &y) != 2) continue;
    ASSERT_CLOSE(y / x, 1.2, 1e-6);
    points++;
  }
  fclose(f);
  CU_ASSERT_EQUAL(cells, N * N);
  CU_ASSERT(points >= 2 * (N - 1));
}

SUITE(plot_map, "analysis: maps", TEST(edges_lie_halfway),
      TEST(the_contour_of_a_ratio_is_where_it_is_one));
