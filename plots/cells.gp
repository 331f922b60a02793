# Values with whiskers against a swept quantity, side by side: columns panel, line, x, value, low,
# high. The curves of one place are spread by at most 0.6 of the distance to the next.
spread = lines > 7 ? 0.6 : 0.1 * (lines - 1)
aside(a) = lines < 2 ? 0 : spread * ((a - 1.0) / (lines - 1) - 0.5)
set bars 0.4
# Where there is no interval its ends hide behind the point.
end(c) = valid(c) ? column(c) : column(4)
do for [to in formats] {
  eval page(to)
  set multiplot
  eval "set xtics (".x_marks.")"
  do for [p=1:panels] {
    eval place(p)
    set title headed(p) offset 0,-0.7
    if (is_lowest(p)) { set xlabel x_axis offset 0,0.4 } else { unset xlabel }
    eval name_axis(p)
    set xrange [x_low - 0.35:x_high + 0.35]
    unset logscale
    set yrange [low[p]:high[p]]
    if (logarithmic[p]) { set logscale y; set ytics autofreq format "10^{%T}" } else { set ytics marks_apart(high[p] - low[p], floor(tall / 0.5)) format "%h" }
    unset key
    plot for [a=1:lines] name.".tsv" index (p - 1) * lines + a - 1 using ($3 + aside(a)):4 with lines lc rgb colour[(a - 1) % 12 + 1] lw 0.5 notitle, \
         for [a=1:lines] name.".tsv" index (p - 1) * lines + a - 1 using ($3 + aside(a)):4:(end(5)):(end(6)) with yerrorbars lc rgb colour[(a - 1) % 12 + 1] pt 0 lw 0.9 notitle, \
         for [a=1:lines] name.".tsv" index (p - 1) * lines + a - 1 using ($3 + aside(a)):4 with points ls a notitle
  }
  if (legend_rows > 0) {
    eval place_legend
    plot for [a=1:lines] NaN with points ls a title line_name[a]
  }
  unset multiplot
  set output
  eval furnish
}
