"""Each kind of file once, a room each: files as such, tables, features, labels, tools' exports."""
