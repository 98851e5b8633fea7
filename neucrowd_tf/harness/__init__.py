"""The harness: flags -> dataset -> method -> run folder. Nothing here imports TensorFlow before it
is needed.
"""
