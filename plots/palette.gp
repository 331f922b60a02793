# Of every figure: the file format, the axes, the colours, points and dashes.
set datafile separator "\t"
set encoding utf8
set style line 100 lc rgb "#d8d8d8" lw 0.5
# Axes as every panel has them; the legend's panel takes them away.
furnish = "set grid ls 100; set border 3 lw 0.75; set tics; set tics nomirror out scale 0.4; unset logscale"
eval furnish

# Okabe and Ito's colours, then four of Tol's. Each has its own point, and neighbours their own
# dash, so that curves part in grey too; a thirteenth begins again with other dashes.
array colour[12] = ["#0072B2", "#D55E00", "#009E73", "#CC79A7", "#E69F00", "#56B4E9", "#000000", "#882255", "#999933", "#332288", "#888888", "#44AA99"]
array mark[12] = [7, 5, 9, 11, 13, 6, 4, 8, 10, 12, 15, 2]
array dash[3] = ["solid", "(9,3)", "(9,3,2,3)"]
do for [i=1:96] {
  k = (i - 1) % 12 + 1
  eval sprintf("set style line %d lc rgb '%s' dt %s lw 1.3 pt %d ps 0.5", i, colour[k], dash[(k - 1 + (i - 1) / 12) % 3 + 1], mark[k])
}
