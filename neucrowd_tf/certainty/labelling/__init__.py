"""Work with labels alone: files of them, the annotators who gave them, what to label again."""
