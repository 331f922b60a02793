/* The fields of automata, of policies and of decision processes; those of sequence tasks are in
 * core/rl, those of bandits in bandit.c. */
#include "core/config/fields.h"

#include "core/rl/sequence_task.h"
#include "toy/world/automata.h"
#include "toy/world/mdp.h"
#include "toy/world/world.h"

#include <math.h>

static const field worlds[] = {
    /* world: automaton, and decision processes */
    FIELD("world.vocabulary", "vocabulary", COUNT(1, AUTOMATON_MAX_LETTERS), "letters", "4", NULL,
          .when = {{"world.kind", "automaton"}}),
    FIELD("world.vocabulary", "vocabulary", COUNT(1, MDP_MAX_ACTIONS), "letters", "3", NULL),
    FIELD("world.horizon", "horizon", COUNT(1, AUTOMATON_MAX_HORIZON), "tokens", "8", NULL,
          .when = {{"world.kind", "automaton"}}),
    FIELD("world.horizon", "horizon", COUNT(1, MDP_MAX_HORIZON), "tokens", "4", NULL),
    FIELD("world.prompts", "prompts", COUNT(1, AUTOMATON_MAX_PROMPTS), "", "1", NULL,
          .when = {{"world.kind", "automaton"}}),
    FIELD("world.modulus", "modulus", COUNT(1, AUTOMATON_MAX_STATES), "", "4", NULL,
          .when = {{"world.kind", "automaton"}}),
    FIELD(
        "world.automaton", "automaton", CHOICE("parity", "count", "contains", "balanced", "table"),
        "", "parity",
        "of automaton: parity (of the number of `letter`, as the prompt's), count (the number of "
        "`letter` modulo `modulus` is the prompt's), contains (`word` occurs), balanced (letter 0 "
        "opens, letter 1 closes, all is closed at the end, and the nesting is exactly 1 + prompt "
        "modulo `depth` deep) or table",
        .when = {{"world.kind", "automaton"}}),
    FIELD("world.letter", "counted letter", COUNT(0, AUTOMATON_MAX_LETTERS - 1), "", NULL,
          "of the automata parity and count: the letter that is counted",
          .rule = "1, or 0 where that is the only letter"),
    FIELD("world.depth", "depth", COUNT(1, AUTOMATON_MAX_HORIZON / 2), "", "2",
          "of the automaton balanced: the deepest nesting that a prompt asks for, up to 32",
          .when = {{"world.kind", "automaton"}, {"world.automaton", "balanced"}}),
    FIELD("world.word", "word", LIST, "", NULL,
          "of the automaton contains: a list of letters, counted from 0, or one such list per "
          "prompt; required there"),
    FIELD("world.table", "automaton's table", SECTION, "", NULL,
          "of the automaton table: its states, up to 1,024, and what they earn; required there"),
    FIELD("world.table.start", "first state", COUNT(0, INFINITY), "", NULL,
          "the state before the first letter", .rule = "0"),
    FIELD("world.table.next", "next states", LIST, "", NULL,
          "a list per state with the state that follows each letter; letters beyond the end of the "
          "list leave the state as it is. Required"),
    FIELD("world.table.accept", "accepted states", LIST, "", NULL,
          "the states that earn a reward of 1 where a response ends, or one such list per prompt; "
          "this or `rewards` is required"),
    FIELD("world.table.rewards", "rewards of states", LIST, "", NULL,
          "a reward for each state, or one such list per prompt"),
    FIELD("world.listed", "listed responses", FLAG, "", "false",
          "of automaton: list all responses, where they are few enough, as a sequence world does; "
          "`gepolab lab bias` then enumerates groups",
          .when = {{"world.kind", "automaton"}}),

    /* world: policy of bandit, sequence and automaton */
    FIELD("world.policy", "policy", SECTION, "", NULL,
          "the policy of bandit, sequence, automaton and decision processes"),
    FIELD("world.policy.kind", "policy kind", CHOICE("tabular", "loglinear"), "", "loglinear",
          "tabular: a logit per prompt, prefix and token; loglinear: features that prompts and "
          "prefixes share",
          .when = {{"world.kind", "automaton"}}, .rule = "tabular; kind automaton: loglinear"),
    FIELD("world.policy.kind", "policy kind", CHOICE("tabular", "loglinear"), "", "tabular", NULL),
    FIELD("world.policy.features", "features", LIST, "", NULL,
          "of loglinear: templates of bias, prompt, position, last, second_last, sum and remainder "
          "(prompt − sum, modulo `modulus`), joined by `*`; or random; or, for a bandit, a list of "
          "numbers per arm",
          .rule =
              "[position, last, prompt*position, prompt*last, prompt*sum]; kind automaton, whose "
              "policy sees prompt and last letter only: [last, prompt*last]"),
    FIELD("world.policy.dimension", "feature dimension", COUNT(1, (size_t)1 << 16), "", "8",
          "number of random features"),
    FIELD("world.policy.hash", "feature buckets", COUNT(0, (size_t)1 << 24), "", "0",
          "number of buckets that the templates' features share; 0: none are shared"),
    FIELD("world.policy.init", "initial policy", SECTION, "", NULL,
          "the policy that the learner starts from"),
    FIELD("world.policy.init.kind", "initial logits", CHOICE("zeros", "normal", "probs"), "",
          "zeros", "zeros, normal (random logits) or probs (given probabilities, tabular only)"),
    FIELD("world.policy.init.scale", "initial scale", REAL(0, 1e6), "", "0.1",
          "standard deviation of normal logits"),
    FIELD("world.policy.init.probs", "initial probabilities", LIST, "", NULL,
          "of probs: the probability of each response"),
    FIELD("world.policy.reference", "toy reference policy", CHOICE("initial", "uniform"), "",
          "initial", "the reference policy of ref_kl_coef and kl_ref: initial or uniform"),

    /* world: decision processes of `gepolab lab bias` */
    FIELD("world.states", "states", COUNT(2, MDP_MAX_STATES), "", "5",
          "states of a chain or garnet", .when = {{"world.kind", "chain"}}),
    FIELD("world.states", "states", COUNT(1, MDP_MAX_STATES), "", "4", NULL,
          .when = {{"world.kind", "garnet"}}),
    FIELD("world.slip", "slip", REAL(0, 1), "", "0.1",
          "of chain and gridworld: probability that another move is made"),
    FIELD("world.distraction", "distraction", REAL(-1e6, 1e6), "", "0.05",
          "of chain: reward of going left at the start; the right end pays 1"),
    FIELD("world.width", "grid width", COUNT(2, 64), "", "3", "columns of a gridworld"),
    FIELD("world.height", "grid height", COUNT(2, 64), "", "3",
          "rows of a gridworld, whose far corner pays 1 and the square below it −1"),
    FIELD("world.actions", "actions", COUNT(1, MDP_MAX_ACTIONS), "", "2",
          "actions of a garnet, which has random transitions and normal rewards"),
    FIELD("world.branching", "branching", COUNT(1, INFINITY), "", NULL,
          "states that an action of a garnet may lead to",
          .rule = "2, or 1 where there is one state"),
};
FIELD_TABLE(toy_fields, worlds);
