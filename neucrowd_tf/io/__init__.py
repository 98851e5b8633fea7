"""Each kind of file once, in rooms: files as such, names, tables, features, exports, labels."""
