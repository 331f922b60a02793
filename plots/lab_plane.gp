# The plane of squared bias and variance: a line per algorithm from small KL to large, a panel per
# group size. Unbiased estimates stand at the left edge; on the dotted diagonal squared bias equals
# variance.
wide = 2.2 + 5.2 * shown + legend_across
high = 6.8 + note_high
lo = 300; hi = -300; most = -300
do for [b=0:algorithms*sizes-1] {
  stats name.".tsv" index b using (column(10) > 0 ? log10(column(10)) : NaN) nooutput
  lo = STATS_min < lo ? STATS_min : lo
  hi = STATS_max > hi ? STATS_max : hi
  stats name.".tsv" index b using (column(7) > 1e-3 ? 2 * log10(column(7)) : -5) nooutput
  most = STATS_max > most ? STATS_max : most
}
do for [to in formats] {
  eval page(to, wide, high)
  eval furnish
  set logscale xy
  set format "10^{%T}"
  set yrange [10**(lo - 0.2):10**(hi + 0.2)]
  set xrange [1e-5:10**(most + 0.2)]
  unset key
  set multiplot
  eval note_on(wide, high)
  do for [c=1:shown] {
    set lmargin at screen (1.8 + 5.2 * (c - 1)) / wide
    set rmargin at screen (1.8 + 5.2 * (c - 1) + 4.6) / wide
    set tmargin at screen 1.0 - 0.8 / high
    set bmargin at screen (1.5 + note_high) / high
    set title "G = ".size_name[shown_size[c]] offset 0,-0.6
    set xlabel "squared bias"
    if (c == 1) { set ylabel "variance  tr Cov"; set ytics format "10^{%T}" } else { unset ylabel; set ytics format "" }
    plot x with lines lc rgb "#a0a0a0" dt 3 lw 1 notitle, \
         for [a=1:algorithms] name.".tsv" index (a - 1) * sizes + shown_size[c] - 1 using (column(7)**2 > 1e-5 ? column(7)**2 : 1e-5):10 with linespoints ls a pi 5 notitle
    eval note_off
  }
  eval legend_panel(wide, high)
  plot for [a=1:algorithms] NaN with linespoints ls a title algorithm_name[a]
  unset multiplot
  set output
}
