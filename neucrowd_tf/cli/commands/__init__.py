"""The commands, one file each: flags, what they read and what they write."""
