out = int("2", 1)
x = int("z", 0)
