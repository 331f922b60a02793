/* The families; each has a file of its name. */
#include "tests/torture/families.h"

const family families[] = {
    {"kills", "killed at any moment or system call", 4, NULL, family_kills},
    {"workers", "each worker in turn killed", 1.5, tracing_missing, family_workers},
    {"disk", "full disks, failing calls", 2, NULL, family_disk},
    {"limits", "memory, descriptors, processes", 1.5, NULL, family_limits},
    {"permissions", "what may not be written", 0.5, root_missing, family_permissions},
    {"onto", "outputs onto inputs and studies", 0.5, NULL, family_onto},
    {"together", "two at once on one file", 1.5, NULL, family_together},
    {"readers", "paused readers beside a sweep", 1, NULL, family_readers},
    {"clock", "clocks that jump", 0.5, clock_missing, family_clock},
    {"damage", "bits, bytes and pages of studies", 3, NULL, family_damage},
    {"handmade", "studies changed by SQL", 2.5, NULL, family_handmade},
    {"shards", "shards killed and joined in any order", 1, NULL, family_shards},
    {"mpi", "ranks killed", 1, mpi_missing, family_mpi},
    {NULL, NULL, 0, NULL, NULL}};
