"""What is learnt from efforts, and how it rests on disk."""
