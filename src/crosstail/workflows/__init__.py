"""The verbs: one file and one function each, which does what the command of that name does and returns an object."""
