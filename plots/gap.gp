# Curves with best and last: as curves.gp, and behind the blocks of all curves one for each: panel,
# line, x of the best, best, x of the last, last.
block(p, i) = panel_of[p] * lines + in_order[i] - 1
behind(p, i) = panels_in_all * lines + block(p, i)
bounded(y, p) = y < low[p] ? low[p] : y > high[p] ? high[p] : y
do for [to in formats] {
  eval page(to)
  set multiplot
  do for [p=1:panels] {
    eval place(p)
    if (p == 1) { eval write_texts; eval write_samples }
    plot for [i=1:lines] name.".tsv" index block(p, i) using 3:(line_grey[in_order[i]] ? NaN : bounded($5, p)):(bounded($6, p)) with filledcurves lc rgb line_colour[in_order[i]] fs transparent solid 0.13 noborder notitle, \
         for [i=1:lines] name.".tsv" index block(p, i) using 3:4 with lines ls in_order[i] notitle, \
         for [i=1:lines] name.".tsv" index behind(p, i) using (line_grey[in_order[i]] ? NaN : $3):4:($5-$3):(0) with vectors nohead lc rgb line_colour[in_order[i]] dt (2,3) lw 0.8 notitle, \
         for [i=1:lines] name.".tsv" index behind(p, i) using (line_grey[in_order[i]] ? NaN : $5):4:(0):($6-$4) with vectors nohead lc rgb line_colour[in_order[i]] lw 2.6 notitle, \
         for [i=1:lines] name.".tsv" index behind(p, i) using (line_grey[in_order[i]] ? NaN : $3):4 with points ls in_order[i] ps 0.7 notitle, \
         for [i=1:lines] name.".tsv" index behind(p, i) using (line_grey[in_order[i]] ? NaN : $5):6 with points lc rgb "white" pt 7 ps 0.65 notitle, \
         for [i=1:lines] name.".tsv" index behind(p, i) using (line_grey[in_order[i]] ? NaN : $5):6 with points lc rgb line_colour[in_order[i]] pt 6 ps 0.65 lw 1.2 notitle
    if (p == 1) { eval clear }
  }
  unset multiplot
  set output
}
