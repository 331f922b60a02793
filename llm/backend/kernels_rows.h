/* Arithmetic shared by the CPU and CUDA backends, part two: the kernels of one row. This is a
 * template without an include guard, included once per number type by cpu/template.c and by
 * cuda/vector16.cuh. The including file defines
 *
 *   REAL      the type that rows are stored in (float, double, bf16)
 *   MASTER    the type of arithmetic, gradients of parameters and statistics (float, double)
 *   ROW(x)    the name of kernel x for this type (row_x on the CPU)
 *   ROW_EXP   e^x of a MASTER (kernel_exp_f32 or kernel_exp_f64)
 *   GET(p)    the REAL at p as a MASTER; PUT(p, x) stores MASTER x as the REAL at p
 *
 * and undefines them before the next type.
 *
 * g is the group of lanes that runs a kernel (kernels.h); functions without it work on one number.
 * Arrays belong to the caller and do not overlap unless noted. An array to which a weight's
 * gradient is added belongs to one group; callers add the groups' arrays in a fixed order. */
#include "llm/backend/kernels.h"

/* --- root mean square norm: y = x * rstd * weight, rstd = 1 / sqrt(mean x^2 + eps) --- */

KERNEL MASTER ROW(norm_number)(MASTER x, MASTER rstd, MASTER weight) {
  return x * rstd * weight;
}

/* The gradient of one input number x, with back = rstd^2 / width * (sum over the row of w dy x);
 * below, the contribution of x to the gradient of its weight. */
KERNEL MASTER ROW(norm_grad)(MASTER dy, MASTER x, MASTER weight, MASTER rstd, MASTER back) {
  return rstd * (KERNEL_PRODUCT(weight, dy) - x * back);
}
KERNEL MASTER ROW(norm_weight_grad)(MASTER dy, MASTER x, MASTER rstd) {
  return dy * x * rstd;
}

/* sum [width] = in [width] + add [width], rounded to REAL; out [width] = sum * rstd * weight
 * [width]. Returns rstd. If add is NULL, the norm is that of `in`, and sum is not used. sum may
 * equal in. */
KERNEL MASTER ROW(norm)(GROUP g, REAL *KERNEL_RESTRICT out, REAL *sum, const REAL *in,
                        const REAL *KERNEL_RESTRICT add, const REAL *KERNEL_RESTRICT weight,
                        size_t width, MASTER eps) {
  MASTER squares = 0;
  if (add != NULL) {
    SIMD_SUM(squares)
    for (size_t i = LANE(g); i < width; i += LANES(g)) {
      PUT(&sum[i], GET(&in[i]) + GET(&add[i]));
      const MASTER x = GET(&sum[i]);
      squares += x * x;
    }
    in = sum;
  } else {
    SIMD_SUM(squares)
    for (size_t i = LANE(g); i < width; i += LANES(g)) {
      const MASTER x = GET(&in[i]);
      squares += x * x;
    }
  }
  const MASTER rstd = 1 / (MASTER)sqrt(LANE_SUM(g, squares) / (MASTER)width + eps);
  SIMD
  for (size_t i = LANE(g); i < width; i += LANES(g))
    PUT(&out[i], ROW(norm_number)(GET(&in[i]), rstd, GET(&weight[i])));
  return rstd;
}

/* din [width] += rstd (w dy - x rstd^2 / width * sum(w dy x)), with dy = dout [width], x = in
 * [width] (the forward's sum) and w = weight [width]; dweight [width] += dy x rstd. */
KERNEL void ROW(norm_backward)(GROUP g, REAL *KERNEL_RESTRICT din, MASTER *KERNEL_RESTRICT dweight,
                               const REAL *KERNEL_RESTRICT dout, const REAL *KERNEL_RESTRICT in,
                               MASTER rstd, const REAL *KERNEL_RESTRICT weight, size_t width) {
  MASTER dot = 0;
  SIMD_SUM(dot)
  for (size_t i = LANE(g); i < width; i += LANES(g))
    dot += GET(&weight[i]) * GET(&dout[i]) * GET(&in[i]);
  const MASTER back = LANE_SUM(g, dot) * rstd * rstd / (MASTER)width;
  SIMD
  for (size_t i = LANE(g); i < width; i += LANES(g)) {
    const MASTER dy = GET(&dout[i]), x = GET(&in[i]);
    PUT(&din[i], GET(&din[i]) + ROW(norm_grad)(dy, x, GET(&weight[i]), rstd, back));
    dweight[i] += ROW(norm_weight_grad)(dy, x, rstd);
  }
}

/* --- one attention head: norm, then rotary embedding of the pairs (i, i + dim / 2) --- */

/* Rotates the pair (*a, *b) by the angle with this cosine and sine. A negated sine rotates it
 * back. */
KERNEL void ROW(rotate_pair)(MASTER *a, MASTER *b, MASTER cosine, MASTER sine) {
  const MASTER x = *a, y = *b;
  *a = KERNEL_PRODUCT(x, cosine) - KERNEL_PRODUCT(y, sine);
  *b = KERNEL_PRODUCT(y, cosine) + KERNEL_PRODUCT(x, sine);
}

/* out [dim] = rotary(in [dim]) without a norm. sign -1: the inverse rotation, by which the backward
 * computes gradients of `in` from those of `out`. */
KERNEL void ROW(rotate)(GROUP g, REAL *KERNEL_RESTRICT out, const REAL *KERNEL_RESTRICT in,
                        const MASTER *KERNEL_RESTRICT cosine, const MASTER *KERNEL_RESTRICT sine,
                        MASTER sign, size_t dim) {
  const size_t half = dim / 2;
  SIMD
  for (size_t i = LANE(g); i < half; i += LANES(g)) {
    MASTER a = GET(&in[i]), b = GET(&in[i + half]);
    ROW(rotate_pair)(&a, &b, cosine[i], sign * sine[i]);
    PUT(&out[i], a);
    PUT(&out[i + half], b);
  }
}

/* out [dim] = rotary(in [dim] * rstd * weight [dim]); cosine, sine [dim / 2] belong to the row's
 * position. Returns the norm's rstd. */
KERNEL MASTER ROW(head)(GROUP g, REAL *KERNEL_RESTRICT out, const REAL *KERNEL_RESTRICT in,
                        const REAL *KERNEL_RESTRICT weight, const MASTER *KERNEL_RESTRICT cosine,
                        const MASTER *KERNEL_RESTRICT sine, size_t dim, MASTER eps) {
  const size_t half = dim / 2;
  MASTER squares = 0;
  SIMD_SUM(squares)
  for (size_t i = LANE(g); i < dim; i += LANES(g)) {
    const MASTER x = GET(&in[i]);
    squares += x * x;
  }
  const MASTER rstd = 1 / (MASTER)sqrt(LANE_SUM(g, squares) / (MASTER)dim + eps);
  SIMD
  for (size_t i = LANE(g); i < half; i += LANES(g)) {
    MASTER a = ROW(norm_number)(GET(&in[i]), rstd, GET(&weight[i]));
    MASTER b = ROW(norm_number)(GET(&in[i + half]), rstd, GET(&weight[i + half]));
    ROW(rotate_pair)(&a, &b, cosine[i], sine[i]);
    PUT(&out[i], a);
    PUT(&out[i + half], b);
  }
  return rstd;
}

/* din [dim] = the gradient of dout [dim] through head() (overwritten, not added); dweight [dim] +=
 * the weight's gradient. The rotation is undone first (its transpose is its inverse), then the
 * backward of the norm follows. */
KERNEL void ROW(head_backward)(GROUP g, REAL *KERNEL_RESTRICT din, MASTER *KERNEL_RESTRICT dweight,
                               const REAL *KERNEL_RESTRICT dout, const REAL *KERNEL_RESTRICT in,
                               MASTER rstd, const REAL *KERNEL_RESTRICT weight,
                               const MASTER *KERNEL_RESTRICT cosine,
                               const MASTER *KERNEL_RESTRICT sine, size_t dim) {
  const size_t half = dim / 2;
  MASTER dot = 0;
  SIMD_SUM(dot)
  for (size_t i = LANE(g); i < half; i += LANES(g)) {
    MASTER da = GET(&dout[i]), db = GET(&dout[i + half]);
    ROW(rotate_pair)(&da, &db, cosine[i], -sine[i]);
    dot += da * GET(&weight[i]) * GET(&in[i]) + db * GET(&weight[i + half]) * GET(&in[i + half]);
  }
  const MASTER back = LANE_SUM(g, dot) * rstd * rstd / (MASTER)dim;
  SIMD
  for (size_t i = LANE(g); i < half; i += LANES(g)) {
    MASTER da = GET(&dout[i]), db = GET(&dout[i + half]);
    ROW(rotate_pair)(&da, &db, cosine[i], -sine[i]);
    const MASTER a = GET(&in[i]), b = GET(&in[i + half]);
    PUT(&din[i], ROW(norm_grad)(da, a, GET(&weight[i]), rstd, back));
    PUT(&din[i + half], ROW(norm_grad)(db, b, GET(&weight[i + half]), rstd, back));
    dweight[i] += ROW(norm_weight_grad)(da, a, rstd);
    dweight[i + half] += ROW(norm_weight_grad)(db, b, rstd);
  }
}

/* --- gated unit: silu(gate) * up, silu(x) = x / (1 + e^-x) --- */

/* silu(gate) * up; below, the gradients of gate and up, given the gradient dout of the result. */
KERNEL MASTER ROW(swiglu_number)(MASTER gate, MASTER up) {
  return gate / (1 + ROW_EXP(-gate)) * up;
}

KERNEL void ROW(swiglu_grads)(MASTER *dgate, MASTER *dup, MASTER dout, MASTER gate, MASTER up) {
  const MASTER s = 1 / (1 + ROW_EXP(-gate));
  *dgate = dout * up * (s + gate * s * (1 - s));
  *dup = dout * gate * s;
}

/* out [width] = silu(gate [width]) * up [width]. */
KERNEL void ROW(swiglu)(GROUP g, REAL *KERNEL_RESTRICT out, const REAL *KERNEL_RESTRICT gate,
                        const REAL *KERNEL_RESTRICT up, size_t width) {
  SIMD
  for (size_t i = LANE(g); i < width; i += LANES(g)) {
    PUT(&out[i], ROW(swiglu_number)(GET(&gate[i]), GET(&up[i])));
  }
}

/* dgate, dup [width] = gradients (overwritten) for dout [width]. */
KERNEL void ROW(swiglu_backward)(GROUP g, REAL *KERNEL_RESTRICT dgate, REAL *KERNEL_RESTRICT dup,
                                 const REAL *KERNEL_RESTRICT dout, const REAL *KERNEL_RESTRICT gate,
                                 const REAL *KERNEL_RESTRICT up, size_t width) {
  SIMD
  for (size_t i = LANE(g); i < width; i += LANES(g)) {
    MASTER g_grad, u_grad;
    ROW(swiglu_grads)(&g_grad, &u_grad, GET(&dout[i]), GET(&gate[i]), GET(&up[i]));
    PUT(&dgate[i], g_grad);
    PUT(&dup[i], u_grad);
  }
}

/* --- softmax of scores --- */

/* score [n] becomes e^(factor * (score - *greatest)) in place; *greatest is set to the greatest
 * score and the sum of the exponentials is returned. */
KERNEL MASTER ROW(exponentials)(GROUP g, MASTER *KERNEL_RESTRICT score, size_t n, MASTER factor,
                                MASTER *greatest) {
  MASTER top = (MASTER)-INFINITY, sum = 0;
  SIMD_MAX(top)
  for (size_t i = LANE(g); i < n; i += LANES(g)) top = score[i] > top ? score[i] : top;
  top = LANE_MAX(g, top);
  SIMD_SUM(sum)
  for (size_t i = LANE(g); i < n; i += LANES(g)) {
    score[i] = ROW_EXP(factor * (score[i] - top));
    sum += score[i];
  }
  *greatest = top;
  return LANE_SUM(g, sum);
}

/* The statistics of softmax(factor * z) over z [n]. Sums are double, because a vocabulary has up to
 * about 150,000 tokens. */
KERNEL softmax_stats ROW(stats)(GROUP g, const MASTER *KERNEL_RESTRICT z, size_t n, MASTER factor) {
  MASTER top = (MASTER)-INFINITY;
  double sum = 0, weighted = 0;
  SIMD_MAX(top)
  for (size_t i = LANE(g); i < n; i += LANES(g)) top = z[i] > top ? z[i] : top;
  top = LANE_MAX(g, top);
  SIMD_SUM(sum, weighted)
  for (size_t i = LANE(g); i < n; i += LANES(g)) {
    const MASTER d = factor * (z[i] - top), e = ROW_EXP(d);
    sum += (double)e;
    weighted += (double)(d * e);
  }
  const softmax_stats s = {(double)top, LANE_SUM(g, sum), LANE_SUM(g, weighted)};
  return s;
}

/* The gradient of a logit z: scale * ([z is the target's] - e^(factor z - lse)), where scale is
 * factor times the gradient of the target's log-probability, and lse is that of the whole row. */
KERNEL MASTER ROW(logit_grad)(MASTER z, int is_target, MASTER factor, MASTER lse, MASTER scale) {
  return scale * ((MASTER)is_target - ROW_EXP(factor * z - lse));
}

/* Replaces each of the logits z [n], some adjacent ones of a row, by its gradient (logit_grad).
 * target: the target's index in z; if it is n or more, the target is not in z. */
KERNEL void ROW(logp_backward)(GROUP g, MASTER *z, size_t n, size_t target, MASTER factor,
                               MASTER lse, MASTER scale) {
  SIMD
  for (size_t i = LANE(g); i < n; i += LANES(g))
    z[i] = ROW(logit_grad)(z[i], i == target, factor, lse, scale);
}

/* --- optimisers, one number --- */

/* A step of gradient descent, with momentum if m is not NULL, and with coupled weight decay (see
 * sgd_step). Returns the new parameter; *m is updated. */
KERNEL MASTER ROW(sgd_number)(MASTER param, MASTER grad, MASTER *m, MASTER lr, MASTER momentum,
                              MASTER coupled, MASTER scale) {
  MASTER gradient = KERNEL_PRODUCT(grad, scale) + coupled * param;
  if (m != NULL) gradient = *m = momentum * *m + gradient;
  return param - lr * gradient;
}

/* A step of AdamW (Loshchilov & Hutter, arXiv 1711.05101) with decoupled and coupled weight decay.
 * With the fields of adamw_step: keep = 1 - lr * decoupled, rate = lr / correct1 and
 * root = 1 / sqrt(correct2). Returns the new parameter; the moments *m and *v are updated. */
KERNEL MASTER ROW(adamw_number)(MASTER param, MASTER grad, MASTER *m, MASTER *v, MASTER beta1,
                                MASTER beta2, MASTER keep, MASTER coupled, MASTER scale,
                                MASTER rate, MASTER root, MASTER eps) {
  const MASTER gradient = KERNEL_PRODUCT(grad, scale) + coupled * param;
  *m = KERNEL_PRODUCT(beta1, *m) + (1 - beta1) * gradient;
  *v = KERNEL_PRODUCT(beta2, *v) + (1 - beta2) * gradient * gradient;
  return param * keep - rate * *m / ((MASTER)sqrt(*v) * root + eps);
}
