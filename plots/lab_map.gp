# MSE of each later algorithm over that of the first, over KL and group size: blue where it is lower,
# orange where the first one's is; white is equality.
# A panel is as broad as its heading needs.
heading(a) = sprintf("%s / %s", algorithm_name[a], algorithm_name[1])
across = 0.5 + 0.135 * (longest_name + strlen(algorithm_name[1]) + 3)
if (across < 4.6) { across = 4.6 }
wide = 3.2 + across * (algorithms - 1) + 1.6
high = 12.0 + note_high
data = name.".tsv"
array what[2] = ["MSE", "scaled MSE"]
set xrange [0.5:sizes + 0.5]
set ytics ("10^{-3}" -3, "10^{-2}" -2, "10^{-1}" -1, "1" 0, "10" 1)
set palette defined (-1.5 "#0072B2", -0.6 "#56B4E9", 0 "#ffffff", 0.6 "#E69F00", 1.5 "#D55E00")
set cbrange [-1.5:1.5]
set cbtics ("1/30" -1.477, "1/10" -1, "1/3" -0.477, "1" 0, "3" 0.477, "10" 1, "30" 1.477)
unset grid
unset key
set yrange [*:*] noextend
set xtics ()
do for [s=1:sizes] { set xtics add (size_name[s] s) }
clip(x) = x > 1.5 ? 1.5 : (x < -1.5 ? -1.5 : x)
do for [to in formats] {
  eval page(to, wide, high)
  set multiplot
  eval note_on(wide, high)
  do for [k=1:2] {
    do for [a=2:algorithms] {
      set lmargin at screen (2.6 + across * (a - 2)) / wide
      set rmargin at screen (2.6 + across * (a - 1) - 0.5) / wide
      set tmargin at screen 1.0 - (0.8 + 5.8 * (k - 1)) / high
      set bmargin at screen 1.0 - (0.8 + 5.8 * (k - 1) + 4.2) / high
      if (a == algorithms && k == 1) { set colorbox user origin screen 1.0 - 1.8 / wide, screen (1.3 + note_high) / high size screen 0.3 / wide, screen 1.0 - (2.1 + note_high) / high } else { unset colorbox }
      set title heading(a) offset 0,-0.6 font sprintf(",%g", 6.3 * letters)
      if (k == 2) { set xlabel "group size G" offset 0,0.3 } else { unset xlabel }
      if (a == 2) { set ylabel what[k]." ratio\n\nKL(p‖q) / nats" offset -1.5,0; set ytics ("10^{-3}" -3, "10^{-2}" -2, "10^{-1}" -1, "1" 0, "10" 1) } else { unset ylabel; set ytics ("" -3, "" -2, "" -1, "" 0, "" 1) }
      # Viewers of SVG blur between the points of an image, as if group sizes had values between them.
      if (to eq "svg") {
        plot data index (a - 2) using 1:(log10($3)):(clip(column(3 + k))) with image pixels
      } else {
        plot data index (a - 2) using 1:(log10($3)):(clip(column(3 + k))) with image
      }
      eval note_off
    }
  }
  unset multiplot
  set output
}
