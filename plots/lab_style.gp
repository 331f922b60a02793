# The laboratory's figures: pages of any size.
page(to, w, h) = to eq "pdf" ? \
  sprintf("set terminal pdfcairo size %gcm,%gcm font 'Sans,7'; set output '%s.pdf'", w, h, name) : \
  sprintf("set terminal pngcairo size %d,%d font 'Sans,7' fontscale 2.3 linewidth 2 pointscale 2; set output '%s.png'", w * 79, h * 79, name)
