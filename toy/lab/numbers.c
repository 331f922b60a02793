/* Names of the reported numbers, in the order of the struct: keys of JSON, columns of tables. */
#include "toy/lab/numbers.h"

const char *const lab_number_names[LAB_NUMBERS] = {
    "bias", "cosine",  "scaled_bias", "variance",    "mse", "scaled_mse",
    "snr",  "iw_mean", "iw_variance", "aw_variance", "ess"};
