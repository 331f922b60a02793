# The style of every figure: Okabe-Ito colours, each with its own dash and point, light grid.
set datafile separator "\t"
set encoding utf8
set style line 100 lc rgb "#d0d0d0" lw 0.5
set grid ls 100
set border 3 lw 0.75
set tics nomirror out scale 0.5
array colour[8] = ["#0072B2", "#D55E00", "#009E73", "#CC79A7", "#E69F00", "#56B4E9", "#000000", "#B8A800"]
array mark[8] = [7, 5, 9, 11, 13, 6, 4, 8]
do for [i=1:24] {
  k = (i - 1) % 8 + 1
  d = (k - 1) % 4 + (i - 1) / 8 + 1
  set style line i lc rgb colour[k] dt d lw 1.5 pt mark[k] ps 0.6
}
page(to, w, h) = to eq "pdf" ? \
  sprintf("set terminal pdfcairo size %gcm,%gcm font 'Sans,8'; set output '%s.pdf'", w, h, name) : \
  sprintf("set terminal pngcairo size %d,%d font 'Sans,8' fontscale 1.9 linewidth 2 pointscale 2; set output '%s.png'", w * 79, h * 79, name)
