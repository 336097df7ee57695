"""Which samples are trained on, selected on and tested on."""
