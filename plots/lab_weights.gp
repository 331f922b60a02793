# Variance of p/q against that of p/E_q[q]: Bernoulli surfaces, unit normals, and the green region in
# which the group weight varies more.
wide = 18.4
high = 11.4
data = name.".tsv"
set palette defined (0 "#f7fbff", 0.5 "#56B4E9", 1 "#0072B2")
clip(x, m) = x > m ? m : x
do for [to in formats] {
  eval page(to, wide, high)
  set multiplot
  unset key
  do for [k=1:3] {
    x0 = 1.5 + 5.9 * (k - 1)
    set lmargin at screen x0 / wide; set rmargin at screen (x0 + 3.6) / wide
    set tmargin at screen 1.0 - 0.9 / high; set bmargin at screen 1.0 - 4.5 / high
    set colorbox user origin screen (x0 + 3.75) / wide, screen 1.0 - 4.5 / high size screen 0.22 / wide, screen 3.6 / high
    set xrange [0:1]; set yrange [0:1]
    set xlabel "p of Bernoulli(p)" offset 0,0.3
    if (k == 1) { set ylabel "q of Bernoulli(q)" offset 1,0 } else { unset ylabel }
    if (k == 1) {
      set title "Var[p/q] − Var[p/E_q q]" offset 0,-0.5
      set cbrange [-1:1]
      set palette defined (-1 "#009E73", -0.05 "#d9f0e6", 0 "#ffffff", 0.05 "#fde5d0", 1 "#D55E00")
      set cbtics ("≤−1" -1, "−0.5" -0.5, "0" 0, "0.5" 0.5, "≥1" 1)
      plot data index 0 using 1:2:(clip($4 - $5, 1)) with image
    }
    if (k == 2) {
      set title "the same, denominator as computed" offset 0,-0.5
      plot data index 0 using 1:2:(clip($4 - $6, 1)) with image
    }
    if (k == 3) {
      set title "KL(p‖q) / nats" offset 0,-0.5
      set palette defined (0 "#f7fbff", 0.5 "#56B4E9", 1 "#0072B2")
      set cbrange [0:2]; set cbtics ("0" 0, "0.5" 0.5, "1" 1, "1.5" 1.5, "≥2" 2)
      plot data index 0 using 1:2:(clip($3, 2)) with image
    }
  }
  set tmargin at screen 1.0 - 6.6 / high; set bmargin at screen 1.3 / high
  set lmargin at screen 1.5 / wide; set rmargin at screen 8.5 / wide
  set title "unit normals" offset 0,-0.5
  set xlabel "KL(p‖q) / nats" offset 0,0.3
  set ylabel "variance of the weight" offset 0.5,0
  set xrange [0:0.6]; set yrange [0:1]
  set key at graph 1, graph 0.56 right top Left reverse samplen 2
  set object 1 rectangle from 0, graph 0 to crossing_expected, graph 1 fc rgb "#009E73" fs transparent solid 0.18 noborder behind
  set label 1 "green region" at crossing_expected, 0.92 offset 0.6,0 tc rgb "#00714f"
  plot data index 1 using 3:4 with lines ls 2 title "p/q", \
       data index 1 using 3:5 with lines ls 1 title "p/E_q q", \
       data index 1 using 3:6 with lines ls 3 title "p/D, D as computed"
  unset object 1; unset label 1
  set lmargin at screen 10.4 / wide; set rmargin at screen 17.9 / wide
  set title "KL against the difference" offset 0,-0.5
  set ylabel "Var[p/q] − Var[p/E_q q]" offset 0.5,0
  set xrange [0:0.6]; set yrange [-1:1.1]
  set key at graph 0.98, graph 0.03 right bottom Left reverse samplen 2
  set object 1 rectangle from graph 0, first -1 to graph 1, first 0 fc rgb "#009E73" fs transparent solid 0.15 noborder behind
  set arrow 1 from 0, 0 to 0.6, 0 nohead lc rgb "#606060" lw 0.75
  plot data index 0 using 3:($4 - $5) with points pt 7 ps 0.12 lc rgb "#99999999" notitle, \
       keyentry with points pt 7 ps 0.5 lc rgb "#999999" title "Bernoulli pairs", \
       data index 1 using 3:($4 - $5) with lines ls 1 title "unit normals", \
       data index 1 using 3:($4 - $6) with lines ls 3 title "D as computed"
  unset object 1; unset arrow 1
  unset multiplot
  set output
}
