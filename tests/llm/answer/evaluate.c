/* Values of numbers and formulas: their sizes, functions, units and the forms that they are written
 * in. */
#include "tests/support/answer_pairs.h"

#include <time.h>

SUITE("llm: answers' values");

static const answer_pair sizes[] = {
    {"1.6\\times10^{-19}", "0", 0},
    {"0", "1.6\\times10^{-19}", 0},
    {"1.6\\times10^{-19}", "1.7\\times10^{-19}", 0},
    {"1.6\\times10^{-19}", "1.6e-19", 1},
    {"1.6\\times10^{-19}", "0.00000000000000000016", 1},
    {"10^{-400}", "0", 0},
    {"10^{-400}", "10^{-401}", 0},
    {"\\sqrt{2}\\sqrt{2}-2", "0", 1},
    {"\\sqrt{2}\\sqrt{2}-2", "10^{-300}", 0},
    {"2^{100}+1", "2^{100}+2", 0},
    {"10^{50}+1", "10^{50}+2", 0},
    {"10^{50}+1", "1+10^{50}", 1},
    /* what 384 bits cannot tell apart is equal only as text */
    {"3^{10000}+1", "3^{10000}+2", 0},
    {"3^{10000}+1", "3^{10000} + 1", 1},
    {"10^{9^9}", "10^{9^9}+1", 0},
    {"100!", "101!", 0},
    {"100!", "100\\cdot 99!", 1},
    {"\\sqrt{1000000000001}", "1000000", 0},
    {"\\sqrt{10^{40}}", "10^{20}", 1},
    {"\\pi", "3.14159265358979323847", 0},
    {"\\pi", "3.14159265358979323846", 1},
    {"12\\text{ cm}^2", "12\\text{ cm}^3", 0},
    {"12 cm^2", "12\\text{ cm}^{3}", 0},
    {"12\\text{ cm}^2", "12", 1},
    {"125\\text{ m}^{3}", "125\\text{ m}^{0}", 0},
    {"125\\text{ m}^{3}", "125\\text{ m}^{03}", 1},
    {"9.8\\text{ m s}^{-2}", "9.8", 1},
    {"9.8\\text{ m s}^{-2}", "9.8\\text{ m s}^{-1}", 0},
    {"12 cm^4", "12", 1},
    {"12 cm^4", "12 cm^5", 0},
    {"12\\text{ cm}^2", "12\\text{ cm}", 1},
};

static const answer_pair functions[] = {
    {"\\sin x\\cos x", "\\cos x\\sin x", 1},
    {"\\sin x\\cos x", "(\\sin x)(\\cos x)", 1},
    {"\\sin x\\cos x", "\\frac{1}{2}\\sin 2x", 1},
    {"\\sin x\\cos x", "\\sin(x\\cos x)", 0},
    {"2\\sin x\\cos y", "\\sin(x+y)+\\sin(x-y)", 1},
    {"\\ln 2\\ln 3", "\\ln 3\\ln 2", 1},
    {"\\ln 2\\ln 3", "\\ln(2)\\cdot\\ln(3)", 1},
    {"\\ln 2\\ln 3", "\\ln(2\\ln 3)", 0},
    {"\\log_2 3\\log_3 4", "2", 1},
    {"\\log_2 3\\log_3 5", "\\log_2 5", 1},
    {"\\log_2 3\\log_3 4", "\\log_2 3\\log_3 5", 0},
    {"\\log_{10} 7", "\\log_10 7", 1},
    {"\\log_2 3", "\\log_23", 1},
    {"\\log_2 (x+1)", "\\log_21 (x+1)", 0},
    {"\\log_2 3", "\\log_21 3", 0},
    {"\\sin 2\\pi x", "\\sin(2\\pi x)", 1},
    {"\\sin\\cos x", "\\sin(\\cos(x))", 1},
    {"\\sin^{-1}x", "\\arcsin x", 1},
    {"\\sin^{-1}(x)", "\\arcsin x", 1},
    {"\\sin^{-1}x", "\\frac{1}{\\sin x}", 0},
    {"\\cos^{-1}\\frac{1}{2}", "\\frac{\\pi}{3}", 1},
    {"\\tan^{-1}\\frac{3}{4}", "\\arctan(3/4)", 1},
    {"\\sec^{-1} 2", "\\frac{\\pi}{3}", 1},
    {"\\sin^{-2}x", "\\arcsin^2 x", 0},
    {"\\sin^{-2}x", "\\frac{1}{\\sin^2 x}", 1},
    {"\\sin 30^\\circ", "\\frac12", 1},
    {"\\sin 30°", "0.5", 1},
    {"\\sin(30^{\\circ})", "0.5", 1},
    {"\\cos 60^\\circ", "\\sin 30^{\\circ}", 1},
    {"\\sin 30^\\circ", "\\sin 60^\\circ", 0},
    {"\\sin 30^\\circ", "\\sin 30", 0},
    {"2\\sin 45^\\circ", "\\sqrt2", 1},
    {"\\sin 30^\\circ\\cos 60^\\circ", "\\frac14", 1},
    {"\\tan 45^\\circ+1", "2", 1},
    {"30^\\circ", "30", 1},
    {"\\tan 90^\\circ", "\\tan 270^\\circ", 0},
    {"\\sinh x", "\\frac{e^x-e^{-x}}{2}", 1},
    {"\\tanh x", "\\frac{\\sinh x}{\\cosh x}", 1},
};

static const answer_pair formulas[] = {
    {"x+1000000000", "x+1000000001", 0},
    {"x^{100}+1", "x^{100}+2", 0},
    {"x^{2024}+1", "1+x^{2024}", 1},
    {"x^{2024}+1", "x^{2024}+2", 0},
    {"10^{20}x+1", "10^{20}x+2", 0},
    {"n!", "n(n-1)!", 1},
    {"(n+1)!", "(n+2)!", 0},
    {"\\binom{n}{k}", "\\frac{n!}{k!(n-k)!}", 1},
    {"\\binom{n}{2}", "\\frac{n(n-1)}{2}", 1},
    {"\\binom{n}{k}", "\\binom{k}{n}", 0},
    {"|x-30|", "30-x", 0},
    {"x_1", "x_{11}", 0},
    {"x_{12}", "x_12", 1},
    {"2^{0.5}", "2^0.5", 1},
    {"f(x+1)", "f(1+x)", 1},
    {"f(x+1)", "f(x+2)", 0},
    {"\\langle 1,2,3\\rangle", "\\left\\langle 1.0, 2, \\frac{6}{2} \\right\\rangle", 1},
    {"\\langle 1,2,3\\rangle", "\\langle 1,3,2\\rangle", 0},
    {"\\langle 1,2,3,4\\rangle", "\\langle 1,3,2,4\\rangle", 0},
    {"\\langle 1,2\\rangle", "(1,2)", 0},
    {"\\vec{i}+2\\vec{j}", "2\\vec{j}+\\vec{i}", 1},
    {"\\vec{i}+2\\vec{j}", "2\\vec{i}+\\vec{j}", 0},
    /* letters are not always factors, nor are unknown commands variables */
    {"x\\equiv 0\\pmod{5}", "x\\equiv 0\\pmod{7}", 0},
    {"3\\pmod{5}", "5\\pmod{3}", 0},
    {"3 \\text{ R } 0", "4 \\text{ R } 0", 0},
    {"3 \\text{ R } 0", "0", 0},
    {"5 ft 0 in", "6 ft 0 in", 0},
    {"3 ft 4 in", "4 ft 3 in", 0},
};

static const answer_pair ordinary[] = {
    {"\\frac{1}{2}", "0.5", 1},
    {"\\frac{1}{2}", "1/2", 1},
    {"\\frac{1}{2}", "\\dfrac12", 1},
    {"\\frac{1}{2}", "$\\tfrac{1}{2}$", 1},
    {"\\frac{1}{2}", "\\frac{2}{4}", 1},
    {"\\frac{1}{2}", "50\\%", 1},
    {"5", "x=5", 1},
    {"x=5", "5", 1},
    {"5", "\\boxed{5}", 1},
    {"5", "5.", 1},
    {"5", "5\\text{ cm}", 1},
    {"5", "5 dollars", 1},
    {"5", "\\$5", 1},
    {"5", "\\text{5}", 1},
    {"1000000", "1,000,000", 1},
    {"1000000", "1{,}000{,}000", 1},
    {"1000000", "10^6", 1},
    {"\\left(1,2\\right)", "(1, 2)", 1},
    {"(1,2)", "\\left( 1 , \\frac{4}{2} \\right)", 1},
    {"90", "90^\\circ", 1},
    {"90^{\\circ}", "90 \\text{ degrees}", 1},
    {"\\text{Monday}", "monday", 1},
    {"2\\sqrt{3}", "\\sqrt{12}", 1},
    {"\\frac{\\sqrt{3}}{3}", "\\frac{1}{\\sqrt3}", 1},
    {"x^2+2x+1", "(x+1)^2", 1},
    {"\\frac{x+1}{2}", "\\frac12x+\\frac12", 1},
    {"[1,\\infty)", "\\left[1,\\infty\\right)", 1},
    {"(-\\infty,1)\\cup(2,\\infty)", "(2,\\infty)\\cup(-\\infty,1)", 1},
    {"\\begin{pmatrix}1\\\\2\\end{pmatrix}", "\\begin{bmatrix} 1 \\\\ 2 \\end{bmatrix}", 1},
    {"1,2,3", "3,2,1", 1},
    {"\\{1,2\\}", "\\left\\{2,1\\right\\}", 1},
    {"3+4i", "4i+3", 1},
    {"3\\frac{1}{2}", "3.5", 1},
    {"-3\\frac{1}{2}", "-\\frac{7}{2}", 1},
    {"2\\pm\\sqrt{3}", "2-\\sqrt3, 2+\\sqrt3", 1},
    {"\\frac{1}{3}", "0.333333", 1},
    {"\\frac{1}{7}", "0.142857143", 1},
    {"e^{2x}", "(e^x)^2", 1},
    {"\\ln 8", "3\\ln 2", 1},
    {"12\\pi", "12 \\pi \\text{ cm}^3", 1},
    {"\\text{(B)}", "B", 1},
    {"B", "(B) 12", 1},
    {"(B) 12", "(B) 13", 0},
    {"(B) 12", "(B)", 1},
};

TEST(numbers_are_compared_by_their_share_whatever_their_size) {
  CHECK_PAIRS(sizes);
}

TEST(an_argument_ends_before_the_next_function) {
  CHECK_PAIRS(functions);
}

TEST(formulas_are_compared_with_all_their_digits) {
  CHECK_PAIRS(formulas);
}

TEST(ordinary_writings_of_one_answer_are_equal) {
  CHECK_PAIRS(ordinary);
}

/* n times the text, then "1" and n times the end. */
static void nest(char *out, size_t size, const char *begin, int n, const char *end) {
  size_t used = 0;
  for (int i = 0; i < 2 * n + 1; ++i) {
    const char *piece = i < n ? begin : i == n ? "1" : end;
    used += (size_t)snprintf(out + used, size - used, "%s", piece);
  }
}

/* What would take long is not equal, instead: no text may hold training up. */
TEST(no_answer_takes_long) {
  static const char *const pieces[] = {
      "\\sin ",   "9999!",       "\\binom{9999}{9998}", "\\sqrt{x}", "x^{x}",       "x!",
      "\\ln x, ", "x=\\sin x, ", "\\arctan x+",         "\\tan x<",  "(x+1)^{99}=", "\\{\\sin x,"};
  struct timespec began, ended;
  clock_gettime(CLOCK_MONOTONIC, &began);
  for (size_t i = 0; i < sizeof pieces / sizeof *pieces; ++i) {
    char a[1200] = "", b[1200] = "";
    int n = (int)(480 / strlen(pieces[i]));
    nest(a, sizeof a, pieces[i], 2 * n, "");
    nest(b, sizeof b, pieces[i], 2 * n - 1, "");
    CU_ASSERT(!answer_equal(a, strlen(a), b, strlen(b)));
  }
  clock_gettime(CLOCK_MONOTONIC, &ended);
  double seconds =
      (double)(ended.tv_sec - began.tv_sec) + 1e-9 * (double)(ended.tv_nsec - began.tv_nsec);
  CU_ASSERT(seconds < 10); /* fractions of a second on a quiet machine; days without a limit */
}
