"""report.html: one self-contained page on a crowd, its annotators, doubtful items and a model.

`build.write_report` writes a run's page, and `build.build_report(annotations)` returns a crowd's
page as text. `neucrowd report --annotations=A.csv` writes it to a file.
"""
