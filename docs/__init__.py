"""Documentation: pages, and the code that fills them."""
