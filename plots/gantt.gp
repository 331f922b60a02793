# Bars in named rows: columns panel, row, kind, from, to, from below, to above; and, in blocks behind
# those of the bars' kinds, marks where something is thrown away or lost: panel, row, kind, at, height.
set bars 0
unset grid
set grid x ls 100 back
block(k) = k - 1
# A thin white line parts a bar that is broad enough from the next one.
is_broad(p, from, to) = to - from > 0.004 * (x_high[p] - x_low[p])
mark(k) = line_mark[lines + k] > 0
do for [to in formats] {
  eval page(to)
  set multiplot
  do for [p=1:panels] {
    eval place(p)
    set ytics ("" -1)
    do for [a=2:lines] { set ytics add ("" -a) }
    if (p == 1) { eval write_texts; eval write_samples }
    plot for [k=1:kinds] name.".tsv" index block(k) using (mark(k) ? NaN : 0.5*($4+$5)):(mark(k) ? NaN : 0.5*($6+$7)):4:5:6:(mark(k) ? column(5) : column(7)) with boxxyerror fillcolor rgb line_colour[lines + k] fs solid noborder notitle, \
         for [k=1:kinds] name.".tsv" index block(k) using (mark(k) || !is_broad(p, $4, $5) ? NaN : $5):6:(0):(mark(k) ? 0 : column(7) - $6) with vectors nohead lc rgb "white" lw 0.4 notitle, \
         for [k=1:kinds] name.".tsv" index block(k) using (mark(k) ? $4 : NaN):5 with points ls (lines + k) lw 1.4 notitle
    if (p == 1) { eval clear }
  }
  unset multiplot
  set output
}
