# Lines with shaded intervals: columns panel, line, x, value, low, high. Intervals lie below all
# lines, lines below all marks. raw: as many blocks again hold every update, drawn as thin lines.
block(p, i) = panel_of[p] * lines + in_order[i] - 1
bounded(y, p) = y < low[p] ? low[p] : y > high[p] ? high[p] : y
raw_block(p, i) = panels_in_all * lines + block(p, i)
if (!exists("raw")) { raw = 0 }
first_mark(i) = 2 * in_order[i] % points_to_a_mark
# Many intervals over one another are shaded less, so that they stay a background.
shaded = 0
do for [i=1:lines] { if (!line_grey[i]) { shaded = shaded + 1 } }
shade = shaded > 4 ? 0.52 / shaded : 0.13
if (!exists("reference")) { reference = "" }
do for [to in formats] {
  eval page(to)
  set multiplot
  do for [p=1:panels] {
    eval place(p)
    if (p == 1) { eval write_texts; eval write_samples }
    plot for [i=1:lines] name.".tsv" index block(p, i) using 3:(line_grey[in_order[i]] ? NaN : bounded($5, p)):(bounded($6, p)) with filledcurves lc rgb line_colour[in_order[i]] fs transparent solid shade noborder notitle, \
         (reference eq "1" ? 1 : reference eq "x" ? x : NaN) with lines lc rgb "#808080" dt (1,2) lw 0.8 notitle, \
         for [i=1:raw*lines] name.".tsv" index raw_block(p, i) using 3:(line_grey[in_order[i]] ? NaN : $4) with lines lc rgb "#90".line_colour[in_order[i]][2:7] lw 0.4 notitle, \
         for [i=1:lines] name.".tsv" index block(p, i) using 3:4 with lines ls in_order[i] notitle, \
         for [i=1:lines] name.".tsv" index block(p, i) every points_to_a_mark::first_mark(i) using 3:(line_grey[in_order[i]] ? NaN : $4) with points ls in_order[i] dt solid notitle
    if (p == 1) { eval clear }
  }
  unset multiplot
  set output
}
