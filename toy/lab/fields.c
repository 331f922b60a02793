/* The fields of recipes of `gepolab lab bias` and `gepolab lab theory` alone. */
#include "toy/lab/fields.h"

#include "toy/lab/theory.h"

#include <math.h>

static const field entries[] = {

    /* recipes of gepolab lab bias and gepolab lab theory */
    FIELD("learner_probs", "learner probabilities", LIST, "", NULL,
          "of bias: probabilities of the responses under the learner, or a list of them per prompt "
          "(tabular bandits and sequences)",
          .rule = "the world's initial policy"),
    FIELD("sampler_probs", "sampler probabilities", LIST, "", NULL,
          "of bias: the same under the sampler. Either this or `dial` is needed; with "
          "`training` neither is allowed"),
    FIELD("dial", "dial", SECTION, "", NULL,
          "of bias: moves the sampler away from the learner, instead of `sampler_probs`"),
    FIELD("dial.kind", "dial kind", CHOICE("hotter", "colder", "direction", "mixture", "staleness"),
          "", "direction",
          "direction (logits moved along one random direction of the seed), hotter or colder "
          "(logits scaled towards the uniform policy or away from it), mixture (q = (1 − m) p + m "
          "· uniform; bandits and sequences of one prompt) or staleness (learner and sampler are "
          "policies of one path of exact gradient steps)"),
    FIELD("dial.kl", "dialled KL", LIST, "nats", NULL,
          "values of KL(p||q) to solve for: a number, a list, or {from, to, points, scale}; "
          "required but for staleness"),
    FIELD("dial.kl.from", "first KL", REAL(0, 1e9), "nats", "0", "first of the values"),
    FIELD("dial.kl.to", "last KL", REAL(0, 1e9), "nats", "1", "last of the values"),
    FIELD("dial.kl.points", "KL points", COUNT(1, 100000), "", "20", "how many values"),
    FIELD("dial.kl.scale", "KL scale", CHOICE("linear", "log"), "", "linear",
          "how they are spaced: linear, or log (from and to above 0)"),
    FIELD("dial.steps", "dial steps", COUNT(1, 1000000), "updates", "100",
          "of staleness: exact gradient steps that the learner has made"),
    FIELD("dial.lr", "dial rate", POSITIVE, "", "0.5", "of staleness: their learning rate"),
    FIELD("dial.updates", "dialled staleness", LIST, "updates", NULL,
          "of staleness: how many steps before the learner the sampler is; a number, a list, or "
          "{from, to, points, scale}; required"),
    FIELD("group_size", "group sizes", LIST, "", "8",
          "of bias: responses of a group, a number or a list",
          .rule = "8; with `population`: only that limit"),
    FIELD("algorithms", "algorithms", LIST, "", "all",
          "of bias: algorithms, each as under `algorithm`, or all; no two may be shown alike"),
    FIELD("population", "population limit", FLAG, "", "false",
          "of bias: also the limit of endless groups, for algorithms that factor"),
    FIELD("budget", "budget", COUNT(1, (size_t)1 << 40), "", "2000000",
          "of bias: most multisets of the responses to one prompt that are enumerated"),
    FIELD("samples", "Monte Carlo groups", COUNT(0, (size_t)1 << 40), "", "262144",
          "of bias: groups per prompt that are drawn where enumeration is beyond the budget; 0: "
          "refuse instead"),
    FIELD("covariance", "covariance", FLAG, "", "false",
          "of bias: the full covariance in the JSON"),
    FIELD("truncation", "truncation", SECTION, "", NULL,
          "laws of truncated sampling to compare, each with every kind of weights; for one pair of "
          "policies and one group size"),
    FIELD("truncation.top_p", "compared top-p", NUMBERS(1e-9, 1), "", NULL,
          "values of top_p, each without top_k; 1 truncates nothing"),
    FIELD("truncation.top_k", "compared top-k", NUMBERS(1, 1e9), "", NULL,
          "values of top_k, each without top_p; one of the two lists is required"),
    FIELD("truncation.weights", "compared weights", LIST, "", NULL,
          "kinds of `sampling.weights`; required"),
    FIELD("training", "training", SECTION, "", NULL,
          "of bias: learning curves in exact return instead of a table"),
    FIELD("training.updates", "training updates", COUNT(1, 10000000), "updates", "500",
          "learner updates by sampled groups"),
    FIELD("training.staleness", "training staleness", COUNT(0, 1000000), "updates", "0",
          "groups are drawn from the policy of so many updates ago"),
    FIELD("training.groups", "training groups", COUNT(1, 100000), "", "1",
          "groups of `group_size` in an update"),
    FIELD("training.lr", "training rates", LIST, "", NULL,
          "learning rates, of which each algorithm gets the one of the highest mean return on "
          "other seeds; a list or {from, to, points, scale}. Required"),
    FIELD("training.tuning_seeds", "training tuning seeds", COUNT(1, 10000), "", "5",
          "how many other seeds"),
    FIELD("training.record_every", "recording interval", COUNT(1, 10000000), "updates", "10",
          "updates between two points of a curve"),
    FIELD("training.seeds", "training seeds", COUNT(1, 10000), "", "10", "runs of each algorithm"),
    FIELD(
        "training.stalenesses", "stalenesses of pairs", NUMBERS(1, 1000000), "updates", NULL,
        "of theory: each algorithm is trained at each of these stalenesses, and its pairs of laws "
        "are those of learner and sampler along the way"),
    FIELD("outcomes", "outcomes", NUMBERS(2, 1e15), "", NULL,
          "of theory: numbers n of outcomes in the table of Theorem 1"),
    FIELD("vocabularies", "vocabularies", NUMBERS(2, 4096), "", NULL,
          "of theory: numbers V of letters in the products of token laws"),
    FIELD("lengths", "product lengths", NUMBERS(1, 4096), "", NULL, "of theory: their lengths T"),
    FIELD("pairs", "pairs", COUNT(1, 10000000), "", "2000",
          "of theory: random pairs of laws in each family; Theorem 3 gives medians over them"),
    FIELD("starts", "search starts", COUNT(1, 1000000), "", "100",
          "of theory: starts of the search for violations of Theorem 2"),
    FIELD("search_outcomes", "searched outcomes", COUNT(2, LAB_SEARCH_MOST), "", "4",
          "of theory: outcomes of the laws in that search"),
};

FIELD_TABLE(lab_fields, entries);
