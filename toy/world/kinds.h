/* The kinds of toy world, in the order in which they are listed; the first is the default. Each
 * TOY_WORLD(name) stands for a file that defines `const toy_world_kind toy_world_name` (world.h).
 * No include guard: who includes this says what the lines become. */
TOY_WORLD(bandit)
TOY_WORLD(sequence)
TOY_WORLD(automaton)
