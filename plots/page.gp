# Pages without a grid of panels, of any size, whose scripts lay them out themselves.
page(to, w, h) = to eq "pdf" ? \
  sprintf("set terminal pdfcairo size %gcm,%gcm font 'Sans,7'; set output name.'.pdf'.aside", w, h) : \
  to eq "png" ? \
  sprintf("set terminal pngcairo size %d,%d font 'Sans,7' fontscale 2.3 linewidth 2 pointscale 2; set output name.'.png'.aside", w * 79, h * 79) : \
  svg(w, h, 2.1)
# Room for the legend at the right, in centimetres: its samples and the longest name.
legend_across = exists("longest_name") && longest_name > 10 ? 1.6 + 0.155 * longest_name : 3.2
# A strip of its own at the right: gnuplot cuts a key to the height of the panel that it belongs to.
legend_panel(w, h) = sprintf("unset title; unset xlabel; unset ylabel; unset logscale; unset tics; unset grid; unset border; set lmargin at screen %g; set rmargin at screen 0.995; set tmargin at screen %g; set bmargin at screen 0.01; set xrange [0:1]; set yrange [0:1]; set key at graph 0, graph 1 left top Left reverse samplen 2", \
  1.0 - legend_across / w, 1.0 - 0.7 / h)
