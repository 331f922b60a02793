# The laboratory's figures: the colours, points and dashes of plots/style.gp, pages of any size.
set datafile separator "\t"
set encoding utf8
set style line 100 lc rgb "#d8d8d8" lw 0.5
set grid ls 100
set border 3 lw 0.75
set tics nomirror out scale 0.4
array colour[8] = ["#0072B2", "#D55E00", "#009E73", "#CC79A7", "#E69F00", "#56B4E9", "#000000", "#882255"]
array mark[8] = [7, 5, 9, 11, 13, 6, 4, 8]
array dash[3] = ["solid", "(9,3)", "(9,3,2,3)"]
do for [i=1:96] {
  k = (i - 1) % 8 + 1
  eval sprintf("set style line %d lc rgb '%s' dt %s lw 1.4 pt %d ps 0.4", i, colour[k], dash[(k - 1 + (i - 1) / 8) % 3 + 1], mark[k])
}
page(to, w, h) = to eq "pdf" ? \
  sprintf("set terminal pdfcairo size %gcm,%gcm font 'Sans,7'; set output '%s.pdf'", w, h, name) : \
  sprintf("set terminal pngcairo size %d,%d font 'Sans,7' fontscale 2.3 linewidth 2 pointscale 2; set output '%s.png'", w * 79, h * 79, name)
