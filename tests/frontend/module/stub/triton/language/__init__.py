class constexpr:
    def __init__(self, value):
        self.value = value


def exp2(x):
    raise NotImplementedError
