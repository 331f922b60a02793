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

# A round distance between marks, at most n of them in the range.
round_up(m) = m <= 1 ? 1 : m <= 2 ? 2 : m <= 5 ? 5 : 10
power_below(x) = 10.0 ** floor(log10(x))
marks_apart(range, n) = round_up(range / n / power_below(range / n)) * power_below(range / n)

# What a figure does not show, in lines at the foot of the page (left_out[i], 4 at most): drawn with
# the first panel only, for labels are drawn again with every panel. Page sizes are in centimetres.
note_high = left_out_lines > 0 ? 0.3 * left_out_lines + 0.1 : 0.0
note_line(i, w, h) = i > left_out_lines ? "" : sprintf("set label %d left_out[%d] at screen %g, screen %g left font ',%g'; ", 90 + i, i, 0.3 / w, (0.3 * (left_out_lines - i) + 0.25) / h, 5.5 * letters)
note_on(w, h) = note_line(1, w, h).note_line(2, w, h).note_line(3, w, h).note_line(4, w, h)
note_away(i) = i > left_out_lines ? "" : sprintf("unset label %d; ", 90 + i)
note_off = note_away(1).note_away(2).note_away(3).note_away(4)

# A page for the web. Of this terminal gnuplot measures text by the size of the font and not by
# fontscale, so that here the fonts themselves are larger, by `letters`. A centimetre is 60 units.
letters = 1.0
svg(w, h, larger) = sprintf("letters = %g; set terminal svg size %d,%d font 'sans-serif,%g' linewidth 1.4 background 'white'; set output name.'.svg'.aside", larger, 60 * w, 60 * h, 7 * larger)
