# Shares of updates by staleness, bars simulated and steps measured: columns panel, line, staleness,
# share.
do for [to in formats] {
  eval page(to)
  set multiplot
  set boxwidth 0.85
  do for [p=1:panels] {
    eval place(p)
    set title headed(p) offset 0,-0.7
    if (is_lowest(p)) { set xlabel x_axis offset 0,0.4 } else { unset xlabel }
    if (is_first(p)) { eval name_axis(p); set ytics format "%h" } else { unset label 2; set ytics format "" }
    set xrange [x_low:x_high]
    set yrange [0:high[p]]
    set xtics marks_apart(x_high - x_low, floor(broad / 0.7))
    set label 1 note[p] at graph 0.97, 0.94 right
    unset key
    if (lines == 1) {
      plot name.".tsv" index p - 1 using 3:4 with boxes lc rgb colour[1] fs solid 0.45 noborder notitle
    } else {
      plot name.".tsv" index 2 * p - 2 using 3:4 with boxes lc rgb colour[1] fs solid 0.45 noborder notitle, \
           name.".tsv" index 2 * p - 1 using 3:4 with histeps lc rgb colour[2] lw 1.3 notitle
    }
  }
  if (legend_rows > 0) {
    eval place_legend
    plot NaN with boxes lc rgb colour[1] fs solid 0.45 noborder title line_name[1], NaN with lines lc rgb colour[2] lw 1.3 title line_name[2]
  }
  unset multiplot
  set output
  eval furnish
}
