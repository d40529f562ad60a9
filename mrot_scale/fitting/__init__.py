"""The stages of fitting, one module each; `in_memory` is the list of them in order."""
