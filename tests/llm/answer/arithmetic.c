/* Ball arithmetic: against numbers of 105 digits from mpmath, by identities, and where it says that
 * it does not know. */
#include "llm/answer/arithmetic.h"
#include "tests/support/suite.h"

#include <stdlib.h>
#include <string.h>

SUITE("llm: ball arithmetic");

/* 10^n */
static ball ten_to(int64_t n) {
  return ball_power(ball_of_int(10), n);
}

/* A decimal number. */
static ball of_text(const char *text) {
  ball out = ball_of_int(0);
  int negative = *text == '-', places = 0, behind_point = 0;
  for (text += negative; *text != '\0'; ++text) {
    if (*text == '.') {
      behind_point = 1;
      continue;
    }
    out = ball_add(ball_multiply(out, ball_of_int(10)), ball_of_int(*text - '0'));
    places += behind_point;
  }
  out = ball_divide(out, ten_to(places));
  return negative ? ball_negate(out) : out;
}

/* Whether x is certainly y up to a share of 10^-digits. */
static int agrees(ball x, ball y, int64_t digits) {
  return ball_is_within(ball_subtract(x, y), ball_multiply(y, ten_to(-digits)));
}

/* Computed with mpmath 1.3 at 140 digits. */
static const struct {
  ball (*of)(ball);
  rational x;
  const char *value;
} known[] = {
    {ball_sqrt,
     {2, 1},
     "1.4142135623730950488016887242096980785696718753769480731766"
     "7973799073247846210703885038753432764157273501"},
    {ball_sqrt,
     {1, 7},
     "0.3779644730092272272145165362341800608157513118689214543383"
     "33494171581260461469089680056126639220515802152"},
    {ball_sqrt,
     {INT64_C(1000000000000000009), 1},
     "1000000000.0000000044999999999999999898750000000000000455624"
     "9999999999974371093750000000161462109374999999"},
    {ball_exp,
     {1, 1},
     "2.7182818284590452353602874713526624977572470936999595749669"
     "6762772407663035354759457138217852516642742747"},
    {ball_exp,
     {-5, 3},
     "0.1888756028375618384605562951277920689851570397215057905975"
     "75427914329453250045847958030061508107085823541"},
    {ball_exp,
     {100, 1},
     "26881171418161354484126255515800135873611118.773741922415191"
     "6086152802870349095649141588710972198457108117"},
    {ball_exp,
     {1, INT64_C(1000000000000)},
     "1.0000000000010000000000005000000000001666666666667083333333"
     "3334166666666666805555555555575396825396827877"},
    {ball_log,
     {2, 1},
     "0.6931471805599453094172321214581765680755001343602552541206"
     "80009493393621969694715605863326996418687542001"},
    {ball_log,
     {10, 1},
     "2.3025850929940456840179914546843642076011014886287729760333"
     "2790096757260967735248023599720508959829834197"},
    {ball_log,
     {1, 1000003},
     "-13.81551355795977411310792847815478512410692135952394361462"
     "26339504810926701380534718442290324363881132212"},
    {ball_log,
     {1000001, 1000000},
     "0.0000009999995000003333330833335333331666668095236845239206"
     "34820635011543928210755133683705250371787871909195324"},
    {ball_sin,
     {1, 1},
     "0.8414709848078965066525023216302989996225630607983710656727"
     "51709991910404391239668948639743543052695854349"},
    {ball_sin,
     {-22, 7},
     "0.0012644889303773534003603504756459324917739113911976033925"
     "1696973927225872429141121791930809255329425194794"},
    {ball_sin,
     {INT64_C(1000000000000000), 1},
     "0.8582727931702358355238863908484066466002034082207297078153"
     "41771787736326530820036117315920880446641527970"},
    {ball_cos,
     {1, 1},
     "0.5403023058681397174009366074429766037323104206179222276700"
     "97255381100394774471764517951856087183089343572"},
    {ball_cos,
     {355, 226},
     "-0.000000133382094531210760689146648544253361652051482430631"
     "834414150751029705977342041630676215844236253780798940"},
    {ball_cos,
     {1, 1000000000},
     "0.9999999999999999995000000000000000000416666666666666666652"
     "77777777777777777802579365079365079364803791887"},
    {ball_atan,
     {1, 1},
     "0.7853981633974483096156608458198757210492923498437764552437"
     "36148076954101571552249657008706335529266995537"},
    {ball_atan,
     {3, 4},
     "0.6435011087932843868028092287173226380415105911153123828656"
     "06118713512474811621088712816844701282748878014"},
    {ball_atan,
     {-1000000, 1},
     "-1.570795326794896619564655024972884775431918175878029100852"
     "55166123336419159909287837939647811679057972306"},
    {ball_asin,
     {1, 3},
     "0.3398369094541219370963925133917640663882446903324580714319"
     "23962489915888664848411460765792500197612852130"},
    {ball_asin,
     {-1, 1},
     "-1.570796326794896619231321691639751442098584699687552910487"
     "47229615390820314310449931401741267105853399107"},
    {ball_asin,
     {999999, 1000000},
     "1.5693821131146723674682498958670957936345586639191267502076"
     "4163786452703997753443323569614111361345619033"},
};

TEST(functions_have_the_digits_that_mpmath_has) {
  for (size_t i = 0; i < sizeof known / sizeof *known; ++i) {
    ball got = known[i].of(ball_of_rational(known[i].x));
    /* log(1.000001) and the like lose as many digits as their argument is close to 1 */
    int ok = agrees(got, of_text(known[i].value), 90);
    if (!ok) fprintf(stderr, "%s\n", known[i].value);
    CU_ASSERT(ok);
  }
}

static ball rational_ball(int64_t num, int64_t den) {
  return ball_of_rational((rational){num, den});
}

/* Each side is another way to the same number, so the balls must meet; and they are narrow. */
TEST(identities_hold) {
  for (int64_t i = 1; i < 40; ++i) {
    ball x = rational_ball(7 * i - 130, 11), y = rational_ball(i, 3), one = ball_of_int(1);
    CU_ASSERT(agrees(ball_multiply(ball_exp(x), ball_exp(y)), ball_exp(ball_add(x, y)), 90));
    CU_ASSERT(agrees(ball_log(ball_exp(y)), y, 90));
    CU_ASSERT(ball_equal(ball_power(ball_sqrt(y), 2), y));
    CU_ASSERT(ball_equal(ball_divide(ball_multiply(x, y), y), x));
    CU_ASSERT(ball_equal(ball_subtract(ball_add(x, y), y), x));
    ball s = ball_sin(x), c = ball_cos(x);
    CU_ASSERT(ball_equal(ball_add(ball_multiply(s, s), ball_multiply(c, c)), one));
    CU_ASSERT(ball_equal(ball_sin(ball_add(x, ball_multiply(ball_of_int(2), ball_pi()))), s));
    CU_ASSERT(ball_equal(ball_atan(ball_divide(ball_sin(one), ball_cos(one))), one));
    CU_ASSERT(ball_equal(ball_asin(ball_sin(rational_ball(i, 40))), rational_ball(i, 40)));
    CU_ASSERT(ball_equal(ball_power(x, 3), ball_multiply(x, ball_multiply(x, x))));
    CU_ASSERT(ball_equal(ball_multiply(ball_power(y, -5), ball_power(y, 5)), one));
  }
}

TEST(whole_numbers_are_exact_as_long_as_they_fit) {
  ball big = ball_power(ball_of_int(2), 300), one = ball_of_int(1);
  ball sum = ball_add(big, one);
  CU_ASSERT(arb_is_exact(&sum.number) && !ball_equal(sum, big));
  CU_ASSERT(ball_equal(ball_subtract(sum, big), one));
  CU_ASSERT(ball_equal(ball_subtract(big, sum), ball_of_int(-1)));
  CU_ASSERT(!ball_sum_swallows(big, one, sum));
  big = ball_power(ball_of_int(3), 500);
  CU_ASSERT(ball_sum_swallows(big, one, ball_add(big, one)));
  CU_ASSERT(ball_to_double(ball_of_double(-0.1)) == -0.1);
  CU_ASSERT(ball_to_double(ball_of_int(INT64_MAX)) == 0x1p63);
  CU_ASSERT(ball_to_double(ball_of_int(0)) == 0);
}

TEST(small_numbers_are_not_zero_and_zero_is_not_small) {
  ball two = ball_of_int(2), root = ball_sqrt(two);
  ball zero = ball_subtract(ball_multiply(root, root), two);
  CU_ASSERT(ball_may_be_zero(zero) && ball_equal(zero, ball_of_int(0)));
  CU_ASSERT(!ball_may_be_zero(ten_to(-1000)) && !ball_equal(ten_to(-1000), ball_of_int(0)));
  CU_ASSERT(!ball_equal(ten_to(-1000), ten_to(-1001)) && !ball_equal(zero, ten_to(-200)));
  CU_ASSERT(ball_sin(ball_pi()).state == BALL_KNOWN && ball_may_be_zero(ball_sin(ball_pi())));
  CU_ASSERT(ball_equal(ball_sqrt(zero), ball_of_int(0)));
  /* Digits that cancel take the sharpness with them: nothing is equal to what is left. */
  ball big = ball_power(ball_of_int(3), 500), blurred = ball_subtract(ball_add(big, root), big);
  CU_ASSERT(!ball_equal(blurred, root) && !ball_equal(blurred, blurred));
}

TEST(what_has_no_value_is_undefined) {
  ball zero = ball_of_int(0), one = ball_of_int(1), two = ball_of_int(2);
  ball root = ball_sqrt(two), nearly = ball_subtract(ball_multiply(root, root), two);
  const ball undefined[] = {ball_divide(one, zero),
                            ball_divide(one, nearly),
                            ball_log(zero),
                            ball_log(ball_of_int(-1)),
                            ball_sqrt(ball_of_int(-1)),
                            ball_asin(rational_ball(1000001, 1000000)),
                            ball_power(zero, -1),
                            ball_add(one, ball_undefined()),
                            ball_multiply(zero, ball_undefined()),
                            ball_add(ball_unsure(), ball_undefined()),
                            ball_sin(ball_undefined())};
  for (size_t i = 0; i < sizeof undefined / sizeof *undefined; ++i) {
    CU_ASSERT_EQUAL(undefined[i].state, BALL_UNDEFINED);
    CU_ASSERT(!ball_equal(undefined[i], undefined[i]) && !ball_may_be_zero(undefined[i]));
  }
}

TEST(what_cannot_be_told_is_unsure) {
  ball huge = ball_power(ten_to(1000), 100000000);
  const ball unsure[] = {ball_multiply(ball_power(huge, 1000), ball_power(huge, 1000)),
                         ball_sin(ten_to(100)),
                         ball_exp(ten_to(20)),
                         ball_exp(ten_to(-80)),
                         ball_cos(ten_to(-50)),
                         ball_atan(ten_to(50)),
                         ball_add(ball_of_int(1), ball_unsure())};
  for (size_t i = 0; i < sizeof unsure / sizeof *unsure; ++i) {
    CU_ASSERT_EQUAL(unsure[i].state, BALL_UNSURE);
    CU_ASSERT(!ball_equal(unsure[i], unsure[i]) && !ball_is_within(unsure[i], unsure[i]));
  }
}

TEST(floors_are_whole) {
  const struct {
    int64_t num, den, floor;
  } cases[] = {{7, 2, 3}, {-7, 2, -4}, {6, 1, 6}, {-6, 1, -6},
               {1, 3, 0}, {-1, 3, -1}, {0, 1, 0}, {INT64_C(1) << 60, 1, INT64_C(1) << 60}};
  int64_t got;
  for (size_t i = 0; i < sizeof cases / sizeof *cases; ++i) {
    CU_ASSERT(ball_floor(rational_ball(cases[i].num, cases[i].den), &got));
    CU_ASSERT_EQUAL(got, cases[i].floor);
  }
  CU_ASSERT(!ball_floor(ten_to(30), &got) && !ball_floor(ball_undefined(), &got));
}
