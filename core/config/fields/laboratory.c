/* The fields of recipes of `gepolab bias` and `gepolab theory` alone. */
#include "core/config/fields/tables.h"

static const field entries[] = {

    /* recipes of gepolab bias and gepolab theory */
    ENTRY("learner_probs", "learner probabilities", LIST, "", NULL,
          "of bias: probabilities of the responses under the learner, or a list of them per prompt "
          "(tabular bandits and sequences)",
          .rule = "the world's initial policy"),
    ENTRY("sampler_probs", "sampler probabilities", LIST, "", NULL,
          "of bias: the same under the sampler. Either this or `dial` is needed; with "
          "`training` neither is allowed"),
    ENTRY("dial", "dial", SECTION, "", NULL,
          "of bias: moves the sampler away from the learner, instead of `sampler_probs`"),
    ENTRY("dial.kind", "dial kind", CHOICE, "", "direction",
          "direction (logits moved along one random direction of the seed), hotter or colder "
          "(logits scaled towards the uniform policy or away from it), mixture (q = (1 − m) p + m "
          "· uniform; bandits and sequences of one prompt) or staleness (learner and sampler are "
          "policies of one path of exact gradient steps)"),
    ENTRY("dial.kl", "dialled KL", LIST, "nats", NULL,
          "values of KL(p||q) to solve for: a number, a list, or {from, to, points, scale}; "
          "required but for staleness"),
    ENTRY("dial.kl.from", "first KL", NUMBER, "nats", "0", "first of the values"),
    ENTRY("dial.kl.to", "last KL", NUMBER, "nats", "1", "last of the values"),
    ENTRY("dial.kl.points", "KL points", NUMBER, "", "20", "how many values"),
    ENTRY("dial.kl.scale", "KL scale", CHOICE, "", "linear",
          "how they are spaced: linear, or log (from and to above 0)"),
    ENTRY("dial.steps", "dial steps", NUMBER, "updates", "100",
          "of staleness: exact gradient steps that the learner has made"),
    ENTRY("dial.lr", "dial rate", NUMBER, "", "0.5", "of staleness: their learning rate"),
    ENTRY("dial.updates", "dialled staleness", LIST, "updates", NULL,
          "of staleness: how many steps before the learner the sampler is; a number, a list, or "
          "{from, to, points, scale}; required"),
    ENTRY("group_size", "group sizes", LIST, "", "8",
          "of bias: responses of a group, a number or a list",
          .rule = "8; with `population`: only that limit"),
    ENTRY("algorithms", "algorithms", LIST, "", "all",
          "of bias: algorithms, each as under `algorithm`, or all; no two may be shown alike"),
    ENTRY("population", "population limit", FLAG, "", "false",
          "of bias: also the limit of endless groups, for algorithms that factor"),
    ENTRY("budget", "budget", NUMBER, "", "2000000",
          "of bias: most multisets of the responses to one prompt that are enumerated"),
    ENTRY("samples", "Monte Carlo groups", NUMBER, "", "262144",
          "of bias: groups per prompt that are drawn where enumeration is beyond the budget; 0: "
          "refuse instead"),
    ENTRY("covariance", "covariance", FLAG, "", "false",
          "of bias: the full covariance in the JSON"),
    ENTRY("truncation", "truncation", SECTION, "", NULL,
          "laws of truncated sampling to compare, each with every kind of weights; for one pair of "
          "policies and one group size"),
    ENTRY("truncation.top_p", "compared top-p", LIST, "", NULL,
          "values of top_p, each without top_k; 1 truncates nothing"),
    ENTRY("truncation.top_k", "compared top-k", LIST, "", NULL,
          "values of top_k, each without top_p; one of the two lists is required"),
    ENTRY("truncation.weights", "compared weights", LIST, "", NULL,
          "kinds of `sampling.weights`; required"),
    ENTRY("training", "training", SECTION, "", NULL,
          "of bias: learning curves in exact return instead of a table"),
    ENTRY("training.updates", "training updates", NUMBER, "updates", "500",
          "learner updates by sampled groups"),
    ENTRY("training.staleness", "training staleness", NUMBER, "updates", "0",
          "groups are drawn from the policy of so many updates ago"),
    ENTRY("training.groups", "training groups", NUMBER, "", "1",
          "groups of `group_size` in an update"),
    ENTRY("training.lr", "training rates", LIST, "", NULL,
          "learning rates, of which each algorithm gets the one of the highest mean return on "
          "other seeds; a list or {from, to, points, scale}. Required"),
    ENTRY("training.tuning_seeds", "training tuning seeds", NUMBER, "", "5",
          "how many other seeds"),
    ENTRY("training.record_every", "recording interval", NUMBER, "updates", "10",
          "updates between two points of a curve"),
    ENTRY("training.seeds", "training seeds", NUMBER, "", "10", "runs of each algorithm"),
    ENTRY(
        "training.stalenesses", "stalenesses of pairs", LIST, "updates", NULL,
        "of theory: each algorithm is trained at each of these stalenesses, and its pairs of laws "
        "are those of learner and sampler along the way"),
    ENTRY("outcomes", "outcomes", LIST, "", NULL,
          "of theory: numbers n of outcomes in the table of Theorem 1"),
    ENTRY("vocabularies", "vocabularies", LIST, "", NULL,
          "of theory: numbers V of letters in the products of token laws"),
    ENTRY("lengths", "product lengths", LIST, "", NULL, "of theory: their lengths T"),
    ENTRY("pairs", "pairs", NUMBER, "", "2000",
          "of theory: random pairs of laws in each family; Theorem 3 gives medians over them"),
    ENTRY("starts", "search starts", NUMBER, "", "100",
          "of theory: starts of the search for violations of Theorem 2"),
    ENTRY("search_outcomes", "searched outcomes", NUMBER, "", "4",
          "of theory: outcomes of the laws in that search"),
};

const field_table fields_of_laboratory = {entries, sizeof entries / sizeof *entries};
