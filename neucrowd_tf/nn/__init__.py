"""Keras parts that stand on their own: encoders, similarities and losses."""
