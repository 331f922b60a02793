# Coloured cells with contours: columns panel, "cell", x from, x to, y from, y to, value; and, in
# blocks behind those of all panels, panel, "contour", x, y.
if (diverging) {
  set palette defined (0 "#0d3b8c", 0.3 "#7fa8d9", 0.5 "#ffffff", 0.7 "#f0a860", 1 "#a63f00")
} else {
  set palette defined (0 "#fff7d6", 0.25 "#f2d06b", 0.5 "#c98f5a", 0.75 "#7d4f72", 1 "#1d1a4f")
}
clip(v) = v < bar_low ? bar_low : v > bar_high ? bar_high : v
colour_bar = sprintf("set cbrange [%.12g:%.12g]; %s logscale cb; set cbtics (%s) scale 0.4 offset -0.6,0; set colorbox vertical user origin screen %g, screen %g size screen %g, screen %g border", bar_low, bar_high, bar_logarithmic ? "set" : "unset", bar_tics[1], bar_x, bar_y, bar_broad, bar_tall)
over(a, b, end) = b + 0.06 * (b - a) < end ? b + 0.06 * (b - a) : b
unset grid
do for [to in formats] {
  eval page(to)
  set multiplot
  do for [p=1:panels] {
    eval place(p)
    eval colour_bar
    if (p == 1) { eval write_texts } else { unset colorbox }
    # Cells reach a little into the next ones, or viewers would show gaps between them.
    plot name.".tsv" index panel_of[p] using (0.5*($3+$4)):(0.5*($5+$6)):3:(over($3,$4,x_high[p])):5:(over($5,$6,high[p])):(clip($7)) with boxxyerror fillcolor palette fs solid noborder notitle, \
         name.".tsv" index panels_in_all + panel_of[p] using 3:4 with lines lc rgb "#000000" lw 1.1 notitle
    if (p == 1) { eval clear }
  }
  unset multiplot
  set output
}
