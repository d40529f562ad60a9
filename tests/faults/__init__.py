"""What goes wrong, and what is left when it has: kills, losses, damage, hostile files."""
