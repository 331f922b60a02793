/* The fields of tasks. */
#include "core/config/fields.h"

#include "llm/task/internal.h"

#include <math.h>

static const char *task_kind_name(size_t i) {
  return task_kind_at(i, NULL);
}

#define LLM                                                                                        \
  { "world.kind", "llm" }

static const field entries[] = {
    FIELD("world.task.kind", "task kind", CHOICE_AT(task_kind_name), "", "addition",
          "addition, modular, countdown, sorting, parity, brackets or math; `gepolab llm tasks` "
          "lists them",
          .shorthand = "world.task", .when = {LLM}),
    FIELD("world.task.held_out", "held-out share", REAL(0, 0.9), "", "0.05",
          "share of all problems that is held out for evaluation, 0 to 0.9; 0: none. A split that "
          "is empty, or nearly so because the task has few problems, is refused",
          .when = {LLM, {"world.task.kind", "math"}}),
    FIELD("world.task.held_out", "held-out share", REAL(0, 0.9), "", "0.1", NULL, .when = {LLM}),
    FIELD("world.task.reward", "task reward", CHOICE("exact", "graded"), "", "exact",
          "exact: 1 for a right answer, else 0; graded: partial credit, where the kind has it",
          .when = {LLM}),
    FIELD("world.task.cut_off", "cut-off rule", CHOICE("wrong", "score"), "", "wrong",
          "whether a response without its end within the length limit is wrong, or scored like any "
          "other (score)",
          .when = {LLM}),
    FIELD("world.task.digits", "digits", COUNT(1, TASK_MAX_DIGITS), "", "2",
          "operands are uniform over the numbers of up to so many digits, at most 64",
          .when = {LLM, {"world.task.kind", "addition"}}),
    FIELD("world.task.min_digits", "fewest digits", COUNT(1, INFINITY), "", "1",
          "fewest digits of an operand", .when = {LLM, {"world.task.kind", "addition"}}),
    FIELD("world.task.terms", "terms", COUNT(2, TASK_MAX_TERMS), "", "2",
          "operands of a problem, 2 to 8", .when = {LLM}),
    FIELD("world.task.pad", "padding", FLAG, "", "false",
          "operands of `digits` digits and answers of `digits` + 1, filled with zeros, so that all "
          "lengths are the same",
          .when = {LLM, {"world.task.kind", "addition"}}),
    FIELD("world.task.reverse", "reversed", FLAG, "", "false",
          "the answer's last digit comes first, as carrying goes",
          .when = {LLM, {"world.task.kind", "addition"}}),
    FIELD("world.task.modulus", "task modulus", WHOLE(2, 1000000), "", "97",
          "2 to 1,000,000; operands are uniform below it",
          .when = {LLM, {"world.task.kind", "modular"}}),
    FIELD("world.task.operations", "operations", LIST, "", NULL,
          "of modular: add, subtract and multiply, each as likely; products come before sums. Of "
          "countdown: those of the solution that warm-up teaches, also divide",
          .rule = "all"),
    FIELD("world.task.numbers", "numbers given", COUNT(2, TASK_MAX_NUMBERS), "", "3",
          "how many numbers are given, 2 to 6", .when = {LLM, {"world.task.kind", "countdown"}}),
    FIELD("world.task.largest", "largest number", WHOLE(1, TASK_MAX_LARGEST), "", "9",
          "largest number given, up to 999", .when = {LLM, {"world.task.kind", "countdown"}}),
    FIELD("world.task.largest_target", "largest target", WHOLE(1, 999999), "", "99",
          "largest target, up to 999,999", .when = {LLM, {"world.task.kind", "countdown"}}),
    FIELD("world.task.use", "use of numbers", CHOICE("any", "all"), "", "any",
          "any: each number at most once; all: each exactly once",
          .when = {LLM, {"world.task.kind", "countdown"}}),
    FIELD("world.task.length", "length", COUNT(1, TASK_MAX_SORTED), "", "5",
          "of sorting: most numbers of a problem, up to 200; of parity: bits, up to 500; of "
          "brackets: characters of the beginning that is given, up to 500",
          .when = {LLM, {"world.task.kind", "sorting"}}),
    FIELD("world.task.length", "length", COUNT(1, TASK_MAX_LENGTH), "", "8", NULL, .when = {LLM}),
    FIELD("world.task.min_length", "least length", COUNT(1, INFINITY), "", NULL,
          "fewest of them; lengths are uniform between the two", .rule = "length"),
    FIELD("world.task.values", "values", COUNT(2, TASK_MAX_VALUES), "", "10",
          "numbers are uniform below it, 2 to 1000; with more than 10, commas stand between them",
          .when = {LLM, {"world.task.kind", "sorting"}}),
    FIELD("world.task.chain", "chain", FLAG, "", "false",
          "the answer is the parity of every beginning; only then there is a graded reward",
          .when = {LLM, {"world.task.kind", "parity"}}),
    FIELD("world.task.depth", "nesting depth", COUNT(1, INFINITY), "", NULL,
          "deepest nesting of the beginning that is given",
          .rule = "4, or length where that is less"),
    FIELD("world.task.kinds", "bracket kinds", COUNT(1, 4), "", "2",
          "how many kinds of brackets there are: the first of (), [], {}, <>",
          .when = {LLM, {"world.task.kind", "brackets"}}),
    FIELD("world.task.longest", "longest closing", COUNT(1, INFINITY), "", NULL,
          "longest response that is right", .rule = "depth"),
    FIELD("world.task.path", "problems", TEXT, "", NULL,
          "a JSON Lines file in UTF-8, one problem a line; looked for beside the recipe's file "
          "first. Required",
          .is_file = true),
    FIELD("world.task.prompt_key", "prompt key", TEXT, "", "prompt", "key of the prompt",
          .when = {LLM, {"world.task.kind", "math"}}),
    FIELD("world.task.answer_key", "answer key", TEXT, "", "answer",
          "key of the answer, which may be a number", .when = {LLM, {"world.task.kind", "math"}}),
    FIELD("world.task.template", "task template", TEXT, "", "{prompt}",
          "what the model is given, the prompt in place of {prompt}",
          .when = {LLM, {"world.task.kind", "math"}}),
    FIELD("world.task.answer_pattern", "answer pattern", CHOICE("boxed", "last_number"), "",
          "boxed",
          "where a response's final answer stands: boxed (in the last closed \\boxed{} or "
          "\\fbox{}) or last_number (there, or else the last number of the text)",
          .when = {LLM, {"world.task.kind", "math"}}),
    FIELD("world.task.held_out_path", "held-out problems", TEXT, "", NULL,
          "a file of held-out problems instead of `held_out`; training problems with one of its "
          "prompts are left out",
          .is_file = true),
};

FIELD_TABLE(llm_task_fields, entries);
