"""Parts of the documentation that are made from the code, by functions that return text."""
