"""Tasks run on workers; what they made is committed by the driver alone."""
