# Bias, scaled bias, variance and MSE against KL(p||q), a column of panels per group size; axes are
# shared along a row of panels.
array what[4] = ["bias  ‖E[g] − ∇J‖", "scaled bias", "variance  tr Cov", "mean squared error"]
array column_of[4] = [7, 9, 10, 11]
wide = 2.2 + 4.4 * shown + legend_across
high = 19.2 + note_high
array lo[4]
array hi[4]
do for [k=3:4] {
  lo[k] = 300; hi[k] = -300
  do for [b=0:algorithms*sizes-1] {
    stats name.".tsv" index b using (column(column_of[k]) > 0 ? log10(column(column_of[k])) : NaN) nooutput
    lo[k] = STATS_min < lo[k] ? STATS_min : lo[k]
    hi[k] = STATS_max > hi[k] ? STATS_max : hi[k]
  }
}
most = 0
do for [b=0:algorithms*sizes-1] {
  stats name.".tsv" index b using 7 nooutput
  most = 1.05 * STATS_max > most ? 1.05 * STATS_max : most
}
# An algorithm that explodes would hide all others; it leaves the panel at the top.
if (most > 1) { most = 1 }
stats name.".tsv" index 0 using 3 nooutput
least = STATS_min
largest = STATS_max
do for [to in formats] {
  eval page(to, wide, high)
  eval furnish
  set xrange [least:largest]
  set logscale x
  unset key
  set multiplot
  eval note_on(wide, high)
  do for [k=1:4] {
    if (k <= 2) { unset logscale y; set yrange [0:(k == 1 ? most : 1.02)]; set format y "%g" } else { set logscale y; set format y "10^{%T}" }
    if (k > 2) { set yrange [10**(lo[k] - 0.1):10**(hi[k] + 0.1)] }
    do for [c=1:shown] {
      set lmargin at screen (1.9 + 4.4 * (c - 1)) / wide
      set rmargin at screen (1.9 + 4.4 * (c - 1) + 3.9) / wide
      set tmargin at screen 1.0 - (0.7 + 4.4 * (k - 1)) / high
      set bmargin at screen 1.0 - (0.7 + 4.4 * (k - 1) + 3.9) / high
      if (k == 1) { set title "G = ".size_name[shown_size[c]] offset 0,-0.6 } else { unset title }
      if (c == 1) { set ylabel what[k] offset 1,0; set ytics } else { unset ylabel; set ytics format "" }
      if (k == 4) { set xlabel "KL(p‖q) / nats"; set format x "10^{%T}" } else { unset xlabel; set format x "" }
      plot for [a=1:algorithms] name.".tsv" index (a - 1) * sizes + shown_size[c] - 1 using 3:column_of[k] with lines ls a notitle
      eval note_off
    }
  }
  eval legend_panel(wide, high)
  plot for [a=1:algorithms] NaN with lines ls a title algorithm_name[a]
  unset multiplot
  set output
}
