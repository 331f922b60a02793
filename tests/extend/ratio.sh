#!/bin/sh
# A ratio that was added gives the weights and coefficients found by hand, is listed with what it is,
# and is measured by the exact laboratory without having been told how to factor it.
set -e
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
# log-ratios of the tokens: 0.2, -0.4, 0.2 and -0.2; the weights' logarithms: 0.2, -0.2, -0.2 and -0.2
cat >"$folder/group.json" <<'JSON'
{"rewards": [1, 0], "logp": [[-1.0, -0.5, -0.3], [-2.0]], "logq": [[-1.2, -0.1, -0.5], [-1.8]]}
JSON
"$GEPOLAB" policy --algorithm '{base: reinforce, ratio: min_prefix, ratio_gradient: true}' "$folder/group.json" |
  awk '$1 == 0 && NF == 6 { n++
      w = n == 1 ? exp(0.2) : exp(-0.2); c = (n < 4 ? 0.5 : -0.5) * w
      if (($5 - w) ^ 2 > 1e-12 || ($6 - c) ^ 2 > 1e-12) { print "line " n ": " $0; bad = 1 } }
    END { exit bad || n != 4 }'
# Its line may be broken between words.
"$GEPOLAB" algorithms --fields | tr -s ' \n' ' ' | grep -q ' min_prefix p / q of the token times the smallest p / q before it: of a token'
# Responses of one token have no prefix: bias and variance are those of importance sampling, which the
# laboratory factors, though it enumerates min_prefix group by group. Of two tokens they are not.
same() {
  "$GEPOLAB" bias four_arms --format tsv "$@" algorithms='[is, {base: is, ratio: min_prefix}]' |
    awk -F'\t' '/^is/ && $6 == "exact" { n++; bias[n] = $7; variance[n] = $10 }
      END { exit n != 2 || (bias[1] - bias[2]) ^ 2 > 1e-24 || (variance[1] - variance[2]) ^ 2 > 1e-24 }'
}
same
if same world='{kind: sequence, vocabulary: 2, horizon: 2, prompts: 1}' learner_probs='[0.4, 0.3, 0.2, 0.1]' \
  sampler_probs='[0.1, 0.2, 0.3, 0.4]'; then exit 1; fi
if "$GEPOLAB" policy --algorithm '{base: is, ratio: min_prefx}' "$folder/group.json" 2>"$folder/why"; then exit 1; fi
grep -q "did you mean 'min_prefix'" "$folder/why"
