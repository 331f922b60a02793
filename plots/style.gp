# A study's figures: the page in centimetres, panels in a grid, the legend below them.
columns = panels < wide ? panels : wide
rows = (panels + columns - 1) / columns
left = named_rows ? 0.85 + 0.15 * longest_name : 1.75
tall = named_rows ? 0.4 + 0.3 * lines : columns > 2 ? 3.1 : 3.8
gap = shared ? 0.35 : left
broad = (17.0 - left - 0.3 - (columns - 1) * gap) / columns
if (broad > 8) broad = 8
# A heading that is broader than its panel is broken at its commas.
fits(t) = strlen(t) * 0.145 < broad + gap
comma(t) = strstrt(t, ", ")
broken(t) = comma(t) == 0 ? t : t[1:comma(t)]."\n".broken(t[comma(t)+2:*])
lines_of(t) = comma(t) == 0 ? 1 : 1 + lines_of(t[comma(t)+2:*])
headed(p) = fits(title[p]) ? title[p] : broken(title[p])
heading_lines = 1
do for [p=1:panels] { if (!fits(title[p]) && lines_of(title[p]) > heading_lines) { heading_lines = lines_of(title[p]) } }
heading_high = 0.3 * (heading_lines - 1)
titled = panels > columns && strlen(title[columns + 1]) > 0
between = titled ? 1.25 + heading_high : named_rows ? 1.15 : shared ? 0.4 : 0.7
above = strlen(title[1]) > 0 ? 0.7 + heading_high : 0.3
page_width = left + columns * broad + (columns - 1) * gap + 0.3
fit = floor((page_width - 1.0) / (1.7 + 0.17 * longest_name))
legend_wide = fit < 1 ? 1 : fit
legend_rows = named_rows || lines < 2 ? 0 : (lines + legend_wide - 1) / legend_wide
if (legend_rows > 0) legend_wide = (lines + legend_rows - 1) / legend_rows
page_height = above + rows * tall + (rows - 1) * between + 1.15 + 0.42 * legend_rows + note_high

across(cm) = cm / page_width
down(cm) = 1.0 - cm / page_height
column_of(p) = (p - 1) % columns
row_of(p) = (p - 1) / columns
# The last panel above the legend in its column carries the x axis's name.
is_lowest(p) = p + columns > panels
is_first(p) = column_of(p) == 0
place(p) = sprintf("set lmargin at screen %g; set rmargin at screen %g; set tmargin at screen %g; set bmargin at screen %g; %s", \
  across(left + column_of(p) * (broad + gap)), across(left + column_of(p) * (broad + gap) + broad), \
  down(above + row_of(p) * (tall + between)), down(above + row_of(p) * (tall + between) + tall), p == 1 ? note_on(page_width, page_height) : note_off)
# The axis's name stands at one distance from all panels, however wide their numbers are.
name_axis(p) = sprintf("set label 2 axis[%d] at screen %g, screen %g center rotate by 90 font ',%g'", p, \
  across(left + column_of(p) * (broad + gap) - (left - 0.35)), down(above + row_of(p) * (tall + between) + tall / 2), 6.3 * letters)
place_legend = sprintf("unset label; set lmargin at screen 0.01; set rmargin at screen 0.99; set tmargin at screen %g; set bmargin at screen %g; unset title; unset xlabel; unset tics; unset grid; unset border; unset logscale; set xrange [0:1]; set yrange [0:1]; set key center center horizontal maxcols %d Left reverse samplen 2.2 width 1.5 spacing 1.1", \
  (0.42 * legend_rows + note_high) / page_height, 0.005 + note_high / page_height, legend_wide)
page(to) = to eq "pdf" ? \
  sprintf("set terminal pdfcairo size %gcm,%gcm font 'Sans,7' fontscale 0.8 linewidth 0.9 pointscale 0.85; set output name.'.pdf'.aside", page_width, page_height) : \
  to eq "png" ? \
  sprintf("set terminal pngcairo size %d,%d font 'Sans,7' fontscale 2.9 linewidth 2.4 pointscale 2.4; set output name.'.png'.aside", page_width * 98, page_height * 98) : \
  svg(page_width, page_height, 1.7)
