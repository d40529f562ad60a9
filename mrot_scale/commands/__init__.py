"""The commands, one function each: options in, a job called, its result printed."""
