"""`python -m neucrowd_tf`: the installed command, `neucrowd`."""

from __future__ import annotations

from neucrowd_tf.harness.cli import console_main

if __name__ == "__main__":
    console_main()
