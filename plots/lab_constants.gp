# The smallest constant with which Theorem 1 is true on n outcomes, next to the theorem's own.
data = name.".tsv"
set logscale xy
set format "10^{%T}"
set xlabel "outcomes n (V^T for responses of T tokens)"
set ylabel "constant c in  Var[p/q] − Var[p/D] ≥ e^{KL} − c"
set key top left Left reverse samplen 2
do for [to in formats] {
  eval page(to, 11, 8)
  plot data using 1:2 with lines ls 2 title "Theorem 1: n^2 + 1", \
       data using 1:3 with lines ls 1 title "smallest valid, D = E_q q", \
       data using 1:4 with lines ls 3 title "smallest valid, D as computed", \
       0.325 * x**1.5 with lines lc rgb "#808080" dt 3 lw 1 title "0.325 n^{3/2}"
  set output
}
