"""What is declared once: arguments and flags, variants of a method, and the registry of names."""
