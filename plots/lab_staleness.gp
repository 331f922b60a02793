# Cosine between expected and true gradient, and MSE, against staleness on a training path.
set xlabel "staleness / updates"
stats name.".tsv" index 0 using 5 nooutput
set xtics marks_apart(STATS_max, 4)
array what[3] = ["cosine of E[g] and ∇J", "variance  tr Cov", "scaled MSE"]
array column_of[3] = [8, 10, 12]
wide = 17.5 + legend_across
high = 6.8 + note_high
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
    if (k == 1) { unset logscale y; set format y "%g"; set yrange [*:1.03] } 
    if (k == 2) { set logscale y; set format y "10^{%T}"; set yrange [*:*] }
    if (k == 3) { unset logscale y; set format y "%g"; set yrange [0:1.03] }
    if (k == 3) { set key at screen 1.0 - (legend_across - 0.1) / wide, screen 1.0 - 0.6 / high left top Left reverse samplen 2 } else { unset key }
    plot for [a=1:algorithms] name.".tsv" index (a - 1) * sizes using 5:column_of[k] with lines ls a title algorithm_name[a]
    eval note_off
  }
  unset multiplot
  set output
}
