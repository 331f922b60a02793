# Dots with whiskers, one line of the panel per algorithm: columns panel, line, number of the line,
# value, low, high, and where a row leads from one value to another: value, low, high of the other.
end(c) = valid(c) ? column(c) : column(4)
end_to(c) = valid(c) ? column(c) : column(7)
if (!exists("pairs")) { pairs = 0 }
set bars 0
block(p, a) = panel_of[p] * lines + a - 1
do for [to in formats] {
  eval page(to)
  set multiplot
  do for [p=1:panels] {
    eval place(p)
    set ytics ("" -1)
    do for [a=2:rows] { set ytics add ("" -a) }
    if (p == 1) { eval write_texts; eval write_samples }
    plot for [a=1:lines] name.".tsv" index block(p, a) using 4:(-row_of[a]):(end(5)):(end(6)) with xerrorbars lc rgb line_colour[a] pt 0 lw 1 notitle, \
         for [a=1:lines] name.".tsv" index block(p, a) using (pairs ? column(7) : NaN):(-row_of[a]):(end_to(8)):(end_to(9)) with xerrorbars lc rgb line_colour[a] pt 0 lw 1 notitle, \
         for [a=1:lines] name.".tsv" index block(p, a) using (pairs ? $4 : NaN):(-row_of[a]):(pairs ? column(7) - $4 : NaN):(0) with vectors nohead lc rgb line_colour[a] lw 2.2 notitle, \
         for [a=1:lines] name.".tsv" index block(p, a) using 4:(-row_of[a]) with points ls a ps (pairs ? 0.5 : 0.42) pt (pairs ? 7 : line_mark[a]) notitle, \
         for [a=1:lines] name.".tsv" index block(p, a) using (pairs ? column(7) : NaN):(-row_of[a]) with points lc rgb "white" pt 7 ps 0.5 notitle, \
         for [a=1:lines] name.".tsv" index block(p, a) using (pairs ? column(7) : NaN):(-row_of[a]) with points lc rgb line_colour[a] pt 6 ps 0.5 notitle
    if (p == 1) { eval clear }
  }
  unset multiplot
  set output
}
