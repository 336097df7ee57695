"""Colours that all charts share."""

# Okabe and Ito's, which colour-blind readers can tell apart.
PALETTE = ["#0072B2", "#E69F00", "#009E73", "#CC79A7", "#56B4E9", "#D55E00"]
INK = "#8a8a92"  # readable on white and on black: the page may be either
