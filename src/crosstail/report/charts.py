"""Colours that all charts share."""

PALETTE = [
    "#0072B2",
    "#E69F00",
    "#009E73",
    "#CC79A7",
    "#56B4E9",
    "#D55E00",
]  # Okabe and Ito's, safe for colour blindness
INK = "#8a8a92"  # legible on white and on black: the page may be either
