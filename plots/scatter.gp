# Points with a line through them: columns panel, line, x, y; and, in blocks behind those of all
# panels, two points of each panel's line.
block(p, i) = panel_of[p] * lines + in_order[i] - 1
do for [to in formats] {
  eval page(to)
  set multiplot
  do for [p=1:panels] {
    eval place(p)
    if (p == 1) { eval write_texts; eval write_samples }
    plot for [i=1:lines] name.".tsv" index block(p, i) using 3:4 with points ls in_order[i] ps (line_grey[in_order[i]] ? 0.2 : 0.38) notitle, \
         name.".tsv" index panels_in_all * lines + panel_of[p] using 3:4 with lines lc rgb "#000000" lw 1.2 notitle
    if (p == 1) { eval clear }
  }
  unset multiplot
  set output
}
