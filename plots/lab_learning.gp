# Learning curves in exact return against samples, with bias (as a cosine) and variance along each
# algorithm's own path.
array what[3] = ["exact return", "cosine of E[g] and ∇J", "variance  tr Cov"]
array column_of[3] = [3, 6, 8]
wide = 17.5 + legend_across
high = 6.8 + note_high
set xlabel "responses drawn"
stats name.".tsv" index 0 using 2 nooutput
set xtics marks_apart(STATS_max, 4)
set xrange [*:*] noextend
do for [to in formats] {
  eval page(to, wide, high)
  set multiplot
  eval note_on(wide, high)
  do for [k=1:3] {
    set lmargin at screen (1.8 + 5.6 * (k - 1)) / wide
    set rmargin at screen (1.8 + 5.6 * (k - 1) + 4.2) / wide
    set tmargin at screen 1.0 - 0.6 / high
    set bmargin at screen (1.4 + note_high) / high
    set ylabel what[k] offset 1,0
    if (k == 3) { set logscale y; set format y "10^{%T}" } else { unset logscale y; set format y "%g" }
    if (k == 3) { set key at screen 1.0 - (legend_across - 0.1) / wide, screen 1.0 - 0.6 / high left top Left reverse samplen 2 } else { unset key }
    plot for [a=1:algorithms] name.".tsv" index a - 1 using 2:column_of[k] with lines ls a title algorithm_name[a]
    eval note_off
  }
  unset multiplot
  set output
}
