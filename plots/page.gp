# Of every figure: the file formats, the axes, the lines, and what is written around the panels.
# Where everything stands has been computed (screen coordinates), and is the same in all formats.
set datafile separator "\t"
set encoding utf8
set style line 100 lc rgb "#dddddd" lw 0.5
furnish = "unset key; set grid ls 100 back; set border 3 lw 0.6 front; set tics front nomirror out scale 0.5,0.25; set xtics offset 0,0.35"
eval furnish
set clip two # a line through the panel whose points are both outside it
do for [i=1:lines+kinds] {
  eval sprintf("set style line %d lc rgb '%s' dt %s lw %g pt %d ps %g", i, line_colour[i], line_dash[i], line_grey[i] ? 0.6 : 1.2, line_mark[i], line_grey[i] && i <= lines ? 0 : 0.42)
}

# gnuplot takes a point of a PDF for 1/96 inch; a PNG has 300 dots an inch; a unit of SVG is 1/96 inch.
page(to) = to eq "pdf" ? \
  sprintf("set terminal pdfcairo size %gcm,%gcm font '%s,%g' fontscale 0.75 linewidth 0.9 pointscale 0.9; set output name.'.pdf'.aside", page_width, page_height, font, points) : \
  to eq "png" ? \
  sprintf("set terminal pngcairo size %d,%d font '%s,%g' fontscale 3.125 linewidth 2.6 pointscale 3.0; set output name.'.png'.aside", page_width * 300 / 2.54, page_height * 300 / 2.54, font, points) : \
  sprintf("set terminal svg size %d,%d font '%s,%g' linewidth 0.9 background 'white'; set output name.'.svg'.aside", page_width * 96 / 2.54, page_height * 96 / 2.54, font, points * 4 / 3)

# Before a panel is drawn, and behind it: texts and the legend's samples are drawn with the first one
# only, for gnuplot draws labels again with every panel.
margins(p) = sprintf("set lmargin at screen %g; set rmargin at screen %g; set tmargin at screen %g; set bmargin at screen %g", at_left[p], at_right[p], at_top[p], at_bottom[p])
scales(p) = (logarithmic[p] ? "set logscale y; " : "unset logscale y; ").(x_logarithmic[p] ? "set logscale x" : "unset logscale x")
ranges(p) = sprintf("set xrange [%.12g:%.12g]; set yrange [%.12g:%.12g]", x_low[p], x_high[p], low[p], high[p])
tics(p) = sprintf("set xtics (%s) offset 0,0.35; set ytics (%s)", x_tics[p], y_tics[p])
place(p) = margins(p)."; ".scales(p)."; ".ranges(p)."; ".tics(p)
aligned(i) = text_to[i] == 0 ? "left" : text_to[i] == 1 ? "center" : "right"
write_texts = "do for [i=1:texts] { eval sprintf('set label %d text_of[%d] at screen %g, screen %g %s rotate by %d front', i, i, text_x[i], text_y[i], aligned(i), text_turned[i] ? 90 : 0) }"
if (!exists("box_fill")) { box_fill = 0.6 }
sample_wide = 0.75 / page_width
sample_box(s) = sprintf("set object %d rectangle from screen %g, screen %g to screen %g, screen %g fc rgb '%s' fs solid %g noborder front", s, sample_x[s] + 0.3 * sample_wide, sample_y[s] - 0.09 / page_height, sample_x[s] + sample_wide, sample_y[s] + 0.09 / page_height, line_colour[sample_line[s]], box_fill)
sample_stroke(s) = sprintf("set arrow %d from screen %g, screen %g to screen %g, screen %g nohead ls %d front", s, sample_x[s], sample_y[s], sample_x[s] + sample_wide, sample_y[s], sample_line[s])
sample_point(s) = sprintf("set label %d '' at screen %g, screen %g point ls %d front", 5000 + s, sample_x[s] + 0.5 * sample_wide, sample_y[s], sample_line[s])
write_samples = "do for [s=1:samples] { eval (sample_is[s] == 3 ? sample_box(s) : sample_is[s] == 2 ? '' : sample_stroke(s)); eval (sample_is[s] == 0 || sample_is[s] == 2 ? sample_point(s) : '') }"
# What a shape draws besides has labels from 9000 and arrows and objects from 900.
clear = "do for [i=1:texts] { unset label i }; do for [s=1:samples] { eval (sample_is[s] == 3 ? sprintf('unset object %d', s) : sample_is[s] == 2 ? '' : sprintf('unset arrow %d', s)); eval (sample_is[s] == 0 || sample_is[s] == 2 ? sprintf('unset label %d', 5000 + s) : '') }"
