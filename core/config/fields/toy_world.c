/* The fields that all worlds have, and those of the toy worlds and of decision processes. */
#include "core/config/fields/tables.h"

static const field entries[] = {

    /* world: all kinds */
    ENTRY("world", "world", SECTION, "", NULL, "what is learned"),
    ENTRY(
        "world.kind", "world kind", CHOICE, "", NULL,
        "bandit, sequence, automaton or llm; for `gepolab bias` also chain, gridworld, garnet and "
        "token. "
        "Required"),
    ENTRY("world.evaluation", "evaluation", SECTION, "", NULL,
          "what the evaluation score is: a kind, or {kind: …, temperature: …, …}"),
    ENTRY("world.evaluation.kind", "evaluation kind", CHOICE, "", "exact",
          "exact (bandit, sequence and automaton: the expected reward of responses drawn by the "
          "evaluation's law, without sampling), greedy (the reward of the response of most "
          "probable tokens) or "
          "sampled (llm: the mean reward of drawn responses)",
          .shorthand = "world.evaluation", .when = {{"world.kind", "bandit"}}),
    ENTRY("world.evaluation.kind", "evaluation kind", CHOICE, "", "exact", NULL,
          .shorthand = "world.evaluation", .when = {{"world.kind", "sequence"}}),
    ENTRY("world.evaluation.kind", "evaluation kind", CHOICE, "", "exact", NULL,
          .shorthand = "world.evaluation", .when = {{"world.kind", "automaton"}}),
    ENTRY("world.evaluation.kind", "evaluation kind", CHOICE, "", "greedy", NULL,
          .shorthand = "world.evaluation", .when = {{"world.kind", "llm"}}),
    ENTRY("world.evaluation.temperature", "evaluation temperature", NUMBER, "", "1",
          "divides the logits in evaluations; not for greedy"),
    ENTRY("world.evaluation.top_k", "evaluation top-k", NUMBER, "", "0",
          "top_k of evaluations; not for greedy"),
    ENTRY("world.evaluation.top_p", "evaluation top-p", NUMBER, "", "1",
          "top_p of evaluations; not for greedy"),
    ENTRY("world.evaluation.prompts", "evaluation prompts", NUMBER, "", "128",
          "of llm: held-out problems that are asked, or all if there are fewer",
          .when = {{"world.kind", "llm"}}),
    ENTRY("world.evaluation.samples", "evaluation samples", NUMBER, "", "1",
          "of llm: responses drawn to each problem; not for greedy",
          .when = {{"world.kind", "llm"}, {"world.evaluation.kind", "sampled"}}),

    ENTRY("world.evaluation.sets", "evaluation sets", LIST, "", NULL,
          "several evaluations side by side, a list of {name: …, …}: what a set leaves out is as "
          "the evaluation has it, and the first set's score is the run's score. Of llm: kind, "
          "temperature, top_k, top_p, prompts, samples, max_tokens and task, the fields in which "
          "its problems differ from the world's (or another kind of task). Of toy worlds: kind, "
          "temperature, top_k, top_p, prompts (a list of their numbers) and world, the fields in "
          "which its rewards differ; sizes and policy are the world's",
          .rule = "one evaluation, without a name"),
    ENTRY("world.evaluation.halves", "evaluation halves", FLAG, "", "false",
          "also scores every set, or the only evaluation, on its first, third, … and on its "
          "second, fourth, … problems apart, so that what chooses the best evaluation need not "
          "score it"),

    /* world: bandit */
    ENTRY("world.rewards", "rewards", LIST, "", NULL,
          "of bandit: mean rewards, a number per arm, such a list per context, or the law that "
          "they are drawn from. Of llm in `gepolab bias`: a number per response (by length, then "
          "lexicographically), or such a list per prompt, instead of a task",
          .rule = "the uniform law"),
    ENTRY("world.rewards.law", "law of rewards", CHOICE, "", "uniform",
          "uniform, normal or bernoulli", .when = {{"world.kind", "bandit"}}),
    ENTRY("world.rewards.low", "lowest reward", NUMBER, "", "0", "least mean reward of uniform",
          .when = {{"world.kind", "bandit"}}),
    ENTRY("world.rewards.high", "highest reward", NUMBER, "", "1", "largest mean reward of uniform",
          .when = {{"world.kind", "bandit"}}),
    ENTRY("world.rewards.mean", "mean of rewards", NUMBER, "", "0", "mean of normal",
          .when = {{"world.kind", "bandit"}}),
    ENTRY("world.rewards.sd", "deviation of rewards", NUMBER, "", "1",
          "standard deviation of normal", .when = {{"world.kind", "bandit"}}),
    ENTRY("world.rewards.p", "share of rewards", NUMBER, "", "0.5",
          "of bernoulli: probability that an arm has mean reward 1, else 0",
          .when = {{"world.kind", "bandit"}}),
    ENTRY("world.arms", "arms", NUMBER, "", NULL, "actions to choose from",
          .when = {{"world.kind", "bandit"}}, .rule = "length of `rewards`, or 10"),
    ENTRY("world.contexts", "contexts", NUMBER, "", NULL, "prompts, each with rewards of its own",
          .when = {{"world.kind", "bandit"}}, .rule = "number of lists in `rewards`, or 1"),
    ENTRY("world.noise", "reward noise", TEXT, "", "none",
          "none, bernoulli (rewards are probabilities of a reward of 1), or the standard deviation "
          "of Gaussian noise; exact quantities use the mean",
          .when = {{"world.kind", "bandit"}}),

    /* world: sequence, and its tasks for a transformer in `gepolab bias` */
    ENTRY("world.vocabulary", "vocabulary", NUMBER, "letters", "4",
          "letters that a response is made of", .when = {{"world.kind", "sequence"}},
          .rule = "4; kind token: 3"),
    ENTRY("world.vocabulary", "vocabulary", NUMBER, "letters", "4", NULL,
          .when = {{"world.kind", "automaton"}}),
    ENTRY("world.vocabulary", "vocabulary", NUMBER, "letters", NULL, NULL),
    ENTRY("world.horizon", "horizon", NUMBER, "tokens", "4", "longest response",
          .when = {{"world.kind", "sequence"}}, .rule = "4; kind automaton: 8, at most 64"),
    ENTRY("world.horizon", "horizon", NUMBER, "tokens", "8", NULL,
          .when = {{"world.kind", "automaton"}}),
    ENTRY("world.horizon", "horizon", NUMBER, "tokens", NULL, NULL),
    ENTRY("world.end_token", "end token", FLAG, "", "false",
          "adds a token that ends a response, so that lengths vary",
          .when = {{"world.kind", "sequence"}}, .rule = "false"),
    ENTRY("world.end_token", "end token", FLAG, "", "false", NULL,
          .when = {{"world.kind", "automaton"}}),
    ENTRY("world.end_token", "end token", FLAG, "", NULL, NULL),
    ENTRY("world.prompts", "prompts", NUMBER, "", "4", "number of prompts",
          .when = {{"world.kind", "sequence"}}, .rule = "4; kind automaton: 1"),
    ENTRY("world.prompts", "prompts", NUMBER, "", "1", NULL, .when = {{"world.kind", "automaton"}}),
    ENTRY("world.prompts", "prompts", NUMBER, "", NULL, NULL),
    ENTRY("world.task", "sequence task", CHOICE, "", "sum_mod",
          "of sequence: target (a hidden sequence per prompt), sum_mod (the tokens sum to the "
          "prompt's number), parity (the number of 1s), sorted (not descending, with a wanted "
          "number of distinct letters) or needle (contains a hidden sequence)",
          .when = {{"world.kind", "sequence"}},
          .rule = "sum_mod (kind sequence); required (kind llm)"),
    ENTRY("world.task", "task", SECTION, "", NULL,
          "of llm: a section with prompts, the answers that warm-up teaches, and the rule that "
          "scores a response"),
    ENTRY("world.reward", "reward", CHOICE, "", "exact",
          "exact: 1 if the task is solved, else 0; graded: the task's score in [0, 1]",
          .when = {{"world.kind", "sequence"}}, .rule = "exact"),
    ENTRY("world.reward", "reward", CHOICE, "", NULL, NULL),
    ENTRY("world.modulus", "modulus", NUMBER, "", "4",
          "modulus of the task sum_mod and of the features `sum` and `remainder`, and of the "
          "automaton count",
          .when = {{"world.kind", "automaton"}, {"world.automaton", "count"}},
          .rule = "vocabulary; kind automaton: 4"),
    ENTRY("world.modulus", "modulus", NUMBER, "", NULL, NULL),
    ENTRY("world.needle_length", "needle length", NUMBER, "tokens", NULL,
          "length of the hidden sequence of the task needle",
          .rule = "2, or 1 where the horizon is 1"),

    /* world: automaton */
    ENTRY(
        "world.automaton", "automaton", CHOICE, "", "parity",
        "of automaton: parity (of the number of `letter`, as the prompt's), count (the number of "
        "`letter` modulo `modulus` is the prompt's), contains (`word` occurs), balanced (letter 0 "
        "opens, letter 1 closes, all is closed at the end, and the nesting is exactly 1 + prompt "
        "modulo `depth` deep) or table",
        .when = {{"world.kind", "automaton"}}),
    ENTRY("world.letter", "counted letter", NUMBER, "", NULL,
          "of the automata parity and count: the letter that is counted",
          .rule = "1, or 0 where that is the only letter"),
    ENTRY("world.depth", "depth", NUMBER, "", "2",
          "of the automaton balanced: the deepest nesting that a prompt asks for, up to 32",
          .when = {{"world.kind", "automaton"}, {"world.automaton", "balanced"}}),
    ENTRY("world.word", "word", LIST, "", NULL,
          "of the automaton contains: a list of letters, counted from 0, or one such list per "
          "prompt; required there"),
    ENTRY("world.table", "automaton's table", SECTION, "", NULL,
          "of the automaton table: its states, up to 1,024, and what they earn; required there"),
    ENTRY("world.table.start", "first state", NUMBER, "", NULL, "the state before the first letter",
          .rule = "0"),
    ENTRY("world.table.next", "next states", LIST, "", NULL,
          "a list per state with the state that follows each letter; letters beyond the end of the "
          "list leave the state as it is. Required"),
    ENTRY("world.table.accept", "accepted states", LIST, "", NULL,
          "the states that earn a reward of 1 where a response ends, or one such list per prompt; "
          "this or `rewards` is required"),
    ENTRY("world.table.rewards", "rewards of states", LIST, "", NULL,
          "a reward for each state, or one such list per prompt"),
    ENTRY("world.listed", "listed responses", FLAG, "", "false",
          "of automaton: list all responses, where they are few enough, as a sequence world does; "
          "`gepolab bias` then enumerates groups",
          .when = {{"world.kind", "automaton"}}),

    /* world: policy of bandit, sequence and automaton */
    ENTRY("world.policy", "policy", SECTION, "", NULL,
          "the policy of bandit, sequence, automaton and decision processes"),
    ENTRY("world.policy.kind", "policy kind", CHOICE, "", "loglinear",
          "tabular: a logit per prompt, prefix and token; loglinear: features that prompts and "
          "prefixes share",
          .when = {{"world.kind", "automaton"}}, .rule = "tabular; kind automaton: loglinear"),
    ENTRY("world.policy.kind", "policy kind", CHOICE, "", "tabular", NULL),
    ENTRY("world.policy.features", "features", LIST, "", NULL,
          "of loglinear: templates of bias, prompt, position, last, second_last, sum and remainder "
          "(prompt − sum, modulo `modulus`), joined by `*`; or random; or, for a bandit, a list of "
          "numbers per arm",
          .rule =
              "[position, last, prompt*position, prompt*last, prompt*sum]; kind automaton, whose "
              "policy sees prompt and last letter only: [last, prompt*last]"),
    ENTRY("world.policy.dimension", "feature dimension", NUMBER, "", "8",
          "number of random features"),
    ENTRY("world.policy.hash", "feature buckets", NUMBER, "", "0",
          "number of buckets that the templates' features share; 0: none are shared"),
    ENTRY("world.policy.init", "initial policy", SECTION, "", NULL,
          "the policy that the learner starts from"),
    ENTRY("world.policy.init.kind", "initial logits", CHOICE, "", "zeros",
          "zeros, normal (random logits) or probs (given probabilities, tabular only)"),
    ENTRY("world.policy.init.scale", "initial scale", NUMBER, "", "0.1",
          "standard deviation of normal logits"),
    ENTRY("world.policy.init.probs", "initial probabilities", LIST, "", NULL,
          "of probs: the probability of each response"),
    ENTRY("world.policy.reference", "toy reference policy", CHOICE, "", "initial",
          "the reference policy of ref_kl_coef and kl_ref: initial or uniform"),

    /* world: decision processes of `gepolab bias` */
    ENTRY("world.states", "states", NUMBER, "", "5", "states of a chain or garnet",
          .when = {{"world.kind", "chain"}}),
    ENTRY("world.states", "states", NUMBER, "", "4", NULL, .when = {{"world.kind", "garnet"}}),
    ENTRY("world.slip", "slip", NUMBER, "", "0.1",
          "of chain and gridworld: probability that another move is made"),
    ENTRY("world.distraction", "distraction", NUMBER, "", "0.05",
          "of chain: reward of going left at the start; the right end pays 1"),
    ENTRY("world.width", "grid width", NUMBER, "", "3", "columns of a gridworld"),
    ENTRY("world.height", "grid height", NUMBER, "", "3",
          "rows of a gridworld, whose far corner pays 1 and the square below it −1"),
    ENTRY("world.actions", "actions", NUMBER, "", "2",
          "actions of a garnet, which has random transitions and normal rewards"),
    ENTRY("world.branching", "branching", NUMBER, "", NULL,
          "states that an action of a garnet may lead to",
          .rule = "2, or 1 where there is one state"),
};

const field_table fields_of_toy_world = {entries, sizeof entries / sizeof *entries};
