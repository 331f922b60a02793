/* The kinds of task, in the order in which they are listed: TASK_KIND(name) for a file that defines
 * `const task_rules task_name` (internal.h). No include guard: who includes this says what the
 * lines become. */
TASK_KIND(addition)
TASK_KIND(modular)
TASK_KIND(countdown)
TASK_KIND(sorting)
TASK_KIND(parity)
TASK_KIND(brackets)
TASK_KIND(math)
