# Curves over updates with shaded intervals: columns panel, line, x, value, low, high.
block(p, a) = (p - 1) * lines + a - 1
bounded(y, p) = y < low[p] ? low[p] : y > high[p] ? high[p] : y
do for [to in formats] {
  eval page(to)
  set multiplot
  unset key
  do for [p=1:panels] {
    eval place(p)
    set title headed(p) offset 0,-0.7
    set xrange [x_low:x_high]
    unset logscale
    set yrange [low[p]:high[p]]
    set xtics marks_apart(x_high - x_low, floor(broad / 0.7))
    if (is_lowest(p)) { set xlabel x_axis offset 0,0.4 } else { unset xlabel }
    set xtics format (is_lowest(p) || titled ? "%h" : "")
    if (is_first(p)) { eval name_axis(p) } else { unset label 2 }
    if (logarithmic[p]) { set logscale y; set ytics autofreq } else { set ytics marks_apart(high[p] - low[p], floor(tall / 0.5)) }
    set ytics format (!is_first(p) ? "" : logarithmic[p] ? "10^{%T}" : "%h")
    plot for [a=1:lines] name.".tsv" index block(p, a) using 3:(bounded($5, p)):(bounded($6, p)) with filledcurves lc rgb colour[(a - 1) % 12 + 1] fs transparent solid 0.12 noborder notitle, \
         for [a=1:lines] name.".tsv" index block(p, a) using 3:4 with lines ls a notitle, \
         for [a=1:lines] name.".tsv" index block(p, a) every 5::(2 * a % 5) using 3:4 with points ls a notitle
  }
  if (legend_rows > 0) {
    eval place_legend
    plot for [a=1:lines] NaN with linespoints ls a title line_name[a]
  }
  unset multiplot
  set output
  eval furnish
}
