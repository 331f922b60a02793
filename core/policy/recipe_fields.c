/* The fields of a recipe that name and change an algorithm; its own are in core/policy/fields.c. */
#include "core/config/fields.h"

#include "core/policy/algorithm.h"

static const char *algorithm_base_at(size_t i) {
  return i < policy_algorithms_count() ? policy_algorithms_at(i)->name : NULL;
}

static const field entries[] = {
    FIELD(
        "algorithm", "algorithm", SECTION, "", NULL,
        "an algorithm's name, or {base: NAME, FIELD: value, …}; `gepolab list algorithms --fields` "
        "lists the fields",
        .role = ROLE_ALGORITHM),
    FIELD("algorithm.base", "base", CHOICE_AT(algorithm_base_at), "", "grpo",
          "the algorithm whose fields are taken where none is stated", .role = ROLE_ALGORITHM,
          .shorthand = "algorithm"),
    FIELD("algorithm.name", "shown name", TEXT, "", NULL,
          "how the algorithm is called in tables and figures; it may not be the name of a "
          "published algorithm whose fields differ",
          .role = ROLE_PROVENANCE, .rule = "the base and what was changed, as in gepo(clip=none)"),
    FIELD("algorithm.gate", "gate", SECTION, "", NULL,
          "which responses leave the policy term by their own likelihood: {negative_below, "
          "positive_above, of: group_expectation | sampler, scope: prompt | microbatch, log_prob: "
          "mean | sum}, for any algorithm but disco's",
          .role = ROLE_ALGORITHM),
};

FIELD_TABLE(policy_fields, entries);
