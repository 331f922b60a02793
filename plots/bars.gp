# Shares of updates by staleness, bars simulated and steps measured: columns panel, line, staleness,
# share.
block(p, a) = panel_of[p] * lines + a - 1
set boxwidth 0.85
do for [to in formats] {
  eval page(to)
  set multiplot
  do for [p=1:panels] {
    eval place(p)
    if (p == 1) { eval write_texts; eval write_samples }
    if (lines == 1) {
      plot name.".tsv" index block(p, 1) using 3:4 with boxes lc rgb line_colour[1] fs solid 0.6 noborder notitle
    } else {
      plot name.".tsv" index block(p, 1) using 3:4 with boxes lc rgb line_colour[1] fs solid 0.6 noborder notitle, \
           name.".tsv" index block(p, 2) using 3:4 with histeps lc rgb line_colour[2] lw 1.2 notitle
    }
    if (p == 1) { eval clear }
  }
  unset multiplot
  set output
}
