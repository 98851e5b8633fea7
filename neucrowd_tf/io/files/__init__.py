"""Files as files: text, JSON and arrays, written whole or not at all."""
