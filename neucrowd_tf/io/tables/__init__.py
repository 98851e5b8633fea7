"""Tables: how they are written, what columns they have, CSVs read and written."""
