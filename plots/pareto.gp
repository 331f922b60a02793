# Points with intervals both ways, and a line through those of the second kind: columns panel, kind,
# x, its low and high, y, its low and high. Candidates are small.
block(p, i) = panel_of[p] * lines + in_order[i] - 1
if (!exists("limit")) { limit = NaN }
do for [to in formats] {
  eval page(to)
  set multiplot
  do for [p=1:panels] {
    eval place(p)
    if (p == 1) { eval write_texts; eval write_samples }
    if (limit == limit) { set arrow 900 from limit, graph 0 to limit, graph 1 nohead lc rgb "#808080" dt (4,3) lw 0.8 back }
    plot for [i=1:lines] name.".tsv" index block(p, i) using 3:6:4:5:7:8 with xyerrorbars lc rgb line_colour[in_order[i]] lw 0.6 ps 0 notitle, \
         name.".tsv" index panel_of[p] * lines + 1 using 3:6 with lines ls 2 notitle, \
         for [i=1:lines] name.".tsv" index block(p, i) using 3:6 with points ls in_order[i] dt solid ps (in_order[i] == 1 ? 0.2 : 0.42) notitle
    if (limit == limit) { unset arrow 900 }
    if (p == 1) { eval clear }
  }
  unset multiplot
  set output
}
