# Stands for sympy, see required.py.
HALF = 0.5
