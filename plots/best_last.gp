# Dots with whiskers, one line of the panel per algorithm: columns panel, line, place from above,
# value, low, high.
set bars 0
end(c) = valid(c) ? column(c) : column(4)
do for [to in formats] {
  eval page(to)
  set multiplot
  unset key
  set yrange [-lines - 0.6:-0.4]
  do for [p=1:panels] {
    eval place(p)
    set title headed(p) offset 0,-0.7
    set xlabel axis[p] offset 0,0.4
    set xrange [low[p]:high[p]]
    set xtics marks_apart(high[p] - low[p], floor(broad / 0.8))
    set ytics ("" -1)
    do for [a=1:lines] { set ytics add ((is_first(p) ? line_mark[a] : "") -a) }
    plot for [a=1:lines] name.".tsv" index (p - 1) * lines + a - 1 using 4:(-$3):(end(5)):(end(6)) with xerrorbars lc rgb colour[(a - 1) % 12 + 1] pt 0 lw 1.2 notitle, \
         for [a=1:lines] name.".tsv" index (p - 1) * lines + a - 1 using 4:(-$3) with points ls a notitle
  }
  unset multiplot
  set output
}
