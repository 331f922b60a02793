# Evaluation score against learner update, one panel per combination of swept values.
wide = panels < 4 ? panels : 4
rows = (panels + wide - 1) / wide
do for [to in "pdf png"] {
  eval page(to, 5 + 4.5 * wide, 2 + 4.5 * rows)
  top = 1.0 - 1.5 / (2 + 4.5 * rows)
  set multiplot
  set xlabel "learner update"
  set yrange [low:high]
  do for [p=1:panels] {
    c = (p - 1) % wide
    r = (p - 1) / wide
    set lmargin at screen (1.4 + 4.5 * c) / (5 + 4.5 * wide)
    set rmargin at screen (1.4 + 4.5 * c + 3.6) / (5 + 4.5 * wide)
    set tmargin at screen 1.0 - (0.8 + 4.8 * r) / (2 + 4.5 * rows)
    set bmargin at screen 1.0 - (0.8 + 4.8 * r + 3.2) / (2 + 4.5 * rows)
    set title panel_title[p]
    if (c == 0) { set ylabel "evaluation score" } else { unset ylabel }
    if (p == wide) { set key at screen 1.0 - 3.0 / (5 + 4.5 * wide), screen 1.0 - 0.8 / (2 + 4.5 * rows) left top Left reverse } else { unset key }
    plot for [a=1:algorithms] name.".tsv" index (p - 1) * algorithms + a - 1 using 3:5:6 with filledcurves lc rgb colour[(a - 1) % 8 + 1] fs transparent solid 0.15 noborder notitle, \
         for [a=1:algorithms] name.".tsv" index (p - 1) * algorithms + a - 1 using 3:4 with linespoints ls a pi -5 title algorithm_name[a]
  }
  unset multiplot
  set output
}
