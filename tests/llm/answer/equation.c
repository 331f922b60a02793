/* Equations, lists of them, relations and values with labels. */
#include "tests/support/answer_pairs.h"

SUITE("llm: answers with equations");

static const answer_pair lists[] = {
    {"a=1, b=2", "a=1, b=2", 1},
    {"a=1, b=2", "b=2, a=1", 1},
    {"a=1, b=2", "a = 1 \\text{ and } b = 2.0", 1},
    {"a=1, b=2", "a=1; b=\\frac{4}{2}", 1},
    {"a=1, b=2", "a=3, b=2", 0},
    {"a=1, b=2", "a=2, b=1", 0},
    {"a=1, b=2", "2", 0},
    {"a=1, b=2", "1", 0},
    {"a=1, b=2", "b=2", 0},
    {"a=1, b=2", "a=1, b=2, c=3", 0},
    {"2", "a=1, b=2", 0},
    {"a=1, b=2", "a=1, 2", 0},
    /* without names only the order tells which is which */
    {"a=1, b=2", "(1,2)", 1},
    {"a=1, b=2", "1, 2", 1},
    {"a=1, b=2", "2, 1", 0},
    {"a=1, b=2", "\\{1,2\\}", 0},
    {"(3,4)", "x=3, y=4", 1},
    {"(3,4)", "x=4, y=3", 0},
    {"3, 4", "y=4, x=3", 1},
    {"\\{1,2,3\\}", "x=3, y=1, z=2", 1},
    /* values of one name have no order */
    {"x=-6 or x=6", "x=6 or x=-6", 1},
    {"x=-6 or x=6", "x=6, -6", 1},
    {"x=-6 or x=6", "-6, 6", 1},
    {"x=-6 or x=6", "x=\\pm 6", 1},
    {"x=-6 or x=6", "\\{6,-6\\}", 1},
    {"x=-6 or x=6", "x=6 or x=6", 0},
    {"x=-6 or x=6", "x=-6 or x=-6", 0},
    {"x=-6 or x=6", "6", 0},
    {"x=-6 or x=6", "y=-6 or y=6", 0},
    {"x=3, 5", "x=5, x=3", 1},
    {"\\{1,2\\}", "x=1, x=2", 1},
    {"x\\in\\{1,2\\}", "x=1 or x=2", 1},
    {"x=1 or x=2", "x\\in\\{1,2\\}", 1},
    /* names and values apart from each other */
    {"x=3, y=4", "(x,y)=(3,4)", 1},
    {"(x,y)=(3,4)", "x=3, y=4", 1},
    {"(x,y)=(3,4)", "(y,x)=(4,3)", 1},
    {"(x,y)=(3,4)", "(x,y)=(4,3)", 0},
    {"(x,y)=(3,4)", "(4,3)", 0},
    {"x, y = 3, 4", "y=4, x=3", 1},
    {"x, y = 3, 4", "(x, y = 3, 4)", 1},
    {"(x,y)=(3,4)", "\\boxed{(x,y)=(3,4)}", 1},
    {"x, y = 3, 4", "x=4, y=3", 0},
    /* equations without names of values */
    {"x+y=3, x-y=1", "x-y=1, x+y=3", 1},
    {"x+y=3, x-y=1", "x+y=3, x-y=2", 0},
    {"x+y=3, x-y=1", "2x+2y=6, x-y=1", 1},
    /* thousands */
    {"x=1,234", "x=1234", 1},
    {"1234", "x=1,234", 1},
    {"x=1,234", "1234", 1},
    {"a=1,234, b=5", "a=1234, b=5", 1},
    {"x=1,234", "x=1,235", 0},
    {"x=1,234", "234", 0},
};

static const answer_pair single[] = {
    {"x=5000000000", "x=7000000000", 0},
    {"x=5000000000", "x=5\\times 10^9", 1},
    {"n=2^{100}", "n=2^{101}", 0},
    {"n=2^{100}", "n=4^{50}", 1},
    {"n=2^{100}", "n=2^{100}+1", 0},
    {"n=10^{400}", "n=10^{401}", 0},
    {"n=10^{400}", "n=100^{200}", 1},
    /* an identity is no equation with any other */
    {"\\sin^2 x+\\cos^2 x=1", "x=5", 0},
    {"x=5", "\\sin^2 x+\\cos^2 x=1", 0},
    {"\\sin^2 x+\\cos^2 x=1", "2x+3y=7", 0},
    {"(x+1)^2=x^2+2x+1", "y=3", 0},
    {"(x+1)^2=x^2+2x+1", "(x+2)^2=x^2+4x+4", 0},
    /* values of functions are known by their names */
    {"f(2)=5", "5", 1},
    {"f(-1)=5", "5", 1},
    {"f(3)=0", "f(4)=0", 0},
    {"2f(3)=0", "2f(4)=0", 0},
    {"P(3)=0", "P(4)=0", 0},
    {"P(2x)=0", "P(3x)=0", 0},
    {"f(2)=5", "f(3)=5", 0},
    {"f(2)=5", "g(2)=5", 0},
    {"f(x)=x^2", "f(x)=x\\cdot x", 1},
    /* the same equation in other words */
    {"xy=6", "yx=6", 1},
    {"xy=6", "2xy=12", 1},
    {"y=2x+1", "2x-y+1=0", 1},
    {"y=2x+1", "2x-y+2=0", 0},
    {"y=2x+1000000000", "y=2x+1000000001", 0},
    {"(-x)=5", "5", 0},
    /* chains: what stands last, if all numbers agree */
    {"x=2+3=5", "5", 1},
    {"5", "x=2+3=5", 1},
    {"x=2+3=5", "x=\\frac{10}{2}=5", 1},
    {"x=2+3=5", "x=2+4=5", 0},
    {"5", "x=2+4=5", 0},
    {"5", "2+4=5", 0},
    {"5", "x=\\frac{5}{0}=5", 0},
    {"A=\\pi r^2=25\\pi", "25\\pi", 1},
    {"A=\\pi r^2=25\\pi", "A=\\pi r^3=25\\pi", 0},
    {"A=\\pi r^2=25\\pi", "A=\\pi\\cdot 5^2=25\\pi", 1},
    {"x=\\sqrt{2}\\approx 1.414", "x=\\sqrt{3}\\approx 1.414", 0},
    {"x=\\sqrt{2}\\approx 1.414", "x=\\sqrt{2}=1.414", 1},
    {"x=\\sqrt{2}\\approx 1.414", "x=1.414", 1},
    {"3.33", "x=\\frac{10}{3}=3.33", 1},
    {"3.33", "x=\\frac{10}{3}\\approx 3.33", 1},
    {"3", "\\frac{22}{7}\\approx 3", 1},
    {"4", "\\frac{22}{7}=4", 0},
    {"x \\approx 3.14", "3.14", 1},
    {"x=3.14", "x≈3.14", 1},
};

static const answer_pair labels[] = {
    {"J: 4 hr, S: 14 hr", "J: 4 hr", 0},
    {"J: 4 hr, S: 14 hr", "J", 0},
    {"J: 4 hr, S: 14 hr", "14", 0},
    {"J: 4 hr, S: 14 hr", "J: 14 hr, S: 4 hr", 0},
    {"J: 4 hr, S: 14 hr", "S: 14 hr, J: 4 hr", 1},
    {"J: 4 hr, S: 14 hr", "J: 4, S: 14", 1},
    {"J: 4 hr", "J: 5 hr", 0},
    {"\\text{Tom: }\\frac12", "\\text{Tom}: 0.5", 1},
    {"1:2", "2:4", 0},
    {"(11,7)or(7,11)", "(11,7) or (7,11)", 1},
    {"(11,7)or(7,11)", "(7,11),(11,7)", 1},
    {"(11,7)or(7,11)", "(11,7)", 0},
    {"(11,7)or(7,11)", "(11,7)or(11,7)", 0},
    {"1, 2, and 3", "3, 2, 1", 1},
    {"2and3", "3, 2", 1},
    {"\\text{orange}", "\\text{, ange}", 0},
    {"sand", "s", 0},
};

static const answer_pair relations[] = {
    {"x<1 or x>6", "x>6, x<1", 1}, {"x<1 or x>6", "x<1 or x>7", 0},    {"x<1 or x>6", "x<1", 0},
    {"x\\ge 5", "5\\le x", 1},     {"x<5", "x<5.0000000000000001", 0}, {"x<1, y=2", "y=2, 1>x", 1},
};

TEST(lists_of_equations_are_compared_part_by_part_and_by_name) {
  CHECK_PAIRS(lists);
}

TEST(an_equation_is_compared_by_its_name_and_its_value) {
  CHECK_PAIRS(single);
}

TEST(all_labelled_values_count_and_words_between_parts_are_commas) {
  CHECK_PAIRS(labels);
}

TEST(relations_in_lists_are_parts) {
  CHECK_PAIRS(relations);
}
